//! One open perf event.
//!
//! A value owns its descriptor: dropping it closes the event, frees its debug register in the
//! thread and in all that inherited it, and can't fail. Not here: counters of the processor's
//! performance monitoring unit, and rings ([`crate::Ring`]).

use crate::{Error, Layout, Piece, Ring};
use hairspring_model::{Access, Tid};
use hairspring_sys::perf_event::{self as sys, Attr, OnCpu, constant as k, flag};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `CLOCK_MONOTONIC` (clock_gettime(2)).
const MONOTONIC: i32 = 1;

/// An open event.
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
    /// Whether the kernel counts what it lost of this event.
    counts_lost: bool,
}

/// Who has an event besides the thread it is opened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// Nobody.
    No,
    /// Threads born later, of this thread or of those that inherited.
    Threads,
    /// Those, and the processes forked by them.
    ThreadsAndChildren,
}

/// A breakpoint event on data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// The watched bytes.
    pub piece: Piece,
    /// The accesses reported.
    pub access: Access,
    /// Who has it too.
    pub inherit: Inherit,
    /// Whether it counts and reports at once.
    pub on: bool,
    /// Whether accesses made by the kernel count.
    pub kernel: bool,
    /// What each sample carries.
    pub layout: Layout,
    /// Whether each sample wakes the reader of the ring at once; otherwise the ring's watermark.
    pub urgent: bool,
    /// Whether the kernel is to count lost records (Linux 6.0).
    pub count_lost: bool,
}

/// What an event has counted, in its thread and all that inherited it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often the event happened.
    pub counted: u64,
    /// How many of its records did not fit into the ring; `None` where the kernel doesn't say.
    pub lost: Option<u64>,
}

impl Event {
    /// Opens a breakpoint on one thread (`None`: the calling one). Its records go into the ring from
    /// the first one on; without one it only counts.
    ///
    /// An inherited copy is as the event is at the moment when it is inherited. Turning an event on
    /// or aiming it elsewhere reaches the copies that exist, but not one that is just being made by
    /// a copy: what is to be on should be opened so.
    pub fn breakpoint(
        thread: Option<Tid>,
        cpu: OnCpu,
        spec: &Breakpoint,
        ring: Option<&Ring>,
    ) -> Result<Self, Error> {
        Self::open(thread, cpu, &spec.attr(), spec.count_lost, ring)
    }

    /// Opens an event that never happens but whose ring tells of births, ends, names and, with
    /// `mappings`, mapped code of the thread and of all that inherit it. It counts at once.
    pub fn side_band(
        thread: Tid,
        cpu: OnCpu,
        inherit: Inherit,
        mappings: bool,
        ring: &Ring,
    ) -> Result<Self, Error> {
        let mappings = if mappings { flag::MMAP | flag::MMAP2 } else { 0 };
        let attr = dummy(&SIDE_BAND_LAYOUT);
        let news = flag::TASK | flag::COMM | flag::COMM_EXEC | mappings;
        let attr = Attr { flags: attr.flags | news | inherit.flags(), ..attr };
        Self::open(Some(thread), cpu, &attr, false, Some(ring))
    }

    pub(crate) fn open(
        thread: Option<Tid>,
        cpu: OnCpu,
        attr: &Attr,
        counts_lost: bool,
        ring: Option<&Ring>,
    ) -> Result<Self, Error> {
        let on = match cpu {
            OnCpu::Any => None,
            OnCpu::One(cpu) => Some(cpu),
        };
        match sys::open(attr, thread, cpu, ring.map(AsFd::as_fd)) {
            Ok(fd) => Ok(Self { fd, counts_lost }),
            Err(e) => Err(Error::new("perf_event_open", e).on(thread, on)),
        }
    }

    /// Starts the event, in all that inherited it too.
    pub fn enable(&self) -> Result<(), Error> {
        sys::enable(self.fd.as_fd()).map_err(|e| Error::new("ioctl(ENABLE)", e))
    }

    /// Stops the event, in all that inherited it too. When it returns, none of them is in the
    /// middle of a report.
    pub fn disable(&self) -> Result<(), Error> {
        sys::disable(self.fd.as_fd()).map_err(|e| Error::new("ioctl(DISABLE)", e))
    }

    /// Lets the event happen `times` more, after which the kernel disables it.
    pub fn refresh(&self, times: u32) -> Result<(), Error> {
        sys::refresh(self.fd.as_fd(), times).map_err(|e| Error::new("ioctl(REFRESH)", e))
    }

    /// The id in the records of this event and of those inherited from it.
    pub fn id(&self) -> Result<u64, Error> {
        sys::id(self.fd.as_fd()).map_err(|e| Error::new("ioctl(ID)", e))
    }

    /// Aims a breakpoint at other bytes, on or off, in place, in all that inherited it too. The
    /// other fields of `spec` must be those it was opened with, but for `access`.
    pub fn aim(&self, spec: &Breakpoint) -> Result<(), Error> {
        sys::modify(self.fd.as_fd(), &spec.attr())
            .map_err(|e| Error::new("ioctl(MODIFY_ATTRIBUTES)", e))
    }

    /// What it has counted.
    pub fn counts(&self) -> Result<Counts, Error> {
        let mut words = [0; 2];
        let words = &mut words[..=usize::from(self.counts_lost)];
        sys::read(self.fd.as_fd(), words).map_err(|e| Error::new("read", e))?;
        Ok(Counts { counted: words[0], lost: words.get(1).copied() })
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Inherit {
    fn flags(self) -> u64 {
        match self {
            Self::No => 0,
            Self::Threads => flag::INHERIT | flag::INHERIT_THREAD,
            Self::ThreadsAndChildren => flag::INHERIT,
        }
    }
}

impl Breakpoint {
    fn attr(&self) -> Attr {
        let flags = [
            (!self.on, flag::DISABLED),
            (!self.kernel, flag::EXCLUDE_KERNEL),
            (true, flag::EXCLUDE_HV | flag::SAMPLE_ID_ALL | flag::USE_CLOCKID),
            (true, flag::REMOVE_ON_EXEC | flag::EXCLUDE_CALLCHAIN_USER),
        ];
        let flags = flags.iter().filter(|(on, _)| *on).fold(0, |flags, (_, flag)| flags | flag);
        Attr {
            kind: k::PERF_TYPE_BREAKPOINT,
            sample_period: 1,
            sample_type: self.layout.sample_type(),
            read_format: if self.count_lost { u64::from(k::PERF_FORMAT_LOST) } else { 0 },
            flags: flags | self.inherit.flags() | if self.urgent { 0 } else { flag::WATERMARK },
            wakeup: u32::from(self.urgent),
            bp_type: match self.access {
                Access::Write => k::HW_BREAKPOINT_W,
                Access::ReadWrite => k::HW_BREAKPOINT_RW,
            },
            bp_addr: self.piece.addr().0,
            bp_len: self.piece.length().bytes(),
            sample_regs_user: self.layout.user_registers.bits(),
            sample_stack_user: u32::from(self.layout.user_stack),
            sample_regs_intr: self.layout.interrupt_registers.bits(),
            clockid: MONOTONIC,
            ..Attr::default()
        }
    }
}

/// The layout of the records of side-band events.
pub const SIDE_BAND_LAYOUT: Layout = Layout {
    identifier: false,
    ip: false,
    tid: true,
    time: true,
    addr: false,
    cpu: false,
    kernel_chain: false,
    user_registers: crate::RegisterSet::NONE,
    user_stack: 0,
    interrupt_registers: crate::RegisterSet::NONE,
};

/// An event that never happens, to own a ring that wakes its reader after each `watermark` bytes.
pub(crate) fn ring_owner(watermark: u32) -> Attr {
    let attr = dummy(&SIDE_BAND_LAYOUT);
    Attr { wakeup: watermark, flags: attr.flags | flag::WATERMARK, ..attr }
}

fn dummy(layout: &Layout) -> Attr {
    Attr {
        kind: k::PERF_TYPE_SOFTWARE,
        config: u64::from(k::PERF_COUNT_SW_DUMMY),
        sample_type: layout.sample_type(),
        flags: flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::SAMPLE_ID_ALL | flag::USE_CLOCKID,
        clockid: MONOTONIC,
        ..Attr::default()
    }
}
