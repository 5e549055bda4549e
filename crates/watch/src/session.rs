//! A session: draining, ordering, explaining, following, and the proof at the end.
//!
//! The caller [polls](Session::poll) until the session ends or it has had enough, and then
//! [finishes](Session::finish) it. Nothing happens in between: no thread, no signal handler. What a
//! poll does, in this order:
//!
//! ```text
//!   note the time (horizon) -> look at the heads of the rings -> births, exits, names
//!   -> records to accesses, a processor at a time -> re-aim chains whose pointers were written
//!   -> accesses up to the horizon, in order -> hits
//! ```
//! The target is never stopped. If this process dies, the kernel closes its events, which frees
//! the debug registers; the target does not notice.

use crate::access::Written;
use crate::armament::{Armament, Found};
use crate::chain::Chain;
use crate::coalesce::{Coalescer, RawAccess};
use crate::conditions::Conditions;
use crate::coverage::Gap;
use crate::error::{Error, Operation};
use crate::event::{
    Accessed, Change, Event, Hit, Lost, NewValue, Source, Standing, StopReason, Summary,
    ThreadChange,
};
use crate::evidence::Evidence;
use crate::identity::Pinned;
use crate::memory::{Initial, Later, Memory};
use crate::merge::{Merge, Pending};
use crate::news::News;
use crate::parents::SeenElsewhere;
use crate::request::{Limits, Report};
use crate::resolve::Resolved;
use crate::roles::{Place, Role, Wanted};
use crate::sites::Sites;
use crate::tally::Tally;
use hairspring_model::{Access, Cpu, Pid, Span, Value};
use hairspring_perf::{Host, Layout, Record, Records, Ring, SIDE_BAND_LAYOUT};
use hairspring_sys::cpu::monotonic_ns;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::time::Duration;

/// About how many bytes of records are taken out of a ring at once.
const CHUNK: usize = 1 << 20;

/// How long an access waits for further records of its own.
const QUIET_NS: u64 = 1_000_000;

/// A watch of a running session.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) access: Access,
    /// The bytes of a fixed watch; a chain knows its own.
    pub(crate) span: Option<Span>,
    /// The value that is there, where every write since it was known is known too.
    pub(crate) last: Option<Value>,
    /// The generation that `last` belongs to.
    pub(crate) generation: u64,
    /// The value when the session began, until the first hit.
    pub(crate) initial: Option<Initial>,
    pub(crate) tally: Tally,
    pub(crate) hits: u64,
    pub(crate) coalesced: u64,
    /// Hits before the session was ready.
    pub(crate) early: u64,
    /// Hits after the limit of the session was reached.
    pub(crate) beyond: u64,
}

/// A slot of a running session.
#[derive(Clone, Debug)]
pub(crate) struct SlotState {
    pub(crate) role: Role,
    /// The watches that it is for.
    pub(crate) watches: Vec<usize>,
    pub(crate) delivered: u64,
    /// From the records of lost records: a lower bound.
    pub(crate) lost: u64,
}

/// What does not change during a session.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) host: Host,
    pub(crate) layout: Layout,
    pub(crate) limits: Limits,
    pub(crate) report: Report,
    pub(crate) self_tests: Vec<(Cpu, Option<bool>)>,
    pub(crate) kernel_visible: bool,
    pub(crate) found: u64,
    pub(crate) fixpoint: bool,
}

/// A watch session on a live process.
#[derive(Debug)]
pub struct Session {
    pub(crate) pinned: Pinned,
    pub(crate) setting: Setting,
    pub(crate) armament: Armament,
    pub(crate) slots: Vec<SlotState>,
    pub(crate) watches: Vec<Watched>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) conditions: Conditions,
    /// As they were asked for, to be looked for again.
    pub(crate) resolved: Vec<Resolved>,
    pub(crate) sites: Sites,
    pub(crate) news: News,
    pub(crate) memory: Memory,
    pub(crate) coalescers: Vec<Coalescer>,
    pub(crate) merge: Merge,
    pub(crate) evidence: Evidence,
    pub(crate) ready_ns: u64,
    pub(crate) reported: u64,
    pub(crate) names_known: bool,
    pub(crate) buffer: Vec<u8>,
}

/// Whether a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Running,
    /// It is over: [finish](Session::finish) it with this reason.
    Over(StopReason),
}

impl SlotState {
    pub(crate) fn new(role: Role, chains: &[Chain]) -> Self {
        let watches = match &role {
            Role::Fixed(watches) => watches.clone(),
            Role::Pointer(chain) | Role::Leaf(chain) => vec![chains[*chain].watch],
        };
        Self { role, watches, delivered: 0, lost: 0 }
    }
}

impl Watched {
    pub(crate) fn new(wanted: &Wanted) -> Self {
        let span = match wanted.place {
            Place::Fixed(span) => Some(span),
            Place::Moving { .. } => None,
        };
        let tally = Tally::default();
        Self {
            access: wanted.access,
            span,
            last: None,
            generation: 0,
            initial: None,
            tally,
            hits: 0,
            coalesced: 0,
            early: 0,
            beyond: 0,
        }
    }
}

impl Session {
    /// Waits for something to happen, at most `timeout`, and adds what has happened to `events`.
    /// Returns early on a signal.
    ///
    /// # Errors
    /// Where the kernel's rings can't be read, which would be a fault of the kernel's.
    pub fn poll(&mut self, timeout: Duration, events: &mut Vec<Event>) -> Result<State, Error> {
        self.learn_names();
        let exited = self.wait(timeout)?;
        // What was announced before the target exited is in the rings now.
        let more = self.round(events)?;
        Ok(if self.limit_reached() {
            State::Over(StopReason::Hits)
        } else if self.news.exec {
            State::Over(StopReason::Exec)
        } else if exited && !more {
            State::Over(StopReason::Exited)
        } else if self.setting.limits.duration.is_some_and(|limit| self.age() >= limit) {
            State::Over(StopReason::Duration)
        } else {
            State::Running
        })
    }

    /// Ends the session: stops all watches, reports what is still on its way, and settles the
    /// accounts. The target runs on.
    ///
    /// # Errors
    /// As [`Session::poll`].
    pub fn finish(mut self, reason: StopReason, events: &mut Vec<Event>) -> Result<Summary, Error> {
        let duration = self.age();
        let target = self.pinned.still();
        let counts = self.stop(events)?;
        let watches = self.settle(&counts);
        let coverage = self.coverage(target, reason);
        Ok(Summary { stop_reason: reason, duration, watches, coverage })
    }

    /// Asks for the names of the threads that were found, once: a thread that has ended can't be
    /// asked any more.
    fn learn_names(&mut self) {
        if !std::mem::replace(&mut self.names_known, true) {
            let pid = self.pid();
            for tid in self.armament.known() {
                self.news.name(pid, *tid);
            }
        }
    }

    /// How long the session has been ready.
    pub fn age(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.ready_ns))
    }

    /// When the session was ready, `CLOCK_MONOTONIC`, nanoseconds.
    pub fn ready_ns(&self) -> u64 {
        self.ready_ns
    }

    /// Who has made the hits so far, by watch.
    pub fn standing(&self) -> Vec<Standing> {
        let standing = |(watched, resolved): (&Watched, &Resolved)| Standing {
            name: resolved.name.clone(),
            hits: watched.hits,
            writers: watched.tally.writers(),
        };
        self.watches.iter().zip(&self.resolved).map(standing).collect()
    }

    /// The target.
    pub fn pid(&self) -> Pid {
        self.pinned.identity().pid
    }

    /// Sleeps until a ring is well filled, a pointer was written, the target has exited, a signal
    /// has come, or the time is over. Returns whether the target has exited.
    fn wait(&self, timeout: Duration) -> Result<bool, Error> {
        let left = self.setting.limits.duration.map(|limit| limit.saturating_sub(self.age()));
        let timeout = left.map_or(timeout, |left| left.min(timeout));
        // Rounded up: a wait of 0 would spin until the last fraction of a millisecond is over.
        let timeout =
            PollTimeout::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = vec![readable(self.pinned.as_fd())];
        fds.extend(
            self.armament.hits.iter().chain(&self.armament.news).map(|r| readable(r.as_fd())),
        );
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(fds[0].any().unwrap_or(false)),
            Err(e) => Err(Error::system(Operation::Wait, e.into())),
        }
    }

    /// Drains the rings once; returns whether there is more to drain.
    pub(crate) fn round(&mut self, events: &mut Vec<Event>) -> Result<bool, Error> {
        let seen = self.armament.parents.look(self.pid());
        let mut horizon = monotonic_ns();
        let heads: Vec<u64> = self.armament.hits.iter().map(Ring::head).collect();
        self.take_news(&seen, horizon)?;
        let (mut more, mut dirty) = (false, Vec::new());
        for (processor, head) in heads.into_iter().enumerate() {
            let (left, last_ns) = self.take_hits(processor, head, &mut dirty)?;
            if left {
                // What is left in this ring comes after what was taken out of it.
                horizon = horizon.min(last_ns);
                more = true;
            }
        }
        dirty.sort_unstable();
        dirty.dedup_by_key(|(chain, _)| *chain);
        for (chain, since_ns) in dirty {
            self.follow(chain, since_ns);
        }
        let quiet_since = horizon.saturating_sub(QUIET_NS);
        for coalescer in &mut self.coalescers {
            self.merge.extend(coalescer.flush(self.slots.len(), quiet_since).map(Pending::Access));
            // What follows an access that is still open must not overtake it.
            horizon =
                coalescer.open_ns().map_or(horizon, |open| horizon.min(open.saturating_sub(1)));
        }
        self.emit(horizon, events);
        for chain in &mut self.chains {
            chain.forget_before(horizon.saturating_sub(QUIET_NS));
        }
        self.news.forget_before(horizon);
        Ok(more)
    }

    /// Takes a chunk out of a processor's ring. Returns whether there is more below `head`, and the
    /// time of the last record; adds the chains whose pointers were written, with the time.
    fn take_hits(
        &mut self,
        processor: usize,
        head: u64,
        dirty: &mut Vec<(usize, u64)>,
    ) -> Result<(bool, u64), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let ring = &mut self.armament.hits[processor];
        let more = ring
            .take(head, CHUNK, &mut buffer)
            .map_err(|e| Error::perf(Operation::ReadRing, e, &self.setting.host))?;
        let mut last_ns = 0;
        for record in Records::new(&buffer, self.setting.layout) {
            let sample = match record {
                Ok(Record::Sample(sample)) => sample,
                Ok(Record::Lost { id, lost }) => {
                    self.take_lost(id, lost);
                    continue;
                }
                Ok(_) => continue,
                Err(e) => {
                    self.evidence.undecodable(&e.to_string());
                    continue;
                }
            };
            last_ns = sample.time_ns;
            let Some(slot) = self.armament.slot_of(sample.id) else {
                self.evidence.undecodable("a sample of an unknown event");
                continue;
            };
            self.slots[slot].delivered += 1;
            if let Role::Pointer(chain) = self.slots[slot].role {
                dirty.push((chain, sample.time_ns));
                continue;
            }
            let complete = self.coalescers[processor].add(RawAccess::new(&sample, slot));
            self.merge.extend(complete.map(Pending::Access));
        }
        self.buffer = buffer;
        Ok((more, last_ns))
    }

    fn take_lost(&mut self, id: u64, lost: u64) {
        let Some(slot) = self.armament.slot_of(id) else { return };
        self.slots[slot].lost += lost;
        let records = self.slots[slot].lost;
        for watch in self.slots[slot].watches.iter().copied() {
            self.watches[watch].last = None;
            self.merge
                .extend([Pending::Fact(monotonic_ns(), Event::Lost(Lost { watch, records }))]);
        }
    }

    /// Drains births, exits, names, execs and mappings, and looks at what they ask to look at. What
    /// was seen of the parents must have been seen before the horizon: the births that they had
    /// announced by then are looked at here.
    pub(crate) fn take_news(&mut self, seen: &SeenElsewhere, horizon: u64) -> Result<(), Error> {
        let read = |e| Error::perf(Operation::ReadRing, e, &self.setting.host);
        let mut broken = Vec::new();
        for ring in &mut self.armament.news {
            let head = ring.head();
            let mut more = true;
            while more {
                more = ring.take(head, CHUNK, &mut self.buffer).map_err(read)?;
                for record in Records::new(&self.buffer, SIDE_BAND_LAYOUT) {
                    match record {
                        Ok(record) => self.news.collect(&record),
                        Err(e) => broken.push(e),
                    }
                }
            }
        }
        for error in broken {
            self.evidence.undecodable(&error.to_string());
        }
        let changes = self.news.take_in(horizon);
        for ended in changes.iter().filter(|change| change.change == Change::Ended) {
            self.armament.forget(ended.tid);
        }
        let changes = changes.into_iter();
        let fact = |change: ThreadChange| Pending::Fact(change.time_ns, Event::Thread(change));
        self.merge.extend(changes.map(fact));
        for (parent, child) in std::mem::take(&mut self.news.births) {
            self.settle_birth(parent, child);
            match self.armament.check_birth(parent, child, &self.setting.host) {
                Ok(Found::Inherited) => {}
                // Armed: what it did before that may have gone unseen.
                Ok(Found::Armed | Found::Gone) => {
                    self.evidence.gap(Gap::UnprovedBirth { thread: child });
                }
                Err(e) => self.evidence.gap(Gap::Unarmed { thread: child, why: e.to_string() }),
            }
        }
        self.armament.parents.prove(seen);
        if let Some(since_ns) = self.news.mapped_ns.take() {
            self.sites.modules_changed();
            self.load_pending(since_ns);
        }
        Ok(())
    }

    /// Gives out what happened up to the horizon.
    pub(crate) fn emit(&mut self, horizon: u64, events: &mut Vec<Event>) {
        let mut later = Later::default();
        for pending in self.merge.up_to(horizon) {
            match pending {
                Pending::Access(access) => self.report(&access, &mut later, events),
                Pending::Fact(_, fact) => {
                    if self.setting.report == Report::Every && !self.limit_reached() {
                        events.push(fact);
                    }
                }
            }
        }
    }

    /// Makes the hits of one access: one a watch.
    fn report(&mut self, access: &RawAccess, later: &mut Later, events: &mut Vec<Event>) {
        let mut told = 0_u64;
        for slot in access.slots.iter() {
            for index in 0..self.slots[slot].watches.len() {
                let watch = self.slots[slot].watches[index];
                // At most four slots, so few watches; far below 64 where slots are shared.
                let bit = 1_u64.checked_shl(u32::try_from(watch).unwrap_or(u32::MAX)).unwrap_or(0);
                if told & bit == 0 {
                    told |= bit;
                    self.hit(watch, slot, access, later, events);
                }
            }
        }
    }

    fn hit(
        &mut self,
        watch: usize,
        slot: usize,
        access: &RawAccess,
        later: &mut Later,
        events: &mut Vec<Event>,
    ) {
        let (generation, span) = match &self.slots[slot].role {
            Role::Leaf(chain) => {
                self.chains[*chain].at(access).map_or((0, None), |(g, s)| (g, Some(s)))
            }
            _ => (0, self.watches[watch].span),
        };
        // The records of the watch's own slots: an access may touch others' too.
        let own =
            self.slots.iter().zip(access.records).filter(|(slot, _)| slot.watches.contains(&watch));
        let records: u32 = own.map(|(_, records)| records).sum();
        let watched = &mut self.watches[watch];
        watched.coalesced += u64::from(records.saturating_sub(1));
        if access.time_ns < self.ready_ns {
            watched.early += 1;
            return;
        }
        if self.setting.limits.hits.is_some_and(|limit| self.reported >= limit) {
            watched.beyond += 1;
            return;
        }
        watched.hits += 1;
        self.reported += 1;
        let located = self.sites.locate(access, span, watched.access);
        let len = span.map_or(0, Span::len);
        let whole = |part: Written| part.whole(len);
        if watched.generation != generation {
            // The value of other bytes.
            (watched.generation, watched.last) = (generation, None);
        }
        if let Some(initial) = watched.initial.take_if(|initial| access.time_ns >= initial.from_ns)
        {
            // A write while it was being read leaves open which of both was read.
            watched.last = (access.time_ns > initial.to_ns).then_some(initial.value);
        }
        let old = located.old.and_then(whole).or(watched.last);
        let decoded = match located.access {
            Accessed::Read => watched.last,
            _ => located.new.and_then(whole),
        };
        let new = decoded.map(|value| NewValue { value, source: Source::Decoded }).or_else(|| {
            let value = later.value(watch, || span.and_then(|span| self.memory.value(span)));
            value.map(|value| NewValue { value, source: Source::Later })
        });
        let known = |new: &NewValue| (new.source == Source::Decoded).then_some(new.value);
        watched.last = new.as_ref().and_then(known);
        let hit = Hit {
            watch,
            time_ns: access.time_ns,
            pid: access.pid,
            tid: access.tid,
            thread: self.news.name(access.pid, access.tid),
            cpu: access.cpu,
            ip: access.kernel.as_ref().map_or(access.ip, |kernel| kernel.ip),
            site: located.site,
            access: located.access,
            old,
            new,
            generation,
            registers: access.registers,
            records,
        };
        watched.tally.add(&hit);
        if self.setting.report == Report::Every {
            events.push(Event::Hit(hit));
        }
    }

    fn limit_reached(&self) -> bool {
        self.setting.limits.hits.is_some_and(|limit| self.reported >= limit)
    }
}
