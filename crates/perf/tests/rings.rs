//! What comes through rings: the kernel's own writes, births and ends beside hits, and all that
//! after the thread that made the ring and the events has ended.

use hairspring_model::{Access, Addr, Tid};
use hairspring_perf::{
    Breakpoint, Event, Host, Inherit, Layout, Length, Mode, OnCpu, Piece, Record, Records,
    RegisterSet, Ring, SIDE_BAND_LAYOUT,
};
use hairspring_tests::{Need, skip};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const LAYOUT: Layout = Layout {
    identifier: true,
    ip: true,
    tid: true,
    time: true,
    addr: true,
    cpu: true,
    kernel_chain: true,
    user_registers: RegisterSet::GENERAL,
    user_stack: 0,
    interrupt_registers: RegisterSet::GENERAL,
};

fn me() -> Tid {
    Tid(nix::unistd::gettid().as_raw().unsigned_abs())
}

fn writes(addr: u64, inherit: Inherit, kernel: bool) -> Breakpoint {
    Breakpoint {
        piece: Piece::new(Addr(addr), Length::Eight).expect("an aligned cell"),
        access: Access::Write,
        inherit,
        on: true,
        kernel,
        layout: LAYOUT,
        urgent: false,
        count_lost: true,
    }
}

/// A ring for each processor.
fn rings(bytes: usize) -> Vec<Ring> {
    let host = Host::read();
    host.cpus.iter().map(|cpu| Ring::new(*cpu, bytes, &host).expect("a ring")).collect()
}

/// An event of the thread for each ring.
fn open(thread: Tid, rings: &[Ring], spec: &Breakpoint) -> Vec<Event> {
    let event =
        |ring: &Ring| Event::breakpoint(Some(thread), OnCpu::One(ring.cpu()), spec, Some(ring));
    rings.iter().map(|ring| event(ring).expect("opened")).collect()
}

/// Takes all records out of the rings.
fn drain(rings: &mut [Ring], layout: Layout, mut each: impl FnMut(Record<'_>)) {
    let mut buffer = Vec::new();
    for ring in rings {
        let head = ring.head();
        let mut more = true;
        while more {
            more = ring.take(head, 1000, &mut buffer).expect("whole records");
            Records::new(&buffer, layout).for_each(|record| each(record.expect("a record")));
        }
    }
}

/// Eight bytes that a system call can write to.
#[repr(align(8))]
struct Field([u8; 8]);

#[test]
fn the_kernels_writes_are_seen_where_asked_for() {
    if !Host::read().may_see_kernel() {
        skip!(Need::Root, "only root may see events in the kernel");
    }
    let (mut from, mut to) = io::pipe().expect("a pipe");
    to.write_all(b"8 bytes.").expect("room in the pipe");
    let mut field = Field([0; 8]);
    let addr = field.0.as_ptr() as u64;
    let mut rings = rings(64 << 10);
    let events = open(me(), &rings, &writes(addr, Inherit::No, true));
    let blind = Event::breakpoint(None, OnCpu::Any, &writes(addr, Inherit::No, false), None);
    let blind = blind.expect("opened");
    from.read_exact(&mut field.0).expect("they are in the pipe");
    assert_eq!(&field.0, b"8 bytes.");

    let mut seen = 0;
    drain(&mut rings, LAYOUT, |record| {
        let Record::Sample(sample) = record else { panic!("{record:?}") };
        let user = sample.user.expect("this thread has user registers");
        let kernel = sample.interrupt.expect("at the write");
        assert_eq!((sample.mode, sample.addr, sample.tid), (Mode::Kernel, Addr(addr), me()));
        assert!(sample.ip.is_kernel() && !Addr(user.rip).is_kernel());
        assert_eq!(kernel.rip, sample.ip.0);
        assert!(sample.chain.iter().all(Addr::is_kernel), "the kernel's part only");
        assert_eq!(sample.chain.iter().next(), Some(sample.ip));
        seen += 1;
    });
    let counted: u64 = events.iter().map(|e| e.counts().expect("read").counted).sum();
    // One for each byte, or for each store: that depends on how the processor copies best.
    assert!((1..=8).contains(&counted), "{counted}");
    assert_eq!(seen, counted);
    assert_eq!(blind.counts().expect("read").counted, 0);
}

/// Births and ends have rings of their own, so that the accounts of the hits stay exact.
#[test]
fn births_and_ends_are_told_beside_hits() {
    const THREADS: usize = 24;
    let cell = AtomicU64::new(0);
    let mut hits = rings(4096);
    let mut news = rings(256 << 10);
    let events = open(me(), &hits, &writes(cell.as_ptr() as u64, Inherit::Threads, false));
    let _side_band: Vec<Event> = news
        .iter()
        .map(|ring| {
            Event::side_band(me(), OnCpu::One(ring.cpu()), Inherit::Threads, false, ring)
                .expect("opened")
        })
        .collect();
    let mut threads = BTreeSet::new();
    thread::scope(|scope| {
        let body = || {
            for _ in 0..200 {
                cell.fetch_add(1, Ordering::Relaxed);
            }
            me()
        };
        let started: Vec<_> = (0..THREADS).map(|_| scope.spawn(body)).collect();
        threads.extend(started.into_iter().map(|thread| thread.join().expect("it ends").0));
    });
    assert_eq!(threads.len(), THREADS);

    let (mut born, mut ended) = (BTreeSet::new(), BTreeSet::new());
    // A joined thread may still be on its way out in the kernel.
    while ended.len() < THREADS {
        drain(&mut news, SIDE_BAND_LAYOUT, |record| match record {
            Record::Fork(task) => assert!(born.insert(task.tid.0), "born once"),
            Record::Exit(task) => assert!(ended.insert(task.tid.0), "ended once"),
            Record::Comm(_) => {}
            other => panic!("{other:?}"),
        });
    }
    assert_eq!((&born, &ended), (&threads, &threads));
    let mut delivered = 0;
    drain(&mut hits, LAYOUT, |record| delivered += u64::from(matches!(record, Record::Sample(_))));
    let counts: Vec<_> = events.iter().map(|event| event.counts().expect("read")).collect();
    let counted: u64 = counts.iter().map(|counts| counts.counted).sum();
    let lost: u64 = counts.iter().map(|counts| counts.lost.expect("Linux 6.0")).sum();
    assert_eq!(counted, 200 * THREADS as u64);
    assert_eq!(counted, delivered + lost);
    assert!(lost > 0, "a page does not hold them");
}

#[test]
fn a_ring_outlives_the_thread_that_made_it() {
    let cell = AtomicU64::new(0);
    let (watched, spec) = (me(), writes(cell.as_ptr() as u64, Inherit::No, false));
    let maker = move || {
        let rings = rings(64 << 10);
        let events = open(watched, &rings, &spec);
        (rings, events)
    };
    let (mut rings, events) = thread::spawn(maker).join().expect("it ends");
    for _ in 0..7 {
        cell.fetch_add(1, Ordering::Relaxed);
    }
    let mut seen = 0;
    drain(&mut rings, LAYOUT, |record| seen += u64::from(matches!(record, Record::Sample(_))));
    let counted: u64 = events.iter().map(|e| e.counts().expect("read").counted).sum();
    assert_eq!((counted, seen), (7, 7));
}
