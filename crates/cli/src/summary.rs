//! The table by writer, and the statement of coverage.

use crate::text::{self, style};
use hairspring::watch::{
    Coverage, Ready, Session, Standing, Still, Summary, Verdict, WatchSummary,
};
use std::fmt::Write;

/// The closing table and statement.
pub(crate) fn closing(summary: &Summary, ready: &Ready) -> String {
    let mut text = String::new();
    for (index, watch) in summary.watches.iter().enumerate() {
        let name = ready.watches.get(index).map_or_else(String::new, |ready| ready.name.clone());
        let standing = Standing { name, hits: watch.hits, writers: watch.writers.clone() };
        table(&mut text, index, &standing, ready.since_ns, None);
    }
    coverage(&mut text, summary);
    text
}

/// The tables of a session that goes on, in a screen's worth of lines.
pub(crate) fn standing(session: &Session, width: usize, height: usize) -> String {
    let mut text = String::new();
    for (index, standing) in session.standing().iter().enumerate() {
        table(&mut text, index, standing, session.ready_ns(), Some(width));
    }
    // Lines that would scroll away could not be taken back.
    text.lines().take(height).fold(String::new(), |text, line| text + line + "\n")
}

/// The table of one watch. The sites come last, where their length does no harm; `width` cuts them
/// for a table that is to be taken back.
fn table(
    text: &mut String,
    index: usize,
    standing: &Standing,
    ready_ns: u64,
    width: Option<usize>,
) {
    let (head, dim, place) = (style::HEAD, style::DIM, style::PLACE);
    let hits = text::count(standing.hits, "hit");
    let _ = writeln!(text, "{head}watch {index}{head:#}  {}  {head}{hits}{head:#}", standing.name);
    if standing.writers.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "{dim}{:>9}  {:16} {:10} {:>11} {:>11}  {:>18}  site{dim:#}",
        "hits", "threads", "access", "first", "last", "last value"
    );
    for writer in &standing.writers {
        let value = writer.last_value.as_ref().map_or_else(|| "?".into(), text::new);
        let threads = match writer.threads {
            1 => writer.thread.to_string(),
            more => format!("{more} threads"),
        };
        let figures = format!(
            "{:>9}  {:16} {:10} {:>11} {:>11}  {value:>18}  ",
            writer.hits,
            text::cut(&threads, 16),
            writer.access.to_string(),
            text::since(writer.first_ns, ready_ns),
            text::since(writer.last_ns, ready_ns),
        );
        let site = text::site(&writer.site);
        let left = width.map(|width| width.saturating_sub(figures.chars().count()));
        let site = left.map_or_else(|| site.clone(), |left| text::cut(&site, left));
        let _ = writeln!(text, "{figures}{place}{site}{place:#}");
    }
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
        humantime::format_duration(round(summary.duration)),
    );
    for gap in &coverage.gaps {
        let bad = style::BAD;
        let _ = writeln!(text, "  {bad}gap{bad:#}        {gap}");
    }
    let threads = coverage.threads;
    let _ = writeln!(
        text,
        "  threads    {} found ({} armed, the others had inherited), {} born, {} ended",
        threads.found, threads.armed, threads.born, threads.ended
    );
    for (index, watch) in summary.watches.iter().enumerate() {
        let _ = writeln!(text, "  counts     watch {index}: {}", counts(watch));
    }
    if coverage.blind.windows > 0 {
        let _ = writeln!(
            text,
            "  blind      {} while chains moved: {} in all, {} at most",
            text::count(coverage.blind.windows, "time"),
            humantime::format_duration(coverage.blind.total),
            humantime::format_duration(coverage.blind.longest),
        );
    }
    let _ = writeln!(text, "  self-test  {}", self_tests(coverage));
    let _ = writeln!(text, "  target     {}", target(coverage.target));
    let invisible: Vec<String> = coverage.invisible.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "  {dim}can't be seen here: {}{dim:#}", invisible.join("; "));
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

/// To whole milliseconds.
fn round(duration: std::time::Duration) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
