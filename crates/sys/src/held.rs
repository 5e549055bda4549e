//! A child that is held at its exec: loaded, but none of its code has run.
//!
//! The child asks to be traced (`PTRACE_TRACEME`) and then execs, which stops it with SIGTRAP
//! before its first instruction. That is the only use of ptrace for a watched command: it ends
//! with [`HeldChild::release`]. While held, the child dies with us (`PTRACE_O_EXITKILL`), so that
//! nothing half-started is left behind; released, it does not.
//!
//! A held child is bound to the thread that started it, as every tracee is.

#![expect(unsafe_code, reason = "code between fork and exec")]

use hairspring_model::{Addr, Pid};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A child that is stopped before its own code runs; killed when dropped.
#[derive(Debug)]
pub struct HeldChild {
    /// `None` once released.
    child: Option<Child>,
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
    /// Starts the command and holds it at its exec.
    ///
    /// # Errors
    /// What `std` reports for a command that can't be started (not found, not executable), and
    /// `EPERM` where this process may not trace its children.
    pub fn spawn(command: &mut Command) -> Result<Self, HoldError> {
        let traceme = || Ok(ptrace::traceme()?);
        // SAFETY: the closure makes one system call between fork and exec; it allocates nothing
        // and takes no locks.
        unsafe { command.pre_exec(traceme) };
        let child = command.spawn().map_err(|e| HoldError::Call("spawn", e))?;
        let held = Self { child: Some(child), _bound_to_this_thread: PhantomData };
        match held.wait()? {
            Signal::SIGTRAP => {}
            _ => return Err(HoldError::Died),
        }
        ptrace::setoptions(held.tracee()?, ptrace::Options::PTRACE_O_EXITKILL)
            .map_err(|e| HoldError::Call("ptrace(SETOPTIONS)", e.into()))?;
        Ok(held)
    }

    /// The child's process id.
    pub fn pid(&self) -> Pid {
        Pid(self.child.as_ref().map_or(0, Child::id))
    }

    /// Lets the loader run, up to the program's entry point at `entry`, and holds the child there:
    /// the libraries that the program is linked with are mapped then.
    ///
    /// # Errors
    /// [`HoldError::Died`] where the loader ends the process (a missing library, say).
    pub fn run_to(&mut self, entry: Addr) -> Result<(), HoldError> {
        const INT3: i64 = 0xcc;
        let tracee = self.tracee()?;
        let at = entry.0 as ptrace::AddressType;
        let call = |name| move |e: nix::Error| HoldError::Call(name, e.into());
        let word = ptrace::read(tracee, at).map_err(call("ptrace(PEEKTEXT)"))?;
        let trap = (word & !0xff) | INT3;
        ptrace::write(tracee, at, trap).map_err(call("ptrace(POKETEXT)"))?;
        let mut pass_on = None;
        loop {
            ptrace::cont(tracee, pass_on).map_err(call("ptrace(CONT)"))?;
            let signal = self.wait()?;
            let registers = ptrace::getregs(tracee).map_err(call("ptrace(GETREGS)"))?;
            // int3 is a trap: it reports with the instruction pointer behind it.
            if signal == Signal::SIGTRAP && registers.rip == entry.0 + 1 {
                ptrace::write(tracee, at, word).map_err(call("ptrace(POKETEXT)"))?;
                let registers = libc::user_regs_struct { rip: entry.0, ..registers };
                ptrace::setregs(tracee, registers).map_err(call("ptrace(SETREGS)"))?;
                return Ok(());
            }
            pass_on = Some(signal);
        }
    }

    /// Lets the child go: it runs untraced from here.
    pub fn release(mut self) -> Result<Child, HoldError> {
        ptrace::detach(self.tracee()?, None)
            .map_err(|e| HoldError::Call("ptrace(DETACH)", e.into()))?;
        self.child.take().ok_or(HoldError::Died)
    }

    fn tracee(&self) -> Result<nix::unistd::Pid, HoldError> {
        let id = self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        id.map(nix::unistd::Pid::from_raw).ok_or(HoldError::Died)
    }

    fn wait(&self) -> Result<Signal, HoldError> {
        match waitpid(self.tracee()?, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::Stopped(_, signal)) => Ok(signal),
            Ok(_) => Err(HoldError::Died),
            Err(e) => Err(HoldError::Call("waitpid", e.into())),
        }
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
mod tests {
    use super::*;

    #[test]
    fn a_held_child_has_not_run_and_a_released_one_does() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        let held = HeldChild::spawn(&mut command).expect("sh starts");
        let state = std::fs::read_to_string(format!("/proc/{}/stat", held.pid())).expect("alive");
        assert!(state.contains(") t "), "stopped by its tracer: {state}");
        let mut child = held.release().expect("released");
        assert_eq!(child.wait().expect("reaped").code(), Some(7));
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let held = HeldChild::spawn(&mut Command::new("true")).expect("true starts");
        let proc = format!("/proc/{}", held.pid());
        drop(held);
        assert!(!std::path::Path::new(&proc).exists());
    }

    #[test]
    fn a_command_that_does_not_exist() {
        let error = HeldChild::spawn(&mut Command::new("/nonexistent")).expect_err("no such file");
        assert!(matches!(error, HoldError::Call(_, e) if e.kind() == io::ErrorKind::NotFound));
    }
}
