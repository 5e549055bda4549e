//! `execer`: replaces itself by a new copy of itself.
//!
//! Flags: `--threads=2 --writes=10 --from=leader|thread`. Ready: `field`, `site`, `execs` (how
//! often it has been replaced so far). `go` makes the main thread write. `exec` executes the
//! program anew, with the same flags, from the main thread or from another one, while the other
//! threads are alive; the new copy prints its own `ready` line and has the same pid.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use hairspring_guests::{Crew, Field, Flags, Instruction, Line, next_command, spawn};

#[unsafe(no_mangle)]
static ACCOUNT: Field = Field::new(0);

fn main() {
    let mut flags = Flags::from_args();
    let threads: usize = flags.get("threads", 2);
    let writes: u64 = flags.get("writes", 10);
    let from = flags.get("from", "leader".to_owned());
    let execs: u64 = flags.get("execs", 0);
    flags.finish();

    let _alive = Crew::parked("bystander", threads, |_| {});
    Line::ready()
        .address("field", ACCOUNT.place())
        .hex("site", Instruction::Xadd.site() as u64)
        .value("execs", execs)
        .print();
    while let Some(command) = next_command() {
        if command == "exec" {
            let again = [
                format!("--threads={threads}"),
                format!("--writes={writes}"),
                format!("--from={from}"),
                format!("--execs={}", execs + 1),
            ];
            if from == "thread" {
                let executing = spawn("executing".to_owned(), move || exec(&again));
                // This thread is ended by the other one's exec.
                executing.join().expect("the thread does not return");
            } else {
                exec(&again);
            }
        } else {
            for value in 0..writes {
                // SAFETY: the place is a static.
                unsafe { Instruction::Xadd.write(ACCOUNT.place(), value) };
            }
            Line::done(writes, 1).hex("final", ACCOUNT.peek()).print();
        }
    }
}

fn exec(arguments: &[String]) {
    let error = Command::new("/proc/self/exe").args(arguments).exec();
    panic!("exec: {error}");
}
