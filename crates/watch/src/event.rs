//! What a session tells: one closed set of facts, in the order in which they happened.

use crate::coverage::{Coverage, Gap};
use crate::site::Site;
use hairspring_model::{Addr, Cpu, Pid, Registers, Span, Tid, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One fact.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Watched bytes were accessed.
    Hit(Hit),
    /// A chain leads elsewhere now.
    Rebind(Rebind),
    /// A thread was born or has ended.
    Thread(ThreadChange),
    /// Hits were lost: more came than the ring could hold.
    Lost(Lost),
    /// A library that a watch waits for was loaded, and the watch is armed.
    Loaded(Loaded),
}

/// One access to watched bytes.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Which watch, by index.
    pub watch: usize,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// The process: the target, or a child of it.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The thread's name when the hit was reported.
    pub thread: Arc<str>,
    /// The processor.
    pub cpu: Cpu,
    /// The instruction pointer as the hardware gave it, usually behind the accessing instruction.
    pub ip: Addr,
    /// Where the access was made.
    pub site: Arc<Site>,
    /// What the instruction did.
    pub access: Accessed,
    /// The value before, where it is known: from the instruction itself, or else the value that the
    /// hit before left there.
    pub old: Option<Value>,
    /// The value afterwards.
    pub new: Option<NewValue>,
    /// How often the chain had been re-aimed; 0 for a watch without a chain.
    pub generation: u64,
    /// The registers after the access; in a system call, those of the code that called.
    pub registers: Option<Registers>,
    /// How many records the hardware made of this one access.
    pub records: u32,
}

/// What an instruction did to the watched bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Accessed {
    /// It read them.
    Read,
    /// It wrote them.
    Write,
    /// It read and wrote them.
    ReadWrite,
    /// A watch for reads and writes, and the instruction is not known.
    Unknown,
}

/// The value after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewValue {
    /// The bytes of the watch.
    pub value: Value,
    /// How it is known.
    pub source: Source,
}

/// How a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the instruction and the registers at the access: exactly what was written.
    Decoded,
    /// Read from the target when the hit was reported: what was there some time later.
    Later,
}

/// A chain that leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebind {
    /// Which watch, by index.
    pub watch: usize,
    /// `CLOCK_MONOTONIC`, nanoseconds, when the new aim was in force.
    pub time_ns: u64,
    /// How often the chain has been re-aimed, this time included.
    pub generation: u64,
    /// Where it led; `None` where the watch was off.
    pub old: Option<Span>,
    /// Where it leads; `None` where the watch is off.
    pub new: Option<Span>,
    /// Why it is off, or why it moved.
    pub reason: RebindReason,
    /// From the write of the pointer until the new aim was in force.
    pub blind: Duration,
}

/// Why a chain leads elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RebindReason {
    /// A pointer was written.
    Moved,
    /// A pointer is null.
    Null,
    /// A pointer leads to memory that can't be read or watched.
    Unreadable,
    /// The bound does not hold.
    Bound,
    /// The guard does not hold.
    Guard,
    /// The pointer changed on each of three reads.
    Unsteady,
}

/// A thread that was born or has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadChange {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Which of both.
    pub change: Change,
}

/// A birth or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Born of this thread; covered from its first instruction.
    Born {
        /// The thread that made it.
        parent: Tid,
    },
    /// Ended.
    Ended,
}

/// Hits that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The watches of the slot that lost them, the first of them.
    pub watch: usize,
    /// How many so far at least: the kernel tells once there is room again.
    pub records: u64,
}

/// A watch whose library was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Which watch, by index.
    pub watch: usize,
    /// The watched bytes.
    pub span: Span,
    /// From the mapping of the library until the watch was in force.
    pub blind: Duration,
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The target has exited.
    Exited,
    /// The target runs another program now.
    Exec,
    /// The time is over.
    Duration,
    /// There were enough hits.
    Hits,
    /// The caller wanted it.
    Cancelled,
}

/// The end of a session, in figures.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// From ready to the end.
    pub duration: Duration,
    /// By index.
    pub watches: Vec<WatchSummary>,
    /// What it proves.
    pub coverage: Coverage,
}

/// One watch, in figures.
#[derive(Clone, Debug)]
pub struct WatchSummary {
    /// What the hardware counted, over all slots.
    pub counted: u64,
    /// The records that arrived.
    pub delivered: u64,
    /// The records that did not.
    pub lost: u64,
    /// The records that told of an access that another record had told of already.
    pub coalesced: u64,
    /// The records that told of a write to a pointer on the way to the watched bytes.
    pub pointer_writes: u64,
    /// The accesses that were made while the watch was being armed; they are not hits.
    pub early: u64,
    /// The accesses that came after the limit of hits was reached.
    pub beyond: u64,
    /// The accesses: delivered, less all of those above.
    pub hits: u64,
    /// Who made them, most hits first.
    pub writers: Vec<Writer>,
}

/// One watch of a session that goes on.
#[derive(Clone, Debug)]
pub struct Standing {
    /// As it was asked for.
    pub name: String,
    /// The hits so far.
    pub hits: u64,
    /// Who made them, most hits first.
    pub writers: Vec<Writer>,
}

/// All hits of one watch from one site.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The site.
    pub site: Arc<Site>,
    /// What it does.
    pub access: Accessed,
    /// How many hits.
    pub hits: u64,
    /// How many threads.
    pub threads: usize,
    /// The name of the thread that came first.
    pub thread: Arc<str>,
    /// The first hit, `CLOCK_MONOTONIC`, nanoseconds.
    pub first_ns: u64,
    /// The last hit.
    pub last_ns: u64,
    /// The value that the last hit left.
    pub last_value: Option<NewValue>,
}

impl Summary {
    /// How many hits there were, over all watches.
    pub fn hits(&self) -> u64 {
        self.watches.iter().map(|watch| watch.hits).sum()
    }

    /// What keeps the coverage from being complete.
    pub fn gaps(&self) -> &[Gap] {
        &self.coverage.gaps
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exited => "the target has exited",
            Self::Exec => "the target has exec'ed another program",
            Self::Duration => "the time is over",
            Self::Hits => "the number of hits is reached",
            Self::Cancelled => "interrupted",
        })
    }
}

impl fmt::Display for RebindReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Moved => "a pointer was written",
            Self::Null => "a pointer is null",
            Self::Unreadable => "a pointer leads to memory that can't be watched",
            Self::Bound => "the bound does not hold",
            Self::Guard => "the guard does not hold",
            Self::Unsteady => "a pointer changes too fast to be read",
        })
    }
}

impl fmt::Display for Accessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "read-write",
            Self::Unknown => "access",
        })
    }
}
