//! What watches that are never hit cost the target.

use crate::bench::bare::{Bare, Plan};
use crate::bench::perf_record::PerfRecord;
use crate::bench::pinned;
use crate::bench::table::{Table, float, median};
use crate::bench::{Figure, machine};

pub(super) const FIGURE: Figure = Figure {
    name: "watch/slowdown",
    what: "Two threads on one CPU pass a byte to and fro over pipes, so that each round is two \
           switches of threads, while watches that are not hit are armed on both. \
           The processor time of the two is what is compared.",
    measure,
};

const ROUNDS: usize = 5;
const GAMES: u64 = 20_000;

#[derive(Clone, Copy)]
enum Tool {
    Nobody,
    Bare,
    Perf,
    Hairspring,
}

/// With the number of watched pieces of eight bytes.
const TOOLS: &[(&str, Tool, u64)] = &[
    ("nobody", Tool::Nobody, 0),
    ("bare events, 1 watch", Tool::Bare, 1),
    ("perf record, 1 watch", Tool::Perf, 1),
    ("hairspring, 1 watch", Tool::Hairspring, 1),
    ("bare events, 4 watches", Tool::Bare, 4),
    ("perf record, 4 watches", Tool::Perf, 4),
    ("hairspring, 4 watches", Tool::Hairspring, 4),
];

fn measure() {
    let mut results: Vec<Vec<f64>> = TOOLS.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, tool, pieces), results) in TOOLS.iter().zip(&mut results) {
            if !matches!(tool, Tool::Perf) || machine::has("perf") {
                results.push(round(*tool, *pieces));
            }
        }
    }
    let cost = |index: usize| median(&results[index]);
    let mut table = Table::new(&["a round", "CPU µs", "to nobody", "to bare events"]);
    for (index, (name, _, pieces)) in TOOLS.iter().enumerate() {
        if results[index].is_empty() {
            table.row(vec![format!("{name} (not installed)")]);
            continue;
        }
        let same =
            |(_, tool, other): &(&str, Tool, u64)| matches!(tool, Tool::Bare) && other == pieces;
        let bare = TOOLS.iter().position(same).map(|bare| cost(index) / cost(bare));
        table.row(vec![
            (*name).to_owned(),
            format!("{:.2}", cost(index)),
            format!("{:.2}", cost(index) / cost(0)),
            bare.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        ]);
    }
    table.print();
}

/// Microseconds of processor time a round.
fn round(tool: Tool, pieces: u64) -> f64 {
    let flags = ["--threads=1", &format!("--pingpong={GAMES}")];
    let mut guest = pinned::guest("0", "idle", &flags);
    let (pid, field) = (guest.pid(), guest.address("field"));
    let (_, nanoseconds) = match tool {
        Tool::Nobody => pinned::run(&mut guest),
        Tool::Bare => {
            let bare = Bare::open(pid, Plan { field, pieces, side_bands: false });
            let done = pinned::run(&mut guest);
            drop(bare);
            done
        }
        Tool::Perf => {
            let perf = PerfRecord::start("1", pid, field, pieces, &[]);
            let done = pinned::run(&mut guest);
            perf.samples();
            done
        }
        Tool::Hairspring => {
            let place = pinned::place(&guest, 8 * pieces);
            let watching = pinned::watch("1", pid, &["--json", "--summary", &place]);
            let done = pinned::run(&mut guest);
            watching.interrupt();
            watching.finish();
            done
        }
    };
    float(nanoseconds) / 1e3 / float(GAMES)
}
