//! `signals`: writes from a signal handler, and threads that die by a signal.
//!
//! Flags: `--threads=4 --writes=10 --mode=handler|fatal --signal=11`. Ready: `field`, `site`.
//!
//! - `handler`: on `go` every thread sends itself SIGUSR1, whose handler writes `--writes` times,
//!   on the thread's alternate stack. Done: `final`.
//! - `fatal`: on `go` every thread writes, then `done` is printed, then one thread (not the main
//!   one) sends itself the signal, with its default action, which ends the process.

use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_guests::{Crew, Field, Flags, Instruction, Line, next_command, spawn};

#[unsafe(no_mangle)]
static ALARMS: Field = Field::new(0);

/// How often the handler writes; a handler has no other arguments.
static WRITES: AtomicU64 = AtomicU64::new(0);

fn write() {
    for value in 0..WRITES.load(Ordering::Relaxed) {
        // SAFETY: the place is a static.
        unsafe { Instruction::Xadd.write(ALARMS.place(), value) };
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    write();
}

fn main() {
    let mut flags = Flags::from_args();
    let threads: usize = flags.get("threads", 4);
    let writes: u64 = flags.get("writes", 10);
    let mode = flags.get("mode", "handler".to_owned());
    let signal: i32 = flags.get("signal", libc::SIGSEGV);
    flags.finish();
    WRITES.store(writes, Ordering::Relaxed);

    let handler = mode == "handler";
    install(libc::SIGUSR1, on_signal as *const () as libc::sighandler_t);
    // The runtime reports a stack overflow by a handler of its own; here the default counts.
    install(signal, libc::SIG_DFL);
    let crew = Crew::parked("signalled", threads, move |_| {
        if handler {
            // SAFETY: the handler makes atomic accesses only.
            unsafe { libc::raise(libc::SIGUSR1) };
        } else {
            write();
        }
    });
    Line::ready()
        .address("field", ALARMS.place())
        .hex("site", Instruction::Xadd.site() as u64)
        .value("threads", threads)
        .print();
    while next_command().is_some() {
        crew.run();
        Line::done(writes * threads as u64, 1).hex("final", ALARMS.peek()).print();
        if !handler {
            let dying = spawn("dying".to_owned(), move || {
                // SAFETY: ends this process, as wanted.
                unsafe { libc::raise(signal) };
            });
            dying.join().expect("no thread panics");
        }
    }
}

/// Sets the action of a signal: a handler on the alternate stack, or the default.
fn install(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: all bytes zero is a valid action without flags and mask.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = action;
    new.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the action is complete and lives for the call.
    let result = unsafe { libc::sigaction(signal, &raw const new, std::ptr::null_mut()) };
    assert_eq!(result, 0, "sigaction: {}", std::io::Error::last_os_error());
}
