//! `idle`: a thousand blocked threads, each writing a little on `go`.
//!
//! Flags: `--threads=1000 --writes=1`. Ready: `field`, `site`, `threads`. Done: `final` (exact).
//!
//! With `--pingpong=ROUNDS` two more threads pass one byte to and fro over two pipes for so many
//! rounds after the writes; done then has `rounds_per_second`.

use std::io::{Read as _, Write as _};
use std::time::Instant;

use hairspring_guests::{Crew, Field, Flags, Instruction, Line, next_command, spawn};

#[unsafe(no_mangle)]
static JOBS_TAKEN: Field = Field::new(0);

fn main() {
    let mut flags = Flags::from_args();
    let threads: usize = flags.get("threads", 1000);
    let writes: u64 = flags.get("writes", 1);
    let rounds: u64 = flags.get("pingpong", 0);
    flags.finish();

    let crew = Crew::parked("idle", threads, move |_| {
        for value in 0..writes {
            // SAFETY: the place is a static.
            unsafe { Instruction::Xadd.write(JOBS_TAKEN.place(), value) };
        }
    });
    let mut players = (rounds > 0).then(Players::start);
    Line::ready()
        .address("field", JOBS_TAKEN.place())
        .hex("site", Instruction::Xadd.site() as u64)
        .value("threads", threads)
        .print();
    while next_command().is_some() {
        crew.run();
        let done = Line::done(writes * threads as u64, 1).hex("final", JOBS_TAKEN.peek());
        match &mut players {
            None => done.print(),
            Some(players) => done.value("rounds_per_second", players.play(rounds)).print(),
        }
    }
}

/// The main thread's side of a game of ping-pong; the other side is a thread that echoes.
struct Players {
    serve: std::io::PipeWriter,
    receive: std::io::PipeReader,
}

impl Players {
    fn start() -> Self {
        let (mut echo_in, serve) = std::io::pipe().expect("a pipe can be made");
        let (receive, mut echo_out) = std::io::pipe().expect("a pipe can be made");
        spawn("echo".to_owned(), move || {
            let mut ball = [0];
            while echo_in.read_exact(&mut ball).is_ok() && echo_out.write_all(&ball).is_ok() {}
        });
        Self { serve, receive }
    }

    fn play(&mut self, rounds: u64) -> u128 {
        let start = Instant::now();
        let mut ball = [0];
        for _ in 0..rounds {
            self.serve.write_all(&ball).expect("the echo thread lives");
            self.receive.read_exact(&mut ball).expect("the echo thread lives");
        }
        u128::from(rounds) * 1_000_000_000 / start.elapsed().as_nanos().max(1)
    }
}
