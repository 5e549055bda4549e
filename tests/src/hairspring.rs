//! The hairspring command, running, and what it said.

use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::artifacts::hairspring_program;
use crate::output::Output;

/// A running hairspring. Dropping it kills and reaps the process.
#[derive(Debug)]
pub struct Hairspring {
    child: Child,
    stdout: Output,
    stderr: Output,
    session: Session,
}

impl Hairspring {
    /// `hairspring watch --json ARGUMENTS... --pid PID`.
    pub fn watch(pid: u32, arguments: &[&str]) -> Self {
        let pid = pid.to_string();
        let mut all = vec!["watch", "--json"];
        all.extend(arguments);
        all.extend(["--pid", &pid]);
        Self::start(&all)
    }

    /// The command with these arguments, started.
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Self::command();
        command.args(arguments);
        Self::start_command(command)
    }

    /// The command with these arguments, run to its end.
    pub fn run(arguments: &[&str]) -> Session {
        Self::start(arguments).finish()
    }

    /// The command, without arguments yet.
    pub fn command() -> Command {
        Command::new(hairspring_program())
    }

    /// Starts a command of your own making: as another user, with another environment.
    pub fn start_command(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        Self {
            child,
            stdout: Output::new("hairspring's stdout".to_owned(), stdout),
            stderr: Output::new("hairspring's stderr".to_owned(), stderr),
            session: Session::default(),
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the line on stderr that says that everything is armed, and returns it.
    pub fn await_ready(&mut self) -> String {
        while let Some(line) = self.stderr.next_line() {
            self.session.push_stderr(&line);
            if line.split(|c: char| !c.is_alphabetic()).any(|word| word == "ready") {
                return line;
            }
        }
        panic!("hairspring ended before it was ready: {:?}\n{}", self.child.wait(), self.talk());
    }

    /// The next line of stdout as JSON; `None` when stdout is closed.
    pub fn next_object(&mut self) -> Option<Value> {
        let line = self.stdout.next_line()?;
        let Ok(object) = serde_json::from_str::<Value>(&line) else {
            self.session.text.push(line);
            return self.next_object();
        };
        self.session.objects.push(object.clone());
        Some(object)
    }

    /// Sends SIGINT, as Ctrl-C does: the session drains, prints its summary and ends.
    pub fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Stops hairspring itself, so that it can't read what is reported to it.
    pub fn signal_stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn signal_continue(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills hairspring the hard way, to see what becomes of the target.
    pub fn kill(self) {}

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid fits");
        kill(Pid::from_raw(pid), signal).expect("hairspring has not been reaped yet");
    }

    /// Waits for the end and returns everything that was said.
    pub fn finish(mut self) -> Session {
        while self.next_object().is_some() {}
        while let Some(line) = self.stderr.next_line() {
            self.session.push_stderr(&line);
        }
        self.session.status = Some(self.child.wait().expect("the child is ours"));
        std::mem::take(&mut self.session)
    }

    fn talk(&self) -> &str {
        &self.session.stderr
    }
}

impl Drop for Hairspring {
    fn drop(&mut self) {
        // It may have ended already; either way there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a hairspring that has ended said.
#[derive(Clone, Debug, Default)]
pub struct Session {
    objects: Vec<Value>,
    text: Vec<String>,
    stderr: String,
    status: Option<ExitStatus>,
}

impl Session {
    /// The exit code; `None` if it died by a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// Everything on stderr.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// The lines of stdout that are not JSON; with `--json` there must be none.
    pub fn text(&self) -> &[String] {
        &self.text
    }

    /// Every line of stdout that is JSON, in order.
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The objects of one kind: `hit`, `rebind`, `thread`, `lost`...
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// The summary. Panics if there is not exactly one.
    pub fn summary(&self) -> &Value {
        let mut summaries = self.of_kind("summary");
        match (summaries.next(), summaries.next()) {
            (Some(summary), None) => summary,
            (None, _) => panic!("no summary; stderr:\n{}", self.stderr),
            (Some(_), Some(_)) => panic!("more than one summary: {:?}", self.objects),
        }
    }

    fn push_stderr(&mut self, line: &str) {
        self.stderr.push_str(line);
        self.stderr.push('\n');
    }
}
