//! Clocks that are counted by the hardware: of the performance monitoring unit, and of breakpoints.
//!
//! The two differ in what is counted and in the margin, in nothing else: what is proved with a
//! breakpoint, on any machine, is the code that runs with a counter of the processor.
//!
//! Each clock has two counters: one that always counts, and is read; one that is armed, and
//! interrupts the thread by a signal. With breakpoints that takes two of the four debug registers.

use crate::plan::Arrival;
use crate::processor::TickEvent;
use crate::{Clock, Engine, Error};
use hairspring_model::{Addr, TickKind, Ticks, Tid};
use hairspring_perf::{Counted, Counter};
use hairspring_trace::{Instruction, SignalInfo};

/// SIGSTKFLT (signal(7)): the kernel never sends it, and hardly a program uses it.
const SIGNAL: i32 = 16;
/// `POLL_IN` (sigaction(2)): what a perf descriptor reports at an overflow.
const POLL_IN: i32 = 1;

/// Counts in hardware.
#[derive(Debug)]
pub struct EventEngine {
    name: &'static str,
    counted: Counted,
    kind: TickKind,
    arrival: Arrival,
}

#[derive(Debug)]
struct EventClock {
    tid: Tid,
    counting: Counter,
    interrupting: Counter,
}

impl EventEngine {
    /// Ticks are executions of the instruction at the address; needs two debug registers a thread.
    pub fn breakpoint(at: Addr) -> Self {
        Self {
            name: "breakpoint",
            counted: Counted::Execution(at),
            kind: TickKind::Execution(at),
            arrival: Arrival::AtTheTick,
        }
    }

    /// Ticks are the processor's count of retired conditional branches. `unit` is the kernel's
    /// number of the unit (4 where the machine has only one kind of core).
    pub fn pmu(event: &TickEvent, unit: u32) -> Self {
        Self {
            name: "pmu",
            counted: Counted::Raw { unit, config: event.config },
            kind: TickKind::ConditionalBranch,
            arrival: Arrival::Skids { margin: event.margin },
        }
    }
}

impl Engine for EventEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> TickKind {
        self.kind
    }

    fn arrival(&self) -> Arrival {
        self.arrival
    }

    fn start(&mut self, tid: Tid) -> Result<Box<dyn Clock>, Error> {
        let counting = Counter::open(tid, self.counted)?;
        let interrupting = Counter::interrupting(tid, self.counted, SIGNAL)?;
        counting.enable()?;
        Ok(Box::new(EventClock { tid, counting, interrupting }))
    }
}

impl Clock for EventClock {
    fn needs_steps(&self) -> bool {
        false
    }

    fn now(&self) -> Result<Ticks, Error> {
        self.counting.count().map(Ticks).map_err(|e| Error::reading(self.tid, e))
    }

    fn stepped(&mut self, _: Instruction) {}

    fn arm(&mut self, after: Ticks) -> Result<(), Error> {
        self.interrupting.set_period(after.0)?;
        Ok(self.interrupting.enable()?)
    }

    fn disarm(&mut self) -> Result<(), Error> {
        Ok(self.interrupting.disable()?)
    }

    fn owns(&self, signal: &SignalInfo) -> bool {
        signal.signal == SIGNAL
            && signal.code == POLL_IN
            && signal.descriptor() == self.interrupting.descriptor()
    }

    fn signal(&self) -> Option<i32> {
        Some(SIGNAL)
    }

    fn exec(&mut self, tid: Tid) -> Result<(), Error> {
        self.tid = tid;
        Ok(self.interrupting.signal(tid, SIGNAL)?)
    }
}
