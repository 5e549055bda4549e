//! Breakpoint events and nothing else: what any watcher costs at least.

use hairspring::model::{Access, Addr, Cpu, Tid};
use hairspring::perf::{Breakpoint, Event, Host, Inherit, Layout, Length, OnCpu, Piece, Ring};
use hairspring_tests::Process;

/// Bytes of each ring.
const RING: usize = 1 << 20;

/// What the events are to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The first byte.
    pub(crate) field: u64,
    /// Pieces of eight bytes.
    pub(crate) pieces: u64,
    /// Whether there is one event more for each thread and processor, for births and exits.
    pub(crate) side_bands: bool,
}

/// Open events and the rings that they write to.
#[derive(Debug)]
pub(crate) struct Bare {
    events: Vec<Event>,
    _rings: Vec<Ring>,
}

impl Bare {
    /// Opens one event for each thread, piece and processor, in a loop.
    pub(crate) fn open(pid: u32, plan: Plan) -> Self {
        let host = Host::read();
        let ring = |cpu: &Cpu| Ring::new(*cpu, RING, &host).expect("a ring can be made");
        let rings: Vec<Ring> = host.cpus.iter().map(ring).collect();
        let mut events = Vec::new();
        for tid in Process::new(pid).threads().into_iter().map(Tid) {
            for ring in &rings {
                let cpu = OnCpu::One(ring.cpu());
                for piece in 0..plan.pieces {
                    let spec = breakpoint(plan.field + 8 * piece, Inherit::Threads);
                    let event = Event::breakpoint(Some(tid), cpu, &spec, Some(ring));
                    events.push(event.expect("a breakpoint can be opened"));
                }
                if plan.side_bands {
                    let event = Event::side_band(tid, cpu, Inherit::Threads, true, ring);
                    events.push(event.expect("an event can be opened"));
                }
            }
        }
        Self { events, _rings: rings }
    }

    /// How many events there are.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }
}

/// A breakpoint for writes to the eight bytes at `addr`.
pub(crate) fn breakpoint(addr: u64, inherit: Inherit) -> Breakpoint {
    Breakpoint {
        piece: Piece::new(Addr(addr), Length::Eight).expect("the field is aligned"),
        access: Access::Write,
        inherit,
        on: true,
        kernel: false,
        layout: Layout { ip: true, tid: true, time: true, addr: true, ..Layout::default() },
        urgent: false,
        count_lost: false,
    }
}
