//! System calls, one file a family, and the ABI structs they take, with layout proofs.
//!
//! The only crate of hairspring that contains `unsafe`: it is denied here and re-opened in the
//! files that need it, one operation a block, each with the reason why it is sound. Every public
//! function is safe for all arguments. It wraps only what is called, and decides nothing: what a
//! failure means and what to do about it is for the callers, who get the plain [`std::io::Error`].
//!
//! It is not a general binding: calls that `std` or `nix` wrap safely are used through those.

pub mod cpu;
pub mod held;
pub mod launch;
pub mod memory;
pub mod overflow;
pub mod perf_event;
pub mod pidfd;
pub mod ptrace;
pub mod ring;
