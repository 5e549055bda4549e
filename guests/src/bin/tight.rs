//! `tight`: threads that write in a tight loop, for a number of writes or until told `stop`.
//!
//! Flags: `--threads=2 --writes=0 --instruction=mov|xadd|add`; `--writes=0` means until `stop`.
//! Ready: `field`, `site`. `go` starts the loops; without `--writes`, the line `running` follows
//! once every thread has written, and the line `stop` ends them. Done: `final`, `nanoseconds`
//! (from the release of the threads until all have stopped).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use hairspring_guests::{Crew, Field, Flags, Instruction, Line, next_command};

#[unsafe(no_mangle)]
static PACKETS_SEEN: Field = Field::new(0);

#[derive(Default)]
struct Round {
    stop: AtomicBool,
    started: AtomicUsize,
    writes: AtomicU64,
}

fn main() {
    let mut flags = Flags::from_args();
    let threads: usize = flags.get("threads", 2);
    let writes: u64 = flags.get("writes", 0);
    let instruction = flags.get("instruction", Instruction::Mov);
    flags.finish();

    let round = Arc::new(Round::default());
    let seen = Arc::clone(&round);
    let crew = Crew::parked("tight", threads, move |_| {
        let limit = if writes == 0 { u64::MAX } else { writes };
        let mut made = 0;
        while made < limit && (writes != 0 || made == 0 || !seen.stop.load(Ordering::Relaxed)) {
            made += 1;
            // SAFETY: the place is a static.
            unsafe { instruction.write(PACKETS_SEEN.place(), made) };
            if made == 1 {
                seen.started.fetch_add(1, Ordering::AcqRel);
            }
        }
        seen.writes.fetch_add(made, Ordering::AcqRel);
    });
    Line::ready()
        .address("field", PACKETS_SEEN.place())
        .hex("site", instruction.site() as u64)
        .value("threads", threads)
        .print();
    while next_command().is_some() {
        round.stop.store(false, Ordering::Release);
        round.started.store(0, Ordering::Release);
        round.writes.store(0, Ordering::Release);
        let start = Instant::now();
        crew.release();
        if writes == 0 {
            while round.started.load(Ordering::Acquire) < threads {
                std::thread::yield_now();
            }
            Line::new("running").print();
            // Whatever comes, or the end of stdin, stops the round.
            let _ = next_command();
            round.stop.store(true, Ordering::Release);
        }
        crew.wait();
        let nanoseconds = start.elapsed().as_nanos();
        Line::done(round.writes.load(Ordering::Acquire), 1)
            .hex("final", PACKETS_SEEN.peek())
            .value("nanoseconds", nanoseconds)
            .print();
    }
}
