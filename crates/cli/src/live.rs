//! What a session shows while it runs: a line a hit, or, where hits come faster than a person reads,
//! a table that is drawn anew.

use crate::lines::Lines;
use crate::output::Output;
use crate::problem::Problem;
use crate::text::{self, style};
use crate::writers;
use hairspring::watch::{Event, Session, Standing};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Hits a second that a person can still read.
const READABLE: usize = 20;

/// How often the table is drawn.
const REDRAW: Duration = Duration::from_millis(250);

/// The live view of one session.
pub(crate) struct Live {
    lines: Lines,
    /// Whether lines may turn into a table: a person looks at it.
    may_turn: bool,
    /// The hits of the last second.
    recent: VecDeque<Instant>,
    table: Option<Table>,
    /// Whether there are lines above what comes next.
    written: bool,
}

/// The table that the lines have turned into.
#[derive(Default)]
struct Table {
    /// When it was drawn, and the hits until then; `None` until it is.
    drawn: Option<(Instant, u64)>,
    /// Lines on the screen.
    height: usize,
}

impl Live {
    pub(crate) fn new(ready_ns: u64, registers: bool, may_turn: bool) -> Self {
        let lines = Lines::new(ready_ns, registers);
        Self { lines, may_turn, recent: VecDeque::new(), table: None, written: false }
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
            let dim = style::DIM;
            let turn = "hits come faster than lines can be read: by writer from here on";
            output.write(&format!("{dim}{turn}{dim:#}\n"))?;
            self.table = Some(Table::default());
        }
        match &mut self.table {
            Some(table) => table.draw(session, output),
            None => self.write(events, output),
        }
    }

    /// Shows the last events; takes a table off the screen, for the closing one.
    pub(crate) fn end(&mut self, events: &[Event], output: &mut Output) -> Result<(), Problem> {
        if let Some(table) = &self.table {
            return output.erase(table.height);
        }
        self.write(events, output)?;
        if self.written { output.write("\n") } else { Ok(()) }
    }

    fn write(&mut self, events: &[Event], output: &mut Output) -> Result<(), Problem> {
        let text = self.lines.render(events);
        if text.is_empty() {
            return Ok(());
        }
        self.written = true;
        output.write(&text)
    }

    fn too_fast(&mut self, hits: usize) -> bool {
        let now = Instant::now();
        self.recent.extend(std::iter::repeat_n(now, hits.min(READABLE + 1)));
        while self.recent.front().is_some_and(|then| now - *then > Duration::from_secs(1)) {
            self.recent.pop_front();
        }
        self.recent.len() > READABLE
    }
}

impl Table {
    /// Draws it in the place of the one before, if it is time.
    fn draw(&mut self, session: &Session, output: &mut Output) -> Result<(), Problem> {
        let now = Instant::now();
        if self.drawn.is_some_and(|(drawn, _)| now - drawn < REDRAW) {
            return Ok(());
        }
        let standing = session.standing();
        let hits = standing.iter().map(|watch| watch.hits).sum();
        let rate = self.drawn.map(|(drawn, before)| rate(hits - before, now - drawn));
        self.drawn = Some((now, hits));
        let (width, height) = terminal();
        output.erase(self.height)?;
        let text = screen(&standing, session.ready_ns(), session.age(), rate, (width, height));
        self.height = text.lines().count();
        output.write(&text)
    }
}

/// Hits a second.
fn rate(hits: u64, time: Duration) -> u64 {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
    hits.saturating_mul(1_000_000) / micros
}

/// The tables of a session that goes on, and how it goes, in a screen's worth of lines: those that
/// would scroll away could not be taken back.
pub(crate) fn screen(
    standing: &[Standing],
    ready_ns: u64,
    age: Duration,
    rate: Option<u64>,
    (width, height): (usize, usize),
) -> String {
    // The cursor is on a line of its own below, and the last column may wrap.
    let (width, most) = (width.saturating_sub(1), height.saturating_sub(2));
    let tables: String = standing
        .iter()
        .enumerate()
        .map(|(index, watch)| writers::table(index, watch, ready_ns, Some(width)))
        .collect();
    let hidden = tables.lines().count().saturating_sub(most);
    let text = tables.lines().take(most).fold(String::new(), |text, line| text + line + "\n");
    let mut foot = vec![format!("{:.1} s", age.as_secs_f64())];
    foot.extend(rate.map(|rate| format!("{rate} hits/s")));
    if hidden > 0 {
        foot.push(format!("{} not shown", text::count(hidden as u64, "line")));
    }
    foot.push("Ctrl-C ends the session".into());
    let dim = style::DIM;
    text + &format!("{dim}{}{dim:#}\n", text::cut(&foot.join(", "), width))
}

/// Columns and lines of the terminal.
fn terminal() -> (usize, usize) {
    terminal_size::terminal_size()
        .map_or((80, 24), |(width, height)| (width.0.into(), height.0.into()))
}
