//! What `watch` owes to the kernel: facts about breakpoint events, tried on threads of this process.

use hairspring_model::{Access, Addr, Cpu, Tid};
use hairspring_perf::{
    Breakpoint, Event, Host, Inherit, Layout, Length, OnCpu, Piece, Record, Records, RegisterSet,
    Ring,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

const LAYOUT: Layout = Layout {
    identifier: true,
    ip: true,
    tid: true,
    time: false,
    addr: true,
    cpu: false,
    kernel_chain: false,
    user_registers: RegisterSet::NONE,
    user_stack: 0,
    interrupt_registers: RegisterSet::NONE,
};

/// The cells that are watched: eight bytes each.
#[derive(Default)]
struct Cells([AtomicU64; 4]);

impl Cells {
    fn spec(&self, cell: usize) -> Breakpoint {
        let addr = Addr(self.0[cell].as_ptr() as u64);
        Breakpoint {
            piece: Piece::new(addr, Length::Eight).expect("an aligned cell"),
            access: Access::Write,
            inherit: Inherit::Threads,
            on: true,
            kernel: false,
            layout: LAYOUT,
            urgent: false,
            count_lost: true,
        }
    }

    fn write(&self, cell: usize, times: u64) {
        for _ in 0..times {
            self.0[cell].fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn me() -> Tid {
    Tid(nix::unistd::gettid().as_raw().unsigned_abs())
}

fn cpus() -> Vec<Cpu> {
    Host::read().cpus
}

/// How many more breakpoints a thread could have on a processor.
fn free_slots(cells: &Cells, tid: Tid, cpu: Cpu) -> usize {
    let spec = Breakpoint { inherit: Inherit::No, on: false, ..cells.spec(3) };
    let mut events = Vec::new();
    loop {
        match Event::breakpoint(Some(tid), OnCpu::One(cpu), &spec, None) {
            Ok(event) => events.push(event),
            Err(e) => {
                assert!(e.is_out_of_slots(), "{e}");
                return events.len();
            }
        }
    }
}

/// The number of slots that can still be opened says how many a thread has inherited, on each
/// processor for itself: the search for threads stands on it.
#[test]
fn inherited_copies_take_slots() {
    let cells = Cells::default();
    for held in 0..=3 {
        let mut events = Vec::new();
        for cpu in cpus() {
            for cell in 0..held {
                let event = Event::breakpoint(None, OnCpu::One(cpu), &cells.spec(cell), None);
                events.push(event.expect("this thread has four slots"));
            }
        }
        let (send_tid, tid) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                send_tid.send(me()).expect("the test waits");
                // Until the test is done with this thread.
                released.recv().expect_err("the other end is dropped");
            });
            let tid = tid.recv().expect("sent");
            for cpu in cpus() {
                assert_eq!(free_slots(&cells, tid, cpu), 4 - held, "{held} on CPU {cpu}");
            }
            drop(release);
        });
        drop(events);
        assert_eq!(free_slots(&cells, me(), cpus()[0]), 4, "closing an event frees its slot");
    }
}

#[test]
fn threads_count_for_the_event_that_they_inherited() {
    let cells = Cells::default();
    let event = Event::breakpoint(None, OnCpu::Any, &cells.spec(0), None).expect("opened");
    cells.write(0, 3);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| cells.write(0, 5));
        }
    });
    cells.write(1, 7);
    assert_eq!(event.counts().expect("read").counted, 3 + 20 * 5);
}

#[test]
fn a_refresh_lasts_for_exactly_so_many() {
    let cells = Cells::default();
    let spec = Breakpoint { inherit: Inherit::No, on: false, ..cells.spec(0) };
    let event = Event::breakpoint(None, OnCpu::Any, &spec, None).expect("opened");
    event.refresh(5).expect("refreshed");
    cells.write(0, 50);
    assert_eq!(event.counts().expect("read").counted, 5);
}

#[test]
fn aiming_reaches_threads_that_have_inherited() {
    let cells = Cells::default();
    let event = Event::breakpoint(None, OnCpu::Any, &cells.spec(0), None).expect("opened");
    let (go, turns) = mpsc::channel::<()>();
    let (done, turn_done) = mpsc::channel();
    thread::scope(|scope| {
        let cells = &cells;
        scope.spawn(move || {
            while turns.recv().is_ok() {
                cells.write(0, 1);
                cells.write(1, 10);
                done.send(()).expect("the test waits");
            }
        });
        let turn = || {
            go.send(()).expect("the thread waits");
            turn_done.recv().expect("done");
            event.counts().expect("read").counted
        };
        assert_eq!(turn(), 1);
        event.aim(&cells.spec(1)).expect("aimed");
        assert_eq!(turn(), 11);
        event.aim(&Breakpoint { on: false, ..cells.spec(1) }).expect("off");
        assert_eq!(turn(), 11);
        drop(go);
    });
}

/// The accounts add up, with threads that have inherited, and a ring of one page.
#[test]
fn delivered_and_lost_are_what_was_counted() {
    let host = Host::read();
    let cells = Cells::default();
    let mut rings: Vec<Ring> =
        host.cpus.iter().map(|cpu| Ring::new(*cpu, 4096, &host).expect("a ring")).collect();
    let events: Vec<Event> = rings
        .iter()
        .map(|ring| {
            let on = OnCpu::One(ring.cpu());
            Event::breakpoint(None, on, &cells.spec(0), Some(ring)).expect("opened")
        })
        .collect();
    thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| cells.write(0, 50));
        }
    });
    let ids: Vec<u64> = events.iter().map(|event| event.id().expect("an id")).collect();
    let mut delivered = 0;
    let mut buffer = Vec::new();
    for ring in &mut rings {
        while ring.take(ring.head(), 1000, &mut buffer).expect("whole records")
            || !buffer.is_empty()
        {
            for record in Records::new(&buffer, LAYOUT) {
                if let Record::Sample(sample) = record.expect("a record") {
                    assert!(ids.contains(&sample.id), "copies carry the original's id");
                    delivered += 1;
                }
            }
        }
    }
    let counts: Vec<_> = events.iter().map(|event| event.counts().expect("read")).collect();
    let counted: u64 = counts.iter().map(|counts| counts.counted).sum();
    let lost: u64 = counts.iter().filter_map(|counts| counts.lost).sum();
    assert_eq!(counted, 2000);
    assert_eq!(counted, delivered + lost);
    assert!(lost > 0, "a page does not hold 2,000 records");
}

#[test]
fn a_fifth_slot_is_told_apart() {
    let cells = Cells::default();
    let open = |cell| Event::breakpoint(None, OnCpu::Any, &cells.spec(cell), None);
    let events: Vec<Event> = (0..4).map(|cell| open(cell).expect("four slots")).collect();
    let error = open(0).expect_err("there is no fifth");
    assert!(error.is_out_of_slots() && !error.is_denied(), "{error}");
    drop(events);
    assert!(open(0).is_ok());
}

#[test]
fn a_thread_that_is_gone_is_told_apart() {
    let cells = Cells::default();
    let tid = thread::spawn(me).join().expect("it ends");
    let gone = loop {
        // The kernel may still be busy with its end.
        match Event::breakpoint(Some(tid), OnCpu::Any, &cells.spec(0), None) {
            Ok(_) => thread::yield_now(),
            Err(e) => break e,
        }
    };
    assert!(gone.is_gone(), "{gone}");
}
