//! How many hits a second, and whether all of them arrive.

use crate::bench::perf_record::PerfRecord;
use crate::bench::pinned::{self, Cpus};
use crate::bench::table::{Table, float, median};
use crate::bench::{Figure, machine};

pub(super) const FIGURE: Figure = Figure {
    name: "watch/hits",
    what: "A guest writes in a tight loop; its own clock gives the rate, and its processor \
           time the cost of a hit. Delivered: hits that were reported, of all rounds; `complete` \
           where the command proved by its exit status that nothing is missing.",
    measure,
};

const ROUNDS: usize = 5;

struct Load {
    name: &'static str,
    threads: u64,
    writes: u64,
    guest: Cpus,
    tool: Cpus,
}

const LOADS: &[Load] = &[
    Load { name: "1 thread", threads: 1, writes: 40_000, guest: "0", tool: "1" },
    Load { name: "8 threads on 2 CPUs", threads: 8, writes: 5_000, guest: "0,1", tool: "0,1" },
];

#[derive(Clone, Copy)]
enum Tool {
    /// Nobody watches.
    Nobody,
    /// hairspring, with the counts in its summary.
    Summary,
    /// hairspring, every hit as JSON to nowhere.
    Json,
    /// The same with registers.
    Registers,
    /// perf record with these options.
    Perf(&'static [&'static str]),
}

const TOOLS: &[(&str, Tool)] = &[
    ("nobody", Tool::Nobody),
    ("perf record", Tool::Perf(&[])),
    ("perf record -m 8M", Tool::Perf(&["--mmap-pages=8M"])),
    ("watch --summary", Tool::Summary),
    ("watch --json", Tool::Json),
    ("watch --json --regs", Tool::Registers),
];

#[derive(Default)]
struct Results {
    rates: Vec<f64>,
    costs: Vec<f64>,
    written: u64,
    delivered: Option<u64>,
    complete: usize,
}

fn measure() {
    for load in LOADS {
        let mut results: Vec<Results> = TOOLS.iter().map(|_| Results::default()).collect();
        for _ in 0..ROUNDS {
            for ((_, tool), results) in TOOLS.iter().zip(&mut results) {
                if !matches!(tool, Tool::Perf(_)) || machine::has("perf") {
                    round(load, *tool, results);
                }
            }
        }
        print(load, &results);
    }
}

fn round(load: &Load, tool: Tool, results: &mut Results) {
    let flags = [format!("--threads={}", load.threads), format!("--writes={}", load.writes)];
    let mut guest = pinned::guest(load.guest, "tight", &[&flags[0], &flags[1]]);
    let (pid, field) = (guest.pid(), guest.address("field"));
    let place = pinned::place(&guest, 8);
    let mut count = |hits: u64| *results.delivered.get_or_insert(0) += hits;
    let (done, nanoseconds) = match tool {
        Tool::Nobody => pinned::run(&mut guest),
        Tool::Perf(options) => {
            let perf = PerfRecord::start(load.tool, pid, field, 1, options);
            let done = pinned::run(&mut guest);
            count(perf.samples());
            done
        }
        Tool::Summary | Tool::Json | Tool::Registers => {
            let arguments: &[&str] = match tool {
                Tool::Summary => &["--json", "--summary", &place],
                Tool::Json => &["--json", "--output=/dev/null", &place],
                _ => &["--json", "--output=/dev/null", "--regs", &place],
            };
            let watching = pinned::watch(load.tool, pid, arguments);
            let done = pinned::run(&mut guest);
            watching.interrupt();
            let session = watching.finish();
            results.complete += usize::from(session.code() == Some(0));
            if matches!(tool, Tool::Summary) {
                count(session.summary()["watches"][0]["hits"].as_u64().expect("a count"));
            }
            done
        }
    };
    results.rates.push(float(done.number("writes")) * 1e9 / float(done.number("nanoseconds")));
    results.costs.push(float(nanoseconds) / 1e3 / float(done.number("writes")));
    results.written += done.number("writes");
}

fn print(load: &Load, all: &[Results]) {
    let rate = |index: usize| median(&all[index].rates);
    let perf = TOOLS.iter().position(|(_, tool)| matches!(tool, Tool::Perf([])));
    let mut table = Table::new(&[
        load.name,
        "hits/s",
        "to perf record",
        "CPU µs a hit",
        "written",
        "delivered",
    ]);
    for (index, ((name, tool), results)) in TOOLS.iter().zip(all).enumerate() {
        if results.rates.is_empty() {
            table.row(vec![format!("{name} (not installed)")]);
            continue;
        }
        let rounds = results.rates.len();
        let delivered = match (tool, results.delivered) {
            (Tool::Nobody, _) => String::new(),
            (Tool::Json | Tool::Registers, _) => {
                format!("complete in {} of {rounds}", results.complete)
            }
            (_, delivered) => {
                let delivered = delivered.unwrap_or(0);
                format!("{delivered} ({} lost)", results.written.saturating_sub(delivered))
            }
        };
        let ratio = perf.map_or(f64::NAN, |perf| rate(index) / rate(perf));
        table.row(vec![
            (*name).to_owned(),
            format!("{:.0}", rate(index)),
            if matches!(tool, Tool::Nobody) { String::new() } else { format!("{ratio:.2}") },
            format!("{:.2}", median(&results.costs)),
            results.written.to_string(),
            delivered,
        ]);
    }
    table.print();
    println!();
}
