//! Watchpoints on a live process: every access, by whom, and a proof of coverage.
