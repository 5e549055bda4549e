//! A watch whose address may change: which slots it has, where they are aimed, since when.
//!
//! A chain has a slot for each pointer on its way, one or two banks of slots for the leaf, and a
//! generation that grows each time the leaf is aimed elsewhere. With two banks, the new leaf is
//! armed before the old one is released. A watch in a library that is still to be loaded is a
//! chain without a route.
//!
//! Pure: it says what to aim where ([`Chain::step`]), the session does it and reports the time.

use crate::coalesce::RawAccess;
use crate::event::RebindReason;
use crate::route::{Route, Walk};
use hairspring_model::{Addr, Span, Tid};
use hairspring_perf::{Length, Piece};
use std::collections::HashSet;

/// A watch whose address may change.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) watch: usize,
    /// `None` until the library is loaded.
    pub(crate) route: Option<Route>,
    /// The slots of the pointers, in the order of the way.
    pub(crate) pointers: Vec<PointerSlot>,
    /// The slots for the leaf; one of the banks is in use.
    pub(crate) banks: Vec<Vec<usize>>,
    in_use: usize,
    /// Threads that may have been in the middle of making another one when the slots were aimed
    /// last: the first child that each of them announces may have a copy that is aimed as before.
    pub(crate) unsettled: HashSet<Tid>,
    leaf: Option<Span>,
    pub(crate) generation: u64,
    history: Vec<Past>,
}

/// A slot on a pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerSlot {
    pub(crate) slot: usize,
    pub(crate) aimed: Option<Addr>,
}

/// Where the leaf was aimed from some time on.
#[derive(Clone, Copy, Debug)]
struct Past {
    since_ns: u64,
    generation: u64,
    leaf: Span,
}

/// One slot to be aimed; `None`: to be turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) slot: usize,
    pub(crate) to: Option<Piece>,
}

/// What a walk means for the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// What to do, in this order.
    pub(crate) moves: Vec<Move>,
    /// The leaf before and after, where it has changed, and why.
    pub(crate) rebound: Option<Rebound>,
}

/// A leaf that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rebound {
    pub(crate) old: Option<Span>,
    pub(crate) new: Option<Span>,
    pub(crate) reason: RebindReason,
}

impl Chain {
    /// A chain that is not aimed anywhere yet.
    pub(crate) fn new(watch: usize, pointers: Vec<usize>, banks: Vec<Vec<usize>>) -> Self {
        let pointers = pointers.into_iter().map(|slot| PointerSlot { slot, aimed: None }).collect();
        Self {
            watch,
            route: None,
            pointers,
            banks,
            in_use: 0,
            unsettled: HashSet::new(),
            leaf: None,
            generation: 0,
            history: Vec::new(),
        }
    }

    /// Where the leaf is aimed.
    pub(crate) fn leaf(&self) -> Option<Span> {
        self.leaf
    }

    /// What the slots are aimed at, to aim them so again.
    pub(crate) fn aims(&self) -> Vec<Move> {
        let pointer = |pointer: &PointerSlot| {
            let to = pointer.aimed.and_then(|at| Piece::new(at, Length::Eight));
            Move { slot: pointer.slot, to }
        };
        let mut aims: Vec<Move> = self.pointers.iter().map(pointer).collect();
        for (number, bank) in self.banks.iter().enumerate() {
            let leaf =
                self.leaf.filter(|_| number == self.in_use).and_then(|span| self.fit(span).ok());
            let mut pieces = leaf.unwrap_or_default().into_iter();
            aims.extend(bank.iter().map(|slot| Move { slot: *slot, to: pieces.next() }));
        }
        aims
    }

    /// What has to change so that the slots agree with the walk, which is taken for done at
    /// `now_ns`.
    pub(crate) fn step(&mut self, walk: &Walk, now_ns: u64) -> Step {
        let mut moves = Vec::new();
        for (number, pointer) in self.pointers.iter_mut().enumerate() {
            let to = walk.pointers.get(number).copied();
            // An unaligned pointer has no single slot: what is behind it can't be followed.
            let piece = to.and_then(|at| Piece::new(at, Length::Eight));
            if pointer.aimed != to {
                pointer.aimed = to;
                moves.push(Move { slot: pointer.slot, to: piece });
            }
        }
        let unaligned = walk.pointers.iter().any(|at| Piece::new(*at, Length::Eight).is_none());
        let wanted = if unaligned { Err(RebindReason::Unreadable) } else { walk.leaf };
        let (new, pieces) = match wanted.and_then(|span| Ok((span, self.fit(span)?))) {
            Ok((span, pieces)) => (Ok(span), pieces),
            Err(reason) => (Err(reason), Vec::new()),
        };
        if new.ok() == self.leaf {
            return Step { moves, rebound: None };
        }
        let rebound = Rebound {
            old: self.leaf,
            new: new.ok(),
            reason: new.err().unwrap_or(RebindReason::Moved),
        };
        let old_bank = self.in_use;
        self.in_use = (self.in_use + 1) % self.banks.len().max(1);
        let mut pieces = pieces.into_iter();
        let bank = self.banks.get(self.in_use).into_iter().flatten();
        moves.extend(bank.map(|slot| Move { slot: *slot, to: pieces.next() }));
        if old_bank != self.in_use {
            let released = self.banks.get(old_bank).into_iter().flatten();
            moves.extend(released.map(|slot| Move { slot: *slot, to: None }));
        }
        self.generation += 1;
        self.leaf = new.ok();
        if let Some(leaf) = self.leaf {
            self.history.push(Past { since_ns: now_ns, generation: self.generation, leaf });
        }
        Step { moves, rebound: Some(rebound) }
    }

    /// The first aim, which is not a change.
    pub(crate) fn start(&mut self, walk: &Walk) -> Step {
        let step = self.step(walk, 0);
        self.generation = 0;
        for past in &mut self.history {
            past.generation = 0;
        }
        step
    }

    /// The generation and leaf that an access belongs to: the last one that was aimed there before
    /// it happened.
    pub(crate) fn at(&self, access: &RawAccess) -> Option<(u64, Span)> {
        let there = |past: &&Past| past.leaf.contains(access.first.1);
        let mut past = self.history.iter().rev().filter(there);
        let before = past.clone().find(|past| past.since_ns <= access.time_ns);
        before.or(past.next_back()).map(|past| (past.generation, past.leaf))
    }

    /// Forgets where the leaf was aimed long ago.
    pub(crate) fn forget_before(&mut self, time_ns: u64) {
        // The last aim before that time was still in force then.
        let old = self.history.iter().rposition(|past| past.since_ns <= time_ns).unwrap_or(0);
        self.history.drain(..old);
    }

    /// The pieces of a leaf, if a bank has room for them.
    fn fit(&self, span: Span) -> Result<Vec<Piece>, RebindReason> {
        let pieces = crate::plan::pieces(span).map_err(|_| RebindReason::Unreadable)?;
        let room = self.banks.first().map_or(0, Vec::len);
        if pieces.len() <= room { Ok(pieces) } else { Err(RebindReason::Unreadable) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coalesce::SlotSet;
    use hairspring_model::{Cpu, Pid, Tid};

    fn walk(pointers: &[u64], leaf: Result<u64, RebindReason>) -> Walk {
        let leaf = leaf.map(|at| Span::new(Addr(at), 8).expect("a span"));
        Walk { pointers: pointers.iter().map(|at| Addr(*at)).collect(), leaf }
    }

    fn to(slot: usize, at: Option<u64>) -> Move {
        Move { slot, to: at.and_then(|at| Piece::new(Addr(at), Length::Eight)) }
    }

    fn access(at: u64, time_ns: u64) -> RawAccess {
        RawAccess {
            slots: SlotSet::one(1),
            first: (1, Addr(at)),
            records: [0, 1, 0, 0],
            time_ns,
            pid: Pid(1),
            tid: Tid(1),
            cpu: Cpu(0),
            ip: Addr(1),
            registers: None,
            top: None,
            kernel: None,
        }
    }

    #[test]
    fn one_bank_is_aimed_in_place() {
        let mut chain = Chain::new(0, vec![0], vec![vec![1]]);
        assert_eq!(
            chain.start(&walk(&[0x100], Ok(0x200))).moves,
            [to(0, Some(0x100)), to(1, Some(0x200))]
        );
        assert_eq!(chain.step(&walk(&[0x100], Ok(0x200)), 5).rebound, None, "the same value again");
        let step = chain.step(&walk(&[0x100], Ok(0x300)), 10);
        assert_eq!(step.moves, [to(1, Some(0x300))]);
        assert_eq!(step.rebound.map(|r| r.reason), Some(RebindReason::Moved));
        assert_eq!(chain.generation, 1);
        assert_eq!(chain.aims(), [to(0, Some(0x100)), to(1, Some(0x300))]);
    }

    #[test]
    fn two_banks_take_turns() {
        let mut chain = Chain::new(0, vec![0], vec![vec![1], vec![2]]);
        chain.start(&walk(&[0x100], Ok(0x200)));
        let step = chain.step(&walk(&[0x100], Ok(0x300)), 10);
        // The bank that `start` left free is armed, then the other one is released.
        assert_eq!(step.moves.len(), 2);
        assert!(step.moves[0].to.is_some() && step.moves[1].to.is_none());
        assert_ne!(step.moves[0].slot, step.moves[1].slot);
    }

    #[test]
    fn null_turns_it_off_and_a_pointer_on_again() {
        let mut chain = Chain::new(0, vec![0], vec![vec![1]]);
        chain.start(&walk(&[0x100], Ok(0x200)));
        let off = chain.step(&walk(&[0x100], Err(RebindReason::Null)), 10);
        assert_eq!(off.moves, [to(1, None)]);
        assert_eq!(off.rebound.map(|r| (r.new, r.reason)), Some((None, RebindReason::Null)));
        let on = chain.step(&walk(&[0x100], Ok(0x200)), 20);
        assert_eq!(on.moves, [to(1, Some(0x200))]);
        assert_eq!(chain.generation, 2);
    }

    #[test]
    fn a_leaf_that_needs_more_slots_is_off() {
        let mut chain = Chain::new(0, vec![0], vec![vec![1]]);
        let step = chain.step(&walk(&[0x100], Ok(0x204)), 10);
        assert_eq!(step.moves, [to(0, Some(0x100))]);
        assert_eq!(chain.leaf(), None);
    }

    #[test]
    fn hits_belong_to_the_generation_of_their_time() {
        let mut chain = Chain::new(0, vec![0], vec![vec![1]]);
        chain.start(&walk(&[0x100], Ok(0x200)));
        chain.step(&walk(&[0x100], Ok(0x300)), 10);
        chain.step(&walk(&[0x100], Ok(0x200)), 20);
        let generation = |at, time| chain.at(&access(at, time)).map(|(generation, _)| generation);
        assert_eq!(generation(0x200, 5), Some(0));
        assert_eq!(generation(0x200, 15), Some(0), "reported late");
        assert_eq!(generation(0x300, 15), Some(1));
        assert_eq!(generation(0x200, 25), Some(2));
        assert_eq!(generation(0x400, 25), None);
    }
}
