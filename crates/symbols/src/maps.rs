//! The text of `/proc/PID/maps` to mappings; see proc_pid_maps(5). Pure.

use hairspring_model::{Addr, Span};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A file system's device number as `maps` shows it (`s_dev` of the kernel's superblock, which
/// differs from `st_dev` on overlayfs and btrfs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// The driver's number.
    pub major: u32,
    /// The number of the device within its driver.
    pub minor: u32,
}

/// What lies behind a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Backing {
    /// A file.
    File {
        /// Its path as the kernel names it now, without the mark of deletion.
        path: PathBuf,
        /// The device that the file is on.
        device: Device,
        /// The file's inode number.
        inode: u64,
        /// Whether the kernel marked the path `(deleted)`: unlinked, or replaced by a rename.
        deleted: bool,
    },
    /// The kernel's own shared object, `[vdso]`.
    Vdso,
    /// Memory without a file: heap, stacks, anonymous and special mappings.
    Anonymous,
}

/// One line of `maps`: bytes with the same permissions and the same backing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The addresses.
    pub span: Span,
    /// Whether they can be read.
    pub readable: bool,
    /// Whether they can be written.
    pub writable: bool,
    /// Whether they can be executed.
    pub executable: bool,
    /// Whether writes stay private to the process (copy on write).
    pub private: bool,
    /// Where in the file the first byte is.
    pub offset: u64,
    /// What lies behind.
    pub backing: Backing,
}

/// A line that is not of the format that proc_pid_maps(5) documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the memory map is malformed")]
pub struct MapsError {
    /// The line's number, from 1.
    pub line: usize,
}

impl Mapping {
    /// Parses the whole text of `maps`. The kernel lists mappings by address; an order of another
    /// kind, or overlaps, are taken as they come.
    ///
    /// # Errors
    /// The first line that is malformed, an empty range among them.
    pub fn parse_all(text: &[u8]) -> Result<Vec<Self>, MapsError> {
        text.split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.is_empty())
            .map(|(index, line)| Self::parse(line).ok_or(MapsError { line: index + 1 }))
            .collect()
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let mut rest = line;
        let (start, end) = split(field(&mut rest), b'-')?;
        let (start, end) = (number(start, 16)?, number(end, 16)?);
        let &[read, write, execute, share] = field(&mut rest) else { return None };
        let offset = number(field(&mut rest), 16)?;
        let (major, minor) = split(field(&mut rest), b':')?;
        let device = Device {
            major: number(major, 16)?.try_into().ok()?,
            minor: number(minor, 16)?.try_into().ok()?,
        };
        let inode = number(field(&mut rest), 10)?;
        Some(Self {
            span: Span::new(Addr(start), end.checked_sub(start)?)?,
            readable: flag(read, b'r')?,
            writable: flag(write, b'w')?,
            executable: flag(execute, b'x')?,
            private: match share {
                b'p' => true,
                b's' => false,
                _ => return None,
            },
            offset,
            backing: Backing::parse(rest.trim_ascii_start(), device, inode),
        })
    }
}

impl Backing {
    fn parse(name: &[u8], device: Device, inode: u64) -> Self {
        if name == b"[vdso]" {
            return Self::Vdso;
        }
        if !name.starts_with(b"/") {
            return Self::Anonymous;
        }
        let (path, deleted) = match name.strip_suffix(b" (deleted)") {
            Some(path) => (path, true),
            None => (name, false),
        };
        Self::File { path: unescape(path), device, inode, deleted }
    }
}

/// The kernel writes a newline in a path as `\012`, and nothing else differently
/// (`show_map_vma` in Linux `fs/proc/task_mmu.c`).
fn unescape(path: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(br"\012") {
            bytes.push(b'\n');
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// Takes the next word and the one space behind it off `rest`.
fn field<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let line = *rest;
    let (word, tail) = split(line, b' ').unwrap_or((line, &[]));
    *rest = tail;
    word
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let index = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..index], &bytes[index + 1..]))
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    if digits.first() == Some(&b'+') {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

fn flag(byte: u8, set: u8) -> Option<bool> {
    match byte {
        b'-' => Some(false),
        _ if byte == set => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "7f1c2000-7f1c4000 r-xp 00026000 fe:01 1234                       ";

    fn file(path: &str, deleted: bool) -> Backing {
        let device = Device { major: 0xfe, minor: 1 };
        Backing::File { path: path.into(), device, inode: 1234, deleted }
    }

    #[test]
    fn what_a_name_means() {
        for (name, backing) in [
            ("/usr/lib/libc.so.6", file("/usr/lib/libc.so.6", false)),
            ("/tmp/a b", file("/tmp/a b", false)),
            ("/tmp/x (deleted)", file("/tmp/x", true)),
            (r"/tmp/two\012lines", file("/tmp/two\nlines", false)),
            (r"/tmp/back\slash", file(r"/tmp/back\slash", false)),
            ("[vdso]", Backing::Vdso),
            ("[heap]", Backing::Anonymous),
            ("anon_inode:[perf_event]", Backing::Anonymous),
            ("", Backing::Anonymous),
        ] {
            let text = format!("{LINE}{name}\n");
            let mappings = Mapping::parse_all(text.as_bytes()).expect("well-formed");
            assert_eq!(
                mappings,
                [Mapping {
                    span: Span::new(Addr(0x7f1c_2000), 0x2000).expect("not empty"),
                    readable: true,
                    writable: false,
                    executable: true,
                    private: true,
                    offset: 0x26000,
                    backing,
                }]
            );
        }
    }

    #[test]
    fn what_is_malformed() {
        for line in [
            "7f1c2000-7f1c4000 r-xp 00026000 fe:01",
            "7f1c4000-7f1c4000 r-xp 0 fe:01 1 /x",
            "7f1c4000-7f1c2000 r-xp 0 fe:01 1 /x",
            "+1000-2000 r-xp 0 fe:01 1 /x",
            "1000-2000 rwxq 0 fe:01 1 /x",
            "1000-2000 xr-p 0 fe:01 1 /x",
            "1000-20000000000000000 r--p 0 fe:01 1 /x",
            "1000-2000 r--p 0 fe01 1 /x",
        ] {
            let text = format!("{LINE}/ok\n{line}\n");
            assert_eq!(Mapping::parse_all(text.as_bytes()), Err(MapsError { line: 2 }), "{line}");
        }
        assert_eq!(Mapping::parse_all(b""), Ok(Vec::new()));
    }

    #[test]
    fn our_own_map_parses() {
        let text = std::fs::read("/proc/self/maps").expect("our own map");
        let mappings = Mapping::parse_all(&text).expect("the kernel's format");
        assert!(mappings.is_sorted_by_key(|mapping| mapping.span));
        let here = Addr(file as *const () as u64);
        assert!(mappings.iter().any(|mapping| mapping.executable && mapping.span.contains(here)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer(bytes: Vec<u8>) {
            let _ = Mapping::parse_all(&bytes);
        }

        #[test]
        fn a_changed_byte_is_an_answer(at in 0_usize..80, byte: u8) {
            let mut line = format!("{LINE}/usr/lib/libc.so.6").into_bytes();
            let at = at % line.len();
            line[at] = byte;
            let _ = Mapping::parse_all(&line);
        }
    }
}
