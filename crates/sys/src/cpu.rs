//! Processors: binding a thread to one, and what the processor says of itself.

use hairspring_model::Cpu;
use nix::sched::{CpuSet, sched_setaffinity};
use std::io;

/// Binds the calling thread to one processor.
///
/// # Errors
/// `EINVAL` where the processor is offline or outside the thread's cpuset.
pub fn bind_this_thread(cpu: Cpu) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu.0 as usize)?;
    let this_thread = nix::unistd::Pid::from_raw(0);
    Ok(sched_setaffinity(this_thread, &set)?)
}

/// `CLOCK_MONOTONIC` in nanoseconds: the clock of the records of events with that clock id.
pub fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    // The call can't fail for this clock (clock_gettime(2)), which is never negative.
    now.map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
