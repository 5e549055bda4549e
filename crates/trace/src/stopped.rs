//! A stopped thread, by the kind of its stop.

use crate::instruction::LONGEST;
use crate::table::{Record, Table};
use crate::{Error, Instruction, StepCause};
use hairspring_model::{Addr, Pid, Tid};
use hairspring_sys::ptrace::{self as sys, Resume, SignalInfo, UserRegisters};
use std::io;
use std::ops::Deref;
use std::rc::Rc;

/// How far a resumed thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the next signal or event.
    Event,
    /// To the next entry to or exit from a system call too.
    Syscall,
    /// For one instruction, or one iteration of a string instruction.
    Step,
}

/// What every stopped thread allows: to look at it and to change it, but not to resume it.
#[derive(Debug)]
pub struct Held {
    pub(crate) table: Rc<Table>,
    pub(crate) tid: Tid,
    pub(crate) pid: Pid,
    pub(crate) generation: u64,
}

/// A stopped thread. Resuming consumes it; dropping it leaves the thread stopped.
#[derive(Debug)]
#[must_use = "the thread stays stopped until it is resumed"]
pub struct Stopped<Kind> {
    pub(crate) held: Held,
    pub(crate) kind: Kind,
}

/// A new thread or process, before its first instruction; also each thread of an attached process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Whether it ran untraced before.
    pub attached: bool,
}

/// About to enter a system call; number and arguments can still be changed in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyscallEntry {
    /// The system call's number.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// About to leave a system call with this value, a negative error number if it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyscallExit {
    /// The value returned.
    pub value: i64,
}

/// About to receive a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalDelivery {
    /// Number, code and origin.
    pub info: SignalInfo,
}

/// In its exec: the new program is loaded, and none of it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exec {
    /// The id of the thread before the exec, which made it the leader of its process.
    pub former: Tid,
}

/// Has made a thread or process, whose own [`Started`] stop may come before or after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewThread {
    /// The new one.
    pub tid: Tid,
}

/// Goes on after a vfork: the child has exec'd or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VforkDone;

/// About to end; registers and memory can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exiting {
    /// The wait status to come.
    pub status: i32,
}

/// Stopped by job control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStop {
    /// The signal that stopped the process.
    pub signal: i32,
}

/// A single step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it did.
    pub cause: StepCause,
}

/// Stopped on request, or because job control lets the process go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

mod sealed {
    /// The kinds whose resumption has nothing to decide.
    pub trait Plain {}
}

impl sealed::Plain for Started {}
impl sealed::Plain for SyscallEntry {}
impl sealed::Plain for SyscallExit {}
impl sealed::Plain for Exec {}
impl sealed::Plain for NewThread {}
impl sealed::Plain for VforkDone {}
impl sealed::Plain for Exiting {}
impl sealed::Plain for Step {}
impl sealed::Plain for Interrupted {}

impl<Kind> Stopped<Kind> {
    /// What is particular to this kind of stop.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
}

impl<Kind> Deref for Stopped<Kind> {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl<Kind: sealed::Plain> Stopped<Kind> {
    /// Lets the thread run.
    ///
    /// # Errors
    /// [`Error::is_dead`] where it was killed meanwhile.
    pub fn resume(self, next: Next) -> Result<(), Error> {
        self.held.resume(next, 0)
    }
}

impl Stopped<SignalDelivery> {
    /// Lets the thread run and receive the signal.
    pub fn deliver(self, next: Next) -> Result<(), Error> {
        self.held.resume(next, self.kind.info.signal)
    }

    /// Lets the thread run without the signal.
    pub fn suppress(self, next: Next) -> Result<(), Error> {
        self.held.resume(next, 0)
    }
}

impl Stopped<GroupStop> {
    /// Leaves the thread stopped until job control lets it go on, which is a stop of its own.
    pub fn listen(self) -> Result<(), Error> {
        self.held.current("ptrace(LISTEN)")?;
        sys::listen(self.held.tid).map_err(|e| Error::on("ptrace(LISTEN)", self.held.tid, e))?;
        self.held.table.update(self.held.tid, |record| {
            record.stopped = false;
            record.stepping = false;
        });
        Ok(())
    }

    /// Lets the thread run in spite of job control.
    pub fn resume(self, next: Next) -> Result<(), Error> {
        self.held.resume(next, 0)
    }
}

impl Held {
    /// The thread.
    pub fn tid(&self) -> Tid {
        self.tid
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether the thread is between the entry to and the exit from a system call.
    pub fn is_in_syscall(&self) -> bool {
        self.table.get(self.tid).is_some_and(|record| record.in_syscall)
    }

    /// The general registers.
    pub fn registers(&self) -> Result<UserRegisters, Error> {
        self.current("ptrace(GETREGS)")?;
        sys::registers(self.tid).map_err(|e| Error::on("ptrace(GETREGS)", self.tid, e))
    }

    /// Sets the general registers.
    pub fn set_registers(&self, registers: UserRegisters) -> Result<(), Error> {
        self.current("ptrace(SETREGS)")?;
        sys::set_registers(self.tid, registers)
            .map_err(|e| Error::on("ptrace(SETREGS)", self.tid, e))
    }

    /// Reads memory, all of it or an error (`EIO`: not mapped).
    pub fn read_memory(&self, at: Addr, bytes: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < bytes.len() {
            match self.read_some(Addr(at.0.wrapping_add(done as u64)), &mut bytes[done..])? {
                0 => return Err(Error::died("read(/proc/PID/mem)", self.tid)),
                more => done += more,
            }
        }
        Ok(())
    }

    /// Writes memory, also where the thread itself may not.
    pub fn write_memory(&self, at: Addr, bytes: &[u8]) -> Result<(), Error> {
        self.current("write(/proc/PID/mem)")?;
        self.table
            .memory(self.tid, self.pid)?
            .write(at, bytes)
            .map_err(|e| Error::on("write(/proc/PID/mem)", self.tid, e))
    }

    /// Up to 15 bytes of code at the address, as many as are mapped.
    pub fn code(&self, at: Addr) -> Result<([u8; LONGEST], usize), Error> {
        let mut bytes = [0; LONGEST];
        let length = match self.read_some(at, &mut bytes) {
            Ok(length) => length,
            Err(error) if error.is_dead() => return Err(error),
            // Not mapped: the thread is about to fault there.
            Err(_) => 0,
        };
        Ok((bytes, length))
    }

    /// The class of the instruction at the address.
    pub fn instruction(&self, at: Addr) -> Result<Instruction, Error> {
        let (bytes, length) = self.code(at)?;
        Ok(Instruction::decode(&bytes[..length]))
    }

    /// The blocked signals, bit n-1 for signal n.
    pub fn blocked_signals(&self) -> Result<u64, Error> {
        self.current("ptrace(GETSIGMASK)")?;
        sys::blocked_signals(self.tid).map_err(|e| Error::on("ptrace(GETSIGMASK)", self.tid, e))
    }

    /// Sets the blocked signals.
    pub fn block_signals(&self, mask: u64) -> Result<(), Error> {
        self.current("ptrace(SETSIGMASK)")?;
        sys::block_signals(self.tid, mask).map_err(|e| Error::on("ptrace(SETSIGMASK)", self.tid, e))
    }

    fn read_some(&self, at: Addr, bytes: &mut [u8]) -> Result<usize, Error> {
        self.current("read(/proc/PID/mem)")?;
        self.table.memory(self.tid, self.pid)?.read(at, bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::died("read(/proc/PID/mem)", self.tid),
            _ => Error::on("read(/proc/PID/mem)", self.tid, e),
        })
    }

    /// The thread's record, if the id still means the thread that this value was made for.
    pub(crate) fn current(&self, operation: &'static str) -> Result<Record, Error> {
        match self.table.get(self.tid) {
            Some(record) if record.generation == self.generation && record.stopped => Ok(record),
            _ => Err(Error::died(operation, self.tid)),
        }
    }

    pub(crate) fn resume(&self, next: Next, signal: i32) -> Result<(), Error> {
        let (how, operation) = match next {
            Next::Event => (Resume::Continue, "ptrace(CONT)"),
            Next::Syscall => (Resume::ToSyscall, "ptrace(SYSCALL)"),
            Next::Step => (Resume::Step, "ptrace(SINGLESTEP)"),
        };
        self.current(operation)?;
        sys::resume(self.tid, how, signal).map_err(|e| Error::on(operation, self.tid, e))?;
        self.table.update(self.tid, |record| {
            record.stopped = false;
            record.stepping = next == Next::Step;
            record.signal = 0;
            // Resumed otherwise, the exit is not reported.
            record.in_syscall &= next == Next::Syscall;
        });
        Ok(())
    }
}
