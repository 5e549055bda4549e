//! Another process's memory: `process_vm_readv(2)`.
//!
//! It copies without stopping the process and is not atomic: what changes meanwhile may be torn.
//! Hardware watchpoints on the reader's or the target's side don't see it.

use hairspring_model::{Addr, Pid};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use std::io::{self, IoSliceMut};

/// Reads up to `into.len()` bytes at `addr`; returns how many bytes could be read, from the front.
///
/// # Errors
/// `EFAULT` where not even the first byte is mapped, `EPERM` without the right to trace the
/// process, `ESRCH` where it is gone.
pub fn read(pid: Pid, addr: Addr, into: &mut [u8]) -> io::Result<usize> {
    let pid = i32::try_from(pid.0).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let base = usize::try_from(addr.0).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))?;
    let remote = [RemoteIoVec { base, len: into.len() }];
    let pid = nix::unistd::Pid::from_raw(pid);
    Ok(process_vm_readv(pid, &mut [IoSliceMut::new(into)], &remote)?)
}

/// Reads exactly `N` bytes at `addr`.
///
/// # Errors
/// As [`read`]; `EFAULT` where only some of them are mapped.
pub fn read_array<const N: usize>(pid: Pid, addr: Addr) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    if read(pid, addr, &mut bytes)? < N {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory() {
        let value = 0x1122_3344_5566_7788_u64;
        let here = Addr(&raw const value as u64);
        let bytes = read_array::<8>(Pid(std::process::id()), here).expect("our own memory");
        assert_eq!(u64::from_le_bytes(bytes), value);
    }

    #[test]
    fn unmapped_memory_is_a_fault() {
        let error = read_array::<8>(Pid(std::process::id()), Addr(8)).expect_err("page zero");
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }
}
