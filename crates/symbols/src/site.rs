//! What is known about one address.

use crate::file_state::FileState;
use crate::lines::Frame;
use hairspring_model::Addr;
use std::fmt;
use std::path::PathBuf;

/// What is known about an address: everything, or less, down to nothing but the address.
///
/// The address is taken as that of an instruction, not as a return address: nothing is subtracted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Site {
    /// The run-time address.
    pub addr: Addr,
    /// Where it is in which module; `None` outside of all modules (generated code, for example).
    pub module: Option<SiteModule>,
    /// The demangled name of the function that the machine executes there; a function that was
    /// inlined into it is in `frames`.
    pub function: Option<String>,
    /// How far into that function the address is, where the function's start is known.
    pub offset: Option<u64>,
    /// The function and those inlined into it at this address, outermost first; empty without
    /// debug information.
    pub frames: Vec<Frame>,
}

/// The module part of a [`Site`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteModule {
    /// The module's name: the last component of its path, or `[vdso]`.
    pub name: String,
    /// The module's path; `None` for the vdso.
    pub path: Option<PathBuf>,
    /// Whether its symbols can be trusted, and why there are none.
    pub state: FileState,
    /// The address in the module's file; `None` where the file is not at hand.
    pub link_addr: Option<u64>,
}

impl Site {
    /// The innermost function: the one whose source line it is.
    pub fn innermost(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// The source file of the innermost function.
    pub fn file(&self) -> Option<&str> {
        self.innermost()?.file.as_deref()
    }

    /// The source line, from 1.
    pub fn line(&self) -> Option<u32> {
        self.innermost()?.line
    }

    /// The column, from 1.
    pub fn column(&self) -> Option<u32> {
        self.innermost()?.column
    }
}

impl fmt::Display for Site {
    /// `function+0x12`, else `module@0x1234`, else the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link_addr = self.module.as_ref().and_then(|m| Some((&m.name, m.link_addr?)));
        match (&self.function, self.offset, link_addr) {
            (Some(function), Some(offset), _) if offset != 0 => write!(f, "{function}+{offset:#x}"),
            (Some(function), ..) => f.write_str(function),
            (None, _, Some((module, addr))) => write!(f, "{module}@{addr:#x}"),
            (None, _, None) => self.addr.fmt(f),
        }
    }
}
