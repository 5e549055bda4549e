//! Which module an address belonged to when last seen. Pure.

use hairspring_model::{Addr, Span};
use std::collections::BTreeMap;

/// What was last seen at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// A module, by its number.
    Module(usize),
    /// Memory that no file backs.
    Anonymous,
}

/// Disjoint address ranges, each with the module that is or was last mapped there; what was
/// unmapped stays known until something else takes its place.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// By first address: the last address, and what is there.
    ranges: BTreeMap<u64, (u64, Region)>,
}

impl Regions {
    /// Sets a range; whatever it overlaps is cut.
    pub(crate) fn set(&mut self, span: Span, region: Region) {
        let (start, last) = (span.start().0, span.last().0);
        let before = self.ranges.range(..start).next_back().map(|(at, range)| (*at, *range));
        if let Some((at, (end, owner))) = before
            && end >= start
        {
            self.ranges.insert(at, (start - 1, owner));
            if end > last {
                self.ranges.insert(last + 1, (end, owner));
            }
        }
        let inside: Vec<u64> = self.ranges.range(start..=last).map(|(at, _)| *at).collect();
        for at in inside {
            if let Some((end, owner)) = self.ranges.remove(&at)
                && end > last
            {
                self.ranges.insert(last + 1, (end, owner));
            }
        }
        self.ranges.insert(start, (last, region));
    }

    /// Forgets all memory without a file.
    pub(crate) fn forget_anonymous(&mut self) {
        self.ranges.retain(|_, (_, region)| *region != Region::Anonymous);
    }

    /// What is at an address; `None` where nothing ever was.
    pub(crate) fn at(&self, addr: Addr) -> Option<Region> {
        let (_, (last, region)) = self.ranges.range(..=addr.0).next_back()?;
        (addr.0 <= *last).then_some(*region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, len: u64) -> Span {
        Span::new(Addr(start), len).expect("a span")
    }

    #[test]
    fn the_ends_of_the_address_space() {
        let mut regions = Regions::default();
        regions.set(span(0, 10), Region::Module(1));
        regions.set(span(u64::MAX - 9, 10), Region::Module(2));
        regions.set(span(u64::MAX, 1), Region::Anonymous);
        regions.set(span(0, 1), Region::Anonymous);
        assert_eq!(regions.at(Addr(u64::MAX)), Some(Region::Anonymous));
        assert_eq!(regions.at(Addr(u64::MAX - 1)), Some(Region::Module(2)));
        assert_eq!(regions.at(Addr(0)), Some(Region::Anonymous));
        assert_eq!(regions.at(Addr(1)), Some(Region::Module(1)));
        assert_eq!(regions.at(Addr(10)), None);
        regions.forget_anonymous();
        assert_eq!(regions.at(Addr(0)), None);
    }

    proptest! {
        #[test]
        fn the_last_one_set_wins(sets in prop::collection::vec((0_u64..60, 1_u64..20), 0..20)) {
            let mut regions = Regions::default();
            let mut bytes = [None; 80];
            for (module, (start, len)) in sets.iter().enumerate() {
                regions.set(span(*start, *len), Region::Module(module));
                for byte in *start..start + len {
                    bytes[usize::try_from(byte).expect("small")] = Some(Region::Module(module));
                }
            }
            for (addr, expected) in bytes.iter().enumerate() {
                prop_assert_eq!(regions.at(Addr(addr as u64)), *expected);
            }
        }
    }
}
