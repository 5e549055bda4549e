//! Which layer of the system said no, and what to do about it: pure, from the error number and the
//! facts of the host.

use crate::host::{Capability, Host};
use std::fmt;

/// A layer that can refuse a perf call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    /// The sysctl `kernel.perf_event_paranoid`.
    Paranoid,
    /// The right to inspect that process: another user's, or one that may not be dumped.
    Process,
    /// A system-call filter, as containers have.
    Seccomp,
    /// The kernel's lockdown mode.
    Lockdown,
    /// The four debug registers.
    Slots,
    /// The limit of open descriptors.
    Descriptors,
    /// The limit of locked memory.
    LockedMemory,
    /// The kernel's version or configuration.
    Kernel,
    /// The processor, or the virtual machine that stands for it.
    Hardware,
    /// The thread itself: it has exited.
    Thread,
    /// None of those known.
    Unknown,
}

/// A no, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Who said it.
    pub layer: Layer,
    /// What to do about it: a sentence.
    pub remedy: String,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paranoid => "kernel.perf_event_paranoid",
            Self::Process => "process permissions",
            Self::Seccomp => "a seccomp filter",
            Self::Lockdown => "kernel lockdown",
            Self::Slots => "debug registers",
            Self::Descriptors => "descriptor limit",
            Self::LockedMemory => "locked-memory limit",
            Self::Kernel => "the kernel",
            Self::Hardware => "the hardware",
            Self::Thread => "the thread",
            Self::Unknown => "unknown",
        })
    }
}

/// The layer behind an error number of `perf_event_open(2)`, its ioctls, or its mmap.
pub(crate) fn explain(operation: &str, errno: i32, host: &Host) -> Refusal {
    use nix::libc;
    let privileged = host.can(Capability::Perfmon);
    let (layer, remedy) = match errno {
        // mmap of a ring answers EPERM for one reason only.
        libc::EPERM if operation == crate::ring::MAP => (
            Layer::LockedMemory,
            format!(
                "use a smaller ring, raise `ulimit -l`, or raise kernel.perf_event_mlock_kb (now {})",
                host.mlock_kib
            ),
        ),
        libc::EACCES | libc::EPERM if host.lockdown && privileged => (
            Layer::Lockdown,
            "the kernel is locked down, which forbids this sample; boot without lockdown".into(),
        ),
        // A filter answers EPERM (container runtimes) or ENOSYS where the kernel says EACCES.
        libc::EPERM if host.seccomp && !privileged => (
            Layer::Seccomp,
            "allow perf_event_open in the container's seccomp profile, or give it CAP_PERFMON".into(),
        ),
        libc::ENOSYS if host.seccomp => (
            Layer::Seccomp,
            "allow perf_event_open in the container's seccomp profile".into(),
        ),
        libc::EACCES | libc::EPERM if host.paranoid > 2 && !privileged => (
            Layer::Paranoid,
            format!(
                "kernel.perf_event_paranoid is {}: run as root, give hairspring CAP_PERFMON \
                 (`setcap cap_perfmon,cap_sys_ptrace=ep`), or `sysctl kernel.perf_event_paranoid=2`",
                host.paranoid
            ),
        ),
        libc::EACCES | libc::EPERM => (
            Layer::Process,
            "the process belongs to another user or may not be inspected (setuid, not dumpable): \
             run as its user, as root, or with CAP_PERFMON and CAP_SYS_PTRACE"
                .into(),
        ),
        libc::ENOSPC => (
            Layer::Slots,
            "the thread's four debug registers are taken, by a debugger (gdb's hardware watchpoints \
             and breakpoints) or by another perf event: release those, or watch fewer bytes"
                .into(),
        ),
        libc::EMFILE | libc::ENFILE => (
            Layer::Descriptors,
            format!(
                "one descriptor is needed for each thread, slot and CPU; the hard limit is {}: raise \
                 it (`ulimit -Hn`), or watch fewer bytes",
                host.descriptors_hard
            ),
        ),
        libc::ESRCH => (Layer::Thread, "the thread has exited".into()),
        libc::ENODEV => (
            Layer::Hardware,
            "the processor is not online, or the thread that made the ring has ended".into(),
        ),
        libc::ENOENT | libc::EOPNOTSUPP => (
            Layer::Hardware,
            "this machine has no such event; `hairspring doctor` says what it has".into(),
        ),
        libc::EINVAL | libc::E2BIG | libc::ENOSYS => (
            Layer::Kernel,
            format!("this kernel ({}) does not know the request; Linux 5.13 does", host.release),
        ),
        _ => (Layer::Unknown, "`hairspring doctor` says what works on this machine".into()),
    };
    Refusal { layer, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc;

    #[test]
    fn each_layer_is_told_apart() {
        let root = Host { capabilities: u64::MAX, paranoid: 2, ..Host::default() };
        let user = Host { capabilities: 0, paranoid: 2, ..Host::default() };
        let strict = Host { capabilities: 0, paranoid: 3, ..Host::default() };
        let container = Host { capabilities: 0, seccomp: true, ..Host::default() };
        let locked = Host { lockdown: true, ..root.clone() };
        for (operation, errno, host, layer) in [
            ("perf_event_open", libc::EACCES, &user, Layer::Process),
            ("perf_event_open", libc::EACCES, &strict, Layer::Paranoid),
            ("perf_event_open", libc::EPERM, &container, Layer::Seccomp),
            ("perf_event_open", libc::ENOSYS, &container, Layer::Seccomp),
            ("perf_event_open", libc::EACCES, &root, Layer::Process),
            ("perf_event_open", libc::EPERM, &locked, Layer::Lockdown),
            ("perf_event_open", libc::ENOSPC, &root, Layer::Slots),
            ("perf_event_open", libc::EMFILE, &root, Layer::Descriptors),
            ("perf_event_open", libc::ESRCH, &root, Layer::Thread),
            ("perf_event_open", libc::ENOENT, &root, Layer::Hardware),
            ("perf_event_open", libc::EINVAL, &root, Layer::Kernel),
            ("perf_event_open", libc::EIO, &root, Layer::Unknown),
            (crate::ring::MAP, libc::EPERM, &user, Layer::LockedMemory),
        ] {
            let refusal = explain(operation, errno, host);
            assert_eq!(refusal.layer, layer, "{operation} {errno}");
            assert!(!refusal.remedy.is_empty());
        }
    }
}
