//! What the guests share: the line protocol, flags, writers, and crews of parked threads.
//!
//! A guest is a small program that accesses a known place an exactly known number of times. It
//! has no timing of its own: every step waits for a line on stdin.
//!
//! ```text
//! guest: ready pid=41 field=0x55d0c0de4040 site=0x55d0c0d0a1b7 threads=4
//! test:  go
//! guest: done writes=400 reads=0 final=0x190
//! test:  (closes stdin; the guest ends)
//! ```
//!
//! `writes` counts the accesses that a `w` watch on the field reports, `reads` those that only
//! a `rw` watch reports in addition. An instruction that reads and writes counts as one write.
//! Other keys are described by the guest that prints them. Addresses and values are hexadecimal
//! with `0x`, counts decimal.
//!
//! The programs run on x86-64 Linux only. They are not examples of good Rust: they race, write
//! through dead pointers and die by signal, on purpose.

mod crew;
mod field;
mod flags;
mod protocol;

pub use crew::{Crew, spawn};
pub use field::{Field, Instruction};
pub use flags::Flags;
pub use protocol::{Line, next_command};
