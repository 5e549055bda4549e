//! The overflow of a counting event as a signal to one thread: period, and `O_ASYNC` with an owner.

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use hairspring_model::Tid;
use perf_event_open_sys::bindings as kernel;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Overflow after so many more counts, and then every so many (`PERF_EVENT_IOC_PERIOD`).
pub fn set_period(event: BorrowedFd<'_>, period: u64) -> io::Result<()> {
    let request = libc::c_ulong::from(kernel::PERIOD);
    // SAFETY: the kernel reads eight bytes at the address, where `period` is.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), request, &raw const period) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends `signal` to the thread at each overflow, with the descriptor in `si_fd` (fcntl(2):
/// `F_SETOWN_EX`, `F_SETSIG`, `O_ASYNC`).
pub fn signal_thread(event: BorrowedFd<'_>, tid: Tid, signal: i32) -> io::Result<()> {
    let fd = event.as_raw_fd();
    let pid = i32::try_from(tid.0).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let owner = FOwnerEx { kind: F_OWNER_TID, pid };
    // SAFETY: the kernel reads one `struct f_owner_ex` at the address, where `owner` is.
    checked(unsafe { libc::fcntl(fd, F_SETOWN_EX, &raw const owner) })?;
    // SAFETY: the command takes a plain number.
    checked(unsafe { libc::fcntl(fd, F_SETSIG, signal) })?;
    // SAFETY: the command takes a plain number.
    checked(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC) })
}

/// `struct f_owner_ex` of asm-generic/fcntl.h.
#[repr(C)]
struct FOwnerEx {
    kind: libc::c_int,
    pid: libc::pid_t,
}

const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

fn checked(done: libc::c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
