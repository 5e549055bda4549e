//! What a session can prove: pure.
//!
//! A watch that reports nothing has seen nothing only if it was watching. The coverage says who was
//! watched, from when, what could not be seen, and whether every access that the hardware counted
//! was delivered; its verdict is [`Verdict::Complete`] only where all of it holds.

use crate::identity::Still;
use hairspring_model::{Cpu, Tid};
use std::fmt;
use std::time::Duration;

/// The statement that ends every session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Who was watched.
    pub threads: Threads,
    /// Whether a breakpoint has fired before the session, by processor; `None` where it could not
    /// be tried there.
    pub self_tests: Vec<(Cpu, Option<bool>)>,
    /// How long the watches of chains were between two aims, added up and at most.
    pub blind: Blind,
    /// The accesses that could not be seen, whatever happened.
    pub invisible: Vec<Invisible>,
    /// What has become of the target.
    pub target: Still,
    /// Everything that keeps the coverage from being complete.
    pub gaps: Vec<Gap>,
}

/// The threads of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Threads that were found when the session began.
    pub found: u64,
    /// Threads among them that were armed one by one; the others had inherited their events.
    pub armed: u64,
    /// Threads born during the session, which inherit theirs.
    pub born: u64,
    /// Threads that ended during the session.
    pub ended: u64,
    /// How often the threads were listed, until two listings in a row brought nothing new.
    pub listings: u64,
}

/// Times without a watch that was to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blind {
    /// How many.
    pub windows: u64,
    /// Added up.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

/// Whether silence means that nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every access that the hardware can see was seen.
    Complete,
    /// Something may have been missed; the gaps say what.
    Incomplete,
}

/// A class of accesses that debug registers don't report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invisible {
    /// Through another mapping of the same memory, or by another process.
    OtherMappings,
    /// `process_vm_writev(2)` and `/proc/PID/mem`.
    ForeignWrites,
    /// `madvise(2)` and others that replace pages.
    PageReplacement,
    /// By devices.
    Dma,
    /// By the kernel for the target: system calls such as `read(2)`. Only where this process may
    /// not see the kernel.
    SystemCalls,
}

/// Something that keeps the coverage from being complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The ring was full.
    Lost {
        /// The watch.
        watch: usize,
        /// How many records.
        records: u64,
    },
    /// The sums don't add up.
    Unaccounted {
        /// The watch.
        watch: usize,
        /// What the hardware counted.
        counted: u64,
        /// The records that arrived.
        delivered: u64,
        /// The records that the kernel says were lost.
        lost: u64,
    },
    /// Records that make no sense, such as those of 32-bit code.
    Undecodable {
        /// How many.
        records: u64,
        /// What was wrong with the first.
        first: String,
    },
    /// Births, exits and execs were lost.
    NewsLost {
        /// How many.
        records: u64,
    },
    /// Threads were made faster than they could be listed.
    Unlisted,
    /// A thread that could not be armed.
    Unarmed {
        /// The thread.
        thread: Tid,
        /// Why not.
        why: String,
    },
    /// A thread that was being born while its parent was armed, and had ended before it could be
    /// looked at.
    UnprovedBirth {
        /// The thread.
        thread: Tid,
    },
    /// A watch was off, each time for longer than the limit of the session.
    Blind {
        /// The watch.
        watch: usize,
        /// How often.
        windows: u64,
        /// For how long at most.
        longest: Duration,
    },
    /// A chain whose pointer changed faster than it could be followed.
    ChainBehind {
        /// The watch.
        watch: usize,
    },
    /// A chain that could not be re-aimed.
    Unaimed {
        /// The watch.
        watch: usize,
        /// Why not.
        why: String,
    },
    /// A processor where no breakpoint could be tried.
    Untested {
        /// The processor.
        cpu: Cpu,
    },
    /// The set of processors changed during the session.
    ProcessorsChanged,
    /// A place in a library that was never loaded.
    NeverMapped {
        /// The watch.
        watch: usize,
    },
    /// The counts could not be read.
    Uncounted {
        /// Why not.
        why: String,
    },
}

impl Coverage {
    /// Whether silence means that nothing happened.
    pub fn verdict(&self) -> Verdict {
        if self.gaps.is_empty() { Verdict::Complete } else { Verdict::Incomplete }
    }
}

impl Blind {
    /// Adds a window.
    pub(crate) fn add(&mut self, window: Duration) {
        self.windows += 1;
        self.total += window;
        self.longest = self.longest.max(window);
    }
}

/// What must hold of one watch's records: everything counted was delivered or is known lost.
/// Without the kernel's own count of the lost, `lost` is what the records say, a lower bound, and
/// the rest of the difference is taken for lost too.
pub(crate) fn account(
    watch: usize,
    counted: u64,
    delivered: u64,
    lost: u64,
    exact: bool,
) -> Option<Gap> {
    match counted.checked_sub(delivered) {
        Some(missing) if missing == lost || (!exact && missing > lost) => {
            (missing > 0).then_some(Gap::Lost { watch, records: missing })
        }
        _ => Some(Gap::Unaccounted { watch, counted, delivered, lost }),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
        })
    }
}

impl fmt::Display for Invisible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherMappings => "writes through another mapping or by another process",
            Self::ForeignWrites => "process_vm_writev and /proc/PID/mem",
            Self::PageReplacement => "pages replaced by madvise and the like",
            Self::Dma => "devices (DMA)",
            Self::SystemCalls => "writes by the kernel in system calls (no right to see them)",
        })
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { watch, records } => {
                write!(f, "watch {watch}: the ring was full, {records} hits were lost")
            }
            Self::Unaccounted { watch, counted, delivered, lost } => write!(
                f,
                "watch {watch}: {counted} hits counted, but {delivered} delivered and {lost} lost"
            ),
            Self::Undecodable { records, first } => {
                write!(f, "{records} records could not be decoded ({first})")
            }
            Self::NewsLost { records } => {
                write!(f, "{records} records of births and exits were lost")
            }
            Self::Unlisted => f.write_str("threads were made faster than they could be listed"),
            Self::Unarmed { thread, why } => write!(f, "thread {thread} could not be armed: {why}"),
            Self::UnprovedBirth { thread } => write!(
                f,
                "thread {thread} was being born while its parent was armed, and ended unseen"
            ),
            Self::Blind { watch, windows, longest } => write!(
                f,
                "watch {watch}: its place changed, and it was off {windows} times, at most {longest:?}"
            ),
            Self::ChainBehind { watch } => {
                write!(f, "watch {watch}: its pointer changed faster than it could be followed")
            }
            Self::Unaimed { watch, why } => {
                write!(f, "watch {watch} could not be aimed anew: {why}")
            }
            Self::Untested { cpu } => {
                write!(f, "no breakpoint could be tried on CPU {cpu}")
            }
            Self::ProcessorsChanged => f.write_str("processors came or went during the session"),
            Self::NeverMapped { watch } => {
                write!(f, "watch {watch}: its library was never loaded")
            }
            Self::Uncounted { why } => write!(f, "the counts could not be read: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hit_is_accounted_for() {
        let lost = |records| Some(Gap::Lost { watch: 0, records });
        let off = |counted, delivered, lost| {
            Some(Gap::Unaccounted { watch: 0, counted, delivered, lost })
        };
        for (counted, delivered, known_lost, exact, expected) in [
            (1000, 1000, 0, true, None),
            (1000, 170, 830, true, lost(830)),
            (1000, 170, 829, true, off(1000, 170, 829)),
            (1000, 170, 831, true, off(1000, 170, 831)),
            (1000, 1001, 0, true, off(1000, 1001, 0)),
            (1000, 170, 500, false, lost(830)),
            (1000, 170, 900, false, off(1000, 170, 900)),
            (0, 0, 0, false, None),
        ] {
            let gap = account(0, counted, delivered, known_lost, exact);
            assert_eq!(gap, expected, "{counted} {delivered} {known_lost} {exact}");
        }
    }
}
