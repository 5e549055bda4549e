//! A child that is held at its exec: loaded, but none of its code has run.
//!
//! That is the only use of ptrace for a watched command: it ends with [`HeldChild::release`].
//! While held, the child dies with us, even where we are killed (`PTRACE_O_EXITKILL`), so that
//! nothing half-started is left behind; released, it does not.
//!
//! A held child is bound to the thread that started it, as every tracee is.

use crate::launch::{self, Launch};
use crate::ptrace::{self, Resume, WaitFor, option};
use hairspring_model::{Addr, Pid, Tid};
use std::io;
use std::marker::PhantomData;
use std::process::{Child, Command};

/// A child that is stopped before its own code runs; killed when dropped.
#[derive(Debug)]
pub struct HeldChild {
    /// `None` once released, or where its end has been collected.
    child: Option<Child>,
    pid: Pid,
    _bound_to_this_thread: PhantomData<*const ()>,
}

/// Why a child is no longer held.
#[derive(Debug)]
pub enum HoldError {
    /// The call failed.
    Call(&'static str, io::Error),
    /// The child ended or was killed while it was held.
    Died,
}

impl HeldChild {
    /// Starts the command and holds it at its exec. The command is taken: what is left of it can't
    /// be started again.
    ///
    /// # Errors
    /// What `std` reports for a command that can't be started (not found, not executable), and
    /// `EPERM` where this process may not trace its children.
    pub fn spawn(command: &mut Command) -> Result<Self, HoldError> {
        // Exec is an event, not a signal that others could send too; and whatever befalls us from
        // here on, the child does not survive it.
        let how = Launch { options: option::TRACEEXEC | option::EXITKILL, randomize: true };
        let command = std::mem::replace(command, Command::new(""));
        match launch::launch(command, how) {
            Ok(child) => {
                let pid = Pid(child.id());
                Ok(Self { child: Some(child), pid, _bound_to_this_thread: PhantomData })
            }
            Err(error) if error.is_end() => Err(HoldError::Died),
            Err(error) => Err(HoldError::Call(error.operation, error.source)),
        }
    }

    /// The child's process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the loader run, up to the program's entry point at `entry`, and holds the child there:
    /// the libraries that the program is linked with are mapped then.
    ///
    /// # Errors
    /// [`HoldError::Died`] where the loader ends the process (a missing library, say).
    pub fn run_to(&mut self, entry: Addr) -> Result<(), HoldError> {
        const INT3: i64 = 0xcc;
        let (tid, tracee) = (self.tid(), nix::unistd::Pid::from_raw(self.pid.0.cast_signed()));
        let at = entry.0 as nix::sys::ptrace::AddressType;
        let word = nix::sys::ptrace::read(tracee, at).map_err(call("ptrace(PEEKTEXT)"))?;
        let trap = (word & !0xff) | INT3;
        nix::sys::ptrace::write(tracee, at, trap).map_err(call("ptrace(POKETEXT)"))?;
        let mut deliver = 0;
        loop {
            ptrace::resume(tid, Resume::Continue, deliver).map_err(call("ptrace(CONT)"))?;
            let mut stop = self.wait()?;
            // Somebody stops it (Ctrl-Z): it stays stopped until somebody lets it go on.
            while stop.is_group_stop() {
                ptrace::listen(tid).map_err(call("ptrace(LISTEN)"))?;
                stop = self.wait()?;
            }
            let registers = ptrace::registers(tid).map_err(call("ptrace(GETREGS)"))?;
            // int3 is a trap: it reports with the instruction pointer behind it.
            if stop == Stop::signal(libc::SIGTRAP) && registers.rip == entry.0.wrapping_add(1) {
                nix::sys::ptrace::write(tracee, at, word).map_err(call("ptrace(POKETEXT)"))?;
                let registers = ptrace::UserRegisters { rip: entry.0, ..registers };
                return ptrace::set_registers(tid, registers).map_err(call("ptrace(SETREGS)"));
            }
            deliver = if stop.event == 0 { stop.signal } else { 0 };
        }
    }

    /// Lets the child go: it runs untraced from here.
    ///
    /// # Errors
    /// [`HoldError::Died`] where it was killed meanwhile.
    pub fn release(mut self) -> Result<Child, HoldError> {
        ptrace::detach(self.tid(), 0).map_err(call("ptrace(DETACH)"))?;
        self.child.take().ok_or(HoldError::Died)
    }

    fn tid(&self) -> Tid {
        self.pid.leader()
    }

    /// Waits for the next stop. An end is left for `Child` to collect, which has to know that the
    /// id is nobody's any more.
    fn wait(&mut self) -> Result<Stop, HoldError> {
        loop {
            if ptrace::await_change(self.tid()).map_err(call("waitid"))? {
                return Err(HoldError::Died);
            }
            match ptrace::wait(WaitFor::One(self.tid()), false).map_err(call("waitpid"))? {
                Some((_, status)) if libc::WIFSTOPPED(status) => {
                    return Ok(Stop { signal: libc::WSTOPSIG(status), event: status >> 16 });
                }
                // Killed between the two calls, and now collected.
                Some(_) => {
                    self.child = None;
                    return Err(HoldError::Died);
                }
                None => {}
            }
        }
    }
}

/// `ESRCH` for one's own held child means that it has been killed.
fn call<E: Into<io::Error>>(name: &'static str) -> impl Fn(E) -> HoldError {
    move |error| match error.into() {
        error if error.raw_os_error() == Some(libc::ESRCH) => HoldError::Died,
        error => HoldError::Call(name, error),
    }
}

/// Why the child is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stop {
    signal: i32,
    /// The `PTRACE_EVENT_*`, 0 for a signal.
    event: i32,
}

impl Stop {
    const fn signal(signal: i32) -> Self {
        Self { signal, event: 0 }
    }

    fn is_group_stop(self) -> bool {
        // With SIGTRAP the same event says that it has ended.
        self.event == libc::PTRACE_EVENT_STOP && self.signal != libc::SIGTRAP
    }
}

impl Drop for HeldChild {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have died already; then there is nothing to kill, only to reap.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests;
