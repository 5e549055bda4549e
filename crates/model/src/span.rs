//! A range of bytes.

use crate::Addr;
use std::fmt;

/// A range of at least one byte that does not wrap around the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    start: Addr,
    len: u64,
}

impl Span {
    /// The `len` bytes from `start`; `None` where there are none or the last one does not exist.
    pub const fn new(start: Addr, len: u64) -> Option<Self> {
        if len == 0 || start.0.checked_add(len - 1).is_none() {
            return None;
        }
        Some(Self { start, len })
    }

    /// The first byte.
    pub const fn start(self) -> Addr {
        self.start
    }

    /// The last byte, inclusive: an exclusive end might not exist.
    pub const fn last(self) -> Addr {
        Addr(self.start.0 + (self.len - 1))
    }

    /// How many bytes; never 0.
    #[expect(clippy::len_without_is_empty, reason = "a span is never empty")]
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Whether the byte at `addr` is in the span.
    pub const fn contains(self, addr: Addr) -> bool {
        addr.0 >= self.start.0 && addr.0 <= self.last().0
    }

    /// Whether every byte of `other` is in the span.
    pub const fn covers(self, other: Self) -> bool {
        self.contains(other.start) && self.contains(other.last())
    }

    /// Whether the spans share a byte.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start.0 <= other.last().0 && other.start.0 <= self.last().0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_span_is_empty_or_wraps() {
        assert_eq!(Span::new(Addr(1), 0), None);
        assert_eq!(Span::new(Addr(u64::MAX), 2), None);
        assert_eq!(Span::new(Addr(u64::MAX), 1).map(Span::last), Some(Addr(u64::MAX)));
    }

    #[test]
    fn overlap_is_by_byte() {
        let span = |start, len| Span::new(Addr(start), len).expect("a span");
        assert!(span(8, 8).overlaps(span(15, 1)));
        assert!(!span(8, 8).overlaps(span(16, 1)));
        assert!(!span(8, 8).overlaps(span(0, 8)));
        assert!(span(8, 8).covers(span(8, 8)));
        assert!(!span(8, 8).covers(span(8, 9)));
    }
}
