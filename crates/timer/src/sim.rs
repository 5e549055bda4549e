//! A model processor with everything that goes wrong on real ones: what the plan is proved against.
//!
//! The program is a random sequence of instructions, some of which tick. The counter's interrupt
//! comes late by a random skid, early, or not at all; the kernel throttles it; the thread stops for
//! other reasons in between; the clock may lie. The model knows where the thread truly is, and
//! [`Trial::run`] compares every answer of the plan with that.
//!
//! It is for tests, and for whoever changes the plan: it stops no real thread.

use crate::plan::{Arrival, Cause, Order, Plan, Verdict};
use crate::request::{Fired, Request, Target};
use hairspring_model::{Position, Ticks};

/// A reproducible source of random numbers (splitmix64, Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The numbers that belong to the seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit
    }

    fn one_of<const N: usize>(&mut self, numbers: [u64; N]) -> u64 {
        let mut at = self.below(N as u64);
        for number in numbers {
            match at.checked_sub(1) {
                Some(further) => at = further,
                None => return number,
            }
        }
        0
    }

    fn one_in(&mut self, chances: u64) -> bool {
        chances != 0 && self.below(chances) == 0
    }
}

/// How the processor and the program behave.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// How the plan believes that interrupts arrive.
    pub arrival: Arrival,
    /// The largest skid in ticks.
    pub skid: u64,
    /// One interrupt in so many is lost; 0: none.
    pub lost: u64,
    /// One in so many comes too early.
    pub spurious: u64,
    /// One in so many comes up to 100,000 ticks later than the skid.
    pub throttled: u64,
    /// In one of so many stretches another stop comes first.
    pub events: u64,
    /// One reading in so many of the clock is wrong.
    pub jumps: u64,
    /// One instruction in so many ticks; at least 1.
    pub sparse: u64,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// At the position.
    Exact,
    /// Reported late, and it was.
    Late,
    /// Cancelled by an observed stop before the position.
    Cancelled,
    /// The program ended before the position.
    Ended,
    /// The clock went backwards, and the plan said so.
    Refused,
}

/// One timer on one run.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// How the processor behaves.
    pub behaviour: Behaviour,
    /// What is asked for.
    pub request: Request,
    /// How long the program is in ticks.
    pub length: u64,
    /// Where the numbers come from.
    pub seed: u64,
}

struct Machine {
    dice: Dice,
    behaviour: Behaviour,
    truth: Position,
    /// What the clock adds to the truth.
    error: i64,
    length: u64,
}

impl Trial {
    /// Random behaviour, request and program, all from the seed.
    pub fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let skid = dice.one_of([0, 1, 50, 200, 2_000, 100_000]);
        let skid = if skid == 0 { 0 } else { dice.below(skid + 1) };
        let arrival = match dice.below(4) {
            0 => Arrival::AtTheTick,
            // Often enough, sometimes too little.
            1 => Arrival::Skids { margin: Ticks(dice.below(skid + 1)) },
            _ => Arrival::Skids { margin: Ticks(skid + dice.below(100)) },
        };
        let skid = if arrival == Arrival::AtTheTick { 0 } else { skid };
        let mut rarely =
            |chances: u64| if dice.below(3) == 0 { 2 + dice.below(chances) } else { 0 };
        let behaviour = Behaviour {
            arrival,
            skid,
            lost: rarely(20),
            spurious: rarely(10),
            throttled: rarely(20),
            events: rarely(30),
            jumps: rarely(400),
            sparse: rarely(12).max(1),
        };
        let size = dice.one_of([3, 20, 1_000, 1_000_000]);
        let ticks = Ticks(dice.below(size));
        let steps = if dice.below(2) == 0 { 0 } else { dice.below(30) };
        let target = match dice.below(3) {
            0 => Target::AtLeast(Ticks(ticks.0 + 1)),
            _ if ticks.0 + steps == 0 => Target::Exact(Position::at_tick(Ticks(1))),
            _ => Target::Exact(Position { ticks, steps }),
        };
        let request = Request { target, survives: dice.below(2) == 0 };
        Self { behaviour, request, length: 1 + dice.below(4 * size), seed: dice.roll() }
    }

    /// Runs it.
    ///
    /// # Errors
    /// What the plan said that is not true.
    pub fn run(&self) -> Result<Outcome, String> {
        let mut plan = Plan::new(self.behaviour.arrival);
        let mut machine = Machine {
            dice: Dice::new(self.seed),
            behaviour: self.behaviour,
            truth: Position::default(),
            error: 0,
            length: self.length,
        };
        // Positions in one tick are counted from the request there.
        plan.set(self.request, Ticks::ZERO).map_err(|e| e.to_string())?;
        let wanted = match self.request.target {
            Target::Exact(position) => position,
            Target::AtLeast(ticks) => Position::at_tick(ticks),
        };
        loop {
            if machine.truth.ticks.0 >= machine.length {
                return Ok(Outcome::Ended);
            }
            let order = plan.resume(machine.clock());
            let cause = match order {
                Order::Run => return Err(format!("a set timer was dropped: {plan:?}")),
                Order::Step => machine.step(),
                Order::Arm(ticks) => machine.run(ticks),
            };
            machine.jump();
            let now = machine.clock();
            let verdict = match plan.stopped(now, cause) {
                Ok(verdict) => verdict,
                Err(error) if machine.error < 0 || self.behaviour.jumps > 0 => {
                    return if error.now < error.before {
                        Ok(Outcome::Refused)
                    } else {
                        Err(error.to_string())
                    };
                }
                Err(error) => return Err(error.to_string()),
            };
            match verdict {
                Verdict::Fired(fired) => return machine.judge(self, wanted, fired),
                Verdict::Cancelled => {
                    return if self.request.survives || cause != Cause::Observed {
                        Err("cancelled for no reason".to_owned())
                    } else {
                        Ok(Outcome::Cancelled)
                    };
                }
                Verdict::Nothing => machine.not_passed(self, wanted, now)?,
            }
        }
    }
}

impl Machine {
    fn clock(&self) -> Ticks {
        Ticks(self.truth.ticks.0.saturating_add_signed(self.error))
    }

    fn jump(&mut self) {
        if self.dice.one_in(self.behaviour.jumps) {
            self.error += self.dice.below(2_000) as i64 - 1_000;
        }
    }

    fn other(&mut self) -> Cause {
        if self.dice.below(2) == 0 { Cause::Observed } else { Cause::Unobserved }
    }

    fn step(&mut self) -> Cause {
        if self.dice.one_in(self.behaviour.events) {
            return if self.dice.below(3) == 0 { Cause::EmptyStep } else { self.other() };
        }
        if self.dice.one_in(self.behaviour.sparse) {
            self.truth = Position::at_tick(Ticks(self.truth.ticks.0 + 1));
        } else {
            self.truth.steps += 1;
        }
        Cause::Step
    }

    /// Runs with the counter armed.
    fn run(&mut self, armed: Ticks) -> Cause {
        let due = self.truth.ticks.0 + armed.0;
        let mut stop = due
            + if self.behaviour.skid == 0 { 0 } else { self.dice.below(self.behaviour.skid + 1) };
        if self.dice.one_in(self.behaviour.throttled) {
            stop += self.dice.below(100_000);
        }
        let mut cause = Cause::Interrupt;
        if self.dice.one_in(self.behaviour.spurious) {
            stop = self.truth.ticks.0 + self.dice.below(armed.0);
        } else if self.dice.one_in(self.behaviour.lost) {
            // The thread runs on until something else happens.
            stop = due + self.dice.below(200_000);
            cause = self.other();
        }
        if self.dice.one_in(self.behaviour.events) {
            stop = self.truth.ticks.0 + self.dice.below(stop - self.truth.ticks.0 + 1);
            cause = self.other();
        }
        let moved = stop > self.truth.ticks.0;
        // At the tick itself only if the interrupt is of that kind and in time.
        let precise = cause == Cause::Interrupt
            && stop == due
            && self.behaviour.arrival == Arrival::AtTheTick;
        let steps = if precise { 0 } else { self.dice.below(self.behaviour.sparse) };
        self.truth = if moved {
            Position { ticks: Ticks(stop), steps }
        } else {
            Position { steps: self.truth.steps + steps, ..self.truth }
        };
        // An interrupt at the tick that is not the one it was armed for would be taken for it.
        if cause == Cause::Interrupt
            && self.behaviour.arrival == Arrival::AtTheTick
            && !precise
            && stop == due
        {
            self.truth.steps = 0;
        }
        cause
    }

    fn judge(&self, trial: &Trial, wanted: Position, fired: Fired) -> Result<Outcome, String> {
        let wrong = |why: &str| Err(format!("{why}: truth {}, {fired:?}, {trial:?}", self.truth));
        if fired.at.ticks != self.clock() {
            return wrong("not where the clock is");
        }
        // A lying clock can only be taken at its word.
        if self.error != 0 || trial.behaviour.jumps > 0 {
            let early = fired.at < fired.requested && fired.late_by.is_none();
            return if early { wrong("early by its own clock") } else { Ok(Outcome::Late) };
        }
        if fired.requested != wanted {
            return wrong("not what was requested");
        }
        if self.truth < wanted {
            return wrong("early");
        }
        let exact = match trial.request.target {
            Target::Exact(_) => self.truth == wanted,
            Target::AtLeast(_) => self.truth.ticks == wanted.ticks,
        };
        match fired.late_by {
            None if exact && matches!(trial.request.target, Target::AtLeast(_)) => {
                Ok(Outcome::Exact)
            }
            None if exact && fired.at == self.truth => Ok(Outcome::Exact),
            None => wrong("not there, and not reported"),
            Some(late) if late == self.truth.ticks.past(wanted.ticks) => {
                if Self::in_time(trial, wanted) {
                    wrong("late for no reason")
                } else {
                    Ok(Outcome::Late)
                }
            }
            Some(_) => wrong("late by another number of ticks"),
        }
    }

    /// Whether nothing excuses a late stop.
    fn in_time(trial: &Trial, wanted: Position) -> bool {
        let b = trial.behaviour;
        let enough = match b.arrival {
            Arrival::AtTheTick => true,
            Arrival::Skids { margin } => b.skid < margin.0,
        };
        let exact = matches!(trial.request.target, Target::Exact(_));
        // A tick may come before the steps are done: then the position does not exist.
        exact && enough && wanted.steps == 0 && b.lost + b.throttled + b.events == 0
    }

    /// After a stop that was not the timer's, the position must still be ahead.
    fn not_passed(&self, trial: &Trial, wanted: Position, now: Ticks) -> Result<(), String> {
        if trial.behaviour.jumps == 0 && self.truth.ticks > wanted.ticks {
            return Err(format!("lost: truth {}, clock {now}, {trial:?}", self.truth));
        }
        Ok(())
    }
}
