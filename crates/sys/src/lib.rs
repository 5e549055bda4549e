//! The only crate of hairspring with unsafe code: system calls and ABI structs.
