//! What failed.

use crate::plan::{Backwards, Empty};
use hairspring_model::Tid;

/// A timer, a clock or the guest under it failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub struct Error(Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error(transparent)]
    Trace(#[from] hairspring_trace::Error),
    #[error(transparent)]
    Perf(#[from] hairspring_perf::Error),
    #[error("the clock of thread {0}: {1}")]
    Backwards(Tid, Backwards),
    #[error(transparent)]
    Empty(#[from] Empty),
    #[error("the counter of thread {0} was not scheduled: another user holds the hardware")]
    Unscheduled(Tid),
}

impl Error {
    pub(crate) fn backwards(tid: Tid, error: Backwards) -> Self {
        Self(Kind::Backwards(tid, error))
    }

    /// Reading a pinned counter that the kernel could not schedule is an end of file.
    pub(crate) fn reading(tid: Tid, error: hairspring_perf::Error) -> Self {
        if error.errno().is_none() { Self(Kind::Unscheduled(tid)) } else { error.into() }
    }

    /// Whether the thread died under our hands; its end follows.
    pub fn is_dead(&self) -> bool {
        match &self.0 {
            Kind::Trace(error) => error.is_dead(),
            Kind::Perf(error) => error.is_gone(),
            _ => false,
        }
    }

    /// Whether the command does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(&self.0, Kind::Trace(error) if error.is_not_found())
    }

    /// Whether a permission is missing.
    pub fn is_denied(&self) -> bool {
        match &self.0 {
            Kind::Trace(error) => error.is_denied(),
            Kind::Perf(error) => error.is_denied(),
            _ => false,
        }
    }

    /// Whether a timer was asked for no ticks and no steps.
    pub fn is_invalid_input(&self) -> bool {
        matches!(self.0, Kind::Empty(_))
    }

    /// Whether a counter or all debug registers are in use by somebody else.
    pub fn is_out_of_counters(&self) -> bool {
        match &self.0 {
            Kind::Unscheduled(_) => true,
            Kind::Perf(error) => error.is_out_of_slots(),
            _ => false,
        }
    }
}

impl From<hairspring_trace::Error> for Error {
    fn from(error: hairspring_trace::Error) -> Self {
        Self(error.into())
    }
}

impl From<hairspring_perf::Error> for Error {
    fn from(error: hairspring_perf::Error) -> Self {
        Self(error.into())
    }
}

impl From<Empty> for Error {
    fn from(error: Empty) -> Self {
        Self(error.into())
    }
}
