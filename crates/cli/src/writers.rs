//! The table by writer: pure.
//!
//! Columns are as wide as what is in them. The sites come last, where their length does no harm.

use crate::text::{self, style};
use hairspring::watch::{Standing, Writer};
use std::fmt::Write;

/// The least room for the sites of a table that is cut to a width: other columns give way first.
const SITE_ROOM: usize = 30;

/// The heads of all columns but the sites'. Those of the first column are on the right.
const HEADS: [&str; 6] = ["hits", "thread", "access", "first", "last", "last value"];

/// Columns that are words, and begin on the left.
const WORDS: [bool; 6] = [false, true, true, false, false, false];

/// What to do without in a narrow table, in this order: `first`, `access`, `last`.
const GIVING_WAY: [usize; 3] = [3, 2, 4];

/// The table of one watch. Where a width is given, no line is longer.
pub(crate) fn table(
    index: usize,
    standing: &Standing,
    ready_ns: u64,
    width: Option<usize>,
) -> String {
    let (head, dim, place) = (style::HEAD, style::DIM, style::PLACE);
    let hits = text::count(standing.hits, "hit");
    let name = format!("watch {index}  {}", standing.name);
    let title = match width {
        // The figure is what changes, and stays in sight.
        Some(width) => {
            let name = text::cut(&name, width.saturating_sub(hits.len() + 2));
            text::cut(&format!("{name}  {hits}"), width)
        }
        None => format!("{name}  {hits}"),
    };
    let mut text = format!("{head}{title}{head:#}\n");
    if standing.writers.is_empty() {
        return text;
    }
    let rows: Vec<[String; 6]> =
        standing.writers.iter().map(|writer| cells(writer, ready_ns)).collect();
    let columns = Columns::of(&rows, width);
    let cut = |line: &str, room: Option<usize>| {
        room.map_or_else(|| line.to_owned(), |room| text::cut(line, room))
    };
    let room = width.map(|width| width.saturating_sub(columns.width()));
    let heads = columns.line(&HEADS);
    // Writing to a string can't fail.
    let _ = writeln!(text, "{dim}{}{dim:#}", cut(&format!("{heads}site"), width));
    for (writer, row) in standing.writers.iter().zip(&rows) {
        let row: [&str; 6] = std::array::from_fn(|column| row[column].as_str());
        let site = cut(&text::site(&writer.site), room);
        let figures = cut(&columns.line(&row), width);
        let site = if room == Some(0) { "" } else { &site };
        let _ = writeln!(text, "{figures}{place}{site}{place:#}");
    }
    text
}

fn cells(writer: &Writer, ready_ns: u64) -> [String; 6] {
    [
        writer.hits.to_string(),
        match writer.threads {
            1 => writer.thread.to_string(),
            more => format!("{more} threads"),
        },
        writer.access.to_string(),
        text::since(writer.first_ns, ready_ns),
        text::since(writer.last_ns, ready_ns),
        writer.last_value.as_ref().map_or_else(|| "?".into(), text::new),
    ]
}

/// How wide each column is; `None` for one that has given way.
struct Columns([Option<usize>; 6]);

impl Columns {
    fn of(rows: &[[String; 6]], width: Option<usize>) -> Self {
        let widest = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([HEADS[column].len()]).max()
        };
        let mut columns = Self(std::array::from_fn(widest));
        // Numbers that grow should not move everything each time.
        columns.0[0] = columns.0[0].max(Some(9));
        for column in GIVING_WAY {
            if width.is_some_and(|width| columns.width() + SITE_ROOM > width) {
                columns.0[column] = None;
            }
        }
        columns
    }

    /// Of all columns, with the spaces behind them.
    fn width(&self) -> usize {
        self.0.iter().flatten().map(|width| width + 2).sum()
    }

    fn line(&self, cells: &[&str; 6]) -> String {
        let shown = (0..cells.len()).filter_map(|column| Some((column, self.0[column]?)));
        shown.fold(String::new(), |mut line, (column, width)| {
            let cell = cells[column];
            let _ = if WORDS[column] {
                write!(line, "{cell:width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
            line
        })
    }
}
