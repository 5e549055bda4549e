//! The hairspring command.
fn main() {}
