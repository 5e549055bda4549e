//! What a caller asks for.

use crate::place::{Bound, Guard, What};
use std::time::Duration;

/// A session to be.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to watch, in order: a hit names its watch by its place in this list.
    pub watches: Vec<What>,
    /// What must hold for the chains to be followed to their ends.
    pub bounds: Vec<Bound>,
    /// What must be there for the chains to be followed to their ends.
    pub guards: Vec<Guard>,
    /// Whether processes forked later are watched too; each has a copy of the memory.
    pub children: bool,
    /// When to end.
    pub limits: Limits,
    /// What to report while the session runs.
    pub report: Report,
    /// Bytes of records that may wait on each processor to be read; less where the memory lock
    /// limits want it. A hit takes 232 bytes, or 280 where the kernel can be seen.
    pub ring_bytes: usize,
    /// How long a chain may be without a watch, when it moves, before the coverage is incomplete.
    pub blind_limit: Duration,
}

/// When a session ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// After this time.
    pub duration: Option<Duration>,
    /// After this many hits, over all watches.
    pub hits: Option<u64>,
}

/// What a session reports while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Everything.
    Every,
    /// Nothing: only the summary counts.
    Nothing,
}

impl Request {
    /// Watches these, with the defaults: 8 MiB of ring a processor, and any blind window leaves the
    /// coverage incomplete.
    pub fn new(watches: Vec<What>) -> Self {
        Self {
            watches,
            bounds: Vec::new(),
            guards: Vec::new(),
            children: false,
            limits: Limits::default(),
            report: Report::Every,
            ring_bytes: 8 << 20,
            blind_limit: Duration::ZERO,
        }
    }
}
