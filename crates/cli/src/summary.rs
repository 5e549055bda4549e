//! The table by writer, and the statement of coverage.

use crate::text::{self, style};
use crate::writers;
use hairspring::watch::{
    Coverage, Ready, Standing, Still, Summary, Threads, Verdict, WatchSummary,
};
use std::fmt::Write;

/// The closing table and statement.
pub(crate) fn closing(summary: &Summary, ready: &Ready) -> String {
    let mut text = String::new();
    for (index, watch) in summary.watches.iter().enumerate() {
        let name = ready.watches.get(index).map_or_else(String::new, |ready| ready.name.clone());
        let standing = Standing { name, hits: watch.hits, writers: watch.writers.clone() };
        text.push_str(&writers::table(index, &standing, ready.since_ns, None));
    }
    coverage(&mut text, summary);
    text
}

fn coverage(text: &mut String, summary: &Summary) {
    let coverage = &summary.coverage;
    let (head, dim) = (style::HEAD, style::DIM);
    let verdict = match coverage.verdict() {
        Verdict::Complete => style::GOOD,
        Verdict::Incomplete => style::BAD,
    };
    let _ = writeln!(
        text,
        "{head}coverage{head:#}  {verdict}{}{verdict:#}  {dim}({} after {}){dim:#}",
        coverage.verdict(),
        summary.stop_reason,
        text::duration(summary.duration),
    );
    for gap in &coverage.gaps {
        let bad = style::BAD;
        let _ = writeln!(text, "  {bad}gap{bad:#}        {gap}");
    }
    let _ = writeln!(text, "  threads    {}", threads(coverage.threads));
    for (index, watch) in summary.watches.iter().enumerate() {
        let _ = writeln!(text, "  counts     watch {index}: {}", counts(watch));
    }
    if coverage.blind.windows > 0 {
        let _ = writeln!(
            text,
            "  blind      {} while chains moved: {} in all, {} at most",
            text::count(coverage.blind.windows, "time"),
            text::duration(coverage.blind.total),
            text::duration(coverage.blind.longest),
        );
    }
    let _ = writeln!(text, "  self-test  {}", self_tests(coverage));
    let _ = writeln!(text, "  target     {}", target(coverage.target));
    let invisible: Vec<String> = coverage.invisible.iter().map(ToString::to_string).collect();
    for (row, line) in wrapped(&invisible).iter().enumerate() {
        let label = if row == 0 { "invisible" } else { "" };
        let _ = writeln!(text, "  {dim}{label:9}  {line}{dim:#}");
    }
}

/// Phrases on lines that fit into 80 columns behind their label.
fn wrapped(phrases: &[String]) -> Vec<String> {
    const WIDTH: usize = 66;
    let mut lines: Vec<String> = Vec::new();
    for phrase in phrases {
        match lines.last_mut().filter(|line| line.len() + phrase.len() + 2 <= WIDTH) {
            Some(line) => {
                line.push_str("; ");
                line.push_str(phrase);
            }
            None => lines.push(phrase.clone()),
        }
    }
    let last = lines.len().saturating_sub(1);
    lines.iter_mut().take(last).for_each(|line| line.push(';'));
    lines
}

fn threads(threads: Threads) -> String {
    let armed = match threads.found - threads.armed.min(threads.found) {
        0 => "each armed".into(),
        inherited => format!("{} armed, {inherited} had inherited it", threads.armed),
    };
    format!(
        "{} found, {armed}; {} born later, {} ended",
        threads.found, threads.born, threads.ended
    )
}

/// `counted = ...`, the parts that are not zero.
fn counts(watch: &WatchSummary) -> String {
    let parts = [
        (watch.hits, "hit"),
        (watch.coalesced, "more record of the same access"),
        (watch.pointer_writes, "pointer write"),
        (watch.early, "before ready"),
        (watch.beyond, "after the limit"),
        (watch.lost, "lost"),
    ];
    let named = |(number, noun): &(u64, &str)| match *noun {
        "hit" | "pointer write" => text::count(*number, noun),
        "more record of the same access" => {
            format!("{} of the same access", text::count(*number, "more record"))
        }
        noun => format!("{number} {noun}"),
    };
    let shown: Vec<String> =
        parts.iter().filter(|(n, noun)| *n > 0 || *noun == "hit").map(named).collect();
    format!("{} counted = {}", watch.counted, shown.join(" + "))
}

fn self_tests(coverage: &Coverage) -> String {
    let one = |(cpu, fired): &(hairspring::model::Cpu, Option<bool>)| match fired {
        Some(true) => format!("CPU {cpu} fires"),
        Some(false) => format!("CPU {cpu} is silent"),
        None => format!("CPU {cpu} not tried"),
    };
    let fires = coverage.self_tests.iter().filter(|(_, fired)| *fired == Some(true)).count();
    if fires == coverage.self_tests.len() {
        return format!("breakpoints fire on {}", text::count(fires as u64, "CPU"));
    }
    coverage.self_tests.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn target(still: Still) -> &'static str {
    match still {
        Still::Same => "the same process and program from begin to end",
        Still::AnotherProgram => "the same process, until it exec'ed another program",
        Still::Gone => "the same process and program until it exited",
    }
}
