//! The plan against the model processor, and on its own.

use hairspring_model::{Position, Ticks};
use hairspring_timer::Request;
use hairspring_timer::plan::{Arrival, Backwards, Cause, Order, Plan, Verdict};
use hairspring_timer::sim::{Outcome, Trial};

/// Far more of them: `cargo run --release --example soak 10000000`.
const CASES: u64 = 20_000;

#[test]
fn no_answer_is_wrong_on_a_processor_where_everything_goes_wrong() {
    let mut seen = [false; 5];
    for seed in 0..CASES {
        match Trial::random(seed).run() {
            Ok(outcome) => seen[outcome as usize] = true,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert_eq!(seen, [true; 5], "{:?} to {:?}", Outcome::Exact, Outcome::Refused);
}

fn at(ticks: u64, steps: u64) -> Position {
    Position { ticks: Ticks(ticks), steps }
}

#[test]
fn what_is_ordered_when_the_thread_is_resumed() {
    let skids = Arrival::Skids { margin: Ticks(100) };
    for (arrival, request, order) in [
        (skids, Request::exact(at(1_000, 0)), Order::Arm(Ticks(900))),
        (skids, Request::exact(at(106, 7)), Order::Arm(Ticks(6))),
        (skids, Request::exact(at(105, 0)), Order::Step),
        (skids, Request::exact(at(1, 0)), Order::Step),
        (skids, Request::exact(at(0, 1)), Order::Step),
        (skids, Request::at_least(Ticks(1_000)), Order::Arm(Ticks(1_000))),
        (skids, Request::at_least(Ticks(5)), Order::Step),
        (Arrival::AtTheTick, Request::exact(at(1_000, 3)), Order::Arm(Ticks(1_000))),
        (Arrival::AtTheTick, Request::exact(at(5, 0)), Order::Step),
    ] {
        let mut plan = Plan::new(arrival);
        assert_eq!(plan.resume(Ticks(50)), Order::Run);
        plan.set(request, Ticks(50)).expect("not empty");
        assert_eq!(plan.resume(Ticks(50)), order, "{arrival:?} {request:?}");
    }
}

#[test]
fn nothing_is_asked_for_by_no_ticks_and_no_steps() {
    let mut plan = Plan::new(Arrival::AtTheTick);
    for empty in [Request::exact(at(0, 0)), Request::at_least(Ticks(0))] {
        assert!(plan.set(empty, Ticks(3)).is_err());
        assert!(!plan.is_set());
    }
    // The one that there was is kept.
    plan.set(Request::exact(at(9, 0)), Ticks(0)).expect("not empty");
    assert!(plan.set(Request::exact(at(0, 0)), Ticks(0)).is_err());
    assert!(plan.is_set());
}

/// An early interrupt is followed by another arming, and the steps asked for are kept.
#[test]
fn a_spurious_interrupt_keeps_the_steps() {
    let mut plan = Plan::new(Arrival::Skids { margin: Ticks(10) });
    plan.set(Request::exact(at(100, 2)), Ticks(0)).expect("not empty");
    assert_eq!(plan.resume(Ticks(0)), Order::Arm(Ticks(90)));
    assert_eq!(plan.stopped(Ticks(20), Cause::Interrupt), Ok(Verdict::Nothing));
    assert_eq!(plan.resume(Ticks(20)), Order::Arm(Ticks(70)));
    assert_eq!(plan.stopped(Ticks(99), Cause::Interrupt), Ok(Verdict::Nothing));
    for (now, cause) in [(100, Cause::Step), (100, Cause::Step), (100, Cause::EmptyStep)] {
        assert_eq!(plan.resume(Ticks(now)), Order::Step);
        assert_eq!(plan.stopped(Ticks(now), cause), Ok(Verdict::Nothing));
    }
    match plan.stopped(Ticks(100), Cause::Step) {
        Ok(Verdict::Fired(fired)) => assert_eq!((fired.at, fired.late_by), (at(100, 2), None)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_other_stops() {
    for (now, cause, survives, expected) in [
        (5, Cause::Observed, false, Some(Verdict::Cancelled)),
        (5, Cause::Observed, true, Some(Verdict::Nothing)),
        (5, Cause::Unobserved, false, Some(Verdict::Nothing)),
        (12, Cause::Unobserved, false, None),
        (12, Cause::Observed, false, None),
    ] {
        let request = Request { survives, ..Request::exact(at(10, 0)) };
        let mut plan = Plan::new(Arrival::AtTheTick);
        plan.set(request, Ticks(0)).expect("not empty");
        assert_eq!(plan.resume(Ticks(0)), Order::Arm(Ticks(10)));
        match (plan.stopped(Ticks(now), cause), expected) {
            // The interrupt was lost: the watchdog.
            (Ok(Verdict::Fired(fired)), None) => assert_eq!(fired.late_by, Some(Ticks(2))),
            (verdict, Some(expected)) => assert_eq!(verdict, Ok(expected)),
            (other, None) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_clock_that_goes_backwards_is_an_error() {
    let mut plan = Plan::new(Arrival::AtTheTick);
    plan.set(Request::exact(at(10, 0)), Ticks(0)).expect("not empty");
    assert_eq!(plan.stopped(Ticks(4), Cause::Unobserved), Ok(Verdict::Nothing));
    let backwards = Backwards { before: Ticks(4), now: Ticks(3) };
    assert_eq!(plan.stopped(Ticks(3), Cause::Unobserved), Err(backwards));
    assert!(!plan.is_set());
}
