//! Exact stops and honest watchpoints for Linux programs.
//!
//! This library is a facade: the names of its parts, and nothing else.
//!
//! ```no_run
//! use hairspring::watch::{Request, State, Target};
//! use hairspring::{model::Pid, perf::Probe};
//! use std::time::Duration;
//!
//! let request = Request::new(vec!["ledger::TOTAL".parse()?]);
//! let armed = Target::attach(Pid(1234))?.arm(&request, Probe::run())?;
//! let (mut session, mut events) = (armed.session, Vec::new());
//! let reason = loop {
//!     if let State::Over(reason) = session.poll(Duration::from_millis(100), &mut events)? {
//!         break reason;
//!     }
//!     for event in events.drain(..) {
//!         println!("{event:?}");
//!     }
//! };
//! let summary = session.finish(reason, &mut events)?;
//! println!("{}", summary.coverage.verdict());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use hairspring_model as model;
pub use hairspring_perf as perf;
pub use hairspring_symbols as symbols;
pub use hairspring_watch as watch;
