//! One ELF object: lookups by link-time address and by name, each part read when first needed.

use crate::bytes::{Bytes, c_string, u32_at, u64_at};
use crate::elf::{ElfError, Layout};
use crate::frames::Frames;
use crate::lines::{Frame, Lines};
use crate::name::{demangle, without_version};
use crate::table::{Symbol, SymbolKind, Table};
use std::cell::OnceCell;
use std::fs::File;

/// One ELF object: an executable, a shared library, a debug file, or the vdso's image.
///
/// All addresses are the object's own, link-time ones. Nothing is read but headers until a lookup
/// needs it; then only the sections that it needs, once. The file stays open, so that lookups work
/// after it is deleted. Damaged parts count as absent, except where a method says otherwise.
#[derive(Debug)]
pub struct Image {
    bytes: Bytes,
    layout: Layout,
    debug: Option<Box<Image>>,
    table: OnceCell<Result<Table, ElfError>>,
    lines: OnceCell<Option<Lines>>,
    frames: OnceCell<Option<Frames>>,
}

/// A symbol of an [`Image`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ImageSymbol {
    /// The demangled name.
    pub name: String,
    /// The name in the table, without the version.
    pub raw_name: String,
    /// The link-time address.
    pub addr: u64,
    /// How many bytes it names; 0 where the table does not say.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// For a local symbol, the source file that the compiler put into the table.
    pub source_file: Option<String>,
    /// Whether it is visible outside of its source file.
    pub exported: bool,
}

/// Code is decoded a function at a time.
const MAX_CODE: u64 = 1 << 20;
/// elf(5); R_X86_64_COPY of the x86-64 psABI, R_AARCH64_COPY of the AArch64 one.
const COPY: [u32; 2] = [5, 1024];
const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;

impl Image {
    /// Reads the headers of an open file.
    ///
    /// # Errors
    /// It can't be read, or is not a 64-bit little-endian ELF file.
    pub fn open(file: File) -> Result<Self, ElfError> {
        Self::new(Bytes::file(file)?)
    }

    /// The same for a file's bytes in memory.
    ///
    /// # Errors
    /// It is not a 64-bit little-endian ELF file.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ElfError> {
        Self::new(Bytes::Memory(bytes))
    }

    pub(crate) fn new(bytes: Bytes) -> Result<Self, ElfError> {
        let layout = Layout::parse(&bytes)?;
        Ok(Self {
            bytes,
            layout,
            debug: None,
            table: OnceCell::new(),
            lines: OnceCell::new(),
            frames: OnceCell::new(),
        })
    }

    /// The build id: what the linker computed from the contents. Two objects with the same one
    /// have the same code and data.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id.as_deref()
    }

    /// The name that the object was linked to be loaded by.
    pub fn soname(&self) -> Option<String> {
        let (offset, size) = self.layout.dynamic?;
        let entries = self.bytes.read(offset, size.min(1 << 16)).ok()?;
        let value = |tag| {
            let pairs = entries.chunks_exact(16).map(|e| (u64_at(e, 0), u64_at(e, 8)));
            pairs.take_while(|(t, _)| *t != Some(DT_NULL)).find(|(t, _)| *t == Some(tag))?.1
        };
        let at = value(DT_STRTAB)?.checked_add(value(DT_SONAME)?)?;
        let (offset, rest) = self.layout.file_range(at)?;
        let bytes = self.bytes.read(offset, rest.min(256)).ok()?;
        Some(String::from_utf8_lossy(c_string(&bytes, 0, 256)?).into_owned())
    }

    /// The name and checksum (CRC-32) of a separate debug file, from `.gnu_debuglink`.
    pub(crate) fn debug_link(&self) -> Option<(String, u32)> {
        let section = self.layout.section(".gnu_debuglink").filter(|s| s.size <= 4096)?;
        let bytes = section.read(&self.bytes).ok()?;
        let name = c_string(&bytes, 0, 4096)?;
        let checksum = u32_at(&bytes, (name.len() + 1).next_multiple_of(4))?;
        Some((String::from_utf8_lossy(name).into_owned(), checksum))
    }

    /// Whether the object itself has both names and lines, so that a debug file adds nothing.
    pub(crate) fn is_self_contained(&self) -> bool {
        self.layout.section(".symtab").is_some() && self.layout.section(".debug_info").is_some()
    }

    /// Adds a separate debug file, which the caller knows to belong to this object. Before any
    /// lookup: what was looked up before is not looked up again.
    pub(crate) fn with_debug(self, debug: Self) -> Self {
        Self { debug: Some(Box::new(debug)), ..self }
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn table(&self) -> Result<&Table, ElfError> {
        let read = || {
            let mut table = Table::default();
            table.read(&self.bytes, &self.layout, &self.layout)?;
            if let Some(debug) = &self.debug {
                table.read(&debug.bytes, &debug.layout, &self.layout)?;
            }
            Ok(table.finish())
        };
        self.table.get_or_init(read).as_ref().map_err(|error| *error)
    }

    fn unwind(&self) -> Option<&Frames> {
        let read = || Frames::read(&self.bytes, &self.layout).ok().flatten();
        self.frames.get_or_init(read).as_ref()
    }

    /// How many symbols the object defines.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn symbol_count(&self) -> Result<usize, ElfError> {
        Ok(self.table()?.len())
    }

    /// The symbols with this name, raw or demangled (see [`Query`](crate::Query)).
    ///
    /// # Errors
    /// The table is damaged.
    pub fn named(&self, name: &str) -> Result<Vec<ImageSymbol>, ElfError> {
        let table = self.table()?;
        Ok(table.named(name).into_iter().map(|symbol| describe(table, symbol)).collect())
    }

    /// The function symbol that holds an address. One without a size holds what lies between it
    /// and the next one, as far as the unwind tables don't contradict.
    pub fn function_at(&self, addr: u64) -> Option<ImageSymbol> {
        let table = self.table().ok()?;
        if let Some(symbol) = table.function_at(addr) {
            return Some(describe(table, symbol));
        }
        let (symbol, next) = table.unsized_function_at(addr)?;
        let (start, end) = match self.unwind().and_then(|unwind| unwind.function_at(addr)) {
            Some((start, len)) => (start, start.saturating_add(len)),
            None => (symbol.addr, self.end_of_unsized(symbol.addr, next)?),
        };
        (symbol.addr >= start && addr < end).then(|| describe(table, symbol))
    }

    /// First address and length of the function that holds an address: by a symbol with a size,
    /// else by the unwind tables (which stripping keeps), else from a symbol without a size to
    /// the next.
    pub fn function_range(&self, addr: u64) -> Option<(u64, u64)> {
        let table = self.table().ok();
        if let Some(symbol) = table.and_then(|table| table.function_at(addr)) {
            return Some((symbol.addr, symbol.size));
        }
        if let Some(range) = self.unwind().and_then(|unwind| unwind.function_at(addr)) {
            return Some(range);
        }
        let (symbol, next) = table?.unsized_function_at(addr)?;
        let end = self.end_of_unsized(symbol.addr, next)?;
        (addr < end).then(|| (symbol.addr, end - symbol.addr))
    }

    fn end_of_unsized(&self, start: u64, next: Option<u64>) -> Option<u64> {
        let segment = self.layout.segment_at(start).filter(|segment| segment.executable)?;
        let end = segment.vaddr.saturating_add(segment.memory_size);
        Some(next.map_or(end, |next| next.min(end)))
    }

    /// The data symbol that holds an address.
    pub fn data_at(&self, addr: u64) -> Option<ImageSymbol> {
        let table = self.table().ok()?;
        table.data_at(addr).map(|symbol| describe(table, symbol))
    }

    /// The functions at an address with their lines, outermost first, from the debug information;
    /// empty without it.
    pub fn frames_at(&self, addr: u64) -> Vec<Frame> {
        let read = || {
            let of = |image: &Self| Lines::read(&image.bytes, &image.layout).ok().flatten();
            of(self).or_else(|| of(self.debug.as_ref()?))
        };
        // Segments end before the last address of all, which a lookup could not step over.
        if self.layout.segment_at(addr).is_none() || addr == u64::MAX {
            return Vec::new();
        }
        self.lines.get_or_init(read).as_ref().map_or_else(Vec::new, |lines| lines.at(addr))
    }

    /// The program's own copy of a library's exported data. A program that was not compiled to be
    /// independent of positions reserves space for such data, and the loader copies it there and
    /// makes everybody use the copy: the library's original is then never touched again.
    pub(crate) fn copy_of(&self, raw_name: &str) -> Option<ImageSymbol> {
        let section = self.layout.section(".rela.dyn")?;
        let records = section.read(&self.bytes).ok()?;
        let is_copy =
            |record: &&[u8]| u32_at(record, 8).is_some_and(|relocation| COPY.contains(&relocation));
        let mut copies = records.chunks_exact(24).filter(is_copy).filter_map(|r| u64_at(r, 0));
        let named = self.named(raw_name).ok()?;
        copies.find_map(|addr| named.iter().find(|symbol| symbol.addr == addr).cloned())
    }

    /// The bytes that the file holds for an address range, at most 1 MiB; fewer than asked for
    /// where the segment ends, `None` where the file has none.
    pub fn code(&self, addr: u64, len: u64) -> Option<Vec<u8>> {
        let (offset, rest) = self.layout.file_range(addr)?;
        self.bytes.read(offset, len.min(rest).min(MAX_CODE)).ok()
    }
}

pub(crate) fn describe(table: &Table, symbol: &Symbol) -> ImageSymbol {
    let raw = table.name(symbol);
    ImageSymbol {
        name: demangle(&raw).into_owned(),
        raw_name: without_version(&raw).to_owned(),
        addr: symbol.addr,
        size: symbol.size,
        kind: symbol.kind,
        source_file: table.file(symbol),
        exported: !symbol.local,
    }
}
