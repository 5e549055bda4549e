//! Small programs with exactly known writes.
