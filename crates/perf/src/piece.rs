//! What one debug register can watch.

use hairspring_model::{Addr, Span};
use std::fmt;

/// How many bytes a debug register watches (Intel SDM volume 3, section 19.2.4, LEN0 to LEN3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the numbers themselves")]
pub enum Length {
    One = 1,
    Two = 2,
    Four = 4,
    Eight = 8,
}

/// A naturally aligned range of 1, 2, 4 or 8 bytes in user space: one debug register's worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Piece {
    span: Span,
    length: Length,
}

impl Length {
    /// All lengths, longest first.
    pub const ALL: [Self; 4] = [Self::Eight, Self::Four, Self::Two, Self::One];

    /// The length in bytes.
    pub const fn bytes(self) -> u64 {
        self as u64
    }
}

impl Piece {
    /// The first byte of the address space: a piece where none is needed yet.
    pub const LOWEST: Self = match Self::new(Addr(0), Length::One) {
        Some(piece) => piece,
        None => panic!("address 0 is aligned and user space"),
    };

    /// The piece at `addr`; `None` where the address is not aligned or not user space's.
    pub const fn new(addr: Addr, length: Length) -> Option<Self> {
        match Span::new(addr, length.bytes()) {
            Some(span) if addr.is_aligned(length.bytes()) && addr.0 < Addr::USER_END.0 => {
                Some(Self { span, length })
            }
            _ => None,
        }
    }

    /// The first byte.
    pub const fn addr(self) -> Addr {
        self.span.start()
    }

    /// The length.
    pub const fn length(self) -> Length {
        self.length
    }

    /// The bytes.
    pub const fn span(self) -> Span {
        self.span
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.span.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_hardware_takes() {
        for (addr, length, taken) in [
            (0x1000, Length::Eight, true),
            (0x1004, Length::Eight, false),
            (0x1004, Length::Four, true),
            (0x1001, Length::Two, false),
            (0x1001, Length::One, true),
            (Addr::USER_END.0 - 8, Length::Eight, true),
            (Addr::USER_END.0, Length::Eight, false),
            (u64::MAX, Length::One, false),
        ] {
            assert_eq!(Piece::new(Addr(addr), length).is_some(), taken, "{addr:#x} {length:?}");
        }
    }
}
