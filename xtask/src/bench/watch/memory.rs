//! How much memory the command takes while hits pour in.

use std::fs;

use crate::bench::Figure;
use crate::bench::pinned;
use crate::bench::table::Table;

pub(super) const FIGURE: Figure = Figure {
    name: "watch/memory",
    what: "The peak of the command's resident memory (VmHWM) during 2,000,000 hits of 8 threads, in \
           MiB; its rings, as far as they count as resident, and what is left without them.",
    measure,
};

const THREADS: u64 = 8;
const WRITES: u64 = 250_000;

fn measure() {
    let mut table = Table::new(&["2,000,000 hits", "peak", "resident rings", "without rings"]);
    let (peak, ring) = round(&["--json", "--output=/dev/null"]);
    let figure = |figure: f64| format!("{figure:.1}");
    table.row(vec!["watch --json".to_owned(), figure(peak), figure(ring), figure(peak - ring)]);
    table.print();
}

fn round(options: &[&str]) -> (f64, f64) {
    let flags = [format!("--threads={THREADS}"), format!("--writes={WRITES}")];
    let mut guest = pinned::guest("0,1", "tight", &[&flags[0], &flags[1]]);
    let place = pinned::place(&guest, 8);
    let mut arguments = options.to_vec();
    arguments.push(&place);
    let watching = pinned::watch("0,1", guest.pid(), &arguments);
    guest.run();
    let read = |file: &str| {
        fs::read_to_string(format!("/proc/{}/{file}", watching.pid())).expect("it is running")
    };
    let (status, maps) = (read("status"), read("smaps"));
    watching.interrupt();
    watching.finish();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or(0.0, mebibytes);
    (peak, resident_rings(&maps))
}

/// The resident part of the mappings of perf events.
fn resident_rings(maps: &str) -> f64 {
    let (mut inside, mut sum) = (false, 0.0);
    for line in maps.lines() {
        // The first line of a mapping starts with its addresses, in lower case.
        if line.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_lowercase()) {
            inside = line.contains("[perf_event]");
        } else if let (true, Some(size)) = (inside, line.strip_prefix("Rss:")) {
            sum += mebibytes(size);
        }
    }
    sum
}

/// MiB of a text such as `  1234 kB`.
fn mebibytes(text: &str) -> f64 {
    let number = text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    number.unwrap_or(0.0) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::resident_rings;

    #[test]
    fn only_rings_are_summed() {
        let maps = "\
55d0-55d1 r-xp 00000000 fe:00 1 /bin/x\nSize: 4 kB\nRss: 1024 kB\n\
7f00-7f10 rw-s 00000000 00:0e 9 anon_inode:[perf_event]\nRss:    2048 kB\nPss: 7 kB\n\
7f20-7f30 rw-s 00000000 00:0e 9 anon_inode:[perf_event]\nRss:    1024 kB\n\
7f40-7f50 rw-p 00000000 00:00 0 \nRss: 5120 kB\n";
        assert!((resident_rings(maps) - 3.0).abs() < 1e-9);
    }
}
