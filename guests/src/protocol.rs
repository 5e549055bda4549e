//! The lines between a guest and its test.

use std::fmt::{Display, Write as _};
use std::io::{BufRead, Write as _};

/// One line of output: a word, then `key=value` pairs.
#[derive(Debug)]
#[must_use = "a line is printed by `print`"]
pub struct Line {
    text: String,
}

impl Line {
    /// The line that says that everything is set up; it carries the process id.
    pub fn ready() -> Self {
        Self::new("ready").value("pid", std::process::id())
    }

    /// The line that ends a scenario, with the exact numbers of accesses that it made.
    pub fn done(writes: u64, reads: u64) -> Self {
        Self::new("done").value("writes", writes).value("reads", reads)
    }

    /// A line that starts with `word`.
    pub fn new(word: &str) -> Self {
        Self { text: word.to_owned() }
    }

    /// Adds a count or a word; `value` must print without blanks.
    pub fn value(mut self, key: &str, value: impl Display) -> Self {
        write!(self.text, " {key}={value}").expect("writing to a string succeeds");
        self
    }

    /// Adds a value in hexadecimal.
    pub fn hex(self, key: &str, value: u64) -> Self {
        self.value(key, format_args!("{value:#x}"))
    }

    /// Adds the address that `pointer` holds.
    pub fn address<T>(self, key: &str, pointer: *const T) -> Self {
        self.value(key, format_args!("{:#x}", pointer.addr()))
    }

    /// Prints the line and flushes it. If nobody listens any more, the guest ends quietly.
    pub fn print(self) {
        let mut stdout = std::io::stdout().lock();
        if writeln!(stdout, "{}", self.text).and_then(|()| stdout.flush()).is_err() {
            std::process::exit(0);
        }
    }
}

/// The next line of stdin, trimmed; `None` at its end, when the guest is to end.
pub fn next_command() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}
