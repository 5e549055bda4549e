//! Every stop that the kernel makes.

use crate::stopped::{
    Exec, Exiting, GroupStop, Held, Interrupted, NewThread, Next, SignalDelivery, Started, Step,
    Stopped, SyscallEntry, SyscallExit, VforkDone,
};
use crate::{End, Error};
use hairspring_model::{Pid, Tid};

/// A thread that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// How it ended.
    pub end: End,
}

/// What happened to a thread.
#[derive(Debug)]
#[must_use = "the thread stays stopped until it is resumed"]
#[expect(missing_docs, reason = "each is described at its kind")]
pub enum Stop {
    Started(Stopped<Started>),
    SyscallEntry(Stopped<SyscallEntry>),
    SyscallExit(Stopped<SyscallExit>),
    Signal(Stopped<SignalDelivery>),
    Exec(Stopped<Exec>),
    Clone(Stopped<NewThread>),
    Fork(Stopped<NewThread>),
    Vfork(Stopped<NewThread>),
    VforkDone(Stopped<VforkDone>),
    Exiting(Stopped<Exiting>),
    Group(Stopped<GroupStop>),
    Step(Stopped<Step>),
    Interrupted(Stopped<Interrupted>),
    Ended(Ended),
}

macro_rules! each {
    ($stop:expr, $thread:ident => $do:expr, $ended:ident => $else:expr) => {
        match $stop {
            Stop::Started($thread) => $do,
            Stop::SyscallEntry($thread) => $do,
            Stop::SyscallExit($thread) => $do,
            Stop::Signal($thread) => $do,
            Stop::Exec($thread) => $do,
            Stop::Clone($thread) | Stop::Fork($thread) | Stop::Vfork($thread) => $do,
            Stop::VforkDone($thread) => $do,
            Stop::Exiting($thread) => $do,
            Stop::Group($thread) => $do,
            Stop::Step($thread) => $do,
            Stop::Interrupted($thread) => $do,
            Stop::Ended($ended) => $else,
        }
    };
}

impl Stop {
    /// The thread.
    pub fn tid(&self) -> Tid {
        each!(self, thread => thread.tid(), ended => ended.tid)
    }

    /// The stopped thread, to look at; `None` if it has ended.
    pub fn held(&self) -> Option<&Held> {
        each!(self, thread => Some(&thread.held), _ended => None)
    }

    /// Lets the thread go on as if it were not traced: a signal is delivered, a thread that job
    /// control has stopped stays stopped, and one that has ended is left.
    pub fn resume(self, next: Next) -> Result<(), Error> {
        match self {
            Self::Signal(thread) => thread.deliver(next),
            Self::Group(thread) => thread.listen(),
            Self::Ended(_) => Ok(()),
            other => each!(other, thread => thread.held.resume(next, 0), _ended => Ok(())),
        }
    }

    /// Lets the thread go on, without the signal that it stopped for, if it did.
    pub fn resume_without_signal(self, next: Next) -> Result<(), Error> {
        match self {
            Self::Signal(thread) => thread.suppress(next),
            other => other.resume(next),
        }
    }
}
