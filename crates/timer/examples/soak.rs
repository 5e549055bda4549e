//! Random trials of the plan against the model processor: `soak [CASES [FIRST_SEED]]`.
//!
//! Prints how they ended, and exits with 1 at the first answer that is not true, with its seed.

use hairspring_timer::sim::{Outcome, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let cases = arguments.next().unwrap_or(1_000_000);
    let first = arguments.next().unwrap_or(0);
    let mut ends = [0_u64; 5];
    for seed in first..first + cases {
        match Trial::random(seed).run() {
            Ok(outcome) => {
                ends[match outcome {
                    Outcome::Exact => 0,
                    Outcome::Late => 1,
                    Outcome::Cancelled => 2,
                    Outcome::Ended => 3,
                    Outcome::Refused => 4,
                }] += 1;
            }
            Err(error) => {
                eprintln!("seed {seed}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let [exact, late, cancelled, ended, refused] = ends;
    println!(
        "{cases} cases, 0 wrong: {exact} exact, {late} late and reported so, {cancelled} cancelled, \
         {ended} ended before, {refused} refused for a clock that went backwards"
    );
    ExitCode::SUCCESS
}
