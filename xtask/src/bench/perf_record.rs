//! `perf record` on a breakpoint, and what is in its file afterwards.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use tempfile::TempDir;

use super::pinned;

/// A running `perf record`. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct PerfRecord {
    child: Child,
    directory: TempDir,
}

impl PerfRecord {
    /// Records every write to pieces of eight bytes from `field` on, `pieces` of them, and waits
    /// until perf says that it does.
    pub(crate) fn start(
        cpus: pinned::Cpus,
        pid: u32,
        field: u64,
        pieces: u64,
        options: &[&str],
    ) -> Self {
        let directory = TempDir::new().expect("a directory can be made");
        let (control, answers) = (directory.path().join("control"), directory.path().join("ack"));
        for fifo in [&control, &answers] {
            mkfifo(fifo, Mode::S_IRWXU).expect("a pipe can be made");
        }
        let mut command = pinned::command(cpus, &PathBuf::from("perf"));
        command.args(["record", "--quiet", "--no-buildid", "--count=1"]);
        for piece in 0..pieces {
            command.arg(format!("--event=mem:{:#x}/8:w", field + 8 * piece));
        }
        command
            .args(options)
            .arg(format!("--pid={pid}"))
            .arg(format!("--control=fifo:{},{}", control.display(), answers.display()))
            .arg("--output")
            .arg(directory.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Both ends of each, so that nobody waits for the other in open(2).
        let open = |path| OpenOptions::new().read(true).write(true).open(path);
        let mut control = open(&control).expect("the pipe is ours");
        let mut answers = BufReader::new(open(&answers).expect("the pipe is ours"));
        let child = command.spawn().expect("perf can be run");
        writeln!(control, "ping").expect("the pipe takes a line");
        let mut answer = String::new();
        answers.read_line(&mut answer).expect("perf answers");
        assert!(answer.contains("ack"), "perf answered {answer:?}");
        Self { child, directory }
    }

    /// Ends it, and counts the samples in its file.
    pub(crate) fn samples(mut self) -> u64 {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid fits"));
        // It may have ended with its target.
        let _ = kill(pid, Signal::SIGINT);
        self.child.wait().expect("the child is ours");
        let output = Command::new("perf")
            .args(["report", "--stats", "--stdio", "--input"])
            .arg(self.directory.path().join("data"))
            .stdin(Stdio::null())
            .output()
            .expect("perf can be run");
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.trim_start().starts_with("SAMPLE events:"));
        // Without samples there is no line.
        line.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).unwrap_or(0)
    }
}

impl Drop for PerfRecord {
    fn drop(&mut self) {
        // It may have ended already; either way there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
