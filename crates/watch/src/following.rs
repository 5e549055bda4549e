//! Following chains: a session's slots are aimed where the pointers lead.
//!
//! Aiming an event reaches the copies that other threads have inherited, but not a copy that is
//! just being made by a thread which itself has a copy (the kernel makes it from what it finds, and
//! enters it into the list of copies later). So after each aim, the first child that a thread
//! announces has all slots aimed once more, and the time in between counts as blind.

use crate::chain::Move;
use crate::coverage::Gap;
use crate::event::{Event, Loaded, Rebind};
use crate::merge::Pending;
use crate::session::Session;
use hairspring_model::Tid;
use hairspring_perf::Piece;
use hairspring_sys::cpu::monotonic_ns;
use std::time::Duration;

/// How often a chain is followed anew because its pointer has moved meanwhile.
const CHASES: usize = 8;

impl Session {
    /// Follows a chain whose pointer was written at `since_ns`, until it stands still.
    pub(crate) fn follow(&mut self, chain: usize, since_ns: u64) {
        let watch = self.chains[chain].watch;
        let Some(route) = self.chains[chain].route.clone() else { return };
        for _ in 0..CHASES {
            let mut walk = route.walk(&mut self.memory);
            if let Err(reason) = self.conditions.check(&mut self.memory) {
                walk.leaf = walk.leaf.and(Err(reason));
            }
            let step = self.chains[chain].step(&walk, monotonic_ns());
            if step.moves.is_empty() && step.rebound.is_none() {
                return;
            }
            self.aim(chain, &step.moves);
            let Some(rebound) = step.rebound else { continue };
            let time_ns = monotonic_ns();
            let blind = Duration::from_nanos(time_ns.saturating_sub(since_ns));
            self.evidence.blind(watch, blind);
            let rebind = Rebind {
                watch,
                time_ns,
                generation: self.chains[chain].generation,
                old: rebound.old,
                new: rebound.new,
                reason: rebound.reason,
                blind,
            };
            self.merge.extend([Pending::Fact(time_ns, Event::Rebind(rebind))]);
        }
        self.evidence.gap(Gap::ChainBehind { watch });
    }

    /// Looks for the libraries of watches that wait for one; code was mapped at `since_ns`.
    pub(crate) fn load_pending(&mut self, since_ns: u64) {
        for chain in 0..self.chains.len() {
            if self.chains[chain].route.is_some() {
                continue;
            }
            let watch = self.chains[chain].watch;
            let found = self.resolved[watch].find(self.sites.symbolizer());
            let Some(route) = found else { continue };
            let walk = route.walk(&mut self.memory);
            self.chains[chain].route = Some(route);
            let step = self.chains[chain].start(&walk);
            self.aim(chain, &step.moves);
            if let Some(span) = self.chains[chain].leaf() {
                let time_ns = monotonic_ns();
                let blind = Duration::from_nanos(time_ns.saturating_sub(since_ns));
                self.evidence.blind(watch, blind);
                let loaded = Loaded { watch, span, blind };
                self.merge.extend([Pending::Fact(time_ns, Event::Loaded(loaded))]);
            }
        }
    }

    /// Aims slots; a failure is a gap.
    pub(crate) fn aim(&mut self, chain: usize, moves: &[Move]) {
        let watch = self.chains[chain].watch;
        for Move { slot, to } in moves {
            if let Err(e) = self.armament.aim(*slot, to.unwrap_or(Piece::LOWEST), to.is_some()) {
                self.evidence.gap(Gap::Unaimed { watch, why: e.to_string() });
            }
        }
        self.chains[chain].unsettled = self.news.alive().clone();
    }

    /// A thread has announced a child: where it may have a copy that is aimed as before, all slots
    /// are aimed once more.
    pub(crate) fn settle_birth(&mut self, parent: Tid, child: Tid) {
        for chain in 0..self.chains.len() {
            if !self.chains[chain].unsettled.remove(&parent) {
                continue;
            }
            let since_ns = monotonic_ns();
            let unsettled = std::mem::take(&mut self.chains[chain].unsettled);
            let aims = self.chains[chain].aims();
            self.aim(chain, &aims);
            self.chains[chain].unsettled = unsettled;
            // Its own first child may have copied what it had before this.
            self.chains[chain].unsettled.insert(child);
            let window = Duration::from_nanos(monotonic_ns().saturating_sub(since_ns));
            self.evidence.blind(self.chains[chain].watch, window);
        }
    }
}
