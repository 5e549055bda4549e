//! A line an event: pure.

use crate::text::{self, style};
use hairspring::model::{Registers, Span};
use hairspring::watch::{Event, Hit, Rebind};
use std::fmt::Write;

/// The widest column of changes: two addresses. Values of more than eight bytes stand out.
const CHANGE_MOST: usize = 41;

/// Renders events as lines. The columns grow with what was in them, and never shrink, so that what
/// follows stands below what was there.
pub(crate) struct Lines {
    ready_ns: u64,
    registers: bool,
    thread: usize,
    access: usize,
    change: usize,
}

impl Lines {
    pub(crate) fn new(ready_ns: u64, registers: bool) -> Self {
        Self { ready_ns, registers, thread: 0, access: 0, change: 0 }
    }

    /// The lines of these; births and ends have none.
    pub(crate) fn render(&mut self, events: &[Event]) -> String {
        for event in events {
            if let Event::Hit(hit) = event {
                self.grow(hit);
            }
        }
        let mut text = String::new();
        for event in events {
            self.line(event, &mut text);
        }
        text
    }

    fn grow(&mut self, hit: &Hit) {
        self.thread = self.thread.max(thread(hit).chars().count());
        self.access = self.access.max(hit.access.to_string().len());
        self.change = self.change.max(text::change(hit).len().min(CHANGE_MOST));
    }

    fn line(&self, event: &Event, text: &mut String) {
        let warn = style::WARN;
        // Writing to a string can't fail.
        let _ = match event {
            Event::Hit(hit) => return self.hit(hit, text),
            Event::Rebind(rebind) => return self.rebind(rebind, text),
            Event::Lost(lost) => writeln!(
                text,
                "{warn}watch {}: {} lost so far, the ring was full{warn:#}",
                lost.watch,
                text::count(lost.records, "hit")
            ),
            Event::Loaded(loaded) => writeln!(
                text,
                "watch {}: its library was loaded, armed at {} (blind {})",
                loaded.watch,
                loaded.span,
                text::duration(loaded.blind),
            ),
            _ => Ok(()),
        };
    }

    fn hit(&self, hit: &Hit, text: &mut String) {
        let (dim, place, value) = (style::DIM, style::PLACE, style::VALUE);
        let (thread_width, access_width, change_width) = (self.thread, self.access, self.change);
        let _ = writeln!(
            text,
            "{dim}{:>10}{dim:#}  {:thread_width$}  {:access_width$}  \
             {value}{:>change_width$}{value:#}  {place}{}{place:#}",
            text::since(hit.time_ns, self.ready_ns),
            thread(hit),
            hit.access.to_string(),
            text::change(hit),
            text::site(&hit.site),
        );
        if self.registers {
            registers(hit, text);
        }
    }

    fn rebind(&self, rebind: &Rebind, text: &mut String) {
        let (dim, warn) = (style::DIM, style::WARN);
        let place = |span: Option<Span>| span.map_or_else(|| "off".into(), |span| span.to_string());
        let to = if rebind.new.is_some() { style::HEAD } else { warn };
        let _ = writeln!(
            text,
            "{dim}{:>10}{dim:#}  watch {}: {} -> {to}{}{to:#}, {} (generation {}, blind for {})",
            text::since(rebind.time_ns, self.ready_ns),
            rebind.watch,
            place(rebind.old),
            place(rebind.new),
            rebind.reason,
            rebind.generation,
            text::duration(rebind.blind),
        );
    }
}

fn thread(hit: &Hit) -> String {
    format!("{} ({})", hit.thread, hit.tid)
}

/// The instruction, what it was inlined from, and the registers, below the hit.
fn registers(hit: &Hit, text: &mut String) {
    let dim = style::DIM;
    if let Some(instruction) = &hit.site.instruction {
        let _ = writeln!(text, "            {}  {instruction}", hit.site.address);
    }
    if let Some(inlined) = text::inlined(&hit.site) {
        let _ = writeln!(text, "            {dim}{inlined}{dim:#}");
    }
    let named: Vec<_> = hit.registers.iter().flat_map(Registers::named).collect();
    for row in named.chunks(3) {
        let columns = row.iter().map(|(name, value)| format!("{name:>6} {value:016x}"));
        let _ = writeln!(text, "            {}", columns.collect::<Vec<_>>().join("  "));
    }
}
