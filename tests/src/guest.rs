//! A guest that runs: a program with exactly known writes.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use crate::artifacts::guest_program;
use crate::line::Line;
use crate::output::Output;

/// A running guest. Dropping it kills and reaps the process.
///
/// What a guest does, its flags and the values of its lines are described in its source:
/// `guests/src/bin/NAME.rs`.
#[derive(Debug)]
pub struct Guest {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    output: Output,
    ready: Line,
}

impl Guest {
    /// Starts the guest `name` and waits until it is ready.
    pub fn start(name: &str, flags: &[&str]) -> Self {
        let mut command = Command::new(guest_program(name));
        command.args(flags);
        Self::start_command(name, command)
    }

    /// Starts a guest by a command of your own: as another user, say.
    pub fn start_command(name: &str, mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped");
        let output = Output::new(format!("the guest {name}"), stdout);
        let ready = Line::parse("starting");
        let mut guest = Self { name: name.to_owned(), child, stdin, output, ready };
        guest.await_ready();
        guest
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The values of the `ready` line.
    pub fn ready(&self) -> &Line {
        &self.ready
    }

    /// An address of the `ready` line.
    pub fn address(&self, key: &str) -> u64 {
        self.ready.number(key)
    }

    /// Waits for another `ready` line, as after an exec.
    pub fn await_ready(&mut self) {
        self.ready = self.await_word("ready");
    }

    /// Writes a line to the guest's stdin.
    pub fn send(&mut self, command: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open until the guest is finished");
        writeln!(stdin, "{command}")
            .unwrap_or_else(|error| panic!("sending {command:?} to {}: {error}", self.name));
    }

    /// Lets the guest run its scenario; does not wait for it.
    pub fn go(&mut self) {
        self.send("go");
    }

    /// The next line that starts with `word`; others are passed over.
    pub fn await_word(&mut self, word: &str) -> Line {
        loop {
            let line = self.line();
            if line.word() == word {
                return line;
            }
        }
    }

    /// The next line, whatever it is.
    pub fn line(&mut self) -> Line {
        match self.output.next_line() {
            Some(line) => Line::parse(&line),
            None => panic!("the guest {} ended early: {:?}", self.name, self.child.wait()),
        }
    }

    /// Waits for the end of the scenario and returns the exact counts.
    pub fn done(&mut self) -> Line {
        self.await_word("done")
    }

    /// `go`, and the exact counts when it is done.
    pub fn run(&mut self) -> Line {
        self.go();
        self.done()
    }

    /// Closes the guest's stdin, which ends it, and waits for it.
    pub fn finish(mut self) -> ExitStatus {
        self.stdin = None;
        while self.output.next_line().is_some() {}
        self.child.wait().expect("the child is ours")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended already; either way there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
