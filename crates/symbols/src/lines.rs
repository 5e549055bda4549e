//! Link-time addresses to source lines and inlined functions: the DWARF of one object.

use crate::bytes::Bytes;
use crate::elf::{ElfError, Layout};
use crate::name::demangle;
use gimli::{EndianArcSlice, LittleEndian};
use std::sync::Arc;

/// One function at an address: the one that the compiler emitted, or one that it inlined there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The function's demangled name.
    pub function: Option<String>,
    /// The source file, as the compiler recorded it.
    pub file: Option<String>,
    /// The line, from 1: of the instruction in the innermost frame, of the inlined call in others.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

type Reader = EndianArcSlice<LittleEndian>;

pub(crate) struct Lines {
    context: addr2line::Context<Reader>,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

/// Inlining is never deeper in real programs; a file can claim any depth.
const MAX_FRAMES: usize = 256;

impl Lines {
    /// Reads the sections. `Ok(None)` where there is no debug information.
    pub(crate) fn read(bytes: &Bytes, layout: &Layout) -> Result<Option<Self>, ElfError> {
        if layout.section(".debug_info").is_none_or(|section| section.size == 0) {
            return Ok(None);
        }
        let load = |id: gimli::SectionId| -> Result<Reader, ElfError> {
            let data = match layout.section(id.name()) {
                Some(section) if USED.contains(&id) => section.read(bytes)?,
                _ => Vec::new(),
            };
            Ok(Reader::new(Arc::from(data), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load)?;
        match addr2line::Context::from_dwarf(dwarf) {
            Ok(context) => Ok(Some(Self { context })),
            Err(_) => Err(ElfError::Malformed("the debug information")),
        }
    }

    /// The functions at an address, outermost first; empty where nothing is known.
    pub(crate) fn at(&self, addr: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        if let Ok(mut found) = self.context.find_frames(addr).skip_all_loads() {
            while let Ok(Some(frame)) = found.next() {
                let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
                let location = frame.location;
                let nonzero = |number: Option<u32>| number.filter(|n| *n != 0);
                frames.push(Frame {
                    function: name.map(|name| demangle(&name).into_owned()),
                    file: location.as_ref().and_then(|at| at.file).map(str::to_owned),
                    line: nonzero(location.as_ref().and_then(|at| at.line)),
                    column: nonzero(location.as_ref().and_then(|at| at.column)),
                });
                if frames.len() == MAX_FRAMES {
                    break;
                }
            }
        }
        frames.reverse();
        frames
    }
}

/// What a lookup of lines and functions reads; the rest can be large.
const USED: [gimli::SectionId; 11] = [
    gimli::SectionId::DebugAbbrev,
    gimli::SectionId::DebugAddr,
    gimli::SectionId::DebugAranges,
    gimli::SectionId::DebugInfo,
    gimli::SectionId::DebugLine,
    gimli::SectionId::DebugLineStr,
    gimli::SectionId::DebugRanges,
    gimli::SectionId::DebugRngLists,
    gimli::SectionId::DebugStr,
    gimli::SectionId::DebugStrOffsets,
    gimli::SectionId::DebugTypes,
];
