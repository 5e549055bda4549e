//! What a hit costs under a debugger.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bench::pinned;
use crate::bench::table::{Table, float, median};
use crate::bench::{Figure, machine};

pub(super) const FIGURE: Figure = Figure {
    name: "watch/gdb",
    what: "Microseconds from one write of a guest's thread to the next: under gdb's hardware \
           watchpoint, which stops the process at each, and under hairspring.",
    measure,
};

const ROUNDS: usize = 3;
const GDB_WRITES: u64 = 300;
const WRITES: u64 = 20_000;

/// What gdb does at each hit, as a command file without the watchpoint itself.
const MANNERS: &[(&str, &str)] = &[
    ("gdb, hits ignored", "ignore 1 1000000000\ncontinue\n"),
    (
        "gdb, each hit printed",
        "commands 1\nsilent\nprintf \"%p\\n\", $pc\ncontinue\nend\ncontinue\n",
    ),
];

fn measure() {
    let mut gdb: Vec<Vec<f64>> = MANNERS.iter().map(|_| Vec::new()).collect();
    let mut hairspring = Vec::new();
    for _ in 0..ROUNDS {
        if machine::has("gdb") {
            for ((_, commands), results) in MANNERS.iter().zip(&mut gdb) {
                results.push(under_gdb(commands));
            }
        }
        hairspring.push(under_hairspring());
    }
    let mut table = Table::new(&["1 thread", "µs a hit", "to hairspring"]);
    let own = median(&hairspring);
    table.row(vec!["watch --json".to_owned(), format!("{own:.2}"), String::new()]);
    for ((name, _), results) in MANNERS.iter().zip(&gdb) {
        if results.is_empty() {
            table.row(vec![format!("{name} (not installed)")]);
            continue;
        }
        let figure = median(results);
        table.row(vec![(*name).to_owned(), format!("{figure:.1}"), format!("{:.0}", figure / own)]);
    }
    table.print();
}

fn start(writes: u64) -> hairspring_tests::Guest {
    pinned::guest("0", "tight", &["--threads=1", &format!("--writes={writes}")])
}

fn microseconds(done: &hairspring_tests::Line) -> f64 {
    float(done.number("nanoseconds")) / 1e3 / float(done.number("writes"))
}

fn under_hairspring() -> f64 {
    let mut guest = start(WRITES);
    let place = pinned::place(&guest, 8);
    let watching = pinned::watch("1", guest.pid(), &["--json", "--output=/dev/null", &place]);
    let done = guest.run();
    watching.interrupt();
    watching.finish();
    microseconds(&done)
}

fn under_gdb(commands: &str) -> f64 {
    let mut guest = start(GDB_WRITES);
    let directory = tempfile::tempdir().expect("a directory can be made");
    let (script, armed) = (directory.path().join("commands"), directory.path().join("armed"));
    let (settings, continuing) = commands.split_at(commands.rfind("continue").unwrap_or(0));
    let script_text = format!(
        "set pagination off\nset confirm off\nwatch *(long*){:#x}\n{settings}shell touch {}\n{continuing}",
        guest.address("field"),
        armed.display()
    );
    std::fs::write(&script, script_text).expect("the file can be written");
    let mut gdb = Command::new("taskset")
        .args(["-c", "1", "gdb", "-nx", "-batch", "-p", &guest.pid().to_string(), "-x"])
        .arg(&script)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("gdb can be run");
    await_file(&armed, &mut gdb);
    let done = guest.run();
    // Its end is gdb's end.
    guest.finish();
    gdb.wait().expect("the child is ours");
    microseconds(&done)
}

/// Waits until gdb has made the file; the guest runs on only when gdb continues it.
fn await_file(path: &Path, gdb: &mut Child) {
    const PAUSE: Duration = Duration::from_millis(5);
    while !path.exists() {
        let ended = gdb.try_wait().expect("the child is ours");
        assert!(ended.is_none(), "gdb ended before it had set the watchpoint: {ended:?}");
        std::thread::sleep(PAUSE);
    }
}
