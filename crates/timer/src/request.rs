//! What a timer is asked for, and what it answers.

use hairspring_model::{Position, Ticks};

/// Where a thread is to stop, counted from where it is when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// At this very position: so many ticks from now, and then so many steps. With no ticks, so many
    /// steps from here; if a tick comes before they are done, there is no such position, and the
    /// stop is late.
    Exact(Position),
    /// At the first chance once so many ticks have passed.
    AtLeast(Ticks),
}

/// A request to stop a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where.
    pub target: Target,
    /// Whether it is kept when the thread stops for something else that is observed.
    pub survives: bool,
}

/// A timer has stopped its thread. Never early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fired {
    /// Where the thread is. Steps are since the tick, or since the request if there was no tick
    /// since; they are 0 where they can't be known, which [`Self::late_by`] tells.
    pub at: Position,
    /// Where it was to be.
    pub requested: Position,
    /// `None`: exactly there. Otherwise so many ticks later, where 0 means an unknown number of
    /// steps after the tick.
    pub late_by: Option<Ticks>,
}

impl Request {
    /// Stop at this position from here, unless something else is observed first.
    pub const fn exact(from_here: Position) -> Self {
        Self { target: Target::Exact(from_here), survives: false }
    }

    /// Stop at the first chance after so many ticks, unless something else is observed first.
    pub const fn at_least(from_here: Ticks) -> Self {
        Self { target: Target::AtLeast(from_here), survives: false }
    }

    /// Not cancelled by what is observed in between.
    #[must_use]
    pub const fn surviving(self) -> Self {
        Self { survives: true, ..self }
    }
}
