//! `counter`: threads that exist before `go`, each making N writes to one shared field.
//!
//! Flags: `--threads=4 --writes=100 --instruction=mov|xadd|add`. Ready: `field`, `site`,
//! `threads`. Done: `final` (the value; exact with `xadd`), read once (`reads=1`).

use hairspring_guests::{Crew, Field, Flags, Instruction, Line, next_command};

#[unsafe(no_mangle)]
static REQUESTS_SERVED: Field = Field::new(0);

fn main() {
    let mut flags = Flags::from_args();
    let threads: usize = flags.get("threads", 4);
    let writes: u64 = flags.get("writes", 100);
    let instruction = flags.get("instruction", Instruction::Mov);
    flags.finish();

    let crew = Crew::parked("counter", threads, move |_| {
        for value in 1..=writes {
            // SAFETY: the place is a static.
            unsafe { instruction.write(REQUESTS_SERVED.place(), value) };
        }
    });
    Line::ready()
        .address("field", REQUESTS_SERVED.place())
        .hex("site", instruction.site() as u64)
        .value("threads", threads)
        .print();
    while next_command().is_some() {
        crew.run();
        Line::done(writes * threads as u64, 1).hex("final", REQUESTS_SERVED.peek()).print();
    }
}
