//! What speaks against a complete coverage, as it comes up during a session.

use crate::coverage::{Blind, Gap};
use std::time::Duration;

/// More gaps would say nothing new and could fill the memory.
const MOST_GAPS: usize = 1000;

/// The evidence so far.
#[derive(Debug)]
pub(crate) struct Evidence {
    gaps: Vec<Gap>,
    blind: Blind,
    blind_limit: Duration,
}

impl Evidence {
    /// None yet. Windows up to `blind_limit` are only added up.
    pub(crate) fn new(blind_limit: Duration) -> Self {
        Self { gaps: Vec::new(), blind: Blind::default(), blind_limit }
    }

    /// Adds a gap, unless it is known.
    pub(crate) fn gap(&mut self, gap: Gap) {
        if self.gaps.len() < MOST_GAPS && !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    /// Adds a window without a watch that was to be there.
    pub(crate) fn blind(&mut self, watch: usize, window: Duration) {
        self.blind.add(window);
        if window <= self.blind_limit {
            return;
        }
        for gap in &mut self.gaps {
            match gap {
                Gap::Blind { watch: of, windows, longest } if *of == watch => {
                    *windows += 1;
                    *longest = window.max(*longest);
                    return;
                }
                _ => {}
            }
        }
        self.gap(Gap::Blind { watch, windows: 1, longest: window });
    }

    /// Counts a record that makes no sense.
    pub(crate) fn undecodable(&mut self, what: &str) {
        for gap in &mut self.gaps {
            if let Gap::Undecodable { records, .. } = gap {
                *records += 1;
                return;
            }
        }
        self.gap(Gap::Undecodable { records: 1, first: what.into() });
    }

    /// Forgets what was before anything was promised.
    pub(crate) fn begin(&mut self) {
        self.gaps.retain(|gap| !matches!(gap, Gap::UnprovedBirth { .. } | Gap::Blind { .. }));
        self.blind = Blind::default();
    }

    /// The gaps and the windows, at the end.
    pub(crate) fn take(&mut self) -> (Vec<Gap>, Blind) {
        (std::mem::take(&mut self.gaps), std::mem::take(&mut self.blind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once() {
        let mut evidence = Evidence::new(Duration::from_millis(1));
        evidence.undecodable("first");
        evidence.undecodable("second");
        evidence.gap(Gap::Unlisted);
        evidence.gap(Gap::Unlisted);
        evidence.blind(3, Duration::from_millis(1));
        evidence.blind(3, Duration::from_millis(2));
        evidence.blind(3, Duration::from_millis(3));
        let (gaps, blind) = evidence.take();
        let longest = Duration::from_millis(3);
        let undecodable = Gap::Undecodable { records: 2, first: "first".into() };
        assert_eq!(
            gaps,
            [undecodable, Gap::Unlisted, Gap::Blind { watch: 3, windows: 2, longest }]
        );
        assert_eq!((blind.windows, blind.longest), (3, longest));
    }

    #[test]
    fn what_was_before_the_promise_does_not_count() {
        let mut evidence = Evidence::new(Duration::ZERO);
        evidence.blind(0, Duration::from_secs(1));
        evidence.gap(Gap::UnprovedBirth { thread: hairspring_model::Tid(1) });
        evidence.begin();
        assert_eq!(evidence.take(), (Vec::new(), Blind::default()));
    }
}
