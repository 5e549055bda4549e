//! The target's memory, read while it runs on.

use crate::route::Pointers;
use hairspring_model::{Addr, Pid, Span, Value};
use hairspring_sys::cpu::monotonic_ns;
use hairspring_sys::memory;
use std::collections::HashMap;

/// Reads the target's memory. What the target writes meanwhile may be torn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory(pub(crate) Pid);

impl Memory {
    /// The bytes of a span as a value; `None` where they can't be read or are too many for one.
    pub(crate) fn value(self, span: Span) -> Option<Value> {
        let mut bytes = [0; Value::MOST_BYTES];
        let bytes = bytes.get_mut(..usize::try_from(span.len()).ok()?)?;
        let read = memory::read(self.0, span.start(), bytes).ok()?;
        if read == bytes.len() { Value::new(bytes) } else { None }
    }

    /// The bytes of a span as an unsigned number; `None` where they can't be read or are more than
    /// eight.
    pub(crate) fn number(self, span: Span) -> Option<u64> {
        let mut bytes = [0; 8];
        let part = bytes.get_mut(..usize::try_from(span.len()).ok()?)?;
        let read = memory::read(self.0, span.start(), part).ok()?;
        (read == part.len()).then(|| u64::from_le_bytes(bytes))
    }
}

/// A value that was there between two moments, unless it was written between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Initial {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) value: Value,
}

impl Initial {
    pub(crate) fn read(memory: Memory, span: Span) -> Option<Self> {
        let from_ns = monotonic_ns();
        let value = memory.value(span)?;
        Some(Self { from_ns, to_ns: monotonic_ns(), value })
    }
}

/// Values that were read while one batch of hits was reported: one a watch, since they would all be
/// read at about the same time.
#[derive(Debug, Default)]
pub(crate) struct Later(HashMap<usize, Option<Value>>);

impl Later {
    /// The value of a watch, read at most once.
    pub(crate) fn value(
        &mut self,
        watch: usize,
        read: impl FnOnce() -> Option<Value>,
    ) -> Option<Value> {
        *self.0.entry(watch).or_insert_with(read)
    }
}

impl Pointers for Memory {
    fn pointer(&mut self, at: Addr) -> Option<u64> {
        memory::read_array(self.0, at).ok().map(u64::from_le_bytes)
    }
}
