//! `cargo xtask ci`: the steps, each under a heading and with its time, and a summary.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::checks;
use crate::tracked;

/// Whether `ci` runs the tests itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tests {
    /// As one of the steps.
    Run,
    /// Not: they were run before.
    Skip,
}

/// What a step is made of.
enum Work {
    /// A cargo command, with environment variables.
    Cargo(&'static [&'static str], &'static [(&'static str, &'static str)]),
    /// The checks of the tracked text.
    Text,
}

struct Step {
    name: &'static str,
    work: Work,
}

struct Outcome {
    name: &'static str,
    passed: bool,
    time: Duration,
}

const STEPS: &[Step] = &[
    Step { name: "format", work: Work::Cargo(&["fmt", "--all", "--check"], &[]) },
    Step { name: "text", work: Work::Text },
    Step {
        name: "lints",
        work: Work::Cargo(
            &["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"],
            &[],
        ),
    },
    Step {
        name: "documentation",
        work: Work::Cargo(
            &["doc", "--workspace", "--no-deps", "--document-private-items"],
            &[("RUSTDOCFLAGS", "--deny warnings")],
        ),
    },
];

const TESTS: Step = Step { name: "tests", work: Work::Cargo(&["test", "--workspace"], &[]) };

/// Runs every step, also after one has failed, and says at the end how each went.
pub(crate) fn run(tests: Tests) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace");
    let steps = STEPS.iter().chain((tests == Tests::Run).then_some(&TESTS));
    let outcomes: Vec<Outcome> = steps.map(|step| step.run(root)).collect();

    println!("\n== summary");
    for Outcome { name, passed, time } in &outcomes {
        let verdict = if *passed { "passed" } else { "FAILED" };
        println!("{verdict}  {:>7.1} s  {name}", time.as_secs_f64());
    }
    if outcomes.iter().all(|outcome| outcome.passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Step {
    fn run(&self, root: &Path) -> Outcome {
        println!("\n== {}", self.name);
        let start = Instant::now();
        let passed = match self.work {
            Work::Cargo(arguments, environment) => cargo(root, arguments, environment),
            Work::Text => text(root),
        };
        let time = start.elapsed();
        println!("-- {}: {:.1} s", self.name, time.as_secs_f64());
        Outcome { name: self.name, passed, time }
    }
}

fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> bool {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    match Command::new(cargo)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root)
        .status()
    {
        Ok(status) => status.success(),
        Err(error) => {
            println!("cargo {}: {error}", arguments.join(" "));
            false
        }
    }
}

fn text(root: &Path) -> bool {
    let files = match tracked::files(root) {
        Ok(files) => files,
        Err(error) => {
            println!("listing the tracked files: {error}");
            return false;
        }
    };
    println!("{} files", files.len());
    let findings: Vec<_> =
        files.iter().flat_map(|file| checks::all(&file.path, &file.text)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    findings.is_empty()
}
