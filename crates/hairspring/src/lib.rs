//! Exact stops and honest watchpoints for Linux programs.
