//! A child that is traced from before its exec.
//!
//! The child waits between fork and exec until its tracer has seized it, so that no instruction of
//! the program runs untraced and every option is in force at the exec:
//!
//! ```text
//!   tracer thread              a thread of its own           child
//!   pipes, thread start ─────► Command::spawn ─────────────► writes "here I am"
//!   reads the pid, seizes                                    waits for "go"
//!   writes "go"  ──────────────────────────────────────────► execs, stops (PTRACE_EVENT_EXEC)
//!   waits for that stop        spawn returns
//! ```
//! `std` waits in `spawn` until the child has exec'd, which is why another thread has to do it.

#![expect(unsafe_code, reason = "code between fork and exec")]

use crate::ptrace;
use hairspring_model::{Pid, Tid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// What failed.
#[derive(Debug)]
pub struct LaunchError {
    /// The call.
    pub operation: &'static str,
    /// The kernel's answer.
    pub source: io::Error,
}

impl LaunchError {
    /// Whether the child was killed before it could exec.
    pub fn is_end(&self) -> bool {
        self.source.kind() == ENDED
    }
}

/// The kind of error where a child has ended and nobody says why.
const ENDED: io::ErrorKind = io::ErrorKind::UnexpectedEof;

/// How a child is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The options of the trace, `PTRACE_O_TRACEEXEC` among them.
    pub options: u32,
    /// Whether its memory is laid out at random, as usual (`personality(2)`).
    pub randomize: bool,
}

/// Starts the command and returns when it stands in its exec: loaded, none of its code has run.
/// The calling thread is its tracer.
///
/// # Errors
/// What `std` reports for a command that can't be started, and what the kernel answers where this
/// process may not trace its children; no child is left then.
pub fn launch(mut command: Command, how: Launch) -> Result<Child, LaunchError> {
    let fail = |operation| move |source| LaunchError { operation, source };
    let (here, here_child) = pipe().map_err(fail("pipe2"))?;
    let (go_child, go) = pipe().map_err(fail("pipe2"))?;
    let (here_raw, go_raw) = (here_child.as_raw_fd(), go_child.as_raw_fd());
    let (here_parent, go_parent) = (here.as_raw_fd(), go.as_raw_fd());
    let before_exec = move || {
        // Only system calls: the child may not allocate or lock (fork of a threaded process).
        if !how.randomize {
            let persona = nix::sys::personality::get()?;
            nix::sys::personality::set(
                persona | nix::sys::personality::Persona::ADDR_NO_RANDOMIZE,
            )?;
        }
        // The child's copies of the tracer's ends: without them the tracer's end is seen.
        for end in [here_parent, go_parent] {
            // SAFETY: the number is a plain argument; nothing in the child owns that copy.
            unsafe { libc::close(end) };
        }
        // SAFETY: getpid has no arguments and can't fail.
        let pid = unsafe { libc::getpid() }.to_ne_bytes();
        // SAFETY: the kernel reads four bytes of `pid`.
        if unsafe { libc::write(here_raw, pid.as_ptr().cast(), pid.len()) } != 4 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = 0_u8;
        // SAFETY: the kernel writes at most one byte to `answer`.
        match unsafe { libc::read(go_raw, (&raw mut answer).cast(), 1) } {
            1 => Ok(()),
            // The tracer has given up.
            0 => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes only system calls.
    unsafe { command.pre_exec(before_exec) };
    std::thread::scope(|scope| {
        let spawner = scope.spawn(move || {
            let child = command.spawn();
            drop(here_child);
            drop(go_child);
            child
        });
        let traced = trace_exec(here, go, how.options);
        let spawned = match spawner.join() {
            Ok(spawned) => spawned.map_err(fail("spawn")),
            Err(_) => Err(fail("spawn")(io::ErrorKind::Other.into())),
        };
        match (traced, spawned) {
            (Ok(()), Ok(child)) => Ok(child),
            // Without a go the child can't have exec'd: its tracing is what failed first.
            (Err(error), Err(_)) if error.operation == "ptrace(SEIZE)" => Err(error),
            (_, Err(error)) => Err(error),
            (Err(error), Ok(mut child)) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    })
}

fn trace_exec(mut here: File, mut go: File, options: u32) -> Result<(), LaunchError> {
    let fail = |operation| move |source| LaunchError { operation, source };
    let mut pid = [0; 4];
    here.read_exact(&mut pid).map_err(fail("spawn"))?;
    let tid = Tid(u32::from_ne_bytes(pid));
    ptrace::seize(tid, options).map_err(fail("ptrace(SEIZE)"))?;
    go.write_all(&[1]).map_err(fail("spawn"))?;
    loop {
        // An end is left for `spawn` to collect, which knows why the exec failed.
        if ptrace::await_change(tid).map_err(fail("waitid"))? {
            return Err(fail("spawn")(ENDED.into()));
        }
        match ptrace::wait(ptrace::WaitFor::One(tid), true).map_err(fail("waitpid"))? {
            Some((_, status)) if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_EXEC << 8 => {
                return Ok(());
            }
            // A signal sent to it meanwhile.
            Some((_, status)) => {
                let signal = libc::WSTOPSIG(status);
                let deliver = if status >> 16 == 0 { signal } else { 0 };
                ptrace::resume(tid, ptrace::Resume::Continue, deliver)
                    .map_err(fail("ptrace(CONT)"))?;
            }
            None => {}
        }
    }
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write): (OwnedFd, OwnedFd) = io::pipe().map(|(r, w)| (r.into(), w.into()))?;
    Ok((read.into(), write.into()))
}

/// The process id of a child.
pub fn pid(child: &Child) -> Pid {
    Pid(child.id())
}
