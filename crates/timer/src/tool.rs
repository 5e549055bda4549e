//! Tools: what users write, called at each event that they subscribe to.

use crate::plan::Plan;
use crate::{Clock, Error, Fired, Request};
use hairspring_model::{Pid, Ticks, Tid};
use hairspring_trace::{End, Held, SignalInfo};
use std::ops::Deref;

/// Which events a tool sees. An event that is seen cancels the thread's timer, unless that was asked
/// to survive; an event that is not seen never does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subscriptions {
    /// Entries to and exits from system calls.
    pub syscalls: bool,
    /// Signals of the guest.
    pub signals: bool,
}

/// A side of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall {
    /// About to be made.
    Entry {
        /// Its number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
    },
    /// About to return this value, a negative error number for a failure.
    Exit(i64),
}

/// What becomes of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The guest receives it.
    Deliver,
    /// It does not.
    Suppress,
}

/// A tool. Every method has a default that does nothing.
pub trait Tool {
    /// What it sees; asked once.
    fn subscriptions(&self) -> Subscriptions {
        Subscriptions::default()
    }

    /// A thread is about to run its first instruction.
    fn on_start(&mut self, _: &mut Thread<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// A system call, if subscribed to.
    fn on_syscall(&mut self, _: &mut Thread<'_>, _: Syscall) -> Result<(), Error> {
        Ok(())
    }

    /// A signal, if subscribed to.
    fn on_signal(&mut self, _: &mut Thread<'_>, _: &SignalInfo) -> Result<Disposition, Error> {
        Ok(Disposition::Deliver)
    }

    /// The thread's timer has fired.
    fn on_timer(&mut self, _: &mut Thread<'_>, _: Fired) -> Result<(), Error> {
        Ok(())
    }

    /// The thread runs a new program; its clock goes on.
    fn on_exec(&mut self, _: &mut Thread<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// A thread has ended after so many ticks.
    fn on_exit(&mut self, _: Tid, _: Pid, _: Ticks, _: End) -> Result<(), Error> {
        Ok(())
    }
}

/// A stopped thread, in the hands of a tool for the time of one call.
#[derive(Debug)]
pub struct Thread<'a> {
    pub(crate) held: &'a Held,
    pub(crate) plan: &'a mut Plan,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) stop: &'a mut bool,
}

impl Thread<'_> {
    /// Ticks since the thread started.
    pub fn now(&self) -> Result<Ticks, Error> {
        self.clock.now()
    }

    /// Sets the thread's timer, in place of the one that it may have.
    ///
    /// # Errors
    /// [`Error::is_invalid_input`] for no ticks and no steps.
    pub fn set(&mut self, request: Request) -> Result<(), Error> {
        let now = self.clock.now()?;
        Ok(self.plan.set(request, now)?)
    }

    /// Takes the thread's timer back, if it has one.
    pub fn cancel(&mut self) {
        self.plan.cancel();
    }

    /// Whether the thread has a timer.
    pub fn has_timer(&self) -> bool {
        self.plan.is_set()
    }

    /// Ends the session after this call; what becomes of the guest is its own policy.
    pub fn end_session(&mut self) {
        *self.stop = true;
    }
}

impl Deref for Thread<'_> {
    type Target = Held;

    fn deref(&self) -> &Held {
        self.held
    }
}
