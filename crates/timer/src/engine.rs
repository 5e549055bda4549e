//! What provides the clock: engines, behind one trait, and the engine that steps.

use crate::Error;
use crate::plan::Arrival;
use hairspring_model::{TickKind, Ticks, Tid};
use hairspring_trace::{Instruction, SignalInfo};
use std::fmt;

/// Makes a clock for each thread.
pub trait Engine: fmt::Debug {
    /// Its name on the command line and in files.
    fn name(&self) -> &'static str;

    /// What its ticks are.
    fn kind(&self) -> TickKind;

    /// How the interrupts of its clocks arrive.
    fn arrival(&self) -> Arrival;

    /// A clock for a thread that is stopped before its first instruction, at 0 ticks.
    fn start(&mut self, tid: Tid) -> Result<Box<dyn Clock>, Error>;
}

/// The clock of one thread. It is only used while that thread is stopped.
pub trait Clock: fmt::Debug {
    /// Whether it counts by being told of every step, so that the thread must be stepped always.
    fn needs_steps(&self) -> bool;

    /// Ticks since the thread started.
    fn now(&self) -> Result<Ticks, Error>;

    /// The instruction has run in a single step.
    fn stepped(&mut self, instruction: Instruction);

    /// To interrupt the thread after so many more ticks.
    fn arm(&mut self, after: Ticks) -> Result<(), Error>;

    /// Takes that back. Its signal may be on its way already.
    fn disarm(&mut self) -> Result<(), Error>;

    /// Whether the signal is an interrupt of this clock, be it an old one.
    fn owns(&self, signal: &SignalInfo) -> bool;

    /// The number of its signal, which the thread must not block while the clock is armed.
    fn signal(&self) -> Option<i32>;

    /// The program under the thread is a new one: what belonged to addresses of the old is gone.
    fn exec(&mut self, tid: Tid) -> Result<(), Error>;
}

/// Counts by single-stepping and decoding every instruction: exact, slow, and available wherever
/// `ptrace` is.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepEngine;

#[derive(Debug, Default)]
struct StepClock {
    ticks: Ticks,
}

impl Engine for StepEngine {
    fn name(&self) -> &'static str {
        "step"
    }

    fn kind(&self) -> TickKind {
        TickKind::ConditionalBranch
    }

    fn arrival(&self) -> Arrival {
        Arrival::AtTheTick
    }

    fn start(&mut self, _: Tid) -> Result<Box<dyn Clock>, Error> {
        Ok(Box::<StepClock>::default())
    }
}

impl Clock for StepClock {
    fn needs_steps(&self) -> bool {
        true
    }

    fn now(&self) -> Result<Ticks, Error> {
        Ok(self.ticks)
    }

    fn stepped(&mut self, instruction: Instruction) {
        self.ticks.0 += u64::from(instruction == Instruction::ConditionalBranch);
    }

    fn arm(&mut self, _: Ticks) -> Result<(), Error> {
        Ok(())
    }

    fn disarm(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn owns(&self, _: &SignalInfo) -> bool {
        false
    }

    fn signal(&self) -> Option<i32> {
        None
    }

    fn exec(&mut self, _: Tid) -> Result<(), Error> {
        Ok(())
    }
}
