//! Guests and the command, each on the processors that it is given.

use std::path::Path;
use std::process::Command;

use hairspring_tests::{Guest, Hairspring, Line, Process, guest_program, hairspring_program};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// A list of processors as taskset(1) takes it.
pub(crate) type Cpus = &'static str;

/// A program on these processors.
pub(crate) fn command(cpus: Cpus, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(cpus).arg(program);
    command
}

/// A guest that is ready.
pub(crate) fn guest(cpus: Cpus, name: &str, flags: &[&str]) -> Guest {
    let mut command = command(cpus, &guest_program(name));
    command.args(flags);
    Guest::start_command(name, command)
}

/// `hairspring watch ARGUMENTS... --pid PID`, armed.
pub(crate) fn watch(cpus: Cpus, pid: u32, arguments: &[&str]) -> Hairspring {
    let mut command = command(cpus, &hairspring_program());
    command.arg("watch").args(arguments).args(["--pid", &pid.to_string()]);
    let mut watching = Hairspring::start_command(command);
    watching.await_ready();
    watching
}

/// The bytes of the guest's field, as the command takes them.
pub(crate) fn place(guest: &Guest, bytes: u64) -> String {
    format!("{:#x}:{bytes}:w", guest.address("field"))
}

/// Lets the guest run its scenario; with the nanoseconds of processor time that its threads took for
/// it. They are the same whoever else uses the machine, or nearly so.
pub(crate) fn run(guest: &mut Guest) -> (Line, u64) {
    let before = processor_ns(guest.pid());
    let done = guest.run();
    (done, processor_ns(guest.pid()).saturating_sub(before))
}

/// The time on a processor of the threads that a process has, `/proc/PID/task/TID/schedstat`
/// (Documentation/scheduler/sched-stats.rst).
fn processor_ns(pid: u32) -> u64 {
    let of_thread = |tid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Process::new(pid).threads().into_iter().filter_map(of_thread).sum()
}

/// A descriptor is needed for each thread, slot and processor.
pub(crate) fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Where it can't be raised, opening events says that there are not enough.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
