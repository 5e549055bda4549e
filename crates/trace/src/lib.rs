//! Guests: programs that are run or attached to by `ptrace(2)`, with every stop as a type.
//!
//! A [`Guest`] is a set of traced threads: those of the program and of all its children. A stop is
//! a value, [`Stop`], whose variants hold a [`Stopped`] thread of their own kind. Only a stopped
//! thread has registers and memory to look at, and resuming consumes it, so a running thread can't
//! be touched and a stopped one can't be resumed twice:
//!
//! ```no_run
//! use hairspring_trace::{Guest, Launch, Next, Stop};
//!
//! let mut guest = Guest::launch(std::process::Command::new("true"), Launch::default())?;
//! while let Some(stop) = guest.wait()? {
//!     match stop {
//!         Stop::Ended(ended) => println!("{} ended: {:?}", ended.tid, ended.end),
//!         Stop::Signal(thread) => thread.deliver(Next::Event)?,
//!         other => other.resume(Next::Event)?,
//!     }
//! }
//! # Ok::<(), hairspring_trace::Error>(())
//! ```
//!
//! The caller owes: a thread that has no other children to wait for (the kernel binds a guest to the
//! thread that traces it, and [`Guest::wait`] takes whatever state change that thread's children
//! have); and to answer every stop, since a thread whose value is dropped stays stopped until its
//! guest is dropped. It gets: every stop that the kernel makes, a new thread before its first
//! instruction, and errors that say [`Error::is_dead`] when a thread was killed under its hands,
//! which can happen at every call.
//!
//! Nothing here is `Send`. It is not a debugger: no breakpoints, no symbols; and it never decides by
//! itself what happens to a signal.

mod decode;
mod end;
mod error;
mod guest;
mod inject;
mod instruction;
mod memory;
mod stop;
mod stopped;
mod table;

pub use decode::{Change, StepCause};
pub use end::End;
pub use error::Error;
pub use guest::{Attach, Guest, Launch, OnDrop};
pub use hairspring_sys::cpu::bind_this_thread;
pub use hairspring_sys::ptrace::{SignalInfo, UserRegisters};
pub use instruction::Instruction;
pub use stop::{Ended, Stop};
pub use stopped::{
    Exec, Exiting, GroupStop, Held, Interrupted, NewThread, Next, SignalDelivery, Started, Step,
    Stopped, SyscallEntry, SyscallExit, VforkDone,
};
