//! How many of the writes of short-lived threads are seen.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring::model::Tid;
use hairspring::perf::{Event, Inherit, OnCpu};

use crate::bench::bare::breakpoint;
use crate::bench::perf_record::PerfRecord;
use crate::bench::pinned;
use crate::bench::table::{Table, float, median, range};
use crate::bench::{Figure, machine};

pub(super) const FIGURE: Figure = Figure {
    name: "watch/churn",
    what: "2,000 threads of 5 writes each, 16 alive at a time. A poller is a loop without pause \
           that lists the threads and opens a breakpoint on each new one.",
    measure,
};

const ROUNDS: usize = 20;
const THREADS: u64 = 2000;
const WRITES: u64 = 5;

fn measure() {
    let (mut own, mut perf, mut poller) = (Vec::new(), Vec::new(), Vec::new());
    let mut complete = 0;
    for _ in 0..ROUNDS {
        let (hits, proved) = by_hairspring();
        own.push(hits);
        complete += usize::from(proved);
        if machine::has("perf") {
            perf.push(by_perf());
        }
        poller.push(by_poller());
    }
    let written = THREADS * WRITES;
    let mut table = Table::new(&["of each round", "written", "seen, median", "least", "most"]);
    for (name, seen) in [
        (format!("hairspring (proved complete in {complete} of {ROUNDS})"), own),
        ("perf record".to_owned(), perf),
        ("a poller".to_owned(), poller),
    ] {
        if seen.is_empty() {
            table.row(vec![format!("{name} (not installed)")]);
            continue;
        }
        let seen: Vec<f64> = seen.into_iter().map(float).collect();
        let (least, most) = range(&seen);
        let figure = |figure: f64| format!("{figure:.0}");
        let middle = figure(median(&seen));
        table.row(vec![name, written.to_string(), middle, figure(least), figure(most)]);
    }
    table.print();
}

fn start() -> hairspring_tests::Guest {
    let flags = [format!("--threads={THREADS}"), format!("--writes={WRITES}")];
    pinned::guest("0,1", "churn", &[&flags[0], &flags[1]])
}

fn by_hairspring() -> (u64, bool) {
    let mut guest = start();
    let place = pinned::place(&guest, 8);
    let watching = pinned::watch("0,1", guest.pid(), &["--json", "--summary", &place]);
    guest.run();
    watching.interrupt();
    let session = watching.finish();
    let hits = session.summary()["watches"][0]["hits"].as_u64().expect("a count");
    (hits, session.code() == Some(0))
}

fn by_perf() -> u64 {
    let mut guest = start();
    let perf = PerfRecord::start("0,1", guest.pid(), guest.address("field"), 1, &[]);
    guest.run();
    perf.samples()
}

fn by_poller() -> u64 {
    let mut guest = start();
    let (pid, spec) = (guest.pid(), breakpoint(guest.address("field"), Inherit::No));
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let poller = std::thread::spawn(move || {
        let (mut known, mut events) = (HashSet::new(), Vec::new());
        while !stopped.load(Ordering::Relaxed) {
            for tid in hairspring_tests::Process::new(pid).threads() {
                if known.insert(tid) {
                    // A thread that has ended in between is one of those that are missed.
                    events.extend(Event::breakpoint(Some(Tid(tid)), OnCpu::Any, &spec, None));
                }
            }
        }
        events.iter().map(|event| event.counts().map_or(0, |counts| counts.counted)).sum()
    });
    guest.run();
    stop.store(true, Ordering::Relaxed);
    poller.join().expect("the poller does not fail")
}
