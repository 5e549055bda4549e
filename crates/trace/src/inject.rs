//! System calls made by a stopped thread on our behalf.
//!
//! The thread jumps to a `syscall` instruction of its own vDSO, so that no code of the guest is
//! changed, with all signals blocked, and everything is put back. It runs no instruction besides.
//! If the guest has no vDSO, the instruction is borrowed from where the thread stands.

use crate::stopped::{Exec, Interrupted, Next, Started, Step, SyscallExit};
use crate::{Change, Ended, Error, Held, Stopped};
use hairspring_model::Addr;
use hairspring_sys::ptrace::{self as sys, SyscallInfo, UserRegisters, WaitFor};

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// `orig_rax` outside of a system call: the kernel then restarts none.
const NO_SYSCALL: u64 = u64::MAX;

mod sealed {
    /// The stops at which the thread is about to run user code and no signal is in flight.
    pub trait Injectable {
        /// Whether the thread has to be brought out of the kernel first.
        fn in_kernel(&self) -> bool {
            false
        }
    }
}

impl sealed::Injectable for Step {}
impl sealed::Injectable for SyscallExit {}
impl sealed::Injectable for Interrupted {}
impl sealed::Injectable for Exec {
    fn in_kernel(&self) -> bool {
        true
    }
}
impl sealed::Injectable for Started {
    fn in_kernel(&self) -> bool {
        !self.attached
    }
}

impl<Kind: sealed::Injectable> Stopped<Kind> {
    /// Makes the thread call the kernel, and returns what the kernel answers: a negative error
    /// number for a failure. Registers, signal mask and position are as before. The call must make no
    /// thread or process, and must not block: its stops are not reported.
    ///
    /// # Errors
    /// [`Error::is_unsuitable`] where the thread is in a system call that it will restart;
    /// [`Error::is_dead`].
    pub fn inject(&self, number: u64, arguments: [u64; 6]) -> Result<i64, Error> {
        const NAME: &str = "inject";
        self.current(NAME)?;
        let registers = self.registers()?;
        if registers.orig_rax != NO_SYSCALL && is_restart(registers.rax) {
            return Err(Error::unsuitable(NAME, self.tid(), "it is in an interrupted system call"));
        }
        let mask = self.blocked_signals()?;
        self.block_signals(u64::MAX)?;
        if self.kind.in_kernel() {
            // From the event stop to the end of the system call: there the kernel has stored the
            // result, and no instruction has run.
            self.held.resume(Next::Step, 0)?;
            await_stop(self)?;
        }
        let registers = self.registers()?;
        let (gate, borrowed) = gate(self, registers.rip)?;
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let call = UserRegisters {
            rax: number,
            orig_rax: NO_SYSCALL,
            rip: gate.0,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..registers
        };
        self.set_registers(call)?;
        let value = run(self);
        if let Some(code) = borrowed {
            self.write_memory(gate, &code)?;
        }
        let value = value?;
        self.set_registers(UserRegisters { orig_rax: NO_SYSCALL, ..registers })?;
        self.block_signals(mask)?;
        Ok(value)
    }
}

fn run(thread: &Held) -> Result<i64, Error> {
    loop {
        thread.resume(Next::Syscall, 0)?;
        await_stop(thread)?;
        let info = sys::syscall_info(thread.tid())
            .map_err(|e| Error::on("ptrace(GET_SYSCALL_INFO)", thread.tid(), e))?;
        if let SyscallInfo::Exit(value) = info {
            thread.table.update(thread.tid(), |record| record.in_syscall = false);
            return Ok(value);
        }
    }
}

fn await_stop(thread: &Held) -> Result<(), Error> {
    let tid = thread.tid();
    match sys::wait(WaitFor::One(tid), true) {
        Ok(Some((_, status))) => {
            if let Change::Ended(end) = Change::of(status) {
                thread.table.remove(tid);
                thread.table.push_end(Ended { tid, pid: thread.pid(), end });
                return Err(Error::died("inject", tid));
            }
            thread.table.update(tid, |record| {
                record.stopped = true;
                record.stepping = false;
            });
            Ok(())
        }
        Ok(None) => Err(Error::died("inject", tid)),
        Err(e) => Err(Error::on("waitpid", tid, e)),
    }
}

/// `ERESTARTSYS` to `ERESTART_RESTARTBLOCK` (Linux `include/linux/errno.h`).
fn is_restart(rax: u64) -> bool {
    (-516..=-512).contains(&(rax as i64))
}

/// Where a system-call instruction is, and the code that it replaces there, if any.
fn gate(thread: &Held, rip: u64) -> Result<(Addr, Option<[u8; 2]>), Error> {
    if let Some(gate) = thread.table.gate(thread.pid()) {
        return Ok((gate, None));
    }
    if let Some(gate) = vdso_gate(thread) {
        thread.table.set_gate(thread.pid(), gate);
        return Ok((gate, None));
    }
    let mut code = SYSCALL;
    thread.read_memory(Addr(rip), &mut code)?;
    thread.write_memory(Addr(rip), &SYSCALL)?;
    Ok((Addr(rip), Some(code)))
}

fn vdso_gate(thread: &Held) -> Option<Addr> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", thread.tid())).ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    thread.read_memory(Addr(start), &mut bytes).ok()?;
    let at = bytes.windows(2).position(|window| window == SYSCALL)?;
    Some(Addr(start + at as u64))
}
