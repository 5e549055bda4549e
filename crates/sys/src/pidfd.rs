//! A process by descriptor (`pidfd_open(2)`), which a reused process id can't fool.

#![expect(unsafe_code, reason = "a system call without a safe wrapper")]

use hairspring_model::Pid;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Opens a descriptor that names this process and never another; readable once it has exited.
///
/// # Errors
/// `ESRCH` without such a process, `EINVAL` where the id is that of a thread other than the first.
pub fn open(pid: Pid) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid.0).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let no_flags: libc::c_uint = 0;
    // SAFETY: two numbers; no memory of ours is touched.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, no_flags) };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just given us this descriptor (closed on exec), and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
