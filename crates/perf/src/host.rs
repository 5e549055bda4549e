//! The facts of this machine that decide what perf can do here: read, not tried.

use hairspring_model::Cpu;
use std::fs;
use std::path::Path;

/// What `/proc` and `/sys` say. Facts that can't be read keep the strictest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The kernel's release, as `uname -r`.
    pub release: String,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: i32,
    /// `kernel.perf_event_mlock_kb`: ring memory in KiB that a user may lock on each processor.
    pub mlock_kib: u64,
    /// The effective capabilities, bit by number (capability.h). In a user namespace, as in a
    /// rootless container, those that count only outside of it are left out, though the kernel
    /// lists them.
    pub capabilities: u64,
    /// The effective user id.
    pub uid: u32,
    /// Whether a system-call filter is on this process.
    pub seccomp: bool,
    /// Whether the kernel is locked down.
    pub lockdown: bool,
    /// Whether the processor says that it is a virtual one.
    pub virtual_machine: bool,
    /// Whether the kernel has a driver for the processor's performance counters.
    pub pmu: bool,
    /// The processors that are online.
    pub cpus: Vec<Cpu>,
    /// RLIMIT_NOFILE, soft.
    pub descriptors: u64,
    /// RLIMIT_NOFILE, hard.
    pub descriptors_hard: u64,
    /// RLIMIT_MEMLOCK, soft, in bytes.
    pub locked_memory: u64,
}

/// A capability that matters to perf (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Lock memory without limit.
    IpcLock = 14,
    /// Trace and inspect processes of other users.
    SysPtrace = 19,
    /// Everything of old; includes [`Capability::Perfmon`] (perf_event_open(2)).
    SysAdmin = 21,
    /// Use perf without restrictions.
    Perfmon = 38,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            release: "unknown".into(),
            paranoid: 4,
            mlock_kib: 516,
            capabilities: 0,
            uid: u32::MAX,
            seccomp: false,
            lockdown: false,
            virtual_machine: false,
            pmu: false,
            cpus: Vec::new(),
            descriptors: 1024,
            descriptors_hard: 1024,
            locked_memory: 64 * 1024,
        }
    }
}

impl Host {
    /// Reads the facts of this machine and this process.
    pub fn read() -> Self {
        use nix::sys::resource::{Resource, getrlimit};
        let mut host = Self::read_under(Path::new("/"));
        host.uid = nix::unistd::geteuid().as_raw();
        if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
            (host.descriptors, host.descriptors_hard) = (soft, hard);
        }
        if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_MEMLOCK) {
            host.locked_memory = soft;
        }
        host
    }

    /// Reads what is in files, below `root`.
    fn read_under(root: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let number = |path: &str| text(path).trim().parse::<i64>().ok();
        let status = text("proc/self/status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map_or("", str::trim)
        };
        let strict = Self::default();
        let release = text("proc/sys/kernel/osrelease");
        let paranoid = number("proc/sys/kernel/perf_event_paranoid");
        let mlock = number("proc/sys/kernel/perf_event_mlock_kb");
        let namespace = fs::read_link(root.join("proc/self/ns/user"));
        // perf asks for capabilities of the initial namespace (`perfmon_capable` in Linux
        // include/linux/capability.h); one of its descendants can only inspect its own processes.
        let initial = namespace.map_or(true, |link| link == Path::new(INITIAL_USER_NAMESPACE));
        let counted = if initial { u64::MAX } else { 1 << Capability::SysPtrace as u32 };
        Self {
            release: if release.is_empty() { strict.release } else { release.trim().into() },
            paranoid: paranoid.and_then(|n| i32::try_from(n).ok()).unwrap_or(strict.paranoid),
            mlock_kib: mlock.and_then(|n| u64::try_from(n).ok()).unwrap_or(strict.mlock_kib),
            capabilities: u64::from_str_radix(field("CapEff"), 16).unwrap_or(0) & counted,
            seccomp: !matches!(field("Seccomp"), "0" | ""),
            // The active mode is the one in brackets.
            lockdown: text("sys/kernel/security/lockdown")
                .split_whitespace()
                .any(|mode| mode.starts_with('[') && mode != "[none]"),
            virtual_machine: text("proc/cpuinfo").lines().any(|line| {
                line.starts_with("flags") && line.split_whitespace().any(|f| f == "hypervisor")
            }),
            pmu: ["cpu", "cpu_core"]
                .iter()
                .any(|name| root.join("sys/bus/event_source/devices").join(name).exists()),
            cpus: cpu_list(&text("sys/devices/system/cpu/online")),
            ..strict
        }
    }

    /// Whether this process has the capability, or one that includes it.
    pub fn can(&self, capability: Capability) -> bool {
        let has = |c: Capability| self.capabilities >> c as u32 & 1 == 1;
        has(capability) || (capability == Capability::Perfmon && has(Capability::SysAdmin))
    }

    /// Whether this process may see events that happen in the kernel
    /// (`perf_allow_kernel`, Linux `include/linux/perf_event.h`).
    pub fn may_see_kernel(&self) -> bool {
        self.paranoid < 2 || self.can(Capability::Perfmon)
    }

    /// How many bytes a ring on each of this machine's processors may have, the header page not
    /// counted, before the memory lock limits refuse it; `None` without a limit.
    pub fn ring_limit(&self) -> Option<u64> {
        if self.paranoid < 0 || self.can(Capability::IpcLock) {
            return None;
        }
        let own = self.locked_memory / (self.cpus.len().max(1) as u64);
        Some((self.mlock_kib * 1024).saturating_add(own))
    }
}

/// What `/proc/self/ns/user` names where there is no other: `PROC_USER_INIT_INO` of Linux
/// include/linux/proc_ns.h.
const INITIAL_USER_NAMESPACE: &str = "user:[4026531837]";

/// A kernel list of processors, such as `0-3,8`.
fn cpu_list(text: &str) -> Vec<Cpu> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        // The kernel numbers at most 8,192 processors (NR_CPUS).
        Some(first.parse().ok()?..=last.parse::<u32>().ok().filter(|n| *n < 8192)?)
    };
    text.trim().split(',').filter_map(range).flatten().map(Cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        for (text, cpus) in [
            ("0\n", vec![0]),
            ("0-1\n", vec![0, 1]),
            ("0-2,8,10-11", vec![0, 1, 2, 8, 10, 11]),
            ("", vec![]),
            ("0-4294967295", vec![]),
            ("x-3,2", vec![2]),
        ] {
            assert_eq!(cpu_list(text), cpus.into_iter().map(Cpu).collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn facts_come_from_files() {
        let root = tempfile::tempdir().expect("a scratch folder");
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.1.0-test\n"),
            ("proc/sys/kernel/perf_event_paranoid", "3\n"),
            ("proc/self/status", "Name:\tx\nCapEff:\t0000004000000000\nSeccomp:\t2\n"),
            ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
            ("proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("created");
            fs::write(path, text).expect("written");
        }
        let host = Host::read_under(root.path());
        assert_eq!(host.release, "6.1.0-test");
        assert_eq!(host.paranoid, 3);
        assert!(host.can(Capability::Perfmon) && !host.can(Capability::SysPtrace));
        assert!(host.seccomp && host.lockdown && host.virtual_machine && !host.pmu);
        assert_eq!(host.cpus, [Cpu(0), Cpu(1)]);
        assert!(host.may_see_kernel());
    }

    #[test]
    fn what_cannot_be_read_is_strict() {
        let nothing = tempfile::tempdir().expect("a scratch folder");
        assert_eq!(Host::read_under(nothing.path()), Host::default());
        assert!(!Host::default().may_see_kernel());
    }

    #[test]
    fn root_of_a_user_namespace_is_not_root() {
        for (link, is_root) in [(INITIAL_USER_NAMESPACE, true), ("user:[4026532000]", false)] {
            let root = tempfile::tempdir().expect("a scratch folder");
            let namespaces = root.path().join("proc/self/ns");
            fs::create_dir_all(&namespaces).expect("created");
            std::os::unix::fs::symlink(link, namespaces.join("user")).expect("linked");
            let status = root.path().join("proc/self/status");
            fs::write(status, "CapEff:\t000001ffffffffff\n").expect("written");
            let host = Host::read_under(root.path());
            let outside = [Capability::Perfmon, Capability::SysAdmin, Capability::IpcLock];
            assert!(outside.iter().all(|c| host.can(*c) == is_root), "{link}");
            assert!(host.can(Capability::SysPtrace));
        }
    }

    #[test]
    fn ring_memory_is_limited_for_ordinary_users() {
        let user = Host { paranoid: 2, mlock_kib: 516, locked_memory: 65536, ..Host::default() };
        let user = Host { cpus: vec![Cpu(0), Cpu(1)], ..user };
        assert_eq!(user.ring_limit(), Some(516 * 1024 + 32768));
        assert_eq!(Host { paranoid: -1, ..user }.ring_limit(), None);
    }
}
