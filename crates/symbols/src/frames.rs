//! Where functions begin and end according to the unwind tables, which stripping keeps.

use crate::bytes::{Bytes, u32_at};
use crate::elf::{ElfError, Layout};
use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian, UnwindSection};

/// `.eh_frame` with its sorted index, `.eh_frame_hdr` where that exists.
#[derive(Debug)]
pub(crate) struct Frames {
    table: Vec<u8>,
    table_addr: u64,
    index: Index,
}

#[derive(Debug)]
enum Index {
    /// The linker's: pairs of function start and entry, both relative to the section's address
    /// (Linux Standard Base, Core, section 10.6.2), in the one encoding that linkers write.
    Linker { header: Vec<u8>, addr: u64 },
    /// Ours: function starts and lengths, by start.
    Ours(Vec<(u64, u64)>),
}

/// Version 1; then the encodings of pointer, count and table: `udata4`, `datarel | sdata4`.
const INDEX_HEADER: usize = 12;
const INDEX_ROW: usize = 8;

impl Frames {
    pub(crate) fn read(bytes: &Bytes, layout: &Layout) -> Result<Option<Self>, ElfError> {
        let header = match layout.frame_header {
            Some((addr, size)) => read_at(bytes, layout, addr, Some(size)).ok(),
            None => None,
        };
        let header = header.filter(|h| h.len() >= INDEX_HEADER && h[0] == 1);
        let (table, table_addr) = match (layout.section(".eh_frame"), &header, layout.frame_header)
        {
            (Some(section), ..) => (section.read(bytes)?, section.addr),
            (None, Some(header), Some((addr, _))) if header[1] == 0x1b => {
                // Relative to itself, 4 bytes into the header.
                let relative = i64::from(u32_at(header, 4).unwrap_or(0).cast_signed());
                let start = addr.wrapping_add(4).wrapping_add_signed(relative);
                (read_at(bytes, layout, start, None)?, start)
            }
            _ => return Ok(None),
        };
        let index = match (header, layout.frame_header) {
            (Some(header), Some((addr, _))) if header[2] == 0x03 && header[3] == 0x3b => {
                Index::Linker { header, addr }
            }
            _ => Index::Ours(list(&table, table_addr)),
        };
        Ok(Some(Self { table, table_addr, index }))
    }

    /// Start and length of the function that holds a link-time address.
    pub(crate) fn function_at(&self, addr: u64) -> Option<(u64, u64)> {
        let (start, len) = match &self.index {
            Index::Linker { header, addr: base } => {
                let rows = header.get(INDEX_HEADER..)?;
                let count = rows.len() / INDEX_ROW;
                let count = count.min(u32_at(header, 8)? as usize);
                let rows = &rows[..count * INDEX_ROW];
                let field = |row: usize, at: usize| {
                    let relative = u32_at(rows, row * INDEX_ROW + at)?.cast_signed();
                    Some(base.wrapping_add_signed(i64::from(relative)))
                };
                let (mut low, mut high) = (0, count);
                while low < high {
                    let middle = usize::midpoint(low, high);
                    if field(middle, 0)? <= addr { low = middle + 1 } else { high = middle }
                }
                let entry = field(low.checked_sub(1)?, 4)?.checked_sub(self.table_addr)?;
                self.entry(usize::try_from(entry).ok()?)?
            }
            Index::Ours(entries) => {
                let after = entries.partition_point(|(start, _)| *start <= addr);
                *entries.get(after.checked_sub(1)?)?
            }
        };
        (addr.checked_sub(start)? < len).then_some((start, len))
    }

    fn entry(&self, offset: usize) -> Option<(u64, u64)> {
        let section = EhFrame::new(&self.table, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(self.table_addr);
        let entry =
            section.fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        Some((entry.initial_address(), entry.len()))
    }
}

/// All entries of a table, up to the first that is malformed.
fn list(table: &[u8], addr: u64) -> Vec<(u64, u64)> {
    let section: EhFrame<EndianSlice<'_, LittleEndian>> = EhFrame::new(table, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(addr);
    let mut entries = section.entries(&bases);
    let mut functions = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
        {
            functions.push((entry.initial_address(), entry.len()));
        }
    }
    functions.sort_unstable();
    functions
}

/// The bytes at a link-time address: `size` of them, or all that follow in the segment.
fn read_at(
    bytes: &Bytes,
    layout: &Layout,
    addr: u64,
    size: Option<u64>,
) -> Result<Vec<u8>, ElfError> {
    let (offset, rest) = layout.file_range(addr).ok_or(ElfError::Truncated)?;
    bytes.read(offset, size.unwrap_or(rest).min(rest))
}
