//! Who the target is: a process that no other can be taken for.
//!
//! A process id may be reused at any time and a process may exec another program at any time. The
//! identity is (id, start time, device and inode of the executable); the pidfd that goes with it
//! names this one process for ever.

use crate::error::{Error, Operation};
use hairspring_model::Pid;
use hairspring_sys::pidfd;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// What does not change as long as a process runs the same program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The process.
    pub(crate) pid: Pid,
    /// When it started, in clock ticks since boot (proc_pid_stat(5), field 22).
    pub(crate) start_time: u64,
    /// The executable's device and inode; `None` where we may not look.
    pub(crate) executable: Option<(u64, u64)>,
}

/// A process that is held by descriptor, so that its id can't come to mean another one unnoticed.
#[derive(Debug)]
pub(crate) struct Pinned {
    identity: Identity,
    pidfd: OwnedFd,
}

impl Identity {
    /// Reads who has this id now.
    pub(crate) fn read(pid: Pid) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let start_time = start_time(&stat).ok_or(io::ErrorKind::InvalidData)?;
        let executable = fs::metadata(format!("/proc/{pid}/exe")).ok();
        Ok(Self { pid, start_time, executable: executable.map(|file| (file.dev(), file.ino())) })
    }

    /// What has become of the process, by who has its id now.
    fn compare(&self, now: &Self) -> Still {
        // Another start time is another process; an exiting one has no executable any more.
        let exiting = now.executable.is_none() && self.executable.is_some();
        if now.start_time != self.start_time || exiting {
            Still::Gone
        } else if now.executable == self.executable {
            Still::Same
        } else {
            Still::AnotherProgram
        }
    }
}

impl Pinned {
    /// Pins the process with this id.
    ///
    /// # Errors
    /// [`Error::is_no_such_process`]; or `EINVAL` where the id is that of a thread.
    pub(crate) fn new(pid: Pid) -> Result<Self, Error> {
        let pidfd = pidfd::open(pid).map_err(|e| match process_of(pid) {
            Some(process) if process != pid => {
                let remedy = format!("watch process {process}: all of its threads are covered");
                Error::fact(Operation::FindProcess(pid), "that is a thread's id", &remedy)
            }
            _ => Error::system(Operation::FindProcess(pid), e),
        })?;
        // The descriptor came first: what is read now is of the pinned process, unless that has
        // exited meanwhile, which `still` would notice.
        let identity =
            Identity::read(pid).map_err(|e| Error::system(Operation::FindProcess(pid), e))?;
        Ok(Self { identity, pidfd })
    }

    /// The identity at the time of pinning.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether the process still runs the program that it ran when it was pinned.
    pub(crate) fn still(&self) -> Still {
        Identity::read(self.identity.pid).map_or(Still::Gone, |now| self.identity.compare(&now))
    }
}

/// What has become of a pinned process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Still {
    /// It runs the same program.
    Same,
    /// It has exec'ed another one.
    AnotherProgram,
    /// It has exited, whoever has its id now.
    Gone,
}

impl AsFd for Pinned {
    /// The pidfd: readable once the process has exited.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The process that a thread belongs to, by any thread's id.
fn process_of(thread: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok().map(Pid)
}

/// Field 22 of a stat line. The second field is the program's name in parentheses, which may
/// contain anything, parentheses and spaces among it: the last `)` ends it.
fn start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    // The first field behind the name is the third.
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_confuse() {
        let fields = "S 1 2 2 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 777 1000 5";
        for name in ["cat", "a b", "x) R 1 (", ":-)"] {
            assert_eq!(start_time(&format!("12 ({name}) {fields}")), Some(777), "{name}");
        }
        assert_eq!(start_time("12 (cat"), None);
        assert_eq!(start_time("12 (cat) S 1"), None);
    }

    #[test]
    fn a_reused_id_is_not_the_same_process() {
        let identity = |start_time, executable| Identity { pid: Pid(7), start_time, executable };
        let then = identity(100, Some((1, 2)));
        for (now, still) in [
            (identity(100, Some((1, 2))), Still::Same),
            (identity(101, Some((1, 2))), Still::Gone),
            (identity(100, Some((1, 3))), Still::AnotherProgram),
            (identity(100, None), Still::Gone),
        ] {
            assert_eq!(then.compare(&now), still, "{now:?}");
        }
        // Where we may not look at all, the start time decides alone.
        assert_eq!(identity(100, None).compare(&identity(100, None)), Still::Same);
    }

    #[test]
    fn this_process_is_itself() {
        let pinned = Pinned::new(Pid(std::process::id())).expect("we exist");
        assert_eq!(pinned.still(), Still::Same);
    }

    #[test]
    fn a_process_that_has_exited_is_gone() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat starts");
        let pinned = Pinned::new(Pid(child.id())).expect("it waits for input");
        drop(child.stdin.take());
        child.wait().expect("reaped");
        assert_eq!(pinned.still(), Still::Gone);
        let error = Pinned::new(Pid(child.id())).expect_err("reaped");
        assert!(error.is_no_such_process(), "{error}");
    }
}
