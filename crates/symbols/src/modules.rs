//! Mappings to modules: which objects a process has mapped, and where. Pure, but for
//! [`Modules::read`].

use crate::maps::{Backing, Device, Mapping, MapsError};
use crate::process::Process;
use crate::{Error, Result};
use hairspring_model::{Addr, Pid, Span};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A mapped object: an executable, a shared library, or another file; or the kernel's vdso.
///
/// A file that is mapped twice (by `dlmopen`, or once more as data) is two modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    pub(crate) origin: Origin,
    pub(crate) deleted: bool,
    pub(crate) mappings: Vec<Mapping>,
}

/// Which object it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    File { path: PathBuf, device: Device, inode: u64 },
    Vdso,
}

/// All modules of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    modules: Vec<Module>,
    anonymous: Vec<Span>,
}

impl Module {
    /// The last component of the path; `[vdso]` for the vdso.
    pub fn name(&self) -> String {
        match &self.origin {
            Origin::File { path, .. } => {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
            Origin::Vdso => "[vdso]".to_owned(),
        }
    }

    /// The file's path, as the target's kernel names it now; `None` for the vdso.
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File { path, .. } => Some(path),
            Origin::Vdso => None,
        }
    }

    /// The file's device and inode number; `None` for the vdso.
    pub fn file_id(&self) -> Option<(Device, u64)> {
        match self.origin {
            Origin::File { device, inode, .. } => Some((device, inode)),
            Origin::Vdso => None,
        }
    }

    /// Whether the file was unlinked, or another one renamed over it, since it was mapped.
    pub fn deleted(&self) -> bool {
        self.deleted
    }

    /// The module's mappings, by address; never empty. Its zero-initialised data (`.bss`) is not
    /// among them, since no file backs it.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Whether a loader may have put it here to be used as code or data of the program: some of it
    /// can be executed, or written without changing the file.
    pub fn is_loaded(&self) -> bool {
        self.mappings.iter().any(|m| m.executable || (m.writable && m.private))
    }

    fn can_take(&self, next: &Mapping) -> bool {
        // The segments of a file are mapped in the order of their offsets; two neighbours may
        // share the page in which one ends and the other begins. A step back, or the file's
        // beginning once more, is another instance.
        self.mappings.last().is_none_or(|last| {
            let other = (next.writable, next.executable) != (last.writable, last.executable);
            next.offset > last.offset || (next.offset == last.offset && (other || next.offset != 0))
        })
    }
}

impl Modules {
    /// Reads the modules that a process has mapped now. It is not stopped for this.
    ///
    /// # Errors
    /// The process does not exist ([`Error::is_gone`]), or may not be inspected
    /// ([`Error::is_denied`]).
    pub fn read(pid: Pid) -> Result<Self> {
        let process = Process::open(pid)?;
        let text = process.maps()?;
        Self::parse(&text).map_err(|source| Error::maps(pid, source))
    }

    /// Parses the text of `/proc/PID/maps`.
    ///
    /// # Errors
    /// A malformed line.
    pub fn parse(text: &[u8]) -> Result<Self, MapsError> {
        let mut all = Self::default();
        let mut newest: HashMap<Origin, usize> = HashMap::new();
        for mapping in Mapping::parse_all(text)? {
            let (origin, deleted) = match &mapping.backing {
                Backing::Anonymous => {
                    all.anonymous.push(mapping.span);
                    continue;
                }
                Backing::Vdso => (Origin::Vdso, false),
                Backing::File { path, device, inode, deleted } => {
                    let origin =
                        Origin::File { path: path.clone(), device: *device, inode: *inode };
                    (origin, *deleted)
                }
            };
            match newest.get(&origin).map(|index| &mut all.modules[*index]) {
                Some(module) if module.can_take(&mapping) => module.mappings.push(mapping),
                _ => {
                    newest.insert(origin.clone(), all.modules.len());
                    all.modules.push(Module { origin, deleted, mappings: vec![mapping] });
                }
            }
        }
        Ok(all)
    }

    /// The module that a file-backed address belongs to. Zero-initialised data is not backed by a
    /// file: for that, ask [`Symbolizer::site`](crate::Symbolizer::site), which knows the sizes
    /// of segments.
    pub fn at(&self, addr: Addr) -> Option<&Module> {
        self.iter().find(|module| module.mappings.iter().any(|m| m.span.contains(addr)))
    }

    /// The modules, by the address at which each begins.
    pub fn iter(&self) -> std::slice::Iter<'_, Module> {
        self.modules.iter()
    }

    /// The ranges that no file backs: heap, stacks, zero-initialised data, generated code.
    pub fn anonymous(&self) -> &[Span] {
        &self.anonymous
    }

    pub(crate) fn into_parts(self) -> (Vec<Module>, Vec<Span>) {
        (self.modules, self.anonymous)
    }
}

impl<'a> IntoIterator for &'a Modules {
    type Item = &'a Module;
    type IntoIter = std::slice::Iter<'a, Module>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each module with the number of its mappings.
    #[track_caller]
    fn check(text: &str, expected: &[(&str, usize)]) {
        let modules = Modules::parse(text.as_bytes()).expect("well-formed");
        let found: Vec<_> = modules.iter().map(|m| (m.name(), m.mappings().len())).collect();
        let expected: Vec<_> = expected.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn mappings_of_one_file_are_one_module() {
        check(
            "1000-2000 r--p 00000000 fe:01 5 /bin/a\n\
             2000-3000 r-xp 00001000 fe:01 5 /bin/a\n\
             3000-4000 r--p 00002000 fe:01 5 /bin/a\n\
             4000-5000 r--p 00002000 fe:01 5 /bin/a\n\
             5000-6000 rw-p 00003000 fe:01 5 /bin/a\n\
             6000-7000 rw-p 00000000 00:00 0 \n\
             7000-8000 r-xp 00000000 00:00 0 [vdso]\n",
            &[("a", 5), ("[vdso]", 1)],
        );
    }

    #[test]
    fn a_file_mapped_again_is_another_module() {
        check(
            "1000-2000 r--p 00000000 fe:01 5 /lib/b\n\
             2000-3000 r-xp 00001000 fe:01 5 /lib/b\n\
             5000-6000 r--p 00000000 fe:01 5 /lib/b\n\
             6000-7000 r-xp 00001000 fe:01 5 /lib/b\n\
             8000-9000 r--p 00000000 fe:01 5 /lib/b\n",
            &[("b", 2), ("b", 2), ("b", 1)],
        );
    }

    #[test]
    fn a_replaced_file_is_not_its_successor() {
        check(
            "1000-2000 r-xp 00000000 fe:01 5 /lib/c (deleted)\n\
             3000-4000 r-xp 00001000 fe:01 6 /lib/c\n",
            &[("c", 1), ("c", 1)],
        );
    }

    #[test]
    fn our_own_code_has_a_module() {
        let modules = Modules::read(Pid(std::process::id())).expect("our own modules");
        let module = modules.at(Addr(check as *const () as u64)).expect("a module");
        assert_eq!(module.path(), std::env::current_exe().ok().as_deref());
        assert!(module.is_loaded() && !module.deleted());
    }

    #[test]
    fn a_process_that_does_not_exist_is_gone() {
        let error = Modules::read(Pid(u32::MAX >> 1)).expect_err("no such process");
        assert!(error.is_gone(), "{error}");
    }
}
