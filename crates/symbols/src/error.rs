//! What could not be found, and what could not be read.

use crate::elf::ElfError;
use crate::file_state::FileState;
use crate::maps::MapsError;
use crate::query::Resolved;
use hairspring_model::Pid;
use std::fmt;
use std::io;

/// A question about a process that has no answer.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct Error {
    kind: Box<Kind>,
}

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) enum Kind {
    Process { operation: &'static str, pid: Pid, source: io::Error },
    Maps { pid: Pid, source: MapsError },
    ModuleNotMapped { module: String, mapped: Vec<String> },
    NoFile { module: String, state: FileState },
    BadTable { module: String, source: ElfError },
    Outside { module: String, addr: u64 },
    NotFound { name: String, module: Option<String>, nearest: Vec<String>, unsearched: Vec<String> },
    Ambiguous { name: String, candidates: Vec<Resolved> },
    ThreadLocal { name: String, module: String },
    Absolute { name: String, module: String },
}

impl Error {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind: Box::new(kind) }
    }

    pub(crate) fn process(operation: &'static str, pid: Pid, source: io::Error) -> Self {
        Self::new(Kind::Process { operation, pid, source })
    }

    pub(crate) fn maps(pid: Pid, source: MapsError) -> Self {
        Self::new(Kind::Maps { pid, source })
    }

    fn io(&self) -> Option<&io::Error> {
        match &*self.kind {
            Kind::Process { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether the process does not exist any more.
    pub fn is_gone(&self) -> bool {
        self.io().is_some_and(|error| {
            error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(nix::libc::ESRCH)
        })
    }

    /// Whether a permission is missing.
    pub fn is_denied(&self) -> bool {
        self.io().is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether the module is not mapped (yet): the loader, or a `dlopen`, may still map it.
    pub fn is_module_not_mapped(&self) -> bool {
        matches!(*self.kind, Kind::ModuleNotMapped { .. })
    }

    /// Whether no symbol has the name.
    pub fn is_not_found(&self) -> bool {
        matches!(*self.kind, Kind::NotFound { .. })
    }

    /// Whether several places have the name; they are the [`candidates`](Self::candidates).
    pub fn is_ambiguous(&self) -> bool {
        matches!(*self.kind, Kind::Ambiguous { .. })
    }

    /// Whether the name is that of thread-local data, which has no one address.
    pub fn is_thread_local(&self) -> bool {
        matches!(*self.kind, Kind::ThreadLocal { .. })
    }

    /// Whether the module is mapped, but its file is not at hand: replaced, or unreadable.
    pub fn is_file_unusable(&self) -> bool {
        matches!(*self.kind, Kind::NoFile { .. } | Kind::BadTable { .. })
    }

    /// The places that have an ambiguous name.
    pub fn candidates(&self) -> &[Resolved] {
        match &*self.kind {
            Kind::Ambiguous { candidates, .. } => candidates,
            _ => &[],
        }
    }

    /// Names that exist and resemble the one that does not, best first.
    pub fn nearest(&self) -> &[String] {
        match &*self.kind {
            Kind::NotFound { nearest, .. } => nearest,
            Kind::ModuleNotMapped { mapped, .. } => mapped,
            _ => &[],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { operation, pid, source } => {
                write!(f, "{operation} of process {pid}: {source}")?;
                if source.kind() == io::ErrorKind::PermissionDenied {
                    f.write_str("; it takes the same user, or CAP_SYS_PTRACE")?;
                }
                Ok(())
            }
            Self::Maps { pid, source } => write!(f, "process {pid}: {source}"),
            Self::ModuleNotMapped { module, mapped } => {
                write!(f, "no module {module} is mapped")?;
                list(f, "; similar ones are", mapped)
            }
            Self::NoFile { module, state } => {
                write!(f, "{module} is mapped, but its symbols are not at hand: {state}")
            }
            Self::BadTable { module, source } => {
                write!(f, "the symbol table of {module} can't be used: {source}")
            }
            Self::Outside { module, addr } => {
                write!(f, "{addr:#x} is in no segment of {module}")
            }
            Self::NotFound { name, module, nearest, unsearched } => {
                write!(f, "no symbol {name}")?;
                match module {
                    Some(module) => write!(f, " in {module}")?,
                    None => f.write_str(" in any module (MODULE!SYMBOL names one)")?,
                }
                list(f, "; similar ones are", nearest)?;
                list(f, "; not searched:", unsearched)
            }
            Self::Ambiguous { name, candidates } => {
                write!(f, "{name} is ambiguous; name one by its module or its link-time address:")?;
                for candidate in candidates.iter().take(MAX_LISTED) {
                    write!(f, "\n  {candidate}")?;
                }
                match candidates.len().checked_sub(MAX_LISTED) {
                    Some(more @ 1..) => write!(f, "\n  and {more} more"),
                    _ => Ok(()),
                }
            }
            Self::ThreadLocal { name, module } => write!(
                f,
                "{name} in {module} is thread-local: every thread has its own at another address, \
                 so the name alone is no address; take the address from the thread that you mean"
            ),
            Self::Absolute { name, module } => write!(
                f,
                "{name} in {module} is a number that the linker defined, not a place in memory"
            ),
        }
    }
}

const MAX_LISTED: usize = 20;

fn list(f: &mut fmt::Formatter<'_>, before: &str, items: &[String]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        let separator = if index == 0 { before } else { "," };
        write!(f, "{separator} {item}")?;
    }
    Ok(())
}
