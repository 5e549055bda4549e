//! Checks of the text of tracked files.

mod architecture;
mod code;
mod length;
mod markers;
mod names;
mod paths;
mod unsafety;

use std::fmt;

/// Something that must not be so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 for the file as a whole.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.path, self.message),
            line => write!(formatter, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// A check: a path relative to the root and the text there, to what is wrong with it.
type Check = fn(path: &str, text: &str) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    architecture::check,
    length::check,
    markers::check,
    names::check,
    paths::check,
    unsafety::check,
];

/// Everything that is wrong with a file.
pub(crate) fn all(path: &str, text: &str) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(path, text)).collect()
}

fn is_rust(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// The lines that a check finds, for the tests of the checks.
#[cfg(test)]
fn found(check: Check, path: &str, text: &str) -> Vec<usize> {
    check(path, text).iter().map(|finding| finding.line).collect()
}
