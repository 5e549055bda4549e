//! How one timer gets its thread to a position: pure.
//!
//! ```text
//!             set                resume: arm the counter            interrupt, near enough
//!   Idle ───────────► Scheduled ───────────────────────► Armed ───────────────────────► Stepping
//!    ▲                    │  ▲                              │ too early, or another stop    │ │
//!    │                    │  └──────────────────────────────┘                              │ │ step
//!    │ fired, cancelled   └───────────── resume: too near for the counter ────────────────►│◄┘
//!    └──────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! The driver owes: to call [`Plan::stopped`] at each stop of the thread with what the clock reads
//! and before anything else is done with that stop, and [`Plan::resume`] exactly when it resumes the
//! thread, and to do what that orders. A counter is disarmed at every stop and armed anew at every
//! resume, so the plan never has to know what a half-run counter still holds. There is no need for an
//! artificial signal to get a thread to stop before its first step: the order is given while it is
//! stopped.
//!
//! Not here: what a tick is, and how it is counted.

use crate::request::{Fired, Request, Target};
use hairspring_model::{Position, Ticks};

/// A counter armed for fewer ticks than this may be throttled by the kernel, or refused.
const FEWEST: u64 = 6;

/// How a clock's interrupt arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At the tick for which it was armed, before another instruction runs.
    AtTheTick,
    /// Up to so many ticks later, as far as is known.
    Skids {
        /// How many ticks early the counter must be armed.
        margin: Ticks,
    },
}

/// How the thread is to be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As one likes: no timer needs anything.
    Run,
    /// With the counter armed for so many ticks.
    Arm(Ticks),
    /// For one step.
    Step,
}

/// Why the thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The clock's own interrupt.
    Interrupt,
    /// A single step, in which one instruction or iteration has run.
    Step,
    /// A single step in which none has run: the way out of the kernel, or into a signal handler.
    EmptyStep,
    /// Anything else that the tool sees.
    Observed,
    /// Anything else that it does not see.
    Unobserved,
}

/// What the stop means for the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: there is no timer, or it goes on.
    Nothing,
    /// The timer has fired, and is idle.
    Fired(Fired),
    /// The stop has cancelled the timer.
    Cancelled,
}

/// What can't be: a clock that went backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock went backwards, from {before} to {now} ticks")]
pub struct Backwards {
    /// What it read before.
    pub before: Ticks,
    /// What it reads now.
    pub now: Ticks,
}

/// A request for no ticks and no steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a timer needs at least one tick or one step")]
pub struct Empty;

/// Where a timer's thread is to get, in ticks of the thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Goal {
    tick: Ticks,
    steps: u64,
    exact: bool,
    survives: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Not armed.
    Scheduled(Goal),
    Armed(Goal),
    /// Steps since the last tick, or since the request if there was none; `None` where nobody knows,
    /// because the thread ran freely to where it is.
    Stepping {
        goal: Goal,
        steps: Option<u64>,
    },
}

/// The timer of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    arrival: Arrival,
    state: State,
    last: Ticks,
}

impl Plan {
    /// No timer yet.
    pub const fn new(arrival: Arrival) -> Self {
        Self { arrival, state: State::Idle, last: Ticks::ZERO }
    }

    /// Replaces the timer; `now` is what the clock reads.
    ///
    /// # Errors
    /// [`Empty`]; the timer that there was is kept then.
    pub fn set(&mut self, request: Request, now: Ticks) -> Result<(), Empty> {
        let goal = |ticks: Ticks, steps, exact| Goal {
            tick: now.saturating_add(ticks),
            steps,
            exact,
            survives: request.survives,
        };
        self.state = match request.target {
            Target::Exact(Position { ticks: Ticks(0), steps: 0 }) | Target::AtLeast(Ticks(0)) => {
                return Err(Empty);
            }
            // No tick in between: the steps count from here.
            Target::Exact(Position { ticks: Ticks(0), steps }) => {
                State::Stepping { goal: goal(Ticks::ZERO, steps, true), steps: Some(0) }
            }
            Target::Exact(Position { ticks, steps }) => State::Scheduled(goal(ticks, steps, true)),
            Target::AtLeast(ticks) => State::Scheduled(goal(ticks, 0, false)),
        };
        Ok(())
    }

    /// Takes the timer back, if there is one.
    pub fn cancel(&mut self) {
        self.state = State::Idle;
    }

    /// Whether there is a timer.
    pub fn is_set(&self) -> bool {
        self.state != State::Idle
    }

    /// Whether the thread is being stepped to its position.
    pub fn is_stepping(&self) -> bool {
        matches!(self.state, State::Stepping { .. })
    }

    /// How the thread is to be resumed, now that it is.
    pub fn resume(&mut self, now: Ticks) -> Order {
        let goal = match self.state {
            State::Idle => return Order::Run,
            State::Stepping { .. } => return Order::Step,
            State::Scheduled(goal) | State::Armed(goal) => goal,
        };
        let rest = goal.tick.past(now);
        let early = match self.arrival {
            Arrival::Skids { margin } if goal.exact => margin,
            _ => Ticks::ZERO,
        };
        let arm = rest.past(early);
        if arm.0 < FEWEST {
            self.state = State::Stepping { goal, steps: Some(0) };
            Order::Step
        } else {
            self.state = State::Armed(goal);
            Order::Arm(arm)
        }
    }

    /// Takes note of a stop: `now` is what the clock reads.
    ///
    /// # Errors
    /// [`Backwards`]; the timer is cancelled then.
    pub fn stopped(&mut self, now: Ticks, cause: Cause) -> Result<Verdict, Backwards> {
        let before = std::mem::replace(&mut self.last, now);
        if now < before {
            self.state = State::Idle;
            return Err(Backwards { before, now });
        }
        let at_the_tick = self.arrival == Arrival::AtTheTick && cause == Cause::Interrupt;
        let (goal, steps) = match self.state {
            State::Idle => return Ok(Verdict::Nothing),
            State::Scheduled(goal) | State::Armed(goal) => (goal, at_the_tick.then_some(0)),
            State::Stepping { goal, steps } => match (now > before, cause) {
                (true, Cause::Step) => (goal, Some(0)),
                // A tick that was not seen as a step of its own.
                (true, _) => (goal, at_the_tick.then_some(0)),
                (false, Cause::Step) => (goal, steps.map(|steps| steps + 1)),
                (false, _) => (goal, steps),
            },
        };
        if let Some(fired) = fires(goal, now, steps) {
            self.state = State::Idle;
            return Ok(Verdict::Fired(fired));
        }
        if cause == Cause::Observed && !goal.survives {
            self.state = State::Idle;
            return Ok(Verdict::Cancelled);
        }
        self.state = match self.state {
            State::Stepping { .. } => State::Stepping { goal, steps },
            // At the tick: only steps are missing, and no counter counts them.
            _ if now == goal.tick => State::Stepping { goal, steps },
            _ => State::Scheduled(goal),
        };
        Ok(Verdict::Nothing)
    }
}

/// Whether the goal is reached or passed, `steps` after the last tick.
fn fires(goal: Goal, now: Ticks, steps: Option<u64>) -> Option<Fired> {
    if now < goal.tick {
        return None;
    }
    let late = now.past(goal.tick);
    let late_by = match steps {
        _ if late > Ticks::ZERO => Some(late),
        _ if !goal.exact => None,
        Some(steps) if steps < goal.steps => return None,
        Some(steps) if steps == goal.steps => None,
        // The position may be ahead still; that it is passed is certain at the next tick.
        None if goal.steps > 0 => return None,
        _ => Some(Ticks::ZERO),
    };
    Some(Fired {
        at: Position { ticks: now, steps: steps.unwrap_or(0) },
        requested: Position { ticks: goal.tick, steps: goal.steps },
        late_by,
    })
}
