//! Where the data goes: stdout, or a file.

use crate::problem::Problem;
use anstream::AutoStream;
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

    /// Whether a person is looking at it.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Stdout(_)) && io::stdout().is_terminal()
    }

    /// Writes all of it, in one go, so that a line is never seen in part.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Problem> {
        let failed = Problem::io("can't write the output");
        let stream: &mut dyn Write = match self {
            Self::Stdout(stream) => stream,
            Self::File(stream) => stream,
        };
        let mut whole = BufWriter::with_capacity(text.len().max(1), stream);
        whole.write_all(text.as_bytes()).and_then(|()| whole.flush()).map_err(failed)
    }
}
