//! Developer tasks: `cargo xtask TASK`.
//!
//! - `ci [--no-tests]`: everything that must hold before a change lands, in the order of how soon
//!   it fails. Without tests: what is left once `cargo test --workspace` has passed.
//! - `bench [NAME]`: the figures of `docs/figures.md`, measured on this machine. A name such as
//!   `watch/churn` or `watch` chooses.
//!
//! Each check of the text is a file of `checks`: a pure function from a path and a text to
//! findings.

mod bench;
mod checks;
mod ci;
mod tracked;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["ci"] => ci::run(ci::Tests::Run),
        ["ci", "--no-tests"] => ci::run(ci::Tests::Skip),
        ["bench"] => bench::run(""),
        ["bench", name] => bench::run(name),
        _ => {
            eprintln!("usage: cargo xtask ci [--no-tests]\n       cargo xtask bench [NAME]");
            ExitCode::from(2)
        }
    }
}
