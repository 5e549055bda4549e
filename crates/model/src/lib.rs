//! The nouns of hairspring: values without behaviour of their own, shared by every crate.
//!
//! No I/O, no allocation beyond what a value needs, no dependencies. A word of this crate
//! means the same thing in the code, the documentation, the command line and the JSON.

mod access;
mod addr;
mod id;
mod registers;
mod span;
mod ticks;
mod value;

pub use access::Access;
pub use addr::{Addr, ParseAddrError};
pub use id::{Cpu, Pid, Tid};
pub use registers::{Register, Registers};
pub use span::Span;
pub use ticks::{ParsePositionError, Position, TickKind, Ticks};
pub use value::Value;
