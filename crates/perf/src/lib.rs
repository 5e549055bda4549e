//! Breakpoint events, counters, rings, the record decoder and the host probe.
