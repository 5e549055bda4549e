//! The hairspring command: one file a verb, rendering, exit codes.

mod args;
mod demo;
mod doctor;
mod exit;
mod generate;
#[cfg(test)]
mod golden;
mod json;
mod lines;
mod live;
mod output;
mod problem;
mod program;
#[cfg(test)]
mod sample;
mod summary;
mod text;
mod watch;
mod writers;

use args::{Cli, Verb};
use clap::Parser;
use exit::Exit;
use problem::Problem;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Cli::parse().verb {
        Verb::Watch(args) => watch::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Demo => demo::run(),
        Verb::Completions(args) => generate::completions(&args),
        Verb::Man(args) => generate::man(&args),
        Verb::Schema => generate::schema(),
        Verb::Program => {
            program::run();
            Ok(Exit::Done)
        }
    };
    outcome.unwrap_or_else(Problem::report).into()
}
