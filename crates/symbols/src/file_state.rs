//! From a module to the file that is really mapped.

use crate::bytes::Bytes;
use crate::debug_file;
use crate::elf::{ElfError, Layout};
use crate::image::Image;
use crate::maps::Mapping;
use crate::modules::{Module, Origin};
use crate::process::{FileId, Process};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

/// Whether the file that symbols come from is the one that is mapped. Nothing is ever symbolised
/// from a file that is not known to be it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileState {
    /// The path leads to the mapped file.
    Mapped,
    /// The path does not lead to the mapped file any more; the file itself was reached through the
    /// kernel (`/proc/PID/map_files`, `/proc/PID/exe`), and is symbolised from.
    Deleted,
    /// The file at the path can't be proved to be the mapped one, but its build id (or, without
    /// one, its code) is what the process has in memory: it is symbolised from.
    SameBuild,
    /// The path leads to another file now, and the mapped one can't be reached: no symbols.
    Replaced,
    /// The kernel's own object, read from the process's memory.
    Kernel,
    /// Mapped as plain data, and therefore not opened.
    Data,
    /// No file could be opened: no symbols.
    Unreadable(io::ErrorKind),
    /// The file was opened, but is of no use: no symbols.
    Unusable(ElfError),
}

impl FileState {
    /// Whether the module's own file is at hand.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Mapped | Self::Deleted | Self::SameBuild | Self::Kernel)
    }
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mapped => f.write_str("the mapped file"),
            Self::Deleted => f.write_str("the mapped file, deleted meanwhile"),
            Self::SameBuild => f.write_str("a file of the same build as the mapped one"),
            Self::Replaced => f.write_str(
                "the file was replaced by another build; restart the process, or give \
                 CAP_CHECKPOINT_RESTORE to reach the mapped file",
            ),
            Self::Kernel => f.write_str("the kernel's object"),
            Self::Data => f.write_str("mapped as data, not opened"),
            Self::Unreadable(kind) => write!(f, "the file can't be opened: {kind}"),
            Self::Unusable(error) => error.fmt(f),
        }
    }
}

/// The image of a module and its load bias (run-time minus link-time addresses), if at hand.
pub(crate) fn open(process: &Process, module: &Module) -> (FileState, Option<(Image, u64)>) {
    if !module.is_loaded() {
        return (FileState::Data, None);
    }
    let (state, bytes) = match find(process, module) {
        Ok(found) => found,
        Err(state) => return (state, None),
    };
    let usable = Image::new(bytes).and_then(|image| {
        let bias = bias(image.layout(), module.mappings())
            .ok_or(ElfError::Malformed("no segment is where the file is mapped"))?;
        Ok((debug_file::add(image, process, module.path()), bias))
    });
    match usable {
        Ok(usable) => (state, Some(usable)),
        Err(error) => (FileState::Unusable(error), None),
    }
}

fn find(process: &Process, module: &Module) -> Result<(FileState, Bytes), FileState> {
    let (path, id) = match &module.origin {
        Origin::Vdso => {
            let image = memory(process, &module.mappings[0]);
            let image = image.map_err(|error| FileState::Unreadable(error.kind()))?;
            return Ok((FileState::Kernel, Bytes::Memory(image)));
        }
        Origin::File { path, device, inode } => (path, FileId { device: *device, inode: *inode }),
    };
    let same_file = |file: &File| {
        let id_now = file.metadata().map(|metadata| FileId::of(&metadata));
        id_now.is_ok_and(|now| now.inode == id.inode)
    };
    let mapped = module.mappings.iter().find_map(|mapping| process.open_mapped(mapping.span).ok());
    let itself = mapped.or_else(|| {
        let is_executable = process.executable().is_some_and(|(main, _)| main == id);
        if is_executable { process.open_executable().ok() } else { None }
    });
    if let Some(file) = itself {
        // Since the map was read, the place may have gone to another file.
        let same = same_file(&file);
        let bytes = of(file)?;
        if same || is_same_build(process, module, &bytes) {
            let state = if module.deleted { FileState::Deleted } else { FileState::Mapped };
            return Ok((state, bytes));
        }
    }
    find_by_path(process, module, path, id)
}

/// The fallback where the kernel's handles are out of reach: the path, with proof.
fn find_by_path(
    process: &Process,
    module: &Module,
    path: &Path,
    id: FileId,
) -> Result<(FileState, Bytes), FileState> {
    let file = process.open_path(path).map_err(|error| FileState::Unreadable(error.kind()))?;
    let metadata = file.metadata().map_err(|error| FileState::Unreadable(error.kind()))?;
    let bytes = of(file)?;
    if !module.deleted && FileId::of(&metadata) == id {
        return Ok((FileState::Mapped, bytes));
    }
    // Another file; or the same, on a file system whose stat(2) names another device.
    if is_same_build(process, module, &bytes) {
        return Ok((FileState::SameBuild, bytes));
    }
    Err(FileState::Replaced)
}

fn of(file: File) -> Result<Bytes, FileState> {
    Bytes::file(file).map_err(FileState::Unusable)
}

/// How much of a mapping is compared, and in how much of it the headers are looked for.
const MAX_COMPARED: u64 = 64 << 10;

fn memory(process: &Process, mapping: &Mapping) -> io::Result<Vec<u8>> {
    let len = mapping.span.len().min(MAX_COMPARED);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    process.read_memory(mapping.span.start(), &mut bytes)?;
    Ok(bytes)
}

/// Whether a file has the build id that the module has in memory; where there is none to compare,
/// whether the module's code begins with the same bytes.
fn is_same_build(process: &Process, module: &Module, bytes: &Bytes) -> bool {
    let Ok(layout) = Layout::parse(bytes) else { return false };
    let head = module.mappings.iter().find(|mapping| mapping.offset == 0);
    let head = head.and_then(|mapping| memory(process, mapping).ok());
    let mapped = head.and_then(|head| Layout::parse(&Bytes::Memory(head)).ok());
    if let (Some(file), Some(mapped)) =
        (&layout.build_id, mapped.as_ref().and_then(|layout| layout.build_id.as_ref()))
    {
        return file == mapped;
    }
    let Some(code) = module.mappings.iter().find(|mapping| mapping.executable) else {
        return false;
    };
    let Ok(code_bytes) = memory(process, code) else { return false };
    bytes.read(code.offset, code_bytes.len() as u64).is_ok_and(|file| file == code_bytes)
}

/// What to add to a link-time address. The mapping of executable code decides, since writable
/// ones may have been split off or replaced.
fn bias(layout: &Layout, mappings: &[Mapping]) -> Option<u64> {
    let of = |mapping: &Mapping, executable: bool| {
        layout.segments.iter().filter(|segment| segment.executable == executable).find_map(
            |segment| {
                let page = segment.offset & !(PAGE - 1);
                let inside = mapping.offset >= page
                    && mapping.offset - page
                        < segment.file_size.saturating_add(segment.offset - page);
                let link = segment.vaddr.wrapping_sub(segment.offset).wrapping_add(mapping.offset);
                inside.then(|| mapping.span.start().0.wrapping_sub(link))
            },
        )
    };
    let code = mappings.iter().filter(|mapping| mapping.executable).find_map(|m| of(m, true));
    code.or_else(|| mappings.iter().find_map(|m| of(m, false)))
}

/// Segments are mapped by whole pages; no supported processor has smaller ones.
const PAGE: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Segment;
    use crate::modules::Modules;
    use hairspring_model::{Addr, Pid};

    #[track_caller]
    fn check(segments: &[(u64, u64, u64, bool)], mappings: &str, expected: Option<u64>) {
        let segments = segments.iter().map(|(vaddr, offset, size, executable)| Segment {
            vaddr: *vaddr,
            memory_size: *size,
            offset: *offset,
            file_size: *size,
            executable: *executable,
        });
        let layout = Layout { segments: segments.collect(), ..Layout::default() };
        let mappings = Mapping::parse_all(mappings.as_bytes()).expect("well-formed");
        assert_eq!(bias(&layout, &mappings), expected);
    }

    #[test]
    fn the_bias_comes_from_the_program_headers() {
        let pie =
            [(0, 0, 0x600, false), (0x1000, 0x1000, 0x800, true), (0x3e10, 0x2e10, 0x200, false)];
        let text = "555000-556000 r--p 0 fe:01 5 /a\n556000-557000 r-xp 1000 fe:01 5 /a\n";
        check(&pie, text, Some(0x55_5000));
        check(&pie, "557000-558000 rw-p 2000 fe:01 5 /a\n", Some(0x55_4000));
        let fixed = [(0x40_0000, 0, 0x1800, true), (0x60_2e10, 0x2e10, 0x200, false)];
        check(&fixed, "400000-402000 r-xp 0 fe:01 5 /a\n", Some(0));
        // Linked above the place where it is loaded: the bias wraps around.
        let high = [(0xffff_ffff_ff70_0000, 0, 0x1800, true)];
        check(
            &high,
            "7000-8000 r-xp 0 fe:01 5 /a\n",
            Some(0x7000_u64.wrapping_sub(0xffff_ffff_ff70_0000)),
        );
        check(&pie, "556000-557000 r-xp 9000 fe:01 5 /a\n", None);
        // Segment fields of any value are an answer.
        let wild = [(u64::MAX, u64::MAX, u64::MAX, true), (5, 7, u64::MAX, false)];
        check(
            &wild,
            "556000-557000 r-xp 0 fe:01 5 /a\n",
            Some(0x55_6000_u64.wrapping_sub(5_u64.wrapping_sub(7))),
        );
    }

    #[test]
    fn a_path_is_believed_with_proof_only() {
        let pid = Pid(std::process::id());
        let process = Process::open(pid).expect("ourselves");
        let modules = Modules::read(pid).expect("ourselves");
        let module = modules.at(Addr(bias as *const () as u64)).expect("our own module");
        let path = module.path().expect("a file");
        let (device, inode) = module.file_id().expect("a file");
        let (id, other) = (FileId { device, inode }, FileId { device, inode: inode ^ 1 });
        let other_file = std::env::temp_dir().join(format!("hairspring-other-{pid}"));
        std::fs::write(&other_file, b"another file").expect("written");
        let deleted = Module { deleted: true, ..module.clone() };
        for (module, path, id, expected) in [
            (module, path, id, FileState::Mapped),
            // As on overlayfs, or after a reinstallation of the same package.
            (module, path, other, FileState::SameBuild),
            (&deleted, path, id, FileState::SameBuild),
            (module, other_file.as_path(), other, FileState::Replaced),
            (module, Path::new("/nowhere"), id, FileState::Unreadable(io::ErrorKind::NotFound)),
            (
                module,
                Path::new("/dev/null"),
                id,
                FileState::Unreadable(io::ErrorKind::InvalidInput),
            ),
        ] {
            let found = find_by_path(&process, module, path, id).map_or_else(|e| e, |(s, _)| s);
            assert_eq!(found, expected, "{}", path.display());
        }
        std::fs::remove_file(other_file).expect("ours");
    }

    #[test]
    fn the_same_code_proves_it_without_a_build_id() {
        let pid = Pid(std::process::id());
        let process = Process::open(pid).expect("ourselves");
        let modules = Modules::read(pid).expect("ourselves");
        let module = modules.at(Addr(bias as *const () as u64)).expect("our own module");
        let mut file = std::fs::read(module.path().expect("a file")).expect("readable");
        for at in 0..4096 {
            if file[at..].starts_with(b"GNU\0") {
                file[at] = b'?';
            }
        }
        let layout = Layout::parse(&Bytes::Memory(file.clone())).expect("still ELF");
        assert_eq!(layout.build_id, None);
        let code = module.mappings().iter().find(|m| m.executable).expect("code");
        assert!(is_same_build(&process, module, &Bytes::Memory(file.clone())));
        let at = usize::try_from(code.offset).expect("small") + 100;
        file[at] ^= 1;
        assert!(!is_same_build(&process, module, &Bytes::Memory(file)));
    }
}
