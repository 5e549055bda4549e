//! Which debug registers a set of watches needs: pure, decided before anything is opened.
//!
//! ```text
//!   watch 0   [===============)      0x1004, 12 bytes
//!   pieces        |4|   8   |        0x1004:4, 0x1008:8
//!   watch 1         [=======)        0x1008,  8 bytes: shares the second piece
//! ```
//! A watch is cut into the fewest naturally aligned pieces that cover exactly its bytes: nothing
//! beside them is ever reported. Watches that need the same piece for the same access share it.

use hairspring_model::{Access, Addr, Span};
use hairspring_perf::{Length, Piece};

/// How many debug registers an x86 processor has (Intel SDM volume 3, section 19.2).
pub(crate) const SLOTS: usize = 4;

/// One debug register's worth of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The watched bytes.
    pub(crate) piece: Piece,
    /// The accesses reported.
    pub(crate) access: Access,
    /// The watches that need it, by index, ascending.
    pub(crate) watches: Vec<usize>,
}

/// The slots of a set of watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In the order in which the watches first need them.
    pub(crate) slots: Vec<Slot>,
}

/// Watches that can't be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PlanError {
    /// More slots than there are.
    #[error("{} debug registers are needed, {SLOTS} exist: {}", self.needed(), self.list())]
    TooManySlots {
        /// How many slots each watch would need for itself, by index.
        each: Vec<usize>,
        /// How many they need together.
        together: usize,
    },
    /// Bytes that user space can't have.
    #[error("{0} is not in user space")]
    NotUserSpace(Span),
}

impl PlanError {
    fn needed(&self) -> usize {
        match self {
            Self::TooManySlots { together, .. } => *together,
            Self::NotUserSpace(_) => 0,
        }
    }

    fn list(&self) -> String {
        let Self::TooManySlots { each, .. } = self else { return String::new() };
        let one = |(watch, slots): (usize, &usize)| format!("watch {watch} needs {slots}");
        each.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl Plan {
    /// Plans the watches, keeping `reserved` slots free for others.
    ///
    /// # Errors
    /// Where they don't fit.
    pub(crate) fn new(watches: &[(Span, Access)], reserved: usize) -> Result<Self, PlanError> {
        let mut slots: Vec<Slot> = Vec::new();
        let mut each = Vec::new();
        for (watch, (span, access)) in watches.iter().enumerate() {
            let pieces = pieces(*span)?;
            each.push(pieces.len());
            for piece in pieces {
                let same = |slot: &&mut Slot| slot.piece == piece && slot.access == *access;
                match slots.iter_mut().find(same) {
                    Some(slot) => slot.watches.push(watch),
                    None => slots.push(Slot { piece, access: *access, watches: vec![watch] }),
                }
            }
        }
        let together = slots.len() + reserved;
        if together > SLOTS {
            return Err(PlanError::TooManySlots { each, together });
        }
        Ok(Self { slots })
    }
}

/// The fewest pieces that cover exactly the span: from the front, always the longest that is
/// aligned and fits.
pub(crate) fn pieces(span: Span) -> Result<Vec<Piece>, PlanError> {
    // Longer spans can't be planned whatever the pieces; the limit bounds the work.
    const MOST_BYTES: u64 = 8 * SLOTS as u64 + 8;
    let mut pieces = Vec::new();
    let (mut at, mut left) = (span.start(), span.len().min(MOST_BYTES));
    while left > 0 {
        let fits = |length: &&Length| length.bytes() <= left && at.is_aligned(length.bytes());
        let length = *Length::ALL.iter().find(fits).unwrap_or(&Length::One);
        pieces.push(Piece::new(at, length).ok_or(PlanError::NotUserSpace(span))?);
        (at, left) = (Addr(at.0 + length.bytes()), left - length.bytes());
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, len: u64) -> Span {
        Span::new(Addr(start), len).expect("a span")
    }

    #[test]
    fn cuts() {
        for (start, len, expected) in [
            (0x1000, 8, vec![(0x1000, 8)]),
            (0x1000, 1, vec![(0x1000, 1)]),
            (0x1004, 8, vec![(0x1004, 4), (0x1008, 4)]),
            (0x1001, 7, vec![(0x1001, 1), (0x1002, 2), (0x1004, 4)]),
            (0x1001, 8, vec![(0x1001, 1), (0x1002, 2), (0x1004, 4), (0x1008, 1)]),
            (0x1000, 32, vec![(0x1000, 8), (0x1008, 8), (0x1010, 8), (0x1018, 8)]),
            (0x1003, 3, vec![(0x1003, 1), (0x1004, 2)]),
        ] {
            let cut = pieces(span(start, len)).expect("user space");
            let cut: Vec<_> = cut.iter().map(|p| (p.addr().0, p.length().bytes())).collect();
            assert_eq!(cut, expected, "{start:#x}:{len}");
        }
    }

    #[test]
    fn equal_pieces_are_shared() {
        let w = Access::Write;
        let plan = Plan::new(&[(span(0x1004, 12), w), (span(0x1008, 8), w)], 0).expect("fits");
        let watches: Vec<_> = plan.slots.iter().map(|slot| slot.watches.clone()).collect();
        assert_eq!(watches, [vec![0], vec![0, 1]]);
        let rw = Plan::new(&[(span(8, 8), w), (span(8, 8), Access::ReadWrite)], 0).expect("fits");
        assert_eq!(rw.slots.len(), 2, "one reports reads, the other must not");
    }

    #[test]
    fn what_does_not_fit_says_who_needs_what() {
        let w = Access::Write;
        let error = Plan::new(&[(span(0, 32), w), (span(64, 1), w)], 0).expect_err("five slots");
        let text = "5 debug registers are needed, 4 exist: watch 0 needs 4, watch 1 needs 1";
        assert_eq!(error.to_string(), text);
        assert!(Plan::new(&[(span(0, 32), w)], 1).is_err(), "one is reserved");
        let kernel = span(0xffff_8000_0000_0000, 8);
        assert_eq!(Plan::new(&[(kernel, w)], 0), Err(PlanError::NotUserSpace(kernel)));
        assert!(Plan::new(&[(span(1, u64::MAX - 1), w)], 0).is_err());
    }

    proptest! {
        /// The pieces follow each other without gap or overlap, and none can be joined.
        #[test]
        fn pieces_are_exact_and_few(start in 0_u64..1 << 46, len in 1_u64..=32) {
            let span = span(start, len);
            let cut = pieces(span).expect("user space");
            let mut at = start;
            for piece in &cut {
                prop_assert_eq!(piece.addr().0, at);
                at += piece.length().bytes();
            }
            prop_assert_eq!(at, start + len);
            for pair in cut.windows(2) {
                let same = pair[0].length() == pair[1].length();
                let aligned = pair[0].addr().is_aligned(pair[0].length().bytes() * 2);
                let longest = pair[0].length() == Length::Eight;
                prop_assert!(!(same && aligned && !longest), "{:?}", cut);
            }
        }
    }
}
