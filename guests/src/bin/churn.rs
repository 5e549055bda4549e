//! `churn`: threads that live for a few writes, a few alive at a time.
//!
//! Flags: `--threads=2000 --writes=5 --alive=16`; `--nested` lets every second thread be started
//! by the thread before it; `--background` starts threads all the time from before `ready` on,
//! so that whoever attaches races with `clone` (they write only between `go` and `done`).
//! Ready: `field`, `site`. Done: `final` (exact: writes are `lock xadd`), `threads` (that
//! wrote).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use hairspring_guests::{Field, Flags, Instruction, Line, next_command, spawn};

#[unsafe(no_mangle)]
static SESSIONS_CLOSED: Field = Field::new(0);

#[derive(Clone, Copy)]
struct Plan {
    threads: u64,
    writes: u64,
    alive: usize,
    nested: bool,
}

fn main() {
    let mut flags = Flags::from_args();
    let plan = Plan {
        threads: flags.get("threads", 2000),
        writes: flags.get("writes", 5),
        alive: flags.get("alive", 16_usize).max(1),
        nested: flags.get("nested", false),
    };
    let background = flags.get("background", false);
    flags.finish();

    let storm = background.then(|| Storm::start(plan));
    Line::ready()
        .address("field", SESSIONS_CLOSED.place())
        .hex("site", Instruction::Xadd.site() as u64)
        .print();
    while next_command().is_some() {
        match &storm {
            None => run(plan),
            Some(storm) => storm.write(plan.threads),
        }
        Line::done(plan.threads * plan.writes, 1)
            .hex("final", SESSIONS_CLOSED.peek())
            .value("threads", plan.threads)
            .print();
    }
    if let Some(storm) = storm {
        storm.stop();
    }
}

fn close_sessions(writes: u64) {
    for value in 0..writes {
        // SAFETY: the place is a static.
        unsafe { Instruction::Xadd.write(SESSIONS_CLOSED.place(), value) };
    }
}

/// Runs all threads of the plan to their end.
fn run(plan: Plan) {
    let mut alive: VecDeque<JoinHandle<()>> = VecDeque::new();
    let mut born = 0;
    while born < plan.threads {
        if alive.len() == plan.alive {
            join(alive.pop_front());
        }
        let pair = plan.nested && born + 1 < plan.threads;
        alive.push_back(spawn(format!("session-{born}"), move || {
            let child = pair.then(|| {
                spawn(format!("session-{}", born + 1), move || close_sessions(plan.writes))
            });
            close_sessions(plan.writes);
            join(child);
        }));
        born += if pair { 2 } else { 1 };
    }
    while !alive.is_empty() {
        join(alive.pop_front());
    }
}

fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        thread.join().expect("no thread panics");
    }
}

/// Threads that are born and die all the time.
struct Storm {
    shared: Arc<Shared>,
    spawners: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Threads that may still write; each takes one ticket.
    tickets: AtomicU64,
    wrote: AtomicU64,
}

impl Storm {
    fn start(plan: Plan) -> Self {
        let shared = Arc::new(Shared::default());
        let spawners = (0..plan.alive.min(4))
            .map(|index| {
                let shared = Arc::clone(&shared);
                spawn(format!("spawner-{index}"), move || {
                    while !shared.stop.load(Ordering::Acquire) {
                        let shared = Arc::clone(&shared);
                        let child = spawn("session".to_owned(), move || shared.live(plan));
                        join(Some(child));
                    }
                })
            })
            .collect();
        Self { shared, spawners }
    }

    /// Lets the next `threads` threads write, and waits until they have.
    fn write(&self, threads: u64) {
        self.shared.wrote.store(0, Ordering::Release);
        self.shared.tickets.store(threads, Ordering::Release);
        while self.shared.wrote.load(Ordering::Acquire) < threads {
            std::thread::yield_now();
        }
    }

    fn stop(self) {
        self.shared.stop.store(true, Ordering::Release);
        for spawner in self.spawners {
            join(Some(spawner));
        }
    }
}

impl Shared {
    fn live(&self, plan: Plan) {
        let ticket = self
            .tickets
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        if ticket.is_ok() {
            close_sessions(plan.writes);
            self.wrote.fetch_add(1, Ordering::AcqRel);
        }
    }
}
