//! What perf can really do here: tried on this process itself, not read.
//!
//! Some virtual machines accept a breakpoint that then never fires, so that silence means nothing
//! until one has fired. All probes run on threads of their own and leave nothing behind; no other
//! process is touched.

use crate::event::{Breakpoint, Event, Inherit};
use crate::{Error, Host, Layout, Length, Piece, RegisterSet};
use hairspring_model::{Access, Addr, Cpu, Register};
use hairspring_sys::cpu::bind_this_thread;
use hairspring_sys::perf_event::OnCpu;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The facts of the host and what the probes found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Probe {
    /// The facts that explain a refusal.
    pub host: Host,
    /// How many breakpoints a thread of this process could have at once, or why not even one.
    pub slots: Result<usize, Error>,
    /// Whether a breakpoint fires, by processor.
    pub self_tests: Vec<(Cpu, SelfTest)>,
    /// Whether accesses made by the kernel can be seen.
    pub kernel: bool,
    /// Whether the registers at the access can be sampled while it is in the kernel.
    pub interrupt_registers: bool,
    /// Whether the kernel counts lost records (Linux 6.0).
    pub counts_lost: bool,
    /// Whether an event can be inherited by threads alone (Linux 5.13).
    pub inherit_thread: bool,
}

/// Whether a breakpoint fires on a processor.
#[derive(Debug)]
pub enum SelfTest {
    /// It has fired, exactly as often as it should.
    Fires,
    /// It was accepted, and has not fired as it should.
    Silent {
        /// How often it should have fired.
        expected: u64,
        /// How often it did.
        counted: u64,
    },
    /// The test could not be made.
    Untested(Error),
}

/// How often the self-test writes.
const WRITES: u64 = 3;

impl Probe {
    /// Reads the facts and runs all probes: milliseconds for each processor.
    pub fn run() -> Self {
        let host = Host::read();
        let self_tests = host.cpus.iter().map(|cpu| (*cpu, self_test(*cpu, write))).collect();
        let cell = AtomicU64::new(0);
        let plain = Trial { kernel: false, inherit: Inherit::No, registers: false, lost: false };
        let works = |trial: Trial| trial.open(&cell).is_ok();
        Self {
            slots: slots(),
            self_tests,
            kernel: works(Trial { kernel: true, ..plain }),
            interrupt_registers: works(Trial { registers: true, ..plain }),
            counts_lost: works(Trial { lost: true, ..plain }),
            inherit_thread: works(Trial { inherit: Inherit::Threads, ..plain }),
            host,
        }
    }

    /// Whether a breakpoint fires on every processor where it could be tried, and on one at least.
    pub fn fires(&self) -> bool {
        let silent = |test: &SelfTest| matches!(test, SelfTest::Silent { .. });
        let fires = |test: &SelfTest| matches!(test, SelfTest::Fires);
        !self.self_tests.iter().any(|(_, test)| silent(test))
            && self.self_tests.iter().any(|(_, test)| fires(test))
    }
}

/// One combination of features, tried on a cell of our own.
#[derive(Clone, Copy)]
struct Trial {
    kernel: bool,
    inherit: Inherit,
    registers: bool,
    lost: bool,
}

impl Trial {
    fn open(self, cell: &AtomicU64) -> Result<Event, Error> {
        let rdi = RegisterSet::of(&[Register::Rdi]);
        let interrupt_registers = if self.registers { rdi } else { RegisterSet::NONE };
        let spec = Breakpoint {
            piece: piece(cell)?,
            access: Access::Write,
            inherit: self.inherit,
            on: false,
            kernel: self.kernel,
            layout: Layout { ip: true, interrupt_registers, ..Layout::default() },
            urgent: false,
            count_lost: self.lost,
        };
        Event::breakpoint(None, OnCpu::Any, &spec, None)
    }
}

/// The breakpoint must count exactly the writes made while it is enabled, on that processor.
fn self_test(cpu: Cpu, write: impl Fn(&AtomicU64) + Sync) -> SelfTest {
    let test = || -> Result<u64, Error> {
        let bad = |e| Error::new("sched_setaffinity", e).on(None, Some(cpu));
        bind_this_thread(cpu).map_err(bad)?;
        let cell = AtomicU64::new(0);
        let trial = Trial { kernel: false, inherit: Inherit::No, registers: false, lost: false };
        let event = trial.open(&cell)?;
        event.enable()?;
        (0..WRITES).for_each(|_| write(&cell));
        event.disable()?;
        write(&cell);
        Ok(event.counts()?.counted)
    };
    // A thread of its own, since it is bound to the processor.
    let outcome = std::thread::scope(|scope| scope.spawn(test).join());
    match outcome {
        Ok(Ok(WRITES)) => SelfTest::Fires,
        Ok(Ok(counted)) => SelfTest::Silent { expected: WRITES, counted },
        Ok(Err(e)) => SelfTest::Untested(e),
        Err(_) => SelfTest::Untested(Error::new("self-test", io::ErrorKind::Other.into())),
    }
}

fn write(cell: &AtomicU64) {
    cell.fetch_add(1, Ordering::Relaxed);
}

/// How many breakpoints fit into a thread of ours that has none.
fn slots() -> Result<usize, Error> {
    // More than any x86 processor has.
    const ENOUGH: usize = 16;
    let count = || {
        let cell = AtomicU64::new(0);
        let trial = Trial { kernel: false, inherit: Inherit::No, registers: false, lost: false };
        let mut events = Vec::new();
        while events.len() < ENOUGH {
            match trial.open(&cell) {
                Ok(event) => events.push(event),
                Err(e) if e.is_out_of_slots() => break,
                Err(e) => return Err(e),
            }
        }
        Ok(events.len())
    };
    let outcome = std::thread::scope(|scope| scope.spawn(count).join());
    outcome.unwrap_or_else(|_| Err(Error::new("counting slots", io::ErrorKind::Other.into())))
}

fn piece(cell: &AtomicU64) -> Result<Piece, Error> {
    let addr = Addr(cell.as_ptr() as u64);
    // The cell is an aligned u64 of a user process.
    Piece::new(addr, Length::Eight)
        .ok_or_else(|| Error::new("self-test", io::ErrorKind::AddrNotAvailable.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_that_never_fires_is_found_out() {
        let host = Host::read();
        let silent = self_test(host.cpus[0], |_| {});
        match silent {
            SelfTest::Silent { expected, counted } => assert_eq!((expected, counted), (WRITES, 0)),
            other => panic!("expected silence, got {other:?}"),
        }
    }

    #[test]
    fn one_silent_processor_is_enough_to_distrust() {
        let probe = Probe::run();
        let silent = SelfTest::Silent { expected: 3, counted: 0 };
        let self_tests = vec![(Cpu(0), SelfTest::Fires), (Cpu(1), silent)];
        assert!(!Probe { self_tests, ..probe }.fires());
    }

    #[test]
    fn a_processor_that_does_not_exist_is_untested() {
        let test = self_test(Cpu(8191), write);
        assert!(matches!(test, SelfTest::Untested(_)), "{test:?}");
    }

    /// x86 processors have four debug registers; nobody else uses ours here.
    #[test]
    fn this_machine_works() {
        let probe = Probe::run();
        assert!(probe.fires(), "{:?}", probe.self_tests);
        assert_eq!(probe.slots.as_ref().ok(), Some(&4));
        assert!(probe.inherit_thread);
    }
}
