//! Everything that is open on the target, and how it got there without a gap.
//!
//! Each thread has, on each processor, one event a slot; threads born later inherit them from the
//! kernel, from their first instruction on. What is left to do is to find the threads that exist
//! already, while they go on making others:
//!
//! - A thread's events are opened slot by slot, in order, so that whatever moment a new thread is
//!   born at, it has inherited *the first few* of the slots: all of them, none, or some.
//! - How many it has is asked of the kernel: the four debug registers of a thread are accounted
//!   when an event is opened, so the number that can still be opened says how many it has.
//! - Threads are listed until two listings in a row bring none that lacks a slot.
//! - A thread that was in the middle of its birth all the while appears after the last listing. It
//!   is the first child that its parent announces after the parent was armed (a thread makes one
//!   child at a time), so first children are [checked](Armament::check_birth) when they are
//!   announced, unless the parent has been seen elsewhere since (see [`Parents`]).
//!
//! What is to report is on from the moment when it is opened, since the kernel can't turn on all
//! copies of an event afterwards: a thread that is being born of a *copy's* thread takes the state
//! it finds and is not yet in the list of copies. (Opened off and turned on at the end, a program
//! that makes threads all the time was left unwatched in a third of its threads, in 1 of 50 runs.)
//! Dropping the value closes everything.

use crate::error::{Error, Operation};
use crate::parents::Parents;
use crate::plan::SLOTS;
use crate::threads;
use hairspring_model::{Access, Cpu, Pid, Tid};
use hairspring_perf::{Breakpoint, Counts, Event, Host, Inherit, Layout, OnCpu, Piece, Ring};
use std::collections::{HashMap, HashSet};

/// How many listings are made before the search for threads is given up.
const MOST_LISTINGS: usize = 1000;

/// What one slot watches, the same in every thread.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) piece: Piece,
    pub(crate) access: Access,
    /// Whether it is to report; a slot whose pointer leads nowhere does not.
    pub(crate) on: bool,
    /// Whether each record is to wake us at once.
    pub(crate) urgent: bool,
    /// What to call it in an error.
    pub(crate) name: String,
}

/// How all events are opened.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) inherit: Inherit,
    pub(crate) kernel: bool,
    pub(crate) layout: Layout,
    pub(crate) count_lost: bool,
    /// Whether mapped code is to be announced.
    pub(crate) mappings: bool,
    /// Bytes of records that a ring is to hold.
    pub(crate) ring_bytes: usize,
}

/// Everything that is open on the target.
#[derive(Debug)]
pub(crate) struct Armament {
    pid: Pid,
    aims: Vec<Aim>,
    manner: Manner,
    /// One of each a processor, in the order of `cpus`.
    pub(crate) hits: Vec<Ring>,
    pub(crate) news: Vec<Ring>,
    cpus: Vec<Cpu>,
    /// By slot.
    events: Vec<Vec<Event>>,
    slot_of_id: HashMap<u64, usize>,
    news_events: Vec<Event>,
    /// The threads that have been looked at: armed directly, or found to have inherited.
    known: HashSet<Tid>,
    direct: HashSet<Tid>,
    pub(crate) parents: Parents,
    /// Slots that somebody else holds in the first thread, by processor.
    foreign: Vec<usize>,
    listings: usize,
}

/// What was found of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has all slots by inheritance.
    Inherited,
    /// It lacked slots, and has them now.
    Armed,
    /// It has exited.
    Gone,
}

impl Armament {
    /// Makes the rings; nothing is open on the target yet.
    pub(crate) fn new(
        pid: Pid,
        aims: Vec<Aim>,
        manner: Manner,
        host: &Host,
    ) -> Result<Self, Error> {
        /// Births and exits are short, and rare beside hits.
        const NEWS_BYTES: usize = 1 << 20;
        let ring = |cpu: &Cpu, bytes| {
            Ring::new(*cpu, bytes, host).map_err(|e| Error::perf(Operation::MakeRing, e, host))
        };
        let cpus = host.cpus.clone();
        // The memory lock limit is for both rings of a processor: a quarter of it is for the news.
        let limit = host.ring_limit().and_then(|limit| usize::try_from(limit).ok());
        let share = |wanted: usize, quarters| {
            limit.map_or(wanted, |limit| wanted.min(limit / 4 * quarters))
        };
        let (news_bytes, hit_bytes) = (share(NEWS_BYTES, 1), share(manner.ring_bytes, 3));
        let news = cpus.iter().map(|cpu| ring(cpu, news_bytes)).collect::<Result<_, _>>()?;
        let hits = cpus.iter().map(|cpu| ring(cpu, hit_bytes)).collect::<Result<_, _>>()?;
        Ok(Self {
            pid,
            events: aims.iter().map(|_| Vec::new()).collect(),
            aims,
            manner,
            hits,
            news,
            cpus,
            slot_of_id: HashMap::new(),
            news_events: Vec::new(),
            known: HashSet::new(),
            direct: HashSet::new(),
            parents: Parents::default(),
            foreign: Vec::new(),
            listings: 0,
        })
    }

    /// Opens everything in all threads; returns whether the listings came to an end.
    pub(crate) fn open_all(&mut self, host: &Host) -> Result<bool, Error> {
        self.foreign = self.measure_foreign(host)?;
        let mut quiet = 0;
        while quiet < 2 && self.listings < MOST_LISTINGS {
            let listed = threads::list(self.pid);
            let listed = listed.map_err(|e| Error::system(Operation::ListThreads(self.pid), e))?;
            let first = self.listings == 0;
            let mut lacked = false;
            for tid in listed {
                if self.known.insert(tid) {
                    let found =
                        if first { self.arm(tid, host)? } else { self.complete(tid, host)? };
                    lacked |= found == Found::Armed;
                }
            }
            self.listings += 1;
            quiet = if lacked { 0 } else { quiet + 1 };
        }
        if self.direct.is_empty() {
            let gone = std::io::Error::from_raw_os_error(nix::libc::ESRCH);
            return Err(Error::system(Operation::FindProcess(self.pid), gone));
        }
        Ok(quiet >= 2)
    }

    /// Stops all slots; afterwards no report is on its way.
    pub(crate) fn disable(&self, host: &Host) -> Result<(), Error> {
        for event in self.events.iter().flatten() {
            event.disable().map_err(|e| Error::perf(Operation::ReadRing, e, host))?;
        }
        Ok(())
    }

    /// Aims a slot elsewhere, in all threads, or turns it off.
    pub(crate) fn aim(
        &mut self,
        slot: usize,
        piece: Piece,
        on: bool,
    ) -> Result<(), hairspring_perf::Error> {
        let Some(aim) = self.aims.get_mut(slot) else { return Ok(()) };
        (aim.piece, aim.on) = (piece, on);
        let spec = spec(&self.aims[slot], &self.manner);
        self.events[slot].iter().try_for_each(|event| event.aim(&spec))
    }

    /// The slot whose event, or a copy of it, has this id.
    pub(crate) fn slot_of(&self, id: u64) -> Option<usize> {
        self.slot_of_id.get(&id).copied()
    }

    /// What the slot has counted, in all threads, dead ones too.
    pub(crate) fn counts(&self, slot: usize) -> Result<Counts, hairspring_perf::Error> {
        let mut sum = Counts { counted: 0, lost: self.manner.count_lost.then_some(0) };
        for event in self.events.get(slot).into_iter().flatten() {
            let counts = event.counts()?;
            sum.counted += counts.counted;
            sum.lost = sum.lost.zip(counts.lost).map(|(a, b)| a + b);
        }
        Ok(sum)
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.aims.len()
    }

    /// How many events are open.
    pub(crate) fn events(&self) -> usize {
        self.news_events.len() + self.events.iter().map(Vec::len).sum::<usize>()
    }

    /// How many threads have events of their own; the others have inherited theirs.
    pub(crate) fn direct(&self) -> usize {
        self.direct.len()
    }

    /// How many threads were looked at while arming.
    pub(crate) fn known(&self) -> &HashSet<Tid> {
        &self.known
    }

    /// A thread has ended: its id may come to mean another one.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.known.remove(&tid);
    }

    /// How many times the threads were listed.
    pub(crate) fn listings(&self) -> usize {
        self.listings
    }

    /// Looks at a thread that is announced as born of `parent`: where it may have been in the middle
    /// of its birth while the parent was armed, what it lacks is opened now.
    pub(crate) fn check_birth(
        &mut self,
        parent: Tid,
        child: Tid,
        host: &Host,
    ) -> Result<Found, Error> {
        if !self.parents.take(parent) || !self.known.insert(child) {
            return Ok(Found::Inherited);
        }
        self.complete(child, host)
    }

    /// Opens all slots in a thread that can't have inherited any.
    fn arm(&mut self, tid: Tid, host: &Host) -> Result<Found, Error> {
        let nothing_held = vec![0; self.cpus.len()];
        self.open(tid, &nothing_held, host)
    }

    /// Opens the slots that a thread lacks.
    fn complete(&mut self, tid: Tid, host: &Host) -> Result<Found, Error> {
        let mut held = Vec::new();
        for (cpu, foreign) in self.cpus.iter().zip(&self.foreign) {
            match free_slots(tid, *cpu) {
                Ok(free) => held.push(SLOTS.saturating_sub(free + foreign).min(self.aims.len())),
                Err(e) if e.is_gone() => return Ok(Found::Gone),
                Err(e) => {
                    let name = Operation::Arm { watch: self.names(), thread: Some(tid) };
                    return Err(Error::perf(name, e, host));
                }
            }
        }
        if held.iter().all(|held| *held == self.aims.len()) {
            return Ok(Found::Inherited);
        }
        self.open(tid, &held, host)
    }

    /// Opens in a thread the slots from `held` on, by processor; in order, see the module.
    fn open(&mut self, tid: Tid, held: &[usize], host: &Host) -> Result<Found, Error> {
        if !self.follow(tid, host)? {
            return Ok(Found::Gone);
        }
        for slot in 0..self.aims.len() {
            let aim = &self.aims[slot];
            let spec = spec(aim, &self.manner);
            for (index, cpu) in self.cpus.iter().enumerate().filter(|(i, _)| held[*i] <= slot) {
                let ring = &self.hits[index];
                let opened = Event::breakpoint(Some(tid), OnCpu::One(*cpu), &spec, Some(ring))
                    .and_then(|event| event.id().map(|id| (event, id)));
                match opened {
                    Ok((event, id)) => {
                        self.slot_of_id.insert(id, slot);
                        self.events[slot].push(event);
                    }
                    // What was opened stays: threads born of it may have inherited it.
                    Err(e) if e.is_gone() => return Ok(Found::Gone),
                    Err(e) => {
                        let name = Operation::Arm { watch: aim.name.clone(), thread: Some(tid) };
                        return Err(Error::perf(name, e, host));
                    }
                }
            }
        }
        self.direct.insert(tid);
        self.parents.add(self.pid, tid);
        Ok(Found::Armed)
    }

    /// Has births, exits and names of a thread and its children announced; `false` where it is gone.
    fn follow(&mut self, tid: Tid, host: &Host) -> Result<bool, Error> {
        for (index, cpu) in self.cpus.iter().enumerate() {
            let on = OnCpu::One(*cpu);
            let (inherit, mappings) = (self.manner.inherit, self.manner.mappings);
            match Event::side_band(tid, on, inherit, mappings, &self.news[index]) {
                Ok(event) => self.news_events.push(event),
                Err(e) if e.is_gone() => return Ok(false),
                Err(e) => {
                    return Err(Error::perf(Operation::SideBand { thread: Some(tid) }, e, host));
                }
            }
        }
        Ok(true)
    }

    /// How many slots of the first thread others hold, by processor; an error where the rest is
    /// not enough.
    fn measure_foreign(&self, host: &Host) -> Result<Vec<usize>, Error> {
        let leader = self.pid.leader();
        let mut foreign = Vec::new();
        for cpu in &self.cpus {
            let free = free_slots(leader, *cpu);
            let name = || Operation::Arm { watch: self.names(), thread: Some(leader) };
            let free = match free {
                Ok(free) => free,
                // The first thread may have exited while others go on.
                Err(e) if e.is_gone() => SLOTS,
                Err(e) => return Err(Error::perf(name(), e, host)),
            };
            if free < self.aims.len() {
                let fact = format!(
                    "{} debug registers are needed, {free} of {SLOTS} are free in process {}",
                    self.aims.len(),
                    self.pid
                );
                let remedy = "a debugger (gdb's hardware watchpoints and breakpoints) or another perf \
                              event holds the others: release those, or watch fewer bytes";
                return Err(Error::out_of_slots(name(), fact, remedy));
            }
            foreign.push(SLOTS.saturating_sub(free));
        }
        Ok(foreign)
    }

    fn names(&self) -> String {
        self.aims.iter().map(|aim| aim.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn spec(aim: &Aim, manner: &Manner) -> Breakpoint {
    Breakpoint {
        piece: aim.piece,
        access: aim.access,
        inherit: manner.inherit,
        on: aim.on,
        kernel: manner.kernel,
        layout: manner.layout,
        urgent: aim.urgent,
        count_lost: manner.count_lost,
    }
}

/// How many more breakpoints the thread could have on the processor. The events that find it out
/// are never enabled, and not inherited.
fn free_slots(tid: Tid, cpu: Cpu) -> Result<usize, hairspring_perf::Error> {
    let placeholder = Breakpoint {
        piece: Piece::LOWEST,
        access: Access::Write,
        inherit: Inherit::No,
        on: false,
        kernel: false,
        layout: Layout::default(),
        urgent: false,
        count_lost: false,
    };
    let mut events = Vec::new();
    while events.len() < SLOTS {
        match Event::breakpoint(Some(tid), OnCpu::One(cpu), &placeholder, None) {
            Ok(event) => events.push(event),
            Err(e) if e.is_out_of_slots() => break,
            Err(e) => return Err(e),
        }
    }
    Ok(events.len())
}
