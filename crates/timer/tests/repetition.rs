//! The same places, again and again.

use hairspring_model::{Addr, Cpu, Pid, Position, Ticks, Tid};
use hairspring_tests::guest_program;
use hairspring_timer::sim::Dice;
use hairspring_timer::{
    Engine, Error, EventEngine, Fired, Request, Session, StepEngine, Thread, Tool,
};
use hairspring_trace::{End, Guest, Launch, UserRegisters, bind_this_thread};
use std::process::Command;

/// Fires again and again, at distances from the dice or all the same.
struct Again {
    dice: Option<Dice>,
    every: u64,
    left: usize,
    places: Vec<(Fired, UserRegisters)>,
    end: Option<End>,
}

impl Again {
    fn next(&mut self, thread: &mut Thread<'_>) -> Result<(), Error> {
        if self.left == 0 {
            thread.end_session();
            return Ok(());
        }
        self.left -= 1;
        let position = match &mut self.dice {
            // Mostly a few ticks; no steps, since a position with steps need not exist.
            Some(dice) => Position::at_tick(Ticks(1 + dice.below(self.every))),
            None => Position::at_tick(Ticks(self.every)),
        };
        thread.set(Request::exact(position).surviving())
    }
}

impl Tool for Again {
    fn on_start(&mut self, thread: &mut Thread<'_>) -> Result<(), Error> {
        self.next(thread)
    }

    fn on_timer(&mut self, thread: &mut Thread<'_>, fired: Fired) -> Result<(), Error> {
        self.places.push((fired, thread.registers()?));
        self.next(thread)
    }

    fn on_exit(&mut self, _: Tid, _: Pid, _: Ticks, end: End) -> Result<(), Error> {
        self.end = Some(end);
        Ok(())
    }
}

fn run(
    command: Command,
    engine: Box<dyn Engine>,
    dice: Option<Dice>,
    every: u64,
    left: usize,
) -> Again {
    bind_this_thread(Cpu(0)).expect("there is a first processor");
    let guest = Guest::launch(command, Launch { randomize: false, ..Launch::default() });
    let mut again = Again { dice, every, left, places: Vec::new(), end: None };
    let mut session = Session::new(guest.expect("the guest starts"), engine);
    session.run(&mut again).expect("the session runs");
    again
}

#[test]
fn a_thousand_fires_at_a_period_of_a_thousand() {
    let branch = Addr(0x1000_0000_0002);
    let mut command = Command::new(guest_program("ticker"));
    command.arg("b1000500");
    let again = run(command, Box::new(EventEngine::breakpoint(branch)), None, 1_000, 1_000);
    assert_eq!(again.places.len(), 1_000);
    for (index, (fired, registers)) in again.places.iter().enumerate() {
        let ticks = Ticks(1_000 * (index as u64 + 1));
        assert_eq!(fired.late_by, None);
        assert_eq!(fired.at, Position::at_tick(ticks));
        assert_eq!(registers.rip, branch.0);
        // The count-down says how often it has run: the one that is about to run counts.
        assert_eq!(registers.rcx, 1_000_500 - ticks.0);
    }
}

/// Random positions in the start of a program, reached twice.
#[test]
fn random_positions_are_the_same_in_two_runs() {
    let once = |seed| {
        let mut command = Command::new(guest_program("ticker"));
        command.args(["b50", "n3"]).env_clear();
        let again = run(command, Box::new(StepEngine), Some(Dice::new(seed)), 9, 2_000);
        assert_eq!(again.places.len(), 2_000);
        for (fired, _) in &again.places {
            assert_eq!((fired.late_by, fired.at), (None, fired.requested));
        }
        again.places
    };
    let (first, second) = (once(1), once(1));
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a.0, b.0);
        assert_eq!((a.1.rip, a.1.rsp), (b.1.rip, b.1.rsp), "at {}", a.0.at);
    }
    // The kernel's random bytes and the time-stamp counter differ, and with them a few registers.
    let differing = first.iter().zip(&second).filter(|(a, b)| a.1 != b.1).count();
    assert!(differing < 200, "{differing} of 2000 differ in some register");
}

#[test]
fn a_guest_that_ends_before_its_position() {
    let mut command = Command::new(guest_program("ticker"));
    command.arg("b10");
    let branch = Addr(0x1000_0000_0002);
    let again = run(command, Box::new(EventEngine::breakpoint(branch)), None, 1_000, 1);
    assert_eq!((again.places.len(), again.end), (0, Some(End::Exited(7))));
}
