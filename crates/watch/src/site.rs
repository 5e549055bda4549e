//! Where an access was made: everything about it that is worked out once.

use hairspring_model::Addr;
use std::fmt;

/// The place in the program that made an access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The accessing instruction; where it is not certain, the instruction pointer of the hit.
    pub address: Addr,
    /// How well the instruction is known.
    pub certainty: Certainty,
    /// The instruction, in Intel's syntax.
    pub instruction: Option<String>,
    /// The module that it is in.
    pub module: Option<String>,
    /// What is to be known of the module's file, where it is not simply the file at the path: it was
    /// deleted or replaced, or could not be read.
    pub file_state: Option<String>,
    /// Its address in the module's file.
    pub link_address: Option<Addr>,
    /// The function, demangled.
    pub function: Option<String>,
    /// Bytes from the function's start.
    pub offset: u64,
    /// The function and those inlined into it at this place, innermost first, each with its place in
    /// the source; empty without debug information.
    pub frames: Vec<Frame>,
    /// The system call in which the kernel made the access.
    pub system_call: Option<SystemCall>,
}

/// A function at a site, and the place in its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function, demangled.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// Where compilers keep the sources of their own libraries: inlined code from there is not where a
/// person looks.
const LIBRARIES: [&str; 4] = ["/rustc/", "/rustlib/src/", "/usr/include/", "/usr/lib/"];

impl Site {
    /// The frame that a person looks for: the innermost one whose source is not a compiler's own
    /// library, or else the innermost one.
    pub fn culprit(&self) -> Option<&Frame> {
        let own = |frame: &&Frame| {
            let file = frame.file.as_deref();
            file.is_some_and(|file| !LIBRARIES.iter().any(|library| file.contains(library)))
        };
        self.frames.iter().find(own).or(self.frames.first())
    }
}

/// How well the accessing instruction is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn site(files: &[&str]) -> Site {
        let frame =
            |file: &&str| Frame { function: None, file: Some((*file).into()), line: Some(1) };
        Site {
            address: Addr(0),
            certainty: Certainty::Exact,
            instruction: None,
            module: None,
            file_state: None,
            link_address: None,
            function: None,
            offset: 0,
            frames: files.iter().map(frame).collect(),
            system_call: None,
        }
    }

    #[test]
    fn the_culprit_is_not_the_standard_library() {
        for (files, culprit) in [
            (
                &["/rustc/1a2b/library/core/src/sync/atomic.rs", "src/ledger.rs", "src/main.rs"][..],
                Some("src/ledger.rs"),
            ),
            (&["/home/me/bank.cpp", "/usr/include/c++/12/thread"], Some("/home/me/bank.cpp")),
            (
                &["/usr/include/c++/12/bits/std_thread.h"],
                Some("/usr/include/c++/12/bits/std_thread.h"),
            ),
            (&[], None),
        ] {
            let site = site(files);
            assert_eq!(site.culprit().and_then(|frame| frame.file.as_deref()), culprit);
        }
    }
}
