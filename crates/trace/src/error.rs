//! What failed, on which thread.

use hairspring_model::Tid;
use std::io;

/// A request on a guest that failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation}{}: {}", self.place(), self.reason())]
#[non_exhaustive]
pub struct Error {
    operation: &'static str,
    thread: Option<Tid>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Call(io::Error),
    Died,
    Unsuitable(&'static str),
}

/// `ESRCH` (errno(3)).
const NO_SUCH_THREAD: i32 = 3;
/// `EPERM` (errno(3)).
const NOT_PERMITTED: i32 = 1;

impl Error {
    pub(crate) fn new(operation: &'static str, source: io::Error) -> Self {
        Self { operation, thread: None, kind: Kind::Call(source) }
    }

    pub(crate) fn on(operation: &'static str, tid: Tid, source: io::Error) -> Self {
        let died = source.raw_os_error() == Some(NO_SUCH_THREAD);
        let kind = if died { Kind::Died } else { Kind::Call(source) };
        Self { operation, thread: Some(tid), kind }
    }

    pub(crate) fn died(operation: &'static str, tid: Tid) -> Self {
        Self { operation, thread: Some(tid), kind: Kind::Died }
    }

    pub(crate) fn unsuitable(operation: &'static str, tid: Tid, why: &'static str) -> Self {
        Self { operation, thread: Some(tid), kind: Kind::Unsuitable(why) }
    }

    /// The thread that the request was about.
    pub fn thread(&self) -> Option<Tid> {
        self.thread
    }

    /// The kernel's error number.
    pub fn errno(&self) -> Option<i32> {
        match &self.kind {
            Kind::Call(source) => source.raw_os_error(),
            Kind::Died => Some(NO_SUCH_THREAD),
            Kind::Unsuitable(_) => None,
        }
    }

    /// Whether the thread died while it was stopped: killed, or its process ended or exec'd from
    /// another thread. Its [`crate::Stop::Ended`] follows.
    pub fn is_dead(&self) -> bool {
        matches!(self.kind, Kind::Died)
    }

    /// Whether the command does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(&self.kind, Kind::Call(source) if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether this process may not trace that one.
    pub fn is_denied(&self) -> bool {
        self.errno() == Some(NOT_PERMITTED)
    }

    /// Whether the stop is not of a kind that allows the request.
    pub fn is_unsuitable(&self) -> bool {
        matches!(self.kind, Kind::Unsuitable(_))
    }

    /// What to do about it, where something can be done.
    pub fn remedy(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Call(_) if self.is_denied() => Some(
                "a process can be traced once, by its own user; /proc/sys/kernel/yama/ptrace_scope \
                 above 0, a container without SYS_PTRACE, or a setuid program forbid it to others",
            ),
            Kind::Call(_) if self.is_not_found() => Some("give the path of an existing program"),
            _ => None,
        }
    }

    fn place(&self) -> String {
        self.thread.map(|tid| format!(" on thread {tid}")).unwrap_or_default()
    }

    fn reason(&self) -> String {
        match &self.kind {
            Kind::Call(source) => source.to_string(),
            Kind::Died => "the thread has died".to_owned(),
            Kind::Unsuitable(why) => (*why).to_owned(),
        }
    }
}
