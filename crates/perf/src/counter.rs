//! Counters of one thread, user mode only: a plain one to read, and one that interrupts the thread.
//!
//! Both are pinned: a counter that the kernel can't schedule reads as an error, never as a wrong
//! number. Not here: which raw event is which (crate `timer`).

use crate::{Error, Event};
use hairspring_model::{Addr, Tid};
use hairspring_sys::overflow;
use hairspring_sys::perf_event::{Attr, OnCpu, constant as k, flag};
use std::os::fd::{AsFd, AsRawFd};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Executions of the instruction at this address, counted before it runs. Takes a debug
    /// register.
    Execution(Addr),
    /// An event of the processor's performance monitoring unit.
    Raw {
        /// The kernel's number of the unit: 4 (`PERF_TYPE_RAW`), or that of a core kind in
        /// `/sys/bus/event_source/devices/*/type`.
        unit: u32,
        /// The event's number, as the processor's manual writes it.
        config: u64,
    },
}

/// An open counter; it starts disabled.
#[derive(Debug)]
pub struct Counter {
    event: Event,
    tid: Tid,
}

impl Counter {
    /// A counter to be read.
    pub fn open(tid: Tid, counted: Counted) -> Result<Self, Error> {
        let event = Event::open(Some(tid), OnCpu::Any, &counted.attr(0), false, None)?;
        Ok(Self { event, tid })
    }

    /// A counter that sends the thread a signal, with the counter's descriptor in `si_fd`.
    pub fn interrupting(tid: Tid, counted: Counted, signal: i32) -> Result<Self, Error> {
        // The period of the first arming is set then; until then none is near.
        let event = Event::open(Some(tid), OnCpu::Any, &counted.attr(1 << 40), false, None)?;
        let counter = Self { event, tid };
        counter.signal(tid, signal)?;
        Ok(counter)
    }

    /// Sends the signals to the thread under another id, which it has since an exec.
    pub fn signal(&self, tid: Tid, signal: i32) -> Result<(), Error> {
        overflow::signal_thread(self.event.as_fd(), tid, signal)
            .map_err(|e| Error::new("fcntl(SETOWN_EX)", e).on(Some(tid), None))
    }

    /// The number that the signal carries.
    pub fn descriptor(&self) -> i32 {
        self.event.as_fd().as_raw_fd()
    }

    /// Enabled, it overflows after so many counts.
    pub fn set_period(&self, period: u64) -> Result<(), Error> {
        overflow::set_period(self.event.as_fd(), period)
            .map_err(|e| Error::new("ioctl(PERIOD)", e).on(Some(self.tid), None))
    }

    /// Counts from here.
    pub fn enable(&self) -> Result<(), Error> {
        self.event.enable()
    }

    /// Counts no more.
    pub fn disable(&self) -> Result<(), Error> {
        self.event.disable()
    }

    /// The count; an error without an errno where the kernel could not schedule it.
    pub fn count(&self) -> Result<u64, Error> {
        Ok(self.event.counts()?.counted)
    }
}

impl Counted {
    fn attr(self, period: u64) -> Attr {
        let user = flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::PINNED | flag::DISABLED;
        let plain = Attr { sample_period: period, flags: user, ..Attr::default() };
        match self {
            Self::Execution(at) => Attr {
                kind: k::PERF_TYPE_BREAKPOINT,
                bp_type: k::HW_BREAKPOINT_X,
                bp_addr: at.0,
                // sizeof(long), whatever the instruction's length (perf_event_open(2)).
                bp_len: 8,
                ..plain
            },
            Self::Raw { unit, config } => Attr { kind: unit, config, ..plain },
        }
    }
}
