//! The layout of an ELF file: segments, sections, build id; see elf(5). Reads of any bytes are
//! checked; the rest of the crate trusts what is here only as far as it checks it again.
//!
//! 64-bit little-endian objects only: that is what the processors are that hairspring runs on.

use crate::bytes::{Bytes, c_string, u16_at, u32_at, u64_at};
use object::elf;
use object::read::{CompressedData, CompressionFormat};
use std::io;

/// Why a file, or a part of it, can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// It could not be read.
    #[error("it can't be read: {0}")]
    Read(io::ErrorKind),
    /// It does not begin like an ELF file.
    #[error("it is not an ELF file")]
    NotElf,
    /// A 32-bit or big-endian file.
    #[error("it is not a 64-bit little-endian ELF file")]
    WrongClass,
    /// A header points past the end of the file.
    #[error("a part of it lies past its end")]
    Truncated,
    /// A part is larger than what is accepted.
    #[error("a part of it is larger than what is accepted")]
    TooLarge,
    /// A table that contradicts itself.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
}

/// A loadable segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) vaddr: u64,
    pub(crate) memory_size: u64,
    pub(crate) offset: u64,
    pub(crate) file_size: u64,
    pub(crate) executable: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) addr: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
}

/// The parts of a file and where they are.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) segments: Vec<Segment>,
    pub(crate) sections: Vec<Section>,
    pub(crate) build_id: Option<Vec<u8>>,
    /// Address and size of `.eh_frame_hdr`.
    pub(crate) frame_header: Option<(u64, u64)>,
    pub(crate) dynamic: Option<(u64, u64)>,
}

/// Debuggers' and linkers' names are far shorter; a longer one is no name.
const MAX_SECTION_NAME: usize = 256;
/// A note section holds a handful of notes of some tens of bytes.
const MAX_NOTES: u64 = 1 << 16;
/// The best that deflate can do, rounded up (zlib's `deflate` algorithm notes: 1032 to 1).
const MAX_COMPRESSION: u64 = 1100;
const MAX_DECOMPRESSED: u64 = 2 << 30;

impl Segment {
    fn last(&self) -> u64 {
        self.vaddr.saturating_add(self.memory_size.saturating_sub(1))
    }

    /// Whether the segment holds the byte at a link-time address.
    pub(crate) fn contains(&self, addr: u64) -> bool {
        self.memory_size != 0 && addr >= self.vaddr && addr <= self.last()
    }
}

impl Layout {
    pub(crate) fn parse(bytes: &Bytes) -> Result<Self, ElfError> {
        let header = bytes.read(0, 64).map_err(|error| match error {
            ElfError::Truncated => ElfError::NotElf,
            other => other,
        })?;
        if !header.starts_with(&elf::ELFMAG) {
            return Err(ElfError::NotElf);
        }
        if header[4] != elf::ELFCLASS64.0 || header[5] != elf::ELFDATA2LSB.0 {
            return Err(ElfError::WrongClass);
        }
        let word = |at| u16_at(&header, at).ok_or(ElfError::Truncated);
        let long = |at| u64_at(&header, at).ok_or(ElfError::Truncated);
        let (program_offset, section_offset) = (long(32)?, long(40)?);
        let (program_size, program_count) = (word(54)?, word(56)?);
        let (section_size, section_count, names) = (word(58)?, word(60)?, word(62)?);

        let mut layout = Self::default();
        if program_count != 0 {
            if program_size != 56 {
                return Err(ElfError::Malformed("the size of a program header"));
            }
            layout.read_segments(bytes, program_offset, program_count)?;
        }
        if section_offset != 0 {
            if section_size != 64 {
                return Err(ElfError::Malformed("the size of a section header"));
            }
            // A file without its sections can still be used by its segments.
            let counts = (section_count, names);
            layout.sections = read_sections(bytes, section_offset, counts).unwrap_or_default();
        }
        if layout.build_id.is_none() {
            layout.build_id = layout
                .sections
                .iter()
                .filter(|section| section.kind == elf::SHT_NOTE.0)
                .find_map(|section| build_id(bytes, section.offset, section.size));
        }
        Ok(layout)
    }

    fn read_segments(&mut self, bytes: &Bytes, at: u64, count: u16) -> Result<(), ElfError> {
        let table = bytes.read(at, u64::from(count) * 56)?;
        for header in table.chunks_exact(56) {
            let long = |at| u64_at(header, at).unwrap_or(0);
            let kind = elf::ProgramType(u32_at(header, 0).unwrap_or(0));
            let flags = u32_at(header, 4).unwrap_or(0);
            let (offset, vaddr, file_size) = (long(8), long(16), long(32));
            match kind {
                elf::PT_LOAD => self.segments.push(Segment {
                    vaddr,
                    memory_size: long(40),
                    offset,
                    file_size,
                    executable: flags & elf::PF_X.0 != 0,
                }),
                elf::PT_NOTE if self.build_id.is_none() => {
                    self.build_id = build_id(bytes, offset, file_size);
                }
                elf::PT_GNU_EH_FRAME => self.frame_header = Some((vaddr, file_size)),
                elf::PT_DYNAMIC => self.dynamic = Some((offset, file_size)),
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name.as_bytes())
    }

    pub(crate) fn segment_at(&self, addr: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.contains(addr))
    }

    /// Where in the file the byte at a link-time address is, and how many bytes of the segment
    /// follow there, itself included.
    pub(crate) fn file_range(&self, addr: u64) -> Option<(u64, u64)> {
        let inside =
            |segment: &&Segment| addr >= segment.vaddr && addr - segment.vaddr < segment.file_size;
        let segment = self.segments.iter().find(inside)?;
        let into = addr - segment.vaddr;
        Some((segment.offset.checked_add(into)?, segment.file_size - into))
    }
}

impl Section {
    /// The bytes of a section, decompressed; empty where the file does not have them.
    pub(crate) fn read(&self, bytes: &Bytes) -> Result<Vec<u8>, ElfError> {
        if self.kind == elf::SHT_NOBITS.0 {
            return Ok(Vec::new());
        }
        let raw = bytes.read(self.offset, self.size)?;
        if self.flags & elf::SHF_COMPRESSED.0 == 0 {
            return Ok(raw);
        }
        let kind = elf::CompressionType(u32_at(&raw, 0).ok_or(ElfError::Truncated)?);
        let size = u64_at(&raw, 8).ok_or(ElfError::Truncated)?;
        let data = raw.get(24..).ok_or(ElfError::Truncated)?;
        let format = match kind {
            elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
            elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
            _ => return Err(ElfError::Malformed("an unknown compression")),
        };
        if size > MAX_DECOMPRESSED || size > (data.len() as u64).saturating_mul(MAX_COMPRESSION) {
            return Err(ElfError::TooLarge);
        }
        let compressed = CompressedData { format, data, uncompressed_size: size };
        match compressed.decompress() {
            Ok(data) => Ok(data.into_owned()),
            Err(_) => Err(ElfError::Malformed("a compressed section")),
        }
    }
}

fn read_sections(bytes: &Bytes, at: u64, counts: (u16, u16)) -> Result<Vec<Section>, ElfError> {
    let first = bytes.read(at, 64)?;
    // Counts that don't fit are in the first header (elf(5), e_shnum and e_shstrndx).
    let count = match counts.0 {
        0 => u64_at(&first, 32).unwrap_or(0),
        count => u64::from(count),
    };
    let names = match counts.1 {
        0xffff => u32_at(&first, 40).unwrap_or(0),
        names => u32::from(names),
    };
    let size = count.checked_mul(64).ok_or(ElfError::TooLarge)?;
    let table = bytes.read(at, size)?;
    let header = |index: u32| {
        let start = (index as usize).checked_mul(64)?;
        table.get(start..start.checked_add(64)?)
    };
    let names = match header(names) {
        Some(names) => {
            bytes.read(u64_at(names, 24).unwrap_or(0), u64_at(names, 32).unwrap_or(0))?
        }
        None => Vec::new(),
    };
    let section = |header: &[u8]| Section {
        name: c_string(&names, u32_at(header, 0).unwrap_or(0) as usize, MAX_SECTION_NAME)
            .unwrap_or_default()
            .to_vec(),
        kind: u32_at(header, 4).unwrap_or(0),
        flags: u64_at(header, 8).unwrap_or(0),
        addr: u64_at(header, 16).unwrap_or(0),
        offset: u64_at(header, 24).unwrap_or(0),
        size: u64_at(header, 32).unwrap_or(0),
        link: u32_at(header, 40).unwrap_or(0),
    };
    Ok(table.chunks_exact(64).map(section).collect())
}

/// The build id among the notes in a part of the file. Notes are padded to 4 bytes, whatever
/// their segment's alignment says for the one note that we look for.
fn build_id(bytes: &Bytes, offset: u64, size: u64) -> Option<Vec<u8>> {
    let notes = bytes.read(offset, size.min(MAX_NOTES)).ok()?;
    let mut at = 0_usize;
    loop {
        let (name_len, len) = (u32_at(&notes, at)? as usize, u32_at(&notes, at + 4)? as usize);
        let kind = u32_at(&notes, at + 8)?;
        let name = at + 12;
        let description = name.checked_add(name_len.checked_next_multiple_of(4)?)?;
        let end = description.checked_add(len)?;
        if kind == elf::NT_GNU_BUILD_ID.0 && notes.get(name..name + name_len)? == b"GNU\0" {
            let id = notes.get(description..end)?;
            return (!id.is_empty() && id.len() <= 64).then(|| id.to_vec());
        }
        at = description.checked_add(len.checked_next_multiple_of(4)?)?;
    }
}
