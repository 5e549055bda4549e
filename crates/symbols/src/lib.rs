//! Addresses to functions, files and lines, and names to addresses, in a live process.
//!
//! [`Symbolizer`] answers for one process, which is never stopped and only read: its memory map,
//! the files behind it, and a few bytes of its memory (the vdso; the build id where the mapped file
//! is out of reach). [`Modules`] is the memory map alone; [`Image`] is one ELF file alone.
//!
//! The caller owes one thing: to say that mappings changed ([`Symbolizer::maps_changed`]) when the
//! kernel reports so, since code that replaces other code at the same address can't be noticed
//! otherwise. It gets answers from the file that is really mapped, or none: [`FileState`] says
//! which, and why.
//!
//! Files are what somebody put there, so that nothing in them is trusted: every read is checked,
//! every size is limited, and what is damaged counts as absent.
//!
//! It is not an unwinder, knows neither types nor variables, and reads neither split DWARF
//! (`.dwo`), nor the names that distributions compress into `.gnu_debugdata`, nor 32-bit files.

mod bytes;
mod debug_file;
mod elf;
mod error;
mod file_state;
mod frames;
mod image;
mod lines;
mod maps;
mod modules;
mod name;
mod nearest;
mod process;
mod query;
mod regions;
mod resolve;
mod site;
mod symbolizer;
mod table;

pub use elf::ElfError;
pub use error::{Error, Result};
pub use file_state::FileState;
pub use image::{Image, ImageSymbol};
pub use lines::Frame;
pub use maps::{Backing, Device, Mapping, MapsError};
pub use modules::{Module, Modules};
pub use name::demangle;
pub use query::{ParseQueryError, Query, Resolved};
pub use site::{Site, SiteModule};
pub use symbolizer::{DataSymbol, LoadedModule, Symbolizer};
pub use table::SymbolKind;
