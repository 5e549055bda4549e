//! `exiter`: ends on `go`, or lets only its main thread end.
//!
//! Flags: `--writes=10 --what=process|leader|killed --status=0`. Ready: `field`, `site`. Done:
//! `final`, printed before the process ends.
//!
//! - `process`: writes, prints `done`, exits with the status at once.
//! - `leader`: the main thread ends *before* the writes and stays as a zombie, as leaders do while
//!   other threads live; another thread then writes and prints `done` with `leader=zombie`,
//!   and waits for the end of stdin.
//! - `killed`: writes, prints `done`, kills itself with SIGKILL.

use hairspring_guests::{Field, Flags, Instruction, Line, next_command, spawn};

#[unsafe(no_mangle)]
static LAST_WORDS: Field = Field::new(0);

fn main() {
    let mut flags = Flags::from_args();
    let writes: u64 = flags.get("writes", 10);
    let what = flags.get("what", "process".to_owned());
    let status: i32 = flags.get("status", 0);
    flags.finish();

    Line::ready()
        .address("field", LAST_WORDS.place())
        .hex("site", Instruction::Xadd.site() as u64)
        .print();
    if next_command().is_none() {
        return;
    }
    if what == "leader" {
        spawn("heir".to_owned(), move || {
            while !leader_is_zombie() {
                std::thread::yield_now();
            }
            done(writes).value("leader", "zombie").print();
            while next_command().is_some() {}
            std::process::exit(status);
        });
        // SAFETY: ends this thread only, without a return through `main`; nothing of its stack
        // is borrowed by the other one.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    done(writes).print();
    if what == "killed" {
        // SAFETY: ends this process.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    std::process::exit(status);
}

fn done(writes: u64) -> Line {
    for value in 0..writes {
        // SAFETY: the place is a static.
        unsafe { Instruction::Xadd.write(LAST_WORDS.place(), value) };
    }
    Line::done(writes, 1).hex("final", LAST_WORDS.peek())
}

fn leader_is_zombie() -> bool {
    let path = format!("/proc/self/task/{}/stat", std::process::id());
    // The state follows the name, which is in parentheses and may hold any character.
    std::fs::read_to_string(path)
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}
