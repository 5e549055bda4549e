//! What the kernel refused, for which thread, and by which of its layers.

use crate::Host;
use crate::refusal::{Refusal, explain};
use hairspring_model::{Cpu, Tid};
use std::io;

/// A perf call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation}{}: {source}", self.place())]
#[non_exhaustive]
pub struct Error {
    operation: &'static str,
    thread: Option<Tid>,
    cpu: Option<Cpu>,
    source: io::Error,
}

impl Error {
    pub(crate) fn new(operation: &'static str, source: io::Error) -> Self {
        Self { operation, thread: None, cpu: None, source }
    }

    pub(crate) fn on(self, thread: Option<Tid>, cpu: Option<Cpu>) -> Self {
        Self { thread, cpu, ..self }
    }

    /// The thread that the call was about; `None` for the calling one.
    pub fn thread(&self) -> Option<Tid> {
        self.thread
    }

    /// The kernel's error number.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Whether the thread has exited.
    pub fn is_gone(&self) -> bool {
        self.errno() == Some(nix::libc::ESRCH)
    }

    /// Whether all debug registers are taken.
    pub fn is_out_of_slots(&self) -> bool {
        self.errno() == Some(nix::libc::ENOSPC)
    }

    /// Whether a permission is missing.
    pub fn is_denied(&self) -> bool {
        matches!(self.errno(), Some(nix::libc::EACCES | nix::libc::EPERM))
    }

    /// Whether the process or the system has no descriptors left.
    pub fn is_out_of_descriptors(&self) -> bool {
        matches!(self.errno(), Some(nix::libc::EMFILE | nix::libc::ENFILE))
    }

    /// Which layer refused, and what to do about it.
    pub fn refusal(&self, host: &Host) -> Refusal {
        explain(self.operation, self.errno().unwrap_or(0), host)
    }

    fn place(&self) -> String {
        match (self.thread, self.cpu) {
            (Some(tid), Some(cpu)) => format!(" on thread {tid}, CPU {cpu}"),
            (Some(tid), None) => format!(" on thread {tid}"),
            (None, Some(cpu)) => format!(" on CPU {cpu}"),
            (None, None) => String::new(),
        }
    }
}
