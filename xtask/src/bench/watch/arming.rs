//! How long arming takes.

use std::time::Instant;

use hairspring::model::Pid;
use hairspring::perf::Probe;
use hairspring::watch::{Request, Target};

use crate::bench::Figure;
use crate::bench::bare::{Bare, Plan};
use crate::bench::pinned;
use crate::bench::table::{Table, median, range};

pub(super) const FIGURE: Figure = Figure {
    name: "watch/arming",
    what: "Milliseconds to arm 32 bytes (four debug registers) on every thread of a process, by the \
           library in this process, beside a bare loop that opens as many events of the same kinds; \
           and to close them all. Best ratio: of the fastest rounds.",
    measure,
};

const ROUNDS: usize = 7;
const THREADS: &[u64] = &[10, 100, 1000];

#[derive(Default)]
struct Results {
    events: usize,
    opened: (Vec<f64>, Vec<f64>),
    closed: (Vec<f64>, Vec<f64>),
}

fn measure() {
    let probes: Vec<f64> = (0..ROUNDS).map(|_| timed(Probe::run).1).collect();
    println!("The probe takes {:.2} ms.\n", median(&probes));
    let heading =
        ["threads", "events", "arm", "bare loop", "ratio", "best ratio", "disarm", "bare close"];
    let mut table = Table::new(&heading);
    for threads in THREADS {
        let guest = pinned::guest("0", "idle", &[&format!("--threads={threads}")]);
        let what = pinned::place(&guest, 32);
        let request = Request::new(vec![what.parse().expect("an address is a place")]);
        let plan = Plan { field: guest.address("field"), pieces: 4, side_bands: true };
        let mut results = Results::default();
        for _ in 0..ROUNDS {
            let (events, opened, closed) = by_library(guest.pid(), &request);
            results.events = events;
            results.opened.0.push(opened);
            results.closed.0.push(closed);
            let (events, opened, closed) = by_loop(guest.pid(), plan);
            assert_eq!(events, results.events, "both open the same events");
            results.opened.1.push(opened);
            results.closed.1.push(closed);
        }
        let (arm, bare) = (median(&results.opened.0), median(&results.opened.1));
        table.row(vec![
            threads.to_string(),
            results.events.to_string(),
            format!("{arm:.2}"),
            format!("{bare:.2}"),
            format!("{:.2}", arm / bare),
            format!("{:.2}", range(&results.opened.0).0 / range(&results.opened.1).0),
            format!("{:.2}", median(&results.closed.0)),
            format!("{:.2}", median(&results.closed.1)),
        ]);
    }
    table.print();
}

/// A value and the milliseconds that it took to get.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed().as_secs_f64() * 1e3)
}

fn by_library(pid: u32, request: &Request) -> (usize, f64, f64) {
    let probe = Probe::run();
    let (armed, opened) = timed(|| Target::attach(Pid(pid)).and_then(|t| t.arm(request, probe)));
    let armed = armed.expect("the guest can be armed");
    let events = armed.ready.events;
    (events, opened, timed(|| drop(armed)).1)
}

fn by_loop(pid: u32, plan: Plan) -> (usize, f64, f64) {
    let (bare, opened) = timed(|| Bare::open(pid, plan));
    (bare.len(), opened, timed(|| drop(bare)).1)
}
