//! perf events as this project uses them: breakpoints on data, the ring that their records go to,
//! the decoder of those records, and what of it works on this host.
//!
//! The caller owes what a kernel interface always wants: to keep an [`Event`] as long as it is to
//! count, and to drain its [`Ring`] before it overflows. It gets events that can't be left behind
//! (dropping one frees its slot), records that account for every byte, and errors that name the
//! layer which refused.
//!
//! It is not a profiler's library: no hardware counters, no sampling by time, no groups. It knows
//! nothing of ptrace, and never stops anybody.

mod counter;
mod cursor;
mod error;
mod event;
mod host;
mod layout;
mod piece;
mod probe;
mod record;
mod refusal;
mod ring;

pub use counter::{Counted, Counter};
pub use error::Error;
pub use event::{Breakpoint, Counts, Event, Inherit, SIDE_BAND_LAYOUT};
pub use hairspring_sys::perf_event::OnCpu;
pub use host::{Capability, Host};
pub use layout::{Layout, RegisterSet};
pub use piece::{Length, Piece};
pub use probe::{Probe, SelfTest};
pub use record::{Chain, Comm, Mmap, Mode, Record, RecordError, Records, Sample, Task};
pub use refusal::{Layer, Refusal};
pub use ring::Ring;
