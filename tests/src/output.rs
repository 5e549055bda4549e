//! The lines of a child's output, without waiting for ever.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a child may say nothing. No test is meant to come near it: it turns a hang into a
/// failure, on a slow machine too.
const PATIENCE: Duration = Duration::from_mins(3);

/// The lines of one output, in order.
#[derive(Debug)]
pub(crate) struct Output {
    whose: String,
    lines: Receiver<String>,
}

impl Output {
    /// Reads `source` to its end on a thread of its own, so that the child never blocks.
    pub(crate) fn new(whose: String, source: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(source).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { whose, lines }
    }

    /// The next line; `None` at the end of the output. Panics if it takes too long.
    pub(crate) fn next_line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} said nothing for {PATIENCE:?}", self.whose)
            }
        }
    }
}
