//! `count COMMAND...`: ticks of every thread of a command, by single-stepping.

use hairspring_model::{Pid, Ticks, Tid};
use hairspring_timer::{Error, Session, StepEngine, Tool};
use hairspring_trace::{End, Guest, Launch};
use std::process::Command;

/// Prints each thread's ticks when it ends.
#[derive(Default)]
struct Count {
    total: u64,
}

impl Tool for Count {
    fn on_exit(&mut self, tid: Tid, _: Pid, ticks: Ticks, end: End) -> Result<(), Error> {
        self.total += ticks.0;
        eprintln!("thread {tid}: {ticks} ticks, {end}");
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args_os().skip(1);
    let mut command = Command::new(arguments.next().unwrap_or_else(|| "true".into()));
    command.args(arguments);
    let guest = Guest::launch(command, Launch { randomize: false, ..Launch::default() })?;
    let mut count = Count::default();
    Session::new(guest, Box::new(StepEngine)).run(&mut count)?;
    eprintln!("total: {} ticks", count.total);
    Ok(())
}
