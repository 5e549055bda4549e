//! Where the data goes: stdout, or a file.

use crate::problem::Problem;
use anstream::AutoStream;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// The data's way out. Colours are kept only where they are wanted: terminals, without `NO_COLOR`.
pub(crate) enum Output {
    Stdout(AutoStream<io::Stdout>),
    File(AutoStream<File>),
}

impl Output {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Problem> {
        let Some(path) = path else {
            return Ok(Self::Stdout(AutoStream::auto(io::stdout())));
        };
        let file = File::create(path);
        let file = file.map_err(Problem::io(format!("can't write to {}", path.display())))?;
        Ok(Self::File(AutoStream::never(file)))
    }

    /// Whether what was written can be taken back: by a terminal that moves its cursor.
    pub(crate) fn can_erase(&self) -> bool {
        matches!(self, Self::Stdout(_))
            && io::stdout().is_terminal()
            && moves_cursor(std::env::var_os("TERM").as_deref())
    }

    /// Writes all of it, in one go, so that a line is never seen in part.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Problem> {
        let stream: &mut dyn Write = match self {
            Self::Stdout(stream) => stream,
            Self::File(stream) => stream,
        };
        write_whole(stream, text)
    }

    /// Takes back so many lines: up to the start of the first of them, and clear to the end of the
    /// screen (ECMA-48: CR, CUU, ED). The cursor may stand behind the `^C` that a terminal echoes. Only where [`Output::can_erase`]; these are no colours, so that they
    /// are sent under `NO_COLOR` too.
    pub(crate) fn erase(&mut self, lines: usize) -> Result<(), Problem> {
        match self {
            Self::Stdout(_) if lines > 0 => {
                write_whole(&mut io::stdout(), &format!("\r\x1b[{lines}A\x1b[J"))
            }
            _ => Ok(()),
        }
    }
}

fn write_whole(stream: &mut dyn Write, text: &str) -> Result<(), Problem> {
    let failed = Problem::io("can't write the output");
    let mut whole = BufWriter::with_capacity(text.len().max(1), stream);
    whole.write_all(text.as_bytes()).and_then(|()| whole.flush()).map_err(failed)
}

/// Whether a terminal of this name moves its cursor.
fn moves_cursor(term: Option<&OsStr>) -> bool {
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumb_terminals_keep_what_they_have_shown() {
        for (term, expected) in
            [(None, false), (Some(""), false), (Some("dumb"), false), (Some("xterm"), true)]
        {
            assert_eq!(moves_cursor(term.map(OsStr::new)), expected, "{term:?}");
        }
    }
}
