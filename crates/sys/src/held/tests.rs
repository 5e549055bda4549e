//! Held children, and what becomes of them when somebody is killed.

use super::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{ChildStdout, Stdio};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// The entry point: `AT_ENTRY`, 9, of the auxiliary vector (getauxval(3)).
fn entry_of(held: &HeldChild) -> Addr {
    let bytes = fs::read(format!("/proc/{}/auxv", held.pid())).expect("it is there");
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let pair = words.as_chunks().0.iter().find(|[key, _]| *key == 9);
    Addr(pair.map(|[_, entry]| *entry).expect("every program has an entry"))
}

fn kill(held: &HeldChild) {
    ptrace::kill(held.pid()).expect("it is there");
}

/// Waits until the process has ended, whoever collects it.
fn await_end(pidfd: &OwnedFd) {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    let minute = PollTimeout::from(60_000_u16);
    assert_eq!(poll(&mut fds, minute), Ok(1), "it has ended");
}

#[test]
fn a_held_child_has_not_run_and_a_released_one_does() {
    let held = HeldChild::spawn(&mut shell("exit 7")).expect("sh starts");
    let state = fs::read_to_string(format!("/proc/{}/stat", held.pid())).expect("alive");
    assert!(state.contains(") t "), "stopped by its tracer: {state}");
    let mut child = held.release().expect("released");
    assert_eq!(child.wait().expect("reaped").code(), Some(7));
}

#[test]
fn a_child_taken_to_its_entry_has_its_libraries_and_runs_as_usual() {
    let mut held = HeldChild::spawn(&mut shell("exit 7")).expect("sh starts");
    let libc_mapped = |held: &HeldChild| {
        fs::read_to_string(format!("/proc/{}/maps", held.pid())).expect("alive").contains("libc")
    };
    assert!(!libc_mapped(&held));
    let entry = entry_of(&held);
    held.run_to(entry).expect("the loader runs");
    assert!(libc_mapped(&held));
    let registers = ptrace::registers(held.tid()).expect("stopped");
    assert_eq!(registers.rip, entry.0);
    assert_eq!(held.release().expect("released").wait().expect("reaped").code(), Some(7));
}

/// Signals that come meanwhile arrive: ordinary ones, real-time ones, and those that stop.
#[test]
fn signals_arrive_once_it_is_let_go() {
    for signal in [libc::SIGUSR1, 40] {
        let mut held = HeldChild::spawn(&mut shell("sleep 60")).expect("sh starts");
        let (pid, tid) = (held.pid(), held.tid());
        ptrace::signal_thread(pid, tid, signal).expect("sent");
        match held.run_to(entry_of(&held)) {
            Err(HoldError::Died) => {}
            other => panic!("signal {signal} ends it in the loader, not {other:?}"),
        }
    }
    let mut held = HeldChild::spawn(&mut shell("exit 3")).expect("sh starts");
    let (pid, tid) = (held.pid(), held.tid());
    ptrace::signal_thread(pid, tid, libc::SIGSTOP).expect("sent");
    let stopped = move || {
        let is_pending = || {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");
            let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:\t"));
            let pending = u64::from_str_radix(pending.expect("a mask"), 16).expect("hexadecimal");
            pending >> (libc::SIGSTOP - 1) & 1 == 1
        };
        while is_pending() {
            std::thread::yield_now();
        }
        ptrace::signal_thread(pid, tid, libc::SIGCONT).expect("sent");
    };
    let waker = std::thread::spawn(stopped);
    held.run_to(entry_of(&held)).expect("it goes on");
    waker.join().expect("it has sent the signal");
    assert_eq!(held.release().expect("released").wait().expect("reaped").code(), Some(3));
}

#[test]
fn a_dropped_child_is_gone() {
    let held = HeldChild::spawn(&mut Command::new("true")).expect("true starts");
    let proc = format!("/proc/{}", held.pid());
    drop(held);
    assert!(!std::path::Path::new(&proc).exists());
}

/// Killed before the loader, behind it, and before it is let go: it has died, and is collected.
#[test]
fn a_killed_child_has_died() {
    let spawn = || HeldChild::spawn(&mut shell("exit 7")).expect("sh starts");
    let mut held = spawn();
    let entry = entry_of(&held);
    kill(&held);
    assert!(matches!(held.run_to(entry), Err(HoldError::Died)));
    let proc = format!("/proc/{}", held.pid());
    drop(held);
    assert!(!std::path::Path::new(&proc).exists());

    let mut held = spawn();
    held.run_to(entry_of(&held)).expect("the loader runs");
    kill(&held);
    let proc = format!("/proc/{}", held.pid());
    match held.release() {
        Err(HoldError::Died) => {}
        // Let go before the kernel came to kill it.
        Ok(mut child) => assert_eq!(child.wait().expect("reaped").code(), None),
        Err(error) => panic!("{error:?}"),
    }
    assert!(!std::path::Path::new(&proc).exists());
}

#[test]
fn a_command_that_does_not_exist() {
    let error = HeldChild::spawn(&mut Command::new("/nonexistent")).expect_err("no such file");
    assert!(matches!(error, HoldError::Call(_, e) if e.kind() == io::ErrorKind::NotFound));
}

/// The part of the next test that runs in a process of its own: holds children in each state and
/// tells who they are.
#[test]
#[ignore = "run by the_child_dies_with_its_tracer"]
fn hold_until_killed() {
    let at_exec = HeldChild::spawn(&mut shell("sleep 60")).expect("sh starts");
    let mut at_entry = HeldChild::spawn(&mut shell("sleep 60")).expect("sh starts");
    at_entry.run_to(entry_of(&at_entry)).expect("the loader runs");
    println!("held {} {}", at_exec.pid(), at_entry.pid());
    loop {
        std::thread::park();
    }
}

#[test]
fn the_child_dies_with_its_tracer() {
    let program = std::env::current_exe().expect("a test has a program");
    let mut tracer = Command::new(program)
        .args(["held::tests::hold_until_killed", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(tracer.stdout.take().expect("a pipe"));
    let held = held_pids(output).map(|pid| crate::pidfd::open(pid).expect("it is held"));
    tracer.kill().expect("it runs");
    tracer.wait().expect("reaped");
    held.iter().for_each(await_end);
}

fn held_pids(output: BufReader<ChildStdout>) -> [Pid; 2] {
    let mut lines = output.lines().map(|line| line.expect("text"));
    // The test harness may have written before, on the same line.
    let line = lines.find(|line| line.contains("held ")).expect("it says whom it holds");
    let (_, pids) = line.split_once("held ").expect("found");
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().expect("a number")).collect();
    [Pid(pids[0]), Pid(pids[1])]
}
