//! Who touched this memory: hardware watchpoints on every thread of a live process.
//!
//! ```text
//!   Target ──arm(request, probe)──> Armed { session, ready } ──poll──> events ──finish──> summary
//! ```
//! The caller owes a [`Target`] (attached or launched), a [`Request`], a
//! [`Probe`](hairspring_perf::Probe) of this machine, and polls. It gets every access as an
//! [`Event`], with the writer and the value, and at the end a [`Coverage`] that says what can be
//! concluded from it.
//!
//! The target is never stopped, slowed beyond the debug exception of each hit, or changed; no
//! ptrace is used on a live process. It is not a debugger: it can't stop at a hit.

mod access;
mod armament;
mod arming;
mod chain;
mod closing;
mod coalesce;
mod conditions;
mod coverage;
mod error;
mod event;
mod evidence;
mod following;
mod identity;
mod kernel_symbols;
mod memory;
mod merge;
mod news;
mod parents;
pub mod place;
mod plan;
mod request;
mod resolve;
mod roles;
mod route;
mod session;
mod site;
mod sites;
mod tally;
mod target;
mod threads;

pub use arming::{Armed, Ready, ReadyWatch};
pub use coverage::{Blind, Coverage, Gap, Invisible, Threads, Verdict};
pub use error::Error;
pub use event::{
    Accessed, Change, Event, Hit, Loaded, Lost, NewValue, Rebind, RebindReason, Source, Standing,
    StopReason, Summary, ThreadChange, WatchSummary, Writer,
};
pub use identity::Still;
pub use request::{Limits, Report, Request};
pub use session::{Session, State};
pub use site::{Certainty, Frame, Site, SystemCall};
pub use target::Target;
