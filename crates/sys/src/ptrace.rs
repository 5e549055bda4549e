//! `ptrace(2)` and the waits that belong to it, with signals as plain numbers.
//!
//! `nix` wraps most of these calls, but knows only the signals 1 to 31: a real-time signal is an
//! error there. A request on a thread that has been killed is `ESRCH`, always to be expected.
//! Not here: what a wait status means (crate `trace`).

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use hairspring_model::{Pid, Tid};
use std::io;
use std::mem::size_of;

pub use libc::user_regs_struct as UserRegisters;

/// The options of [`seize`] and [`set_options`], from `linux/ptrace.h`.
pub mod option {
    #![expect(missing_docs, reason = "the kernel's own names, described in ptrace(2)")]
    pub const TRACESYSGOOD: u32 = libc::PTRACE_O_TRACESYSGOOD as u32;
    pub const TRACEFORK: u32 = libc::PTRACE_O_TRACEFORK as u32;
    pub const TRACEVFORK: u32 = libc::PTRACE_O_TRACEVFORK as u32;
    pub const TRACECLONE: u32 = libc::PTRACE_O_TRACECLONE as u32;
    pub const TRACEEXEC: u32 = libc::PTRACE_O_TRACEEXEC as u32;
    pub const TRACEVFORKDONE: u32 = libc::PTRACE_O_TRACEVFORKDONE as u32;
    pub const TRACEEXIT: u32 = libc::PTRACE_O_TRACEEXIT as u32;
    pub const EXITKILL: u32 = libc::PTRACE_O_EXITKILL as u32;
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Until the next signal or event (`PTRACE_CONT`).
    Continue,
    /// Until the next entry to or exit from a system call too (`PTRACE_SYSCALL`).
    ToSyscall,
    /// For one instruction (`PTRACE_SINGLESTEP`).
    Step,
}

/// What `siginfo_t` says, as far as it is used.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalInfo {
    /// The signal's number.
    pub signal: i32,
    errno: i32,
    /// Who sent it and why: `SI_*`, `TRAP_*`, `POLL_*`, ...
    pub code: i32,
    padding: i32,
    fields: [u64; 14],
}

const _: () = assert!(size_of::<SignalInfo>() == size_of::<libc::siginfo_t>());

impl SignalInfo {
    /// The address of a fault (`si_addr`, offset 16 of `siginfo_t`); only faults have one.
    pub const fn address(&self) -> u64 {
        self.fields[0]
    }

    /// The descriptor of an I/O event (`si_fd`, offset 24); only `POLL_*` codes have one.
    pub const fn descriptor(&self) -> i32 {
        // The lower half: x86-64 and aarch64 are little-endian.
        (self.fields[1] & 0xffff_ffff) as u32 as i32
    }
}

/// Attaches to a thread without stopping it (`PTRACE_SEIZE`).
pub fn seize(tid: Tid, options: u32) -> io::Result<()> {
    plain(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Replaces the options of a stopped thread (`PTRACE_SETOPTIONS`).
pub fn set_options(tid: Tid, options: u32) -> io::Result<()> {
    plain(libc::PTRACE_SETOPTIONS, tid, 0, options as usize)
}

/// Asks a seized thread to stop (`PTRACE_INTERRUPT`).
pub fn interrupt(tid: Tid) -> io::Result<()> {
    plain(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Leaves a group-stopped thread stopped, but reports when that ends (`PTRACE_LISTEN`).
pub fn listen(tid: Tid) -> io::Result<()> {
    plain(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Lets a stopped thread run, delivering `signal` (0: none).
pub fn resume(tid: Tid, how: Resume, signal: i32) -> io::Result<()> {
    let request = match how {
        Resume::Continue => libc::PTRACE_CONT,
        Resume::ToSyscall => libc::PTRACE_SYSCALL,
        Resume::Step => libc::PTRACE_SINGLESTEP,
    };
    plain(request, tid, 0, signal as usize)
}

/// Lets a stopped thread go, delivering `signal` (0: none).
pub fn detach(tid: Tid, signal: i32) -> io::Result<()> {
    plain(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

/// The number that comes with an event stop (`PTRACE_GETEVENTMSG`): a new thread's id, an exit
/// status, the former id at an exec.
pub fn event_message(tid: Tid) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one unsigned long to `message`.
    unsafe { request(libc::PTRACE_GETEVENTMSG, tid, 0, (&raw mut message) as usize) }?;
    Ok(message)
}

/// The signal of a signal-delivery stop; `EINVAL` for a group stop (`PTRACE_GETSIGINFO`).
pub fn signal_info(tid: Tid) -> io::Result<SignalInfo> {
    let mut info = SignalInfo::default();
    // SAFETY: the kernel writes one `siginfo_t`, whose size `SignalInfo` has (checked above).
    unsafe { request(libc::PTRACE_GETSIGINFO, tid, 0, (&raw mut info) as usize) }?;
    Ok(info)
}

/// The general registers (`PTRACE_GETREGS`).
pub fn registers(tid: Tid) -> io::Result<UserRegisters> {
    Ok(nix::sys::ptrace::getregs(raw(tid)?)?)
}

/// Sets the general registers (`PTRACE_SETREGS`).
pub fn set_registers(tid: Tid, registers: UserRegisters) -> io::Result<()> {
    Ok(nix::sys::ptrace::setregs(raw(tid)?, registers)?)
}

/// The blocked signals, bit n-1 for signal n (`PTRACE_GETSIGMASK`).
pub fn blocked_signals(tid: Tid) -> io::Result<u64> {
    let mut mask: u64 = 0;
    // SAFETY: the kernel writes the eight bytes that the size argument names to `mask`.
    unsafe { request(libc::PTRACE_GETSIGMASK, tid, size_of::<u64>(), (&raw mut mask) as usize) }?;
    Ok(mask)
}

/// Sets the blocked signals (`PTRACE_SETSIGMASK`).
pub fn block_signals(tid: Tid, mask: u64) -> io::Result<()> {
    let data = (&raw const mask) as usize;
    // SAFETY: the kernel reads the eight bytes that the size argument names from `mask`.
    unsafe { request(libc::PTRACE_SETSIGMASK, tid, size_of::<u64>(), data) }?;
    Ok(())
}

/// What the kernel says of a system-call stop (`PTRACE_GET_SYSCALL_INFO`, Linux 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallInfo {
    /// Not a system-call stop.
    None,
    /// About to enter: number and arguments.
    Entry(u64, [u64; 6]),
    /// About to return this value.
    Exit(i64),
    /// Stopped by a seccomp filter.
    Seccomp,
}

/// Whether the thread stands at a system call, and which.
pub fn syscall_info(tid: Tid) -> io::Result<SyscallInfo> {
    // struct ptrace_syscall_info of linux/ptrace.h: op (u8), padding, arch (u32), instruction and
    // stack pointer (u64 each), then the union: nr and six arguments, or the returned value.
    let mut words = [0_u64; 12];
    let size = size_of_val(&words);
    // SAFETY: the kernel writes at most `size` bytes to `words`, which has that size.
    unsafe { request(libc::PTRACE_GET_SYSCALL_INFO, tid, size, words.as_mut_ptr() as usize) }?;
    let [op, _, _, nr, args @ ..] = words;
    let arguments = args.first_chunk().copied().unwrap_or_default();
    // The first byte of the first word is the kind.
    Ok(match op.to_le_bytes()[0] {
        libc::PTRACE_SYSCALL_INFO_ENTRY => SyscallInfo::Entry(nr, arguments),
        libc::PTRACE_SYSCALL_INFO_EXIT => SyscallInfo::Exit(nr as i64),
        libc::PTRACE_SYSCALL_INFO_SECCOMP => SyscallInfo::Seccomp,
        _ => SyscallInfo::None,
    })
}

/// Whom to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Every child and tracee of the calling thread (not of its process: `__WNOTHREAD`).
    Any,
    /// One thread.
    One(Tid),
}

/// Waits for a change of state and takes it: the thread and its wait status. `None` if there is
/// none yet and `block` is false.
///
/// # Errors
/// `ECHILD` where there is nobody to wait for.
pub fn wait(whom: WaitFor, block: bool) -> io::Result<Option<(Tid, i32)>> {
    let flags = libc::__WALL | libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG };
    let whom = match whom {
        WaitFor::Any => -1,
        WaitFor::One(tid) => raw(tid)?.as_raw(),
    };
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one int to `status`.
        let tid = unsafe { libc::waitpid(whom, &raw mut status, flags) };
        match u32::try_from(tid) {
            Ok(0) => return Ok(None),
            Ok(tid) => return Ok(Some((Tid(tid), status))),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Waits until a child has stopped or ended, without taking that; whether it has ended.
///
/// # Errors
/// `ECHILD` where there is no such child.
pub fn await_change(tid: Tid) -> io::Result<bool> {
    let id = raw(tid)?.as_raw().cast_unsigned();
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
    loop {
        let mut info = SignalInfo::default();
        // SAFETY: the kernel writes one `siginfo_t`, whose size `SignalInfo` has (checked above).
        let done = unsafe { libc::waitid(libc::P_PID, id, (&raw mut info).cast(), flags) };
        if done == 0 {
            let ends = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
            return Ok(ends.contains(&info.code));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Sends a signal to one thread (`tgkill(2)`).
pub fn signal_thread(pid: Pid, tid: Tid, signal: i32) -> io::Result<()> {
    let (pid, tid) = (raw(pid.leader())?.as_raw(), raw(tid)?.as_raw());
    // SAFETY: the call takes plain numbers.
    let done = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Kills a process.
pub fn kill(pid: Pid) -> io::Result<()> {
    Ok(nix::sys::signal::kill(raw(pid.leader())?, nix::sys::signal::Signal::SIGKILL)?)
}

fn raw(tid: Tid) -> io::Result<nix::unistd::Pid> {
    // Thread ids are positive and fit: pid_t is an i32. Another number names nobody.
    match i32::try_from(tid.0) {
        Ok(id) if id > 0 => Ok(nix::unistd::Pid::from_raw(id)),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// A request that touches no memory of ours.
fn plain(kind: libc::c_uint, tid: Tid, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the callers in this file use requests whose address and data are plain numbers.
    unsafe { request(kind, tid, address, data) }
}

/// # Safety
/// If the request reads or writes memory of ours at `data`, it must be there and large enough.
unsafe fn request(kind: libc::c_uint, tid: Tid, address: usize, data: usize) -> io::Result<()> {
    let tid = raw(tid)?.as_raw();
    // SAFETY: the caller guarantees it.
    let done =
        unsafe { libc::syscall(libc::SYS_ptrace, libc::c_ulong::from(kind), tid, address, data) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
