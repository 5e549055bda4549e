//! What a session shows while it runs: a line a hit, or, where hits come faster than a person reads,
//! a table that is drawn anew.

use crate::output::Output;
use crate::problem::Problem;
use crate::summary;
use crate::text::{self, style};
use hairspring::model::Registers;
use hairspring::watch::{Change, Event, Hit, Session, ThreadChange};
use std::collections::VecDeque;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Hits a second that a person can still read.
const READABLE: usize = 20;

/// How often the table is drawn.
const REDRAW: Duration = Duration::from_millis(250);

/// The live view of one session.
pub(crate) struct Live {
    ready_ns: u64,
    registers: bool,
    /// Whether lines may turn into a table: a person looks at it.
    may_turn: bool,
    /// The hits of the last second.
    recent: VecDeque<Instant>,
    table: Option<Table>,
}

/// The table that the lines have turned into.
struct Table {
    /// `None` until it is.
    drawn: Option<Instant>,
    /// Lines on the screen.
    height: usize,
}

impl Live {
    pub(crate) fn new(ready_ns: u64, registers: bool, terminal: bool) -> Self {
        Self { ready_ns, registers, may_turn: terminal, recent: VecDeque::new(), table: None }
    }

    /// Shows what has happened.
    pub(crate) fn show(
        &mut self,
        events: &[Event],
        session: &Session,
        output: &mut Output,
    ) -> Result<(), Problem> {
        let hits = events.iter().filter(|event| matches!(event, Event::Hit(_))).count();
        if self.may_turn && self.table.is_none() && self.too_fast(hits) {
            self.table = Some(Table { drawn: None, height: 0 });
        }
        if let Some(table) = &mut self.table {
            return table.draw(session, output);
        }
        let text = self.lines(events);
        if text.is_empty() { Ok(()) } else { output.write(&text) }
    }

    fn lines(&self, events: &[Event]) -> String {
        let mut text = String::new();
        for event in events {
            self.line(event, &mut text);
        }
        text
    }

    /// Shows the last events; takes a table off the screen, for the closing one.
    pub(crate) fn end(&mut self, events: &[Event], output: &mut Output) -> Result<(), Problem> {
        let text = match &self.table {
            Some(table) => table.erase(),
            None => self.lines(events),
        };
        if text.is_empty() { Ok(()) } else { output.write(&text) }
    }

    fn too_fast(&mut self, hits: usize) -> bool {
        let now = Instant::now();
        self.recent.extend(std::iter::repeat_n(now, hits.min(READABLE + 1)));
        while self.recent.front().is_some_and(|then| now - *then > Duration::from_secs(1)) {
            self.recent.pop_front();
        }
        self.recent.len() > READABLE
    }

    /// The line of one event; births and ends have none.
    fn line(&self, event: &Event, text: &mut String) {
        let time = |time_ns| text::since(time_ns, self.ready_ns);
        let (dim, warn) = (style::DIM, style::WARN);
        // Writing to a string can't fail.
        let _ = match event {
            Event::Hit(hit) => {
                self.hit(hit, text);
                Ok(())
            }
            Event::Rebind(rebind) => {
                let to = rebind.new.map_or_else(|| "off".into(), |span| span.to_string());
                writeln!(
                    text,
                    "{dim}{:>11}{dim:#}  watch {}: {} -> {warn}{to}{warn:#} ({}; generation {}, blind {})",
                    time(rebind.time_ns),
                    rebind.watch,
                    rebind.old.map_or_else(|| "off".into(), |span| span.to_string()),
                    rebind.reason,
                    rebind.generation,
                    humantime::format_duration(rebind.blind),
                )
            }
            Event::Lost(lost) => {
                writeln!(
                    text,
                    "{warn}watch {}: {} lost, the ring was full{warn:#}",
                    lost.watch,
                    text::count(lost.records, "hit")
                )
            }
            Event::Loaded(loaded) => writeln!(
                text,
                "watch {}: its library was loaded, armed at {} (blind {})",
                loaded.watch,
                loaded.span,
                humantime::format_duration(loaded.blind),
            ),
            Event::Thread(ThreadChange { change: Change::Born { .. } | Change::Ended, .. }) => {
                Ok(())
            }
            _ => Ok(()),
        };
    }

    fn hit(&self, hit: &Hit, text: &mut String) {
        let (dim, place, value) = (style::DIM, style::PLACE, style::VALUE);
        let thread = format!("{} ({})", hit.thread, hit.tid);
        let _ = writeln!(
            text,
            "{dim}{:>11}{dim:#}  {thread:24} {:10} {value}{:>26}{value:#}  {place}{}{place:#}",
            text::since(hit.time_ns, self.ready_ns),
            hit.access.to_string(),
            text::change(hit),
            text::site(&hit.site),
        );
        if !self.registers {
            return;
        }
        if let Some(instruction) = &hit.site.instruction {
            let _ = writeln!(text, "    {}  {instruction}", hit.site.address);
        }
        if let Some(inlined) = text::inlined(&hit.site) {
            let _ = writeln!(text, "    {dim}{inlined}{dim:#}");
        }
        for row in hit.registers.iter().flat_map(Registers::named).collect::<Vec<_>>().chunks(4) {
            let columns = row.iter().map(|(name, value)| format!("{name:>6} {value:016x}"));
            let _ = writeln!(text, "    {}", columns.collect::<Vec<_>>().join(" "));
        }
    }
}

impl Table {
    /// Draws it in the place of the one before, if it is time.
    fn draw(&mut self, session: &Session, output: &mut Output) -> Result<(), Problem> {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        let (width, height) = terminal();
        let mut text = self.erase();
        let body = summary::standing(session, width, height.saturating_sub(2));
        self.height = body.lines().count();
        text.push_str(&body);
        output.write(&text)
    }

    /// Up to its first line, and clear to the end of the screen (ECMA-48: CUU, ED).
    fn erase(&self) -> String {
        if self.height == 0 { String::new() } else { format!("\r\x1b[{}A\x1b[J", self.height) }
    }
}

/// Columns and lines of the terminal.
fn terminal() -> (usize, usize) {
    terminal_size::terminal_size()
        .map_or((100, 24), |(width, height)| (width.0.into(), height.0.into()))
}
