//! Why a session could not be had.

use crate::plan::PlanError;
use hairspring_model::{Addr, Pid, Tid};
use hairspring_perf::{Host, Layer};
use std::fmt;
use std::io;

/// A session that could not be had. Nothing is left armed.
///
/// Its text says what was tried, on whom, and what the answer was; [`Error::remedy`] what to do.
#[derive(Debug, thiserror::Error)]
#[error("{operation}{}", Because(&self.cause))]
#[non_exhaustive]
pub struct Error {
    operation: Operation,
    #[source]
    cause: Cause,
    remedy: Option<String>,
    layer: Option<Layer>,
}

/// What was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Operation {
    FindProcess(Pid),
    ListThreads(Pid),
    Launch(String),
    Resolve(String),
    ReadModules(Pid),
    ReadPointer { pid: Pid, at: Addr },
    Plan,
    Arm { watch: String, thread: Option<Tid> },
    SideBand { thread: Option<Tid> },
    MakeRing,
    SelfTest,
    ReadRing,
    Wait,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("{0}")]
    Perf(#[from] hairspring_perf::Error),
    #[error("{0}")]
    Plan(#[from] PlanError),
    #[error("{0}")]
    Symbol(#[from] hairspring_symbols::Error),
    #[error("{0}")]
    Fact(String),
}

impl Error {
    pub(crate) fn system(operation: Operation, source: io::Error) -> Self {
        let remedy = match (&operation, source.raw_os_error()) {
            (Operation::FindProcess(_), Some(nix::libc::ESRCH)) => Some("`ps` lists the processes"),
            (Operation::ReadPointer { .. }, Some(nix::libc::EPERM)) => Some(
                "reading the process's memory needs the right to trace it: run as its user or root, \
                 or with CAP_SYS_PTRACE (and kernel.yama.ptrace_scope=0 for an ordinary user)",
            ),
            _ => None,
        };
        Self { operation, cause: source.into(), remedy: remedy.map(Into::into), layer: None }
    }

    pub(crate) fn perf(operation: Operation, source: hairspring_perf::Error, host: &Host) -> Self {
        let refusal = source.refusal(host);
        let (layer, remedy) = (Some(refusal.layer), Some(refusal.remedy));
        Self { operation, cause: source.into(), remedy, layer }
    }

    pub(crate) fn fact(operation: Operation, fact: impl Into<String>, remedy: &str) -> Self {
        let remedy = (!remedy.is_empty()).then(|| remedy.into());
        Self { operation, cause: Cause::Fact(fact.into()), remedy, layer: None }
    }

    pub(crate) fn out_of_slots(operation: Operation, fact: String, remedy: &str) -> Self {
        Self { layer: Some(Layer::Slots), ..Self::fact(operation, fact, remedy) }
    }

    pub(crate) fn plan(source: PlanError) -> Self {
        let remedy = "watch fewer bytes, or bytes that begin at a multiple of 8".into();
        let operation = Operation::Plan;
        Self { operation, cause: source.into(), remedy: Some(remedy), layer: Some(Layer::Slots) }
    }

    pub(crate) fn symbol(operation: Operation, source: hairspring_symbols::Error) -> Self {
        let remedy = if source.is_denied() {
            Some("run as the process's user, as root, or with CAP_SYS_PTRACE".into())
        } else if source.is_gone() {
            Some("`ps` lists the processes".into())
        } else {
            None
        };
        Self { operation, cause: source.into(), remedy, layer: None }
    }

    /// What to do about it, a sentence; `None` where the text says it all.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// The layer of the system that refused, where it was one.
    pub fn layer(&self) -> Option<Layer> {
        self.layer
    }

    /// Whether there is no such process, or no longer.
    pub fn is_no_such_process(&self) -> bool {
        let gone = |code: Option<i32>| code == Some(nix::libc::ESRCH);
        match &self.cause {
            Cause::System(e) => gone(e.raw_os_error()) || e.kind() == io::ErrorKind::NotFound,
            Cause::Perf(e) => e.is_gone(),
            Cause::Symbol(e) => e.is_gone(),
            _ => false,
        }
    }

    /// Whether a name could not be found in the target.
    pub fn is_about_symbols(&self) -> bool {
        matches!(self.cause, Cause::Symbol(_))
    }

    /// Whether a place is in a module that is not loaded.
    pub fn is_module_not_mapped(&self) -> bool {
        matches!(&self.cause, Cause::Symbol(e) if e.is_module_not_mapped())
    }

    /// Whether a permission is missing.
    pub fn is_denied(&self) -> bool {
        match &self.cause {
            Cause::System(e) => e.kind() == io::ErrorKind::PermissionDenied,
            Cause::Perf(e) => e.is_denied(),
            Cause::Symbol(e) => e.is_denied(),
            _ => false,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on =
            |thread: &Option<Tid>| thread.map_or(String::new(), |tid| format!(" in thread {tid}"));
        match self {
            Self::FindProcess(pid) => write!(f, "no process {pid} to watch"),
            Self::ListThreads(pid) => write!(f, "can't list the threads of process {pid}"),
            Self::Launch(command) => write!(f, "can't start `{command}`"),
            Self::Resolve(place) => write!(f, "can't find `{place}`"),
            Self::ReadModules(pid) => write!(f, "can't read the modules of process {pid}"),
            Self::ReadPointer { pid, at } => {
                write!(f, "can't read the pointer at {at} of process {pid}")
            }
            Self::Plan => f.write_str("these watches don't fit"),
            Self::Arm { watch, thread } => write!(f, "can't arm `{watch}`{}", on(thread)),
            Self::SideBand { thread } => write!(f, "can't follow births and exits{}", on(thread)),
            Self::MakeRing => f.write_str("can't make a ring"),
            Self::SelfTest => f.write_str("the self-test failed"),
            Self::ReadRing => f.write_str("can't read a ring"),
            Self::Wait => f.write_str("can't wait for events"),
        }
    }
}

struct Because<'a>(&'a Cause);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": {}", self.0)
    }
}
