//! Facts as a person reads them.

use hairspring::watch::{Certainty, Hit, NewValue, Site, Source};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The colours, each for one meaning.
pub(crate) mod style {
    use anstyle::{AnsiColor, Style};

    pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
    pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();
    pub(crate) const VALUE: Style = Style::new().bold();
    pub(crate) const HEAD: Style = Style::new().bold();
    pub(crate) const DIM: Style = Style::new().dimmed();
}

/// A function and its place in it, or a module and an address, or an address. Of inlined functions,
/// the one that a person looks for comes first.
pub(crate) fn site(site: &Site) -> String {
    let machine = match (&site.function, &site.module, site.link_address) {
        (Some(function), ..) if site.offset > 0 => {
            format!("{}+{:#x}", short(function), site.offset)
        }
        (Some(function), ..) => short(function),
        (None, Some(module), Some(address)) => format!("{module}@{address}"),
        (None, Some(module), None) => format!("{module} {}", site.address),
        (None, None, _) => site.address.to_string(),
    };
    let culprit = site.culprit();
    let place = culprit.and_then(|frame| source(frame.file.as_deref(), frame.line));
    let inlined = culprit
        .and_then(|frame| frame.function.as_ref())
        .filter(|f| site.function.as_ref() != Some(*f));
    let mut text = match (inlined, place) {
        (Some(function), Some(place)) => format!("{} ({place}) in {machine}", short(function)),
        (None, Some(place)) => format!("{machine} ({place})"),
        (_, None) => machine,
    };
    if let Some(state) = site.file_state.as_ref().filter(|_| site.function.is_none()) {
        let _ = write!(text, " [{state}]");
    }
    if let Some(call) = &site.system_call {
        let _ = write!(text, " in {call}");
    }
    match &site.certainty {
        Certainty::Exact => {}
        Certainty::Ambiguous { candidates } => {
            let _ = write!(text, " [one of {} instructions]", candidates.len());
        }
        Certainty::Unknown { .. } if site.system_call.is_some() => {}
        Certainty::Unknown { why } => {
            let _ = write!(text, " [before here: {why}]");
        }
    }
    text
}

/// The functions inlined at a site, innermost first, or nothing.
pub(crate) fn inlined(site: &Site) -> Option<String> {
    let names: Vec<String> =
        site.frames.iter().filter_map(|frame| frame.function.as_deref().map(short)).collect();
    (names.len() > 1).then(|| names.join(" < "))
}

/// A long name without what is in its angle brackets.
fn short(name: &str) -> String {
    const LONG: usize = 64;
    if name.len() <= LONG {
        return name.into();
    }
    let mut depth = 0_usize;
    let mut text = String::new();
    let mut before = ' ';
    for character in name.chars() {
        // `->` and `operator<` are no brackets; the latter only makes the name a little shorter.
        match character {
            '<' => {
                if depth == 0 {
                    text.push_str("<…>");
                }
                depth += 1;
            }
            '>' if before != '-' && depth > 0 => depth -= 1,
            _ if depth == 0 => text.push(character),
            _ => {}
        }
        before = character;
    }
    text
}

/// `file:line`, without the folders.
fn source(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let name = Path::new(file?).file_name()?.to_string_lossy();
    Some(line.map_or_else(|| name.to_string(), |line| format!("{name}:{line}")))
}

/// `old -> new`, as far as they are known.
pub(crate) fn change(hit: &Hit) -> String {
    let old = hit.old.map_or_else(|| "?".into(), |old| old.to_string());
    let new = hit.new.as_ref().map_or_else(|| "?".into(), new);
    format!("{old} -> {new}")
}

/// A value, and a mark where it was read later.
pub(crate) fn new(new: &NewValue) -> String {
    match new.source {
        Source::Decoded => new.value.to_string(),
        Source::Later => format!("~{}", new.value),
    }
}

/// Seconds since the session was ready.
pub(crate) fn since(time_ns: u64, ready_ns: u64) -> String {
    let ns = time_ns.saturating_sub(ready_ns);
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}

/// A duration in the unit that fits, with three digits: `16.2 us`; minutes and hours to the second.
pub(crate) fn duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let (unit, name) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000..60_000_000_000 => (1_000_000_000, "s"),
        _ => {
            return humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string();
        }
    };
    match (ns / unit, ns * 100 / unit % 100) {
        (whole @ 0..10, rest) => format!("{whole}.{rest:02} {name}"),
        (whole @ 10..100, rest) => format!("{whole}.{} {name}", rest / 10),
        (whole, _) => format!("{whole} {name}"),
    }
}

/// `1 thread`, `2 threads`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The text cut to a width, with a mark where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(since(1_500_000_000, 250_000_000), "1.250000");
        assert_eq!(since(1, 2), "0.000000");
        assert_eq!((count(1, "hit"), count(0, "hit")), ("1 hit".into(), "0 hits".into()));
    }

    #[test]
    fn long_names_lose_their_parameters() {
        assert_eq!(short("a::B<C>::d"), "a::B<C>::d");
        let long = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()";
        assert_eq!(short(long), "std::thread::_State_impl<…>::_M_run()");
        let rust = "<alloc::boxed::Box<dyn core::ops::FnOnce<()> -> ()> as core::any::Any>::type_id::inner";
        assert_eq!(short(rust), "<…>::type_id::inner");
    }

    #[test]
    fn durations_have_three_digits() {
        for (ns, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_009, "1.00 us"),
            (16_290, "16.2 us"),
            (999_999, "999 us"),
            (1_445_000_000, "1.44 s"),
            (59_990_000_000, "59.9 s"),
            (3_661_500_000_000, "1h 1m 1s"),
        ] {
            assert_eq!(duration(Duration::from_nanos(ns)), expected);
        }
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut("größer", 6), "größer");
        assert_eq!(cut("größer", 4), "grö…");
        assert_eq!(cut("x", 0), "…");
    }
}
