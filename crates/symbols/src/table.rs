//! The symbol tables of one object, by address and by name.

use crate::bytes::{Bytes, c_string, u16_at, u32_at, u64_at};
use crate::elf::{ElfError, Layout, Section};
use crate::name;
use memchr::memmem::Finder;
use object::elf;
use std::borrow::Cow;

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SymbolKind {
    /// Code.
    Function,
    /// A resolver that picks the function at load time (STT_GNU_IFUNC); the address is the
    /// resolver's.
    Resolver,
    /// Data.
    Data,
    /// Data of which every thread has its own; the value is an offset, not an address.
    ThreadLocal,
    /// A number that the linker knows; not an address.
    Absolute,
}

/// A symbol, with its link-time address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) addr: u64,
    pub(crate) size: u64,
    name: u32,
    /// The FILE symbol before it, as a name; local symbols only.
    file: u32,
    strings: u8,
    pub(crate) kind: SymbolKind,
    pub(crate) local: bool,
}

const NO_NAME: u32 = u32::MAX;
/// Names of generated code reach some tens of kilobytes.
const MAX_NAME: usize = 64 << 10;
const ENTRY: usize = 24;

/// All defined symbols of an object.
#[derive(Debug, Default)]
pub(crate) struct Table {
    strings: Vec<Vec<u8>>,
    /// By address.
    symbols: Vec<Symbol>,
    code: Cover,
    data: Cover,
}

/// Which of some symbols covers an address.
#[derive(Debug, Default)]
struct Cover {
    /// Indices into the symbols, by address.
    members: Vec<u32>,
    /// For each member, the greatest last address of it and of all before: how far back a search
    /// has to look.
    reach: Vec<u64>,
}

impl Table {
    /// Reads the tables of an object whose segments (which a debug file does not keep) are those
    /// of `layout`.
    pub(crate) fn read(
        &mut self,
        bytes: &Bytes,
        own: &Layout,
        layout: &Layout,
    ) -> Result<(), ElfError> {
        let is_table = |s: &&Section| s.kind == elf::SHT_SYMTAB.0 || s.kind == elf::SHT_DYNSYM.0;
        for section in own.sections.iter().filter(is_table) {
            let records = section.read(bytes)?;
            let strings = match own.sections.get(section.link as usize) {
                Some(strings) => strings.read(bytes)?,
                None => return Err(ElfError::Malformed("a symbol table without names")),
            };
            self.add(&records, strings, layout);
        }
        Ok(())
    }

    fn add(&mut self, records: &[u8], strings: Vec<u8>, layout: &Layout) {
        let Ok(table) = u8::try_from(self.strings.len()) else { return };
        let mut file = NO_NAME;
        let mut symbols = Vec::with_capacity(records.len() / ENTRY);
        for record in records.chunks_exact(ENTRY) {
            let name = u32_at(record, 0).unwrap_or(0);
            let (kind, binding) = (record[4] & 0xf, record[4] >> 4);
            let section = u16_at(record, 6).unwrap_or(0);
            let (addr, size) = (u64_at(record, 8).unwrap_or(0), u64_at(record, 16).unwrap_or(0));
            let local = binding == elf::STB_LOCAL.0;
            if kind == elf::STT_FILE.0 {
                file = name;
                continue;
            }
            if section == elf::SHN_UNDEF.0 || strings.get(name as usize).is_none_or(|b| *b == 0) {
                continue;
            }
            let kind = match elf::SymbolType(kind) {
                _ if section == elf::SHN_ABS.0 => SymbolKind::Absolute,
                elf::STT_FUNC => SymbolKind::Function,
                elf::STT_GNU_IFUNC => SymbolKind::Resolver,
                elf::STT_TLS => SymbolKind::ThreadLocal,
                elf::STT_OBJECT | elf::STT_COMMON => SymbolKind::Data,
                elf::STT_NOTYPE => match layout.segment_at(addr) {
                    Some(segment) if segment.executable => SymbolKind::Function,
                    _ => SymbolKind::Data,
                },
                _ => continue,
            };
            let file = if local { file } else { NO_NAME };
            symbols.push(Symbol { addr, size, name, file, strings: table, kind, local });
        }
        self.symbols.append(&mut symbols);
        self.strings.push(strings);
    }

    /// Sorts what was read; to be called once, after the last read.
    pub(crate) fn finish(mut self) -> Self {
        self.symbols.sort_by_key(|symbol| symbol.addr);
        self.symbols.shrink_to_fit();
        let of = |kinds: &[SymbolKind]| Cover::new(&self.symbols, kinds);
        let code = of(&[SymbolKind::Function, SymbolKind::Resolver]);
        let data = of(&[SymbolKind::Data]);
        Self { code, data, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.symbols.len()
    }

    pub(crate) fn name(&self, symbol: &Symbol) -> Cow<'_, str> {
        String::from_utf8_lossy(self.raw(symbol))
    }

    /// The source file that the compiler named in the table; local symbols only.
    pub(crate) fn file(&self, symbol: &Symbol) -> Option<String> {
        let name = self.string(symbol.strings, symbol.file).filter(|name| !name.is_empty())?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    fn raw(&self, symbol: &Symbol) -> &[u8] {
        self.string(symbol.strings, symbol.name).unwrap_or_default()
    }

    fn string(&self, table: u8, at: u32) -> Option<&[u8]> {
        let strings = self.strings.get(usize::from(table)).filter(|_| at != NO_NAME)?;
        c_string(strings, at as usize, MAX_NAME)
    }

    /// The function symbol whose sized range holds `addr`: the innermost one, and of several names
    /// of one function the most public.
    pub(crate) fn function_at(&self, addr: u64) -> Option<&Symbol> {
        let found = self.code.at(&self.symbols, addr)?;
        Some(self.best_name(found))
    }

    /// The last function symbol at or before `addr` that has no size, if no function with a size
    /// lies between; with the address of the next function.
    pub(crate) fn unsized_function_at(&self, addr: u64) -> Option<(&Symbol, Option<u64>)> {
        let members = &self.code.members;
        let member = |index: usize| members.get(index).map(|m| &self.symbols[*m as usize]);
        let after = members.partition_point(|m| self.symbols[*m as usize].addr <= addr);
        let last = member(after.checked_sub(1)?)?;
        (last.size == 0).then(|| (self.best_name(last), member(after).map(|next| next.addr)))
    }

    /// The data symbol whose range holds `addr`; one without a size holds its first byte.
    pub(crate) fn data_at(&self, addr: u64) -> Option<&Symbol> {
        let found = self.data.at(&self.symbols, addr).or_else(|| {
            let first = self.symbols.partition_point(|symbol| symbol.addr < addr);
            let here = self.symbols[first..].iter().take_while(|symbol| symbol.addr == addr);
            here.into_iter().find(|symbol| symbol.kind == SymbolKind::Data)
        })?;
        Some(self.best_name(found))
    }

    /// Of all symbols like this one at its address: exported before local, few leading
    /// underscores before many, short before long.
    fn best_name<'a>(&'a self, symbol: &'a Symbol) -> &'a Symbol {
        let first = self.symbols.partition_point(|other| other.addr < symbol.addr);
        self.symbols[first..]
            .iter()
            .take_while(|other| other.addr == symbol.addr)
            .filter(|other| other.kind == symbol.kind && other.size == symbol.size)
            .min_by_key(|other| {
                let name = self.raw(other);
                let underscores = name.iter().take_while(|byte| **byte == b'_').count();
                // Mangled names begin with underscores, too, but have no shorter form.
                let is_mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
                (other.local, if is_mangled { 0 } else { underscores }, name.len())
            })
            .unwrap_or(symbol)
    }

    /// The symbols that are called `wanted`: by their raw name, else by a demangled form of it.
    pub(crate) fn named(&self, wanted: &str) -> Vec<&Symbol> {
        let select = |matches: &dyn Fn(&[u8]) -> bool| -> Vec<&Symbol> {
            self.symbols.iter().filter(|symbol| matches(self.raw(symbol))).collect()
        };
        let exact = wanted.as_bytes();
        let raw = select(&|raw| {
            raw.strip_prefix(exact).is_some_and(|rest| rest.is_empty() || rest[0] == b'@')
        });
        if !raw.is_empty() || wanted.starts_with("_Z") || wanted.starts_with("_R") {
            return raw;
        }
        let is_written = |raw: &[u8]| {
            raw.starts_with(b"_")
                && std::str::from_utf8(raw).is_ok_and(|raw| name::is_written(raw, wanted))
        };
        // To demangle takes longer than to look for a piece of the name.
        let piece = name::last_identifier(wanted).map(|piece| Finder::new(piece.as_bytes()));
        let has_piece = |raw: &[u8]| piece.as_ref().is_none_or(|piece| piece.find(raw).is_some());
        select(&|raw| has_piece(raw) && is_written(raw))
    }

    /// Raw names of all symbols.
    pub(crate) fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.symbols.iter().map(|symbol| self.name(symbol))
    }
}

impl Cover {
    fn new(symbols: &[Symbol], kinds: &[SymbolKind]) -> Self {
        let mut cover = Self::default();
        let mut reach = 0;
        for (index, symbol) in symbols.iter().enumerate() {
            let Ok(index) = u32::try_from(index) else { break };
            if kinds.contains(&symbol.kind) {
                if symbol.size != 0 {
                    reach = reach.max(symbol.addr.saturating_add(symbol.size - 1));
                }
                cover.members.push(index);
                cover.reach.push(reach);
            }
        }
        cover
    }

    fn at<'a>(&self, symbols: &'a [Symbol], addr: u64) -> Option<&'a Symbol> {
        let after = self.members.partition_point(|m| symbols[*m as usize].addr <= addr);
        let candidates = self.members[..after].iter().zip(&self.reach[..after]).rev();
        candidates
            .take_while(|(_, reach)| **reach >= addr)
            .map(|(member, _)| &symbols[*member as usize])
            .find(|symbol| symbol.size != 0 && addr - symbol.addr < symbol.size)
    }
}
