//! `cargo xtask bench [NAME]`: the figures of `docs/figures.md`, measured here and now.
//!
//! `NAME` is the start of a figure's name: `watch` is all of them, `watch/churn` is one. Figures are
//! compared side by side, in alternating rounds of one run; what is not installed is left out and
//! said so. Nothing here passes or fails: a figure is not a test.

mod bare;
mod machine;
mod perf_record;
mod pinned;
mod table;
mod watch;

use std::process::{Command, ExitCode};

/// A figure: its name, what it is, and how to get it.
pub(crate) struct Figure {
    name: &'static str,
    what: &'static str,
    measure: fn(),
}

/// Measures the figures whose names start with `name`.
pub(crate) fn run(name: &str) -> ExitCode {
    if cfg!(debug_assertions) {
        return in_release(name);
    }
    let chosen: Vec<&Figure> =
        watch::FIGURES.iter().filter(|figure| figure.name.starts_with(name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = watch::FIGURES.iter().map(|figure| figure.name).collect();
        eprintln!("no figure is called {name}; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    pinned::raise_descriptor_limit();
    machine::print();
    for figure in chosen {
        println!("\n## {}\n\n{}\n", figure.name, figure.what);
        (figure.measure)();
    }
    ExitCode::SUCCESS
}

/// Runs the same task again from a release build: the library is timed in this process.
fn in_release(name: &str) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--release", "--quiet", "--package", "hairspring-xtask", "--", "bench", name])
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo can't be run: {error}");
            ExitCode::FAILURE
        }
    }
}
