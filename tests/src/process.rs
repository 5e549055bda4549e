//! What the kernel says about a process: that nobody stopped or traces it.

use std::fs;

/// A process, by its id. The value keeps nothing alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: u32,
}

impl Process {
    /// The process with this id.
    pub fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// This process.
    pub fn own() -> Self {
        Self::new(std::process::id())
    }

    /// The thread ids, in the kernel's order.
    pub fn threads(self) -> Vec<u32> {
        fs::read_dir(format!("/proc/{}/task", self.pid))
            .unwrap_or_else(|error| panic!("listing the threads of {}: {error}", self.pid))
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// The state of the main thread: one letter, as in `ps`. `None` when it is gone.
    pub fn state(self) -> Option<char> {
        state(&self.status()?)
    }

    /// Whether the effective user is root.
    pub fn is_root(self) -> bool {
        let status = self.status().expect("the process is there");
        // Real, effective, saved and file-system id.
        field(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
    }

    /// Panics if any thread is stopped or traced, or the process is gone.
    pub fn assert_untouched(self) {
        let threads = self.threads();
        assert!(!threads.is_empty(), "process {} is gone", self.pid);
        for thread in threads {
            let path = format!("/proc/{}/task/{thread}/status", self.pid);
            // A thread that has ended in between was not stopped.
            let Ok(status) = fs::read_to_string(path) else { continue };
            assert_eq!(field(&status, "TracerPid"), Some("0"), "thread {thread} is traced");
            assert!(
                !matches!(state(&status), Some('T' | 't')),
                "thread {thread} is stopped: {:?}",
                field(&status, "State")
            );
        }
    }

    fn status(self) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn state(status: &str) -> Option<char> {
    field(status, "State")?.chars().next()
}

#[cfg(test)]
mod tests {
    use super::{Process, field, state};

    const STATUS: &str = "Name:\tState: T\nState:\tS (sleeping)\nTracerPid:\t0\nUid:\t1\t0\t3\t4\n";

    #[test]
    fn fields_are_found_at_the_start_of_a_line() {
        assert_eq!(state(STATUS), Some('S'));
        assert_eq!(field(STATUS, "TracerPid"), Some("0"));
        assert_eq!(field(STATUS, "Tracer"), None);
    }

    #[test]
    fn this_process_is_not_stopped() {
        Process::own().assert_untouched();
        assert!(Process::own().threads().contains(&std::process::id()));
        assert!(matches!(Process::own().state(), Some('R' | 'S' | 'D')));
    }
}
