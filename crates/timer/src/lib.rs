//! Exact timers: stop a thread at one instruction, with and without hardware counters.
//!
//! A [`Session`] owns a guest and gives each of its threads a clock, which an [`Engine`] makes, and
//! a timer, whose decisions are a pure [`plan`]. Users write a [`Tool`]:
//!
//! ```no_run
//! use hairspring_model::{Position, Ticks};
//! use hairspring_timer::{Error, Fired, Request, Session, StepEngine, Thread, Tool};
//! use hairspring_trace::{Guest, Launch};
//!
//! /// Prints where the first thread is after 1,000 ticks and 3 steps.
//! struct Where;
//!
//! impl Tool for Where {
//!     fn on_start(&mut self, thread: &mut Thread<'_>) -> Result<(), Error> {
//!         thread.set(Request::exact(Position { ticks: Ticks(1_000), steps: 3 }))
//!     }
//!     fn on_timer(&mut self, thread: &mut Thread<'_>, fired: Fired) -> Result<(), Error> {
//!         println!("{} at {:#x}", fired.at, thread.registers()?.rip);
//!         thread.end_session();
//!         Ok(())
//!     }
//! }
//!
//! let guest = Guest::launch(std::process::Command::new("true"), Launch::default())?;
//! Session::new(guest, Box::new(StepEngine)).run(&mut Where)?;
//! # Ok::<(), Error>(())
//! ```
//!
//! The caller owes what [`hairspring_trace`] asks for. It gets stops that are never early, and late
//! ones that say so. It is not a scheduler: the threads of a guest run as the kernel likes.

mod engine;
mod error;
mod event;
pub mod plan;
mod processor;
mod request;
mod session;
pub mod sim;
mod tool;

pub use engine::{Clock, Engine, StepEngine};
pub use error::Error;
pub use event::EventEngine;
pub use processor::{Core, Processor, TickEvent, Vendor};
pub use request::{Fired, Request, Target};
pub use session::Session;
pub use tool::{Disposition, Subscriptions, Syscall, Thread, Tool};
