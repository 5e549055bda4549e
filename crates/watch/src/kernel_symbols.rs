//! Which system call the kernel was in, from the return addresses on its stack.
//!
//! The names come from `/proc/kallsyms`, which shows addresses only to those with CAP_SYSLOG (or
//! `kernel.kptr_restrict=0`). Every system call of x86-64 enters by a function `__x64_sys_NAME`
//! (Linux `arch/x86/include/asm/syscall_wrapper.h`), which may have jumped on to a helper of a
//! similar name and left no frame.

use crate::site::SystemCall;
use hairspring_model::Addr;
use std::fs;

/// The prefixes of the functions by which system calls enter, for 64-bit and 32-bit callers, and of
/// those that they jump on to.
const ENTRIES: [&str; 6] =
    ["__x64_sys_", "__ia32_sys_", "__se_sys_", "__do_sys_", "ksys_", "__sys_"];

/// The kernel's functions, as far as they are needed.
#[derive(Debug)]
pub(crate) enum KernelSymbols {
    /// Start of a function, and its system call if it is an entry; ascending.
    Known(Vec<(u64, Option<Box<str>>)>),
    /// The addresses are hidden.
    Hidden,
}

impl KernelSymbols {
    /// Reads the running kernel's: some tens of milliseconds.
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<(u64, Option<Box<str>>)> =
            text.lines().filter_map(function).collect();
        functions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        functions.dedup_by_key(|(start, _)| *start);
        // Hidden addresses are all zero.
        if functions.len() < 2 { Self::Hidden } else { Self::Known(functions) }
    }

    /// The system call that the outermost frame of an entry belongs to.
    pub(crate) fn system_call(&self, chain: &[Addr]) -> SystemCall {
        let Self::Known(functions) = self else { return SystemCall::Unnamed };
        let entry = |ip: &Addr| {
            let after = functions.partition_point(|(start, _)| *start <= ip.0);
            functions.get(after.checked_sub(1)?)?.1.as_deref()
        };
        chain
            .iter()
            .rev()
            .find_map(entry)
            .map_or(SystemCall::Other, |name| SystemCall::Named(name.into()))
    }
}

/// The start of a function and, for an entry, the system call's name.
fn function(line: &str) -> Option<(u64, Option<Box<str>>)> {
    let mut fields = line.split_ascii_whitespace();
    let start = u64::from_str_radix(fields.next()?, 16).ok()?;
    if !matches!(fields.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
    let name = fields.next()?;
    let entry = ENTRIES.iter().find_map(|prefix| name.strip_prefix(prefix));
    Some((start, entry.map(Into::into)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _text
ffffffff81000100 t copy_to_user
ffffffff81000200 T vfs_read
ffffffff81000300 T __x64_sys_read
ffffffff81000400 T __ia32_sys_read
ffffffff81000480 t ksys_pread64
ffffffff81000500 D some_data
ffffffff81000600 T do_syscall_64
";

    fn check(text: &str, chain: &[u64], expected: &SystemCall) {
        let chain: Vec<Addr> = chain.iter().map(|low| Addr(0xffff_ffff_8100_0000 + low)).collect();
        assert_eq!(KernelSymbols::parse(text).system_call(&chain), *expected);
    }

    #[test]
    fn the_entry_names_the_call() {
        let read = || SystemCall::Named("read".into());
        check(TEXT, &[0x120, 0x210, 0x3ff, 0x610], &read());
        check(TEXT, &[0x120, 0x400, 0x610], &read());
        check(TEXT, &[0x120, 0x480, 0x610], &SystemCall::Named("pread64".into()));
        check(TEXT, &[0x120, 0x610], &SystemCall::Other);
        check(TEXT, &[], &SystemCall::Other);
    }

    #[test]
    fn hidden_addresses_name_nothing() {
        let zero = |line: &str| format!("0000000000000000{}\n", &line[16..]);
        let hidden: String = TEXT.lines().map(zero).collect();
        check(&hidden, &[0x300], &SystemCall::Unnamed);
        check("", &[0x300], &SystemCall::Unnamed);
    }
}
