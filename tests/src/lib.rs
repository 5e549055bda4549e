//! The harness of the end-to-end tests: guests, the hairspring command, and skips that are seen.
//!
//! ```no_run
//! use hairspring_tests::{Guest, Hairspring};
//!
//! let mut guest = Guest::start("counter", &["--threads=4", "--writes=100"]);
//! let place = format!("{:#x}:8:w", guest.address("field"));
//! let mut watching = Hairspring::watch(guest.pid(), &[&place]);
//! watching.await_ready();
//! let done = guest.run();
//! watching.interrupt();
//! let session = watching.finish();
//! assert_eq!(session.code(), Some(0));
//! assert_eq!(session.of_kind("hit").count() as u64, done.number("writes"));
//! ```
//!
//! The harness builds what it runs, once for each test binary, in the profile that the test was
//! built with. Every process that it starts is killed and reaped when its value is dropped.
//! It panics where a test should fail, with what the process last said; it is no library for
//! anything but tests.

mod artifacts;
mod guest;
mod hairspring;
mod line;
mod nobody;
mod output;
mod process;
mod skip;

pub use artifacts::{
    Linkage, guest_program, guest_program_linked, hairspring_program, late_library,
    profile_directory,
};
pub use guest::Guest;
pub use hairspring::{Hairspring, Session};
pub use line::Line;
pub use nobody::Nobody;
pub use process::Process;
pub use skip::{Need, report_skip};
