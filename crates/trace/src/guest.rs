//! A guest: launched or attached to, waited for, and let go or killed at the end.

use crate::stopped::{
    Exec, Exiting, GroupStop, Held, Interrupted, NewThread, SignalDelivery, Started, Step, Stopped,
    SyscallEntry, SyscallExit, VforkDone,
};
use crate::table::{Record, Table};
use crate::{Change, End, Ended, Error, StepCause, Stop};
use hairspring_model::{Pid, Tid};
use hairspring_sys::launch;
use hairspring_sys::ptrace::{self as sys, SyscallInfo, WaitFor, option};
use std::collections::VecDeque;
use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::rc::Rc;

/// What happens to a guest's threads when the guest is dropped. If the tracer is killed, the kernel
/// kills a launched guest (`PTRACE_O_EXITKILL`) and lets an attached one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrop {
    /// They are killed.
    Kill,
    /// They run on, untraced.
    Detach,
}

/// How a program is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Whether its memory is laid out at random, as usual. Without it addresses are the same in
    /// every run.
    pub randomize: bool,
    /// What happens when the guest is dropped.
    pub on_drop: OnDrop,
}

/// How a process is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attach {
    /// What happens when the guest is dropped.
    pub on_drop: OnDrop,
}

/// A set of traced threads: those of a program, and of all the children that it makes.
#[derive(Debug)]
pub struct Guest {
    table: Rc<Table>,
    child: Option<Child>,
    root: Pid,
    on_drop: OnDrop,
    /// Stops to report before new ones are waited for.
    pending: VecDeque<Stop>,
}

const OPTIONS: u32 = option::TRACESYSGOOD
    | option::TRACEFORK
    | option::TRACEVFORK
    | option::TRACECLONE
    | option::TRACEEXEC
    | option::TRACEVFORKDONE
    | option::TRACEEXIT;

impl Default for Launch {
    fn default() -> Self {
        Self { randomize: true, on_drop: OnDrop::Kill }
    }
}

impl Default for Attach {
    fn default() -> Self {
        Self { on_drop: OnDrop::Detach }
    }
}

impl Guest {
    /// Starts a program and holds it in its exec; the first stop is that [`Stop::Exec`].
    ///
    /// # Errors
    /// [`Error::is_not_found`], [`Error::is_denied`], and what else the kernel answers. Nothing is
    /// left running then.
    pub fn launch(command: Command, how: Launch) -> Result<Self, Error> {
        // An end is not reported until the exec, so that `std` sees why an exec fails.
        let first = option::EXITKILL | option::TRACEEXEC;
        let mode = launch::Launch { options: first, randomize: how.randomize };
        let child = launch::launch(command, mode).map_err(|e| Error::new(e.operation, e.source))?;
        let root = launch::pid(&child);
        let tid = root.leader();
        let mut guest = Self::empty(root, how.on_drop);
        guest.child = Some(child);
        let record = guest.table.insert(tid, root);
        sys::set_options(tid, OPTIONS | option::EXITKILL)
            .map_err(|e| Error::on("ptrace(SETOPTIONS)", tid, e))?;
        let exec = Stop::Exec(guest.stopped(tid, record, Exec { former: tid }));
        guest.pending.push_back(exec);
        Ok(guest)
    }

    /// Attaches to every thread of a process and stops it; each thread's first stop is
    /// [`Stop::Started`].
    ///
    /// # Errors
    /// [`Error::is_denied`], [`Error::is_dead`]; the threads that were attached to already are let
    /// go.
    pub fn attach(pid: Pid, how: Attach) -> Result<Self, Error> {
        // Until all of it is attached, an error must not kill anybody.
        let mut guest = Self::empty(pid, OnDrop::Detach);
        loop {
            let mut news = false;
            for tid in threads_of(pid)? {
                // Threads born of attached ones are traced by the kernel.
                if guest.table.get(tid).is_none() && tracer_of(tid) != Some(std::process::id()) {
                    news |= guest.seize(tid, pid)?;
                }
            }
            if !news {
                break;
            }
        }
        if guest.table.is_empty() {
            return Err(Error::died("ptrace(SEIZE)", pid.leader()));
        }
        guest.on_drop = how.on_drop;
        Ok(guest)
    }

    fn empty(root: Pid, on_drop: OnDrop) -> Self {
        Self { table: Rc::default(), child: None, root, on_drop, pending: VecDeque::new() }
    }

    /// Whether the thread was there to be seized.
    fn seize(&self, tid: Tid, pid: Pid) -> Result<bool, Error> {
        match sys::seize(tid, OPTIONS) {
            Ok(()) => {}
            // It ended, or was born of an attached thread and is traced by now.
            Err(e) if e.raw_os_error() == Some(3) || tracer_of(tid) == Some(std::process::id()) => {
                return Ok(false);
            }
            Err(e) => return Err(Error::on("ptrace(SEIZE)", tid, e)),
        }
        self.table.insert(tid, pid);
        self.table.update(tid, |record| {
            record.stopped = false;
            record.fresh = true;
        });
        match sys::interrupt(tid) {
            Err(e) if e.raw_os_error() != Some(3) => Err(Error::on("ptrace(INTERRUPT)", tid, e)),
            _ => Ok(true),
        }
    }

    /// The process that was launched or attached to.
    pub fn root(&self) -> Pid {
        self.root
    }

    /// What happens when this value is dropped.
    pub fn set_on_drop(&mut self, on_drop: OnDrop) {
        self.on_drop = on_drop;
    }

    /// The pipe to a launched program's standard input, if the command asked for one.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.as_mut().and_then(|child| child.stdin.take())
    }

    /// The pipe from a launched program's standard output, if the command asked for one.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.as_mut().and_then(|child| child.stdout.take())
    }

    /// The pipe from a launched program's standard error, if the command asked for one.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.as_mut().and_then(|child| child.stderr.take())
    }

    /// The traced threads, in the order of their ids.
    pub fn threads(&self) -> Vec<Tid> {
        self.table.threads().into_iter().map(|(tid, _)| tid).collect()
    }

    /// Asks a running thread to stop; its stop is an [`Stop::Interrupted`] unless another comes
    /// first. A thread that is stopped already makes that stop when it is next resumed.
    pub fn interrupt(&self, tid: Tid) -> Result<(), Error> {
        sys::interrupt(tid).map_err(|e| Error::on("ptrace(INTERRUPT)", tid, e))
    }

    /// Waits for the next stop of any thread. `None` when no thread is left.
    pub fn wait(&mut self) -> Result<Option<Stop>, Error> {
        self.next(WaitFor::Any)
    }

    /// Waits for the next stop of one thread, while the others run. `None` when it is not one of
    /// ours any more.
    pub fn wait_for(&mut self, tid: Tid) -> Result<Option<Stop>, Error> {
        if let Some(at) = self.pending.iter().position(|stop| stop.tid() == tid) {
            return Ok(self.pending.remove(at));
        }
        if self.table.get(tid).is_none() {
            return Ok(None);
        }
        self.next(WaitFor::One(tid))
    }

    fn next(&mut self, whom: WaitFor) -> Result<Option<Stop>, Error> {
        loop {
            if whom == WaitFor::Any
                && let Some(stop) = self.pending.pop_front()
            {
                return Ok(Some(stop));
            }
            if whom == WaitFor::Any
                && let Some(ended) = self.table.pop_end()
            {
                return Ok(Some(Stop::Ended(ended)));
            }
            if self.table.is_empty() {
                return Ok(None);
            }
            let (tid, status) = match sys::wait(whom, true) {
                Ok(Some(change)) => change,
                Ok(None) => continue,
                Err(e) if e.raw_os_error() == Some(10) => return Ok(None), // ECHILD
                Err(e) => return Err(Error::new("waitpid", e)),
            };
            match self.understand(tid, Change::of(status)) {
                Ok(Some(stop)) => return Ok(Some(stop)),
                Ok(None) => {}
                // Killed since it stopped: its end comes next.
                Err(error) if error.is_dead() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// `None` for what is nobody's business: the end of a child that is not ours.
    fn understand(&mut self, tid: Tid, change: Change) -> Result<Option<Stop>, Error> {
        if let Change::Ended(end) = change {
            let Some(record) = self.table.remove(tid) else { return Ok(None) };
            return Ok(Some(Stop::Ended(Ended { tid, pid: record.pid, end })));
        }
        let known = self.table.get(tid);
        let record = match known {
            Some(record) => record,
            // Born of one of ours: the kernel traces it too.
            None => self.table.insert(tid, process_of(tid)?),
        };
        let attached = known.is_some();
        let fresh = known.is_none() || record.fresh;
        let stepping = record.stepping;
        self.table.update(tid, |record| {
            record.stopped = true;
            record.fresh = false;
            record.stepping = false;
        });
        let message =
            || sys::event_message(tid).map_err(|e| Error::on("ptrace(GETEVENTMSG)", tid, e));
        let info = || sys::signal_info(tid).map_err(|e| Error::on("ptrace(GETSIGINFO)", tid, e));
        let number = |message: u64| Tid(u32::try_from(message).unwrap_or(0));
        Ok(Some(match change {
            Change::Ended(_) => return Ok(None),
            Change::Trap if stepping => {
                let info = info()?;
                match StepCause::of_code(info.code) {
                    Some(cause) => Stop::Step(self.stopped(tid, record, Step { cause })),
                    None => self.signal(tid, record, SignalDelivery { info }),
                }
            }
            Change::Trap | Change::Signal(_) => {
                self.signal(tid, record, SignalDelivery { info: info()? })
            }
            Change::Syscall => self.syscall(tid, record)?,
            // Attached to while job control had it stopped: it is seen before it listens.
            Change::Group(_) | Change::Stopped if fresh => {
                Stop::Started(self.stopped(tid, record, Started { attached }))
            }
            Change::Group(signal) => Stop::Group(self.stopped(tid, record, GroupStop { signal })),
            Change::Stopped | Change::Unknown(_) => {
                Stop::Interrupted(self.stopped(tid, record, Interrupted))
            }
            Change::Fork => {
                Stop::Fork(self.stopped(tid, record, NewThread { tid: number(message()?) }))
            }
            Change::Vfork => {
                Stop::Vfork(self.stopped(tid, record, NewThread { tid: number(message()?) }))
            }
            Change::Clone => {
                Stop::Clone(self.stopped(tid, record, NewThread { tid: number(message()?) }))
            }
            Change::VforkDone => Stop::VforkDone(self.stopped(tid, record, VforkDone)),
            Change::Exec => self.exec(tid, record, number(message()?)),
            Change::Exiting => {
                // A wait status has 16 bits (wait(2)).
                let status = i32::try_from(message()?).unwrap_or(0);
                Stop::Exiting(self.stopped(tid, record, Exiting { status }))
            }
        }))
    }

    fn signal(&self, tid: Tid, record: Record, kind: SignalDelivery) -> Stop {
        self.table.update(tid, |record| record.signal = kind.info.signal);
        Stop::Signal(self.stopped(tid, record, kind))
    }

    fn syscall(&self, tid: Tid, record: Record) -> Result<Stop, Error> {
        let info =
            sys::syscall_info(tid).map_err(|e| Error::on("ptrace(GET_SYSCALL_INFO)", tid, e))?;
        self.table.update(tid, |record| {
            record.in_syscall = matches!(info, SyscallInfo::Entry(..));
        });
        Ok(match info {
            SyscallInfo::Entry(number, arguments) => {
                Stop::SyscallEntry(self.stopped(tid, record, SyscallEntry { number, arguments }))
            }
            SyscallInfo::Exit(value) => {
                Stop::SyscallExit(self.stopped(tid, record, SyscallExit { value }))
            }
            SyscallInfo::None | SyscallInfo::Seccomp => {
                Stop::Interrupted(self.stopped(tid, record, Interrupted))
            }
        })
    }

    /// The thread that execs becomes the leader: its former id is free, and a value that was made
    /// for the former leader must not reach it.
    fn exec(&mut self, tid: Tid, record: Record, former: Tid) -> Stop {
        let pid = record.pid;
        let mut record = record;
        if former != tid && self.table.get(former).is_some_and(|other| other.pid == pid) {
            self.table.remove(former);
            let ended = Ended { tid: former, pid, end: End::Replaced };
            self.pending.push_back(Stop::Ended(ended));
            record = self.table.insert(tid, pid);
        }
        // Threads that have not been reported ended have ended all the same.
        self.table.forget_program(pid);
        self.table.update(tid, |record| record.in_syscall = false);
        Stop::Exec(self.stopped(tid, record, Exec { former }))
    }

    fn stopped<Kind>(&self, tid: Tid, record: Record, kind: Kind) -> Stopped<Kind> {
        let held = Held {
            table: Rc::clone(&self.table),
            tid,
            pid: record.pid,
            generation: record.generation,
        };
        Stopped { held, kind }
    }

    /// Lets every thread go, also those that run at the moment.
    fn detach_all(&mut self) {
        for (tid, record) in self.table.threads() {
            let signal = if record.stopped { Some(record.signal) } else { Self::halt(tid) };
            if let Some(signal) = signal {
                // It may have been killed; then there is nothing to let go.
                let _ = sys::detach(tid, signal);
            }
        }
    }

    /// Stops a running thread; the signal that it was about to receive, 0 for none. `None` if it
    /// has ended.
    fn halt(tid: Tid) -> Option<i32> {
        sys::interrupt(tid).ok()?;
        match sys::wait(WaitFor::One(tid), true) {
            Ok(Some((_, status))) => match Change::of(status) {
                Change::Ended(_) => None,
                Change::Signal(signal) => Some(signal),
                Change::Trap => match sys::signal_info(tid) {
                    Ok(info) if StepCause::of_code(info.code).is_none() => Some(info.signal),
                    _ => Some(0),
                },
                _ => Some(0),
            },
            _ => None,
        }
    }

    /// Kills every process and takes the ends of its threads.
    fn kill_all(&mut self) {
        let mut threads = self.table.threads();
        for (_, record) in &threads {
            // It may be gone already.
            let _ = sys::kill(record.pid);
        }
        while !threads.is_empty() {
            match sys::wait(WaitFor::Any, true) {
                Ok(Some((tid, status))) if matches!(Change::of(status), Change::Ended(_)) => {
                    threads.retain(|(other, _)| *other != tid);
                }
                // A new child of one of them, or a thread in its exit stop.
                Ok(Some((tid, _))) => {
                    if let Ok(pid) = process_of(tid) {
                        let _ = sys::kill(pid);
                    }
                    let _ = sys::resume(tid, sys::Resume::Continue, 0);
                }
                _ => break,
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.pending.clear();
        match self.on_drop {
            OnDrop::Kill => self.kill_all(),
            OnDrop::Detach => self.detach_all(),
        }
    }
}

fn threads_of(pid: Pid) -> Result<Vec<Tid>, Error> {
    let gone = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Error::died("readdir(/proc/PID/task)", pid.leader()),
        _ => Error::on("readdir(/proc/PID/task)", pid.leader(), e),
    };
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Tid))
        .collect())
}

/// A number of `/proc/TID/status`.
fn status_of(tid: Tid, key: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

fn tracer_of(tid: Tid) -> Option<u32> {
    status_of(tid, "TracerPid")
}

fn process_of(tid: Tid) -> Result<Pid, Error> {
    status_of(tid, "Tgid").map(Pid).ok_or_else(|| Error::died("read(/proc/TID/status)", tid))
}
