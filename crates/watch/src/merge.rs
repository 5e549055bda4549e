//! The accesses of all processors in one order: pure.
//!
//! Each processor has its own ring, and the rings are read one after the other. An access is held
//! back until everything that can have happened before it has been read:
//!
//! ```text
//!   horizon   the time just before the first ring of a round was looked at
//!   ------+------------------------------------------------> time
//!    a  b | c          a, b: given out, in order of time
//!         |            c:    held: what caused it may lie in a ring that was looked at before
//! ```
//! If `b` was caused by `a` on another processor, `a` was in its ring before `b` happened, hence
//! before the horizon, hence before its ring was looked at.

use crate::coalesce::RawAccess;
use crate::event::Event;

/// Something on its way out.
#[derive(Debug)]
pub(crate) enum Pending {
    /// An access that is still to be explained.
    Access(RawAccess),
    /// A fact, with its time.
    Fact(u64, Event),
}

/// What is on its way out.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    held: Vec<Pending>,
}

impl Pending {
    fn time_ns(&self) -> u64 {
        match self {
            Self::Access(access) => access.time_ns,
            Self::Fact(time_ns, _) => *time_ns,
        }
    }
}

impl Merge {
    /// Adds what happened, in any order.
    pub(crate) fn extend(&mut self, pending: impl IntoIterator<Item = Pending>) {
        self.held.extend(pending);
    }

    /// Takes out what happened up to the horizon, in order; what happened at the same time comes in
    /// the order in which it was added.
    pub(crate) fn up_to(&mut self, horizon_ns: u64) -> Vec<Pending> {
        self.held.sort_by_key(Pending::time_ns);
        let ready = self.held.partition_point(|pending| pending.time_ns() <= horizon_ns);
        self.held.drain(..ready).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Lost;
    use proptest::prelude::*;

    fn at(time_ns: u64) -> Pending {
        Pending::Fact(time_ns, Event::Lost(Lost { watch: 0, records: time_ns }))
    }

    proptest! {
        /// Whatever the rounds: each comes out once, in order, and none after the horizon.
        #[test]
        fn order(rounds in prop::collection::vec((prop::collection::vec(0_u64..50, 0..8), 0_u64..10), 0..10)) {
            let (mut merge, mut out, mut horizon, mut total) = (Merge::default(), Vec::new(), 0, 0);
            for (times, advance) in rounds {
                total += times.len();
                // Nothing that is added lies before what was already given out.
                merge.extend(times.into_iter().map(|time| at(horizon + 1 + time)));
                horizon += advance;
                for pending in merge.up_to(horizon) {
                    prop_assert!(pending.time_ns() <= horizon);
                    out.push(pending.time_ns());
                }
            }
            out.extend(merge.up_to(u64::MAX).iter().map(Pending::time_ns));
            prop_assert_eq!(out.len(), total);
            prop_assert!(out.is_sorted());
        }
    }
}
