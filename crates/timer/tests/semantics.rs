//! What a timer does, as data: one suite, run on every engine that works here.
//!
//! All scenarios of a run are in one guest, one after the other, so that its start is paid once. The
//! guest speaks to the tool by system calls that don't exist:
//! 5000 ticks steps: exact; 5001 ticks: at least; 5002: note the clock; 5003: only to be seen;
//! 5004 ticks steps: exact, surviving; 5005: the scenario ends.

use hairspring_model::{Addr, Cpu, Position, Ticks};
use hairspring_tests::guest_program;
use hairspring_timer::{
    Engine, Error, EventEngine, Fired, Request, Session, StepEngine, Subscriptions, Syscall,
    Thread, Tool,
};
use hairspring_trace::{Guest, Launch, bind_this_thread};
use std::process::Command;

/// The guest's only branch: see `guests/src/bin/ticker.rs`.
const BRANCH: Addr = Addr(0x1000_0000_0002);

struct Scenario {
    name: String,
    operations: String,
    /// How often the timer fires.
    fires: usize,
    /// The differences of the noted clock readings.
    elapsed: Vec<u64>,
}

fn scenario(name: &str, operations: &str, fires: usize) -> Scenario {
    Scenario { name: name.to_owned(), operations: operations.to_owned(), fires, elapsed: vec![] }
}

/// `n`: many ticks; `l`: few; `r`: repetitions.
fn scenarios(n: u64, l: u64, r: usize) -> Vec<Scenario> {
    let half = n / 2;
    let arm = format!("s5000:{n}");
    let mut all = vec![
        scenario(
            "one delays another",
            &format!("{arm} b{half} {arm} b{half} {arm} b{half} {arm} b{}", 2 * n),
            1,
        ),
        scenario("single", &format!("{arm} b{} {arm} b{} {arm} b{}", 2 * n, 10 * n, 20 * n), 3),
        scenario("two short", &format!("{arm} b{} n5", n - 2), 0),
        scenario("one short, and one", &format!("{arm} b{} b1 n5", n - 1), 1),
        scenario("unseen instructions", &format!("{arm} b{} c t T p m100 b2 n1", n - 2), 1),
        scenario("a breakpoint of its own", &format!("s5004:{n} b{} i b2 n1", n - 2), 1),
        scenario("survives", &format!("s5004:{n} b{half} s5003 b{n}"), 1),
        scenario("steps only", "s5000:0:3 n9", 1),
        scenario("steps only, seen before", "s5000:0:9 n3 s5003 n9", 0),
        scenario("few, not enough", &format!("s5000:{l} b{} ", l - 2).repeat(r), 0),
        scenario("few, enough", &format!("s5000:{l} b{l} ").repeat(r), r),
        scenario("at least", &format!("s5001:{l} b{} ", l + 5).repeat(r), r),
        scenario("one tick", &"s5000:1 b2 ".repeat(r), r),
        scenario(
            "as few as a counter takes",
            &(1..12).map(|n| format!("s5000:{n} b{n}")).collect::<Vec<_>>().join(" "),
            11,
        ),
    ];
    for early in [half, 50, 10, 2] {
        let rest = n - early;
        all.push(scenario(
            &format!("cancelled {early} before"),
            &format!("{arm} b{rest} s5003 b{}", 2 * n),
            0,
        ));
        all.push(scenario(
            &format!("armed again {early} before"),
            &format!("{arm} b{rest} {arm} b{}", 2 * n),
            1,
        ));
    }
    for steps in [1, 2, 100, 101] {
        all.push(scenario(&format!("{steps} steps"), &format!("s5000:{n}:{steps} b{n} n150"), 1));
    }
    for ticks in [100, 2 * n] {
        let elapsed = vec![ticks];
        all.push(Scenario {
            elapsed,
            ..scenario("the clock", &format!("s5002 b{ticks} s5002"), 0)
        });
    }
    all.push(Scenario {
        elapsed: vec![0; 8],
        ..scenario("a still clock", &"s5002 n3 ".repeat(9), 0)
    });
    all.push(Scenario {
        elapsed: vec![3 * n],
        ..scenario("the clock across a timer", &format!("s5004:{n} s5002 b{} s5002", 3 * n), 1)
    });
    all
}

/// The fires with the instruction pointer, and the readings.
type Seen = (Vec<(Fired, u64)>, Vec<u64>);

#[derive(Default)]
struct Commands {
    entered: (u64, [u64; 6]),
    /// Where the timer is to fire.
    due: Position,
    fired: Vec<(Fired, u64)>,
    noted: Vec<u64>,
    /// Per scenario: fires with the instruction pointer, and readings.
    results: Vec<Seen>,
    exited: bool,
}

impl Tool for Commands {
    fn subscriptions(&self) -> Subscriptions {
        Subscriptions { syscalls: true, signals: false }
    }

    fn on_syscall(&mut self, thread: &mut Thread<'_>, syscall: Syscall) -> Result<(), Error> {
        if let Syscall::Entry { number, arguments } = syscall {
            self.entered = (number, arguments);
            return Ok(());
        }
        let now = thread.now()?;
        let (number, [ticks, steps, ..]) = self.entered;
        let position = Position { ticks: Ticks(ticks), steps };
        let request = match number {
            5000 => Request::exact(position),
            5001 => Request::at_least(position.ticks),
            5004 => Request::exact(position).surviving(),
            5002 => {
                self.noted.push(now.0);
                return Ok(());
            }
            5005 => {
                self.results
                    .push((std::mem::take(&mut self.fired), std::mem::take(&mut self.noted)));
                thread.cancel();
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.due = Position { ticks: now.saturating_add(position.ticks), steps };
        thread.set(request)
    }

    fn on_timer(&mut self, thread: &mut Thread<'_>, fired: Fired) -> Result<(), Error> {
        assert_eq!(fired.requested.ticks, self.due.ticks);
        assert_eq!(fired.at.ticks, thread.now()?);
        self.fired.push((fired, thread.registers()?.rip));
        Ok(())
    }

    fn on_exit(
        &mut self,
        _: hairspring_model::Tid,
        _: hairspring_model::Pid,
        _: Ticks,
        end: hairspring_trace::End,
    ) -> Result<(), Error> {
        self.exited = end == hairspring_trace::End::Exited(7);
        Ok(())
    }
}

fn check(engine: Box<dyn Engine>, flags: &[&str], n: u64, l: u64, r: usize) -> Vec<Vec<u64>> {
    // The guest inherits it: handing over from one processor to another is what costs most.
    bind_this_thread(Cpu(0)).expect("there is a first processor");
    let scenarios = scenarios(n, l, r);
    let mut command = Command::new(guest_program("ticker"));
    command.arg("--trap").args(flags);
    for scenario in &scenarios {
        command.args(scenario.operations.split_whitespace()).arg("s5005");
    }
    let guest = Guest::launch(command, Launch { randomize: false, ..Launch::default() });
    let mut session = Session::new(guest.expect("the guest starts"), engine);
    let mut tool = Commands::default();
    session.run(&mut tool).expect("the session runs");
    assert!(tool.exited, "the guest has noticed nothing");
    assert_eq!(tool.results.len(), scenarios.len());
    for (scenario, (fired, noted)) in scenarios.iter().zip(&tool.results) {
        let name = &scenario.name;
        assert_eq!(fired.len(), scenario.fires, "{name}: {fired:?}");
        for (fired, _) in fired {
            assert_eq!(fired.late_by, None, "{name}");
            assert_eq!(fired.at.ticks, fired.requested.ticks, "{name}");
            assert_eq!(fired.at.steps, fired.requested.steps, "{name}");
        }
        let elapsed: Vec<u64> = noted.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(elapsed, scenario.elapsed, "{name}");
    }
    let places = tool.results.iter().map(|(fired, _)| fired.iter().map(|(_, rip)| *rip).collect());
    places.collect()
}

#[test]
fn by_stepping() {
    check(Box::new(StepEngine), &[], 120, 15, 4);
}

#[test]
fn by_breakpoints() {
    let engine = || Box::new(EventEngine::breakpoint(BRANCH));
    let first = check(engine(), &[], 2_000, 15, 50);
    assert_eq!(check(engine(), &[], 2_000, 15, 50), first, "the same places in every run");
}

#[test]
fn by_breakpoints_with_the_signal_blocked_or_ignored() {
    for flag in ["--block", "--ignore"] {
        check(Box::new(EventEngine::breakpoint(BRANCH)), &[flag], 1_000, 15, 10);
    }
}
