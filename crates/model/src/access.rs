//! What a watch reports.

use std::fmt;

/// Which accesses a watch reports. x86 has no watch for reads alone
/// (Intel SDM volume 3, section 19.2.4: R/W is 00 execute, 01 write, 11 read or write).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Writes, those of an unchanged value among them.
    Write,
    /// Reads and writes.
    ReadWrite,
}

impl Access {
    /// The access kind that reports everything that either of the two reports.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Write, Self::Write) => Self::Write,
            _ => Self::ReadWrite,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "w",
            Self::ReadWrite => "rw",
        })
    }
}
