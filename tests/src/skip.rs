//! Skips that are seen, counted, and can be made failures.
//!
//! A test that can't run here says so by [`skip!`](crate::skip!): a line `SKIP: ...` on stderr, past
//! the capture of test output, and a line in `skips.txt` in the target directory, so that a run
//! can end with their number. The environment variable `HAIRSPRING_REQUIRE` lists the needs that
//! must be met (`root,breakpoints`, or `all`): a skip for one of them is a failure.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;

use crate::artifacts::target_directory;

/// What a test may need from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// To be root.
    Root,
    /// Breakpoint events that can be opened and fire.
    Breakpoints,
    /// Hardware performance counters.
    Pmu,
    /// A program that is not part of this repository: gdb, a database server.
    Program,
    /// A processor with an extension.
    Processor,
    /// A kernel at least as new as the test needs.
    Kernel,
}

impl fmt::Display for Need {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Root => "root",
            Self::Breakpoints => "breakpoints",
            Self::Pmu => "pmu",
            Self::Program => "program",
            Self::Processor => "processor",
            Self::Kernel => "kernel",
        })
    }
}

/// Skips the rest of the test: `skip!(Need::Root, "only root can become nobody")`.
///
/// The reason is a format string with arguments. The macro returns from the function, which must
/// return `()`.
#[macro_export]
macro_rules! skip {
    ($need:expr, $($reason:tt)+) => {{
        $crate::report_skip($need, module_path!(), line!(), &format!($($reason)+));
        return;
    }};
}

/// Reports a skip; panics if the need is required. Used by [`skip!`](crate::skip!).
pub fn report_skip(need: Need, module: &str, line: u32, reason: &str) {
    let test = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let text = format!("SKIP: {module}::{test} (line {line}): needs {need}: {reason}\n");
    let required = std::env::var("HAIRSPRING_REQUIRE").unwrap_or_default();
    assert!(!is_required(need, &required), "required by HAIRSPRING_REQUIRE={required}: {text}");
    // Not `eprint!`, which the test harness captures.
    std::io::stderr().write_all(text.as_bytes()).expect("stderr is open");
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(target_directory().join("skips.txt"))
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .expect("the target directory can be written");
}

fn is_required(need: Need, required: &str) -> bool {
    required.split(',').map(str::trim).any(|name| name == "all" || name == need.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Need, is_required};

    #[test]
    fn needs_are_required_by_name() {
        let check = |required, expected| assert_eq!(is_required(Need::Root, required), expected);
        check("", false);
        check("root", true);
        check("breakpoints, root", true);
        check("breakpoints", false);
        check("all", true);
        check("rooted", false);
    }
}
