//! `perf_event_open(2)` and the ioctls on its descriptors.
//!
//! The constants are the kernel's own, from `linux/perf_event.h` and `linux/hw_breakpoint.h` as
//! bound by `perf-event-open-sys2`; [`Attr`] is ours, its layout proved against that binding below.
//! Not here: what a sensible attribute is (crate `perf`), and the ring ([`crate::ring`]).

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use hairspring_model::Tid;
use perf_event_open_sys::bindings as kernel;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The kernel's names for the values of [`Attr`]'s fields and of records.
pub mod constant {
    pub use perf_event_open_sys::bindings::{
        HW_BREAKPOINT_RW, HW_BREAKPOINT_W, HW_BREAKPOINT_X, PERF_COUNT_SW_DUMMY, PERF_FORMAT_ID,
        PERF_FORMAT_LOST, PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST,
        PERF_RECORD_LOST_SAMPLES, PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_CPUMODE_MASK,
        PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_MMAP_BUILD_ID, PERF_RECORD_MISC_USER,
        PERF_RECORD_MMAP2, PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE,
        PERF_SAMPLE_ADDR, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER,
        PERF_SAMPLE_IP, PERF_SAMPLE_REGS_ABI_32, PERF_SAMPLE_REGS_ABI_64,
        PERF_SAMPLE_REGS_ABI_NONE, PERF_SAMPLE_REGS_INTR, PERF_SAMPLE_REGS_USER,
        PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_BREAKPOINT,
        PERF_TYPE_HARDWARE, PERF_TYPE_RAW, PERF_TYPE_SOFTWARE,
    };
}

/// The bits of [`Attr::flags`], numbered as in `struct perf_event_attr` of `linux/perf_event.h`.
pub mod flag {
    #![expect(missing_docs, reason = "the kernel's own names, described in perf_event_open(2)")]
    pub const DISABLED: u64 = 1 << 0;
    pub const INHERIT: u64 = 1 << 1;
    pub const PINNED: u64 = 1 << 2;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HV: u64 = 1 << 6;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const TASK: u64 = 1 << 13;
    pub const WATERMARK: u64 = 1 << 14;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const MMAP2: u64 = 1 << 23;
    pub const COMM_EXEC: u64 = 1 << 24;
    pub const USE_CLOCKID: u64 = 1 << 25;
    pub const WRITE_BACKWARD: u64 = 1 << 27;
    pub const INHERIT_THREAD: u64 = 1 << 35;
    pub const REMOVE_ON_EXEC: u64 = 1 << 36;
}

/// `struct perf_event_attr` as of Linux 5.13 (`PERF_ATTR_SIZE_VER7`); newer kernels accept it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kernel's own names, described in perf_event_open(2)")]
pub struct Attr {
    pub kind: u32,
    /// Set by the calls of this module.
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup: u32,
    pub bp_type: u32,
    pub bp_addr: u64,
    pub bp_len: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved_2: u16,
    pub aux_sample_size: u32,
    pub reserved_3: u32,
    pub sig_data: u64,
}

const _: () = {
    type Theirs = kernel::perf_event_attr;
    assert!(size_of::<Attr>() == kernel::PERF_ATTR_SIZE_VER7 as usize);
    assert!(offset_of!(Attr, config) == offset_of!(Theirs, config));
    assert!(offset_of!(Attr, sample_period) == offset_of!(Theirs, __bindgen_anon_1));
    assert!(offset_of!(Attr, sample_type) == offset_of!(Theirs, sample_type));
    assert!(offset_of!(Attr, read_format) == offset_of!(Theirs, read_format));
    assert!(offset_of!(Attr, flags) == offset_of!(Theirs, _bitfield_1));
    assert!(offset_of!(Attr, wakeup) == offset_of!(Theirs, __bindgen_anon_2));
    assert!(offset_of!(Attr, bp_type) == offset_of!(Theirs, bp_type));
    assert!(offset_of!(Attr, bp_addr) == offset_of!(Theirs, __bindgen_anon_3));
    assert!(offset_of!(Attr, bp_len) == offset_of!(Theirs, __bindgen_anon_4));
    assert!(offset_of!(Attr, sample_regs_user) == offset_of!(Theirs, sample_regs_user));
    assert!(offset_of!(Attr, sample_stack_user) == offset_of!(Theirs, sample_stack_user));
    assert!(offset_of!(Attr, clockid) == offset_of!(Theirs, clockid));
    assert!(offset_of!(Attr, sample_regs_intr) == offset_of!(Theirs, sample_regs_intr));
    assert!(offset_of!(Attr, sample_max_stack) == offset_of!(Theirs, sample_max_stack));
    assert!(offset_of!(Attr, sig_data) == offset_of!(Theirs, sig_data));
};

/// On which processors an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCpu {
    /// Wherever the thread runs.
    Any,
    /// Only while the thread runs there.
    One(hairspring_model::Cpu),
}

/// Opens an event on one thread (`None`: the calling one), closed on exec. Its records go into the
/// ring of `output` from the first one on; without it there is no ring.
///
/// # Errors
/// What the kernel answers; perf_event_open(2) lists the reasons.
pub fn open(
    attr: &Attr,
    thread: Option<Tid>,
    cpu: OnCpu,
    output: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    let attr = Attr { size: kernel::PERF_ATTR_SIZE_VER7, ..*attr };
    let thread = match thread {
        None => 0,
        // Thread ids fit: the kernel's pid_t is an i32. One that does not names nobody.
        Some(Tid(tid)) => {
            i32::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?
        }
    };
    let cpu = match cpu {
        OnCpu::Any => -1,
        OnCpu::One(cpu) => {
            i32::try_from(cpu.0).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?
        }
    };
    // The descriptor argument names a group or an output: FD_NO_GROUP makes it the output alone.
    let (output, flags) = match output {
        Some(output) => {
            (output.as_raw_fd(), kernel::PERF_FLAG_FD_OUTPUT | kernel::PERF_FLAG_FD_NO_GROUP)
        }
        None => (-1, 0),
    };
    let flags = libc::c_ulong::from(flags | kernel::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the kernel reads `size` bytes of `attr`, which is a live value of that size.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attr, thread, cpu, output, flags)
    };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Starts the event and the events inherited from it (`PERF_EVENT_IOC_ENABLE`).
pub fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    ioctl_value(event, kernel::ENABLE, 0)
}

/// Stops the event and the events inherited from it (`PERF_EVENT_IOC_DISABLE`).
pub fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    ioctl_value(event, kernel::DISABLE, 0)
}

/// Starts the event for `overflows` more overflows, after which the kernel disables it
/// (`PERF_EVENT_IOC_REFRESH`).
pub fn refresh(event: BorrowedFd<'_>, overflows: u32) -> io::Result<()> {
    ioctl_value(event, kernel::REFRESH, libc::c_ulong::from(overflows))
}

/// The id that the records of the event and of those inherited from it carry (`PERF_EVENT_IOC_ID`).
pub fn id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id: u64 = 0;
    // SAFETY: the kernel writes eight bytes to `id`, which is that large and live.
    let done =
        unsafe { libc::ioctl(event.as_raw_fd(), libc::c_ulong::from(kernel::ID), &raw mut id) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

/// Gives a breakpoint event another address, length, type or `DISABLED` flag, in place, and the
/// events inherited from it too (`PERF_EVENT_IOC_MODIFY_ATTRIBUTES`, Linux 4.17).
pub fn modify(event: BorrowedFd<'_>, attr: &Attr) -> io::Result<()> {
    let attr = Attr { size: kernel::PERF_ATTR_SIZE_VER7, ..*attr };
    let request = libc::c_ulong::from(kernel::MODIFY_ATTRIBUTES);
    // SAFETY: the kernel reads `size` bytes of `attr`, which is a live value of that size.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), request, &raw const attr) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads the event's counts into `words`, as many as its read format has.
///
/// # Errors
/// `UnexpectedEof` where the kernel gives fewer (a pinned event that could not be scheduled reads
/// as end of file).
pub fn read(event: BorrowedFd<'_>, words: &mut [u64]) -> io::Result<()> {
    let mut bytes = [0_u8; 64];
    let bytes = bytes.get_mut(..words.len() * 8).ok_or(io::ErrorKind::InvalidInput)?;
    if nix::unistd::read(event, bytes)? < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    Ok(())
}

fn ioctl_value(event: BorrowedFd<'_>, request: u32, value: libc::c_ulong) -> io::Result<()> {
    let fd = event.as_fd().as_raw_fd();
    // SAFETY: these requests take a plain number and touch no memory of ours.
    let done = unsafe { libc::ioctl(fd, libc::c_ulong::from(request), value) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of our flag bits is the one that the kernel's header sets by that name.
    #[test]
    fn flag_bits_are_the_kernels() {
        fn bits(set: impl FnOnce(&mut kernel::perf_event_attr)) -> u64 {
            let mut attr = kernel::perf_event_attr::default();
            set(&mut attr);
            attr._bitfield_1.get(0, 64)
        }
        for (ours, theirs) in [
            (flag::DISABLED, bits(|a| a.set_disabled(1))),
            (flag::INHERIT, bits(|a| a.set_inherit(1))),
            (flag::PINNED, bits(|a| a.set_pinned(1))),
            (flag::EXCLUDE_KERNEL, bits(|a| a.set_exclude_kernel(1))),
            (flag::EXCLUDE_HV, bits(|a| a.set_exclude_hv(1))),
            (flag::MMAP, bits(|a| a.set_mmap(1))),
            (flag::COMM, bits(|a| a.set_comm(1))),
            (flag::TASK, bits(|a| a.set_task(1))),
            (flag::WATERMARK, bits(|a| a.set_watermark(1))),
            (flag::SAMPLE_ID_ALL, bits(|a| a.set_sample_id_all(1))),
            (flag::EXCLUDE_CALLCHAIN_USER, bits(|a| a.set_exclude_callchain_user(1))),
            (flag::MMAP2, bits(|a| a.set_mmap2(1))),
            (flag::COMM_EXEC, bits(|a| a.set_comm_exec(1))),
            (flag::USE_CLOCKID, bits(|a| a.set_use_clockid(1))),
            (flag::WRITE_BACKWARD, bits(|a| a.set_write_backward(1))),
            (flag::INHERIT_THREAD, bits(|a| a.set_inherit_thread(1))),
            (flag::REMOVE_ON_EXEC, bits(|a| a.set_remove_on_exec(1))),
        ] {
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn a_thread_id_that_nobody_can_have_is_nobody() {
        let attr = Attr { kind: constant::PERF_TYPE_SOFTWARE, config: 9, ..Attr::default() };
        let error = open(&attr, Some(Tid(u32::MAX)), OnCpu::Any, None).expect_err("no such thread");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
