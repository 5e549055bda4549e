//! Where an access was made: everything about it that is worked out once.

use hairspring_model::Addr;
use std::fmt;

/// The place in the program that made an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The accessing instruction; where it is not certain, the instruction pointer of the hit.
    pub address: Addr,
    /// How well the instruction is known.
    pub certainty: Certainty,
    /// The instruction, in Intel's syntax.
    pub instruction: Option<String>,
    /// The module that it is in.
    pub module: Option<String>,
    /// Its address in the module's file.
    pub link_address: Option<Addr>,
    /// The function, demangled.
    pub function: Option<String>,
    /// Bytes from the function's start.
    pub offset: u64,
    /// The source file of the place in that function.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// Functions that were inlined there, innermost first, with the places in them.
    pub inlined: Vec<Inlined>,
    /// The system call in which the kernel made the access.
    pub system_call: Option<SystemCall>,
}

/// A function that was inlined at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The function, demangled.
    pub function: String,
    /// The source file of the place in it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// How well the accessing instruction is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It is that one.
    Exact,
    /// It is one of several.
    Ambiguous {
        /// The addresses.
        candidates: Vec<Addr>,
    },
    /// It could not be found.
    Unknown {
        /// Why not.
        why: &'static str,
    },
}

/// What the kernel was doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SystemCall {
    /// This system call.
    Named(String),
    /// The kernel of its own accord: a signal's frame on the stack, a fault.
    Other,
    /// The kernel's symbols may not be read.
    Unnamed,
}

impl fmt::Display for SystemCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "{name}(2)"),
            Self::Other => f.write_str("the kernel"),
            Self::Unnamed => f.write_str("a system call"),
        }
    }
}
