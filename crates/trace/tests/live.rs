//! Real guests, every kind of stop.

use hairspring_model::{Pid, Tid};
use hairspring_tests::{Process, guest_program};
use hairspring_trace::{Attach, End, Error, Exec, Guest, Launch, Next, OnDrop, Stop};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

fn tracee(what: &str) -> Command {
    let mut command = Command::new(guest_program("tracee"));
    command.arg(what);
    command
}

/// Runs the guest to its end and says what happened, in order, without threads' ids.
fn run(guest: &mut Guest, next: Next) -> Vec<String> {
    let mut log = Vec::new();
    while let Some(stop) = guest.wait().expect("waiting works") {
        let text = format!("{stop:?}");
        log.push(text.split('(').next().expect("a name").to_owned());
        match stop {
            Stop::Ended(ended) if ended.pid == guest.root() && ended.tid.0 == ended.pid.0 => {
                log.push(ended.end.to_string());
            }
            other => match other.resume(next) {
                Err(error) if error.is_dead() => log.push("died".to_owned()),
                result => result.expect("resumed"),
            },
        }
    }
    log
}

fn launch(what: &str) -> Guest {
    Guest::launch(tracee(what), Launch::default()).expect("the guest starts")
}

fn count(log: &[String], what: &str) -> usize {
    log.iter().filter(|entry| *entry == what).count()
}

#[test]
fn every_way_to_make_and_end_a_thread() {
    for (what, expected) in [
        ("done", &[("Exec", 1), ("Exiting", 1)][..]),
        ("fork", &[("Fork", 1), ("Started", 1), ("Exec", 2), ("Exiting", 2)]),
        ("vfork", &[("Vfork", 1), ("VforkDone", 1), ("Started", 1), ("Exec", 2)]),
        ("threads=20", &[("Clone", 20), ("Started", 20), ("Exiting", 21), ("Ended", 21)]),
        ("exec-from-thread", &[("Clone", 1), ("Exec", 2)]),
        ("exit-group=5", &[("Clone", 5), ("Ended", 6)]),
        ("realtime", &[("Signal", 2)]),
    ] {
        let log = run(&mut launch(what), Next::Event);
        for (stop, times) in expected {
            assert_eq!(count(&log, stop), *times, "{what}: {stop}: {log:?}");
        }
        assert_eq!(log.last().map(String::as_str), Some("exited with status 7"), "{what}: {log:?}");
    }
}

#[test]
fn an_exec_by_another_thread_takes_the_leaders_id() {
    let mut guest = launch("exec-from-thread");
    let mut leader = None;
    let mut execs = 0;
    while let Some(stop) = guest.wait().expect("waiting works") {
        match stop {
            // The leader waits in its join; hold it stopped while the other thread execs.
            Stop::Clone(thread) => leader = Some(thread),
            Stop::Exec(thread) => {
                execs += 1;
                if execs == 2 {
                    let Exec { former } = *thread.kind();
                    assert_ne!(former, thread.tid());
                    assert_eq!(thread.tid(), guest.root().leader());
                    // The value of the thread that is gone does not reach the one in its place.
                    let stale = leader.take().expect("the leader stopped at its clone");
                    assert!(stale.registers().expect_err("stale").is_dead());
                    assert!(stale.resume(Next::Event).expect_err("stale").is_dead());
                    assert!(thread.registers().is_ok());
                }
                thread.resume(Next::Event).expect("resumed");
            }
            Stop::Ended(ended) if ended.end == End::Replaced => {}
            Stop::Ended(ended) => assert_eq!(ended.end, End::Exited(7)),
            other => match other.resume(Next::Event) {
                Err(error) if error.is_dead() => {}
                result => result.expect("resumed"),
            },
        }
    }
    assert_eq!(execs, 2);
}

#[test]
fn system_calls_come_in_pairs_and_can_be_injected() {
    let mut guest = launch("done");
    let (mut entries, mut exits) = (0, 0);
    while let Some(stop) = guest.wait().expect("waiting works") {
        match stop {
            Stop::SyscallEntry(thread) => {
                entries += 1;
                assert!(thread.is_in_syscall());
                thread.resume(Next::Syscall).expect("resumed");
            }
            Stop::SyscallExit(thread) => {
                exits += 1;
                let before = thread.registers().expect("stopped");
                let getpid = thread.inject(39, [0; 6]).expect("injected");
                assert_eq!(getpid, i64::from(guest.root().0));
                let mut after = thread.registers().expect("stopped");
                after.orig_rax = before.orig_rax;
                assert_eq!(after, before);
                assert!(!thread.is_in_syscall());
                thread.resume(Next::Syscall).expect("resumed");
            }
            Stop::Exec(thread) => {
                assert_eq!(thread.inject(39, [0; 6]).expect("injected"), i64::from(guest.root().0));
                thread.resume(Next::Syscall).expect("resumed");
            }
            Stop::Ended(ended) => assert_eq!(ended.end, End::Exited(7)),
            other => other.resume(Next::Syscall).expect("resumed"),
        }
    }
    // exit_group does not return.
    assert!(entries > 10);
    assert_eq!(entries, exits + 1);
}

#[test]
fn job_control_stops_the_guest_and_lets_it_go() {
    let mut guest = launch("group-stop");
    let (mut stopped, mut went_on) = (0, 0);
    while let Some(stop) = guest.wait().expect("waiting works") {
        match stop {
            Stop::Group(thread) => {
                stopped += 1;
                assert_eq!(thread.kind().signal, 19);
                thread.listen().expect("listens");
                let pid = guest.root().to_string();
                let done = Command::new("kill").args(["-CONT", &pid]).status().expect("kill runs");
                assert!(done.success());
            }
            Stop::Interrupted(thread) => {
                went_on += 1;
                thread.resume(Next::Event).expect("resumed");
            }
            Stop::Ended(ended) => assert_eq!(ended.end, End::Exited(7)),
            other => other.resume(Next::Event).expect("resumed"),
        }
    }
    assert!(stopped >= 1, "the group stop was seen");
    assert!(went_on >= 1, "its end was seen");
}

/// SIGKILL while the thread is held at each of its first hundred stops: the end is always reported
/// and nothing but `is_dead` goes wrong.
#[test]
fn killed_at_every_stop() {
    for at in 0..100 {
        let mut guest = launch("threads=2");
        let mut stops = 0;
        let mut ends = 0;
        while let Some(stop) = guest.wait().expect("waiting works") {
            if stops == at && stop.held().is_some() {
                let pid = guest.root().to_string();
                assert!(
                    Command::new("kill").args(["-KILL", &pid]).status().expect("kill").success()
                );
            }
            stops += 1;
            let tolerated = |result: Result<(), Error>| match result {
                Err(error) if error.is_dead() => {}
                result => result.expect("resumed"),
            };
            match stop {
                Stop::Ended(_) => ends += 1,
                Stop::SyscallExit(thread) => {
                    tolerated(thread.inject(39, [0; 6]).map(|_| ()));
                    tolerated(thread.resume(Next::Syscall));
                }
                other => tolerated(other.resume(Next::Syscall)),
            }
        }
        assert!(ends >= 1, "killed at stop {at}");
        assert!(guest.threads().is_empty());
    }
}

fn spinning(threads: usize) -> (std::process::Child, Pid) {
    let mut child = tracee(&format!("spin={threads}"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the guest starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("it prints its id");
    let pid = Pid(child.id());
    assert_eq!(line.trim(), pid.to_string());
    while Process::new(pid.0).threads().len() < threads {
        std::thread::yield_now();
    }
    (child, pid)
}

#[test]
fn attach_stops_all_threads_and_detach_lets_all_go() {
    let (mut child, pid) = spinning(8);
    let mut guest = Guest::attach(pid, Attach::default()).expect("attached");
    let mut held = Vec::new();
    while held.len() < 8 {
        match guest.wait().expect("waiting works").expect("threads are left") {
            Stop::Started(thread) => {
                assert!(thread.kind().attached);
                held.push(thread);
            }
            other => panic!("{other:?}"),
        }
    }
    let mut tids: Vec<Tid> = held.iter().map(|thread| thread.tid()).collect();
    tids.sort();
    assert_eq!(tids, guest.threads());
    // Half of them run, half are stopped.
    for thread in held.into_iter().take(4) {
        thread.resume(Next::Event).expect("resumed");
    }
    drop(guest);
    Process::new(pid.0).assert_untouched();
    child.kill().expect("ours");
    child.wait().expect("ours");
}

#[test]
fn a_dropped_guest_is_killed_with_its_children() {
    let guest = launch("spin=3");
    let pid = guest.root();
    drop(guest);
    assert_eq!(Process::new(pid.0).state(), None);

    let how = Launch { on_drop: OnDrop::Detach, ..Launch::default() };
    let guest = Guest::launch(tracee("done"), how).expect("starts");
    let pid = guest.root();
    drop(guest);
    // It runs to its end by itself; a zombie until this process takes it, which nobody else does.
    while !matches!(Process::new(pid.0).state(), Some('Z') | None) {
        std::thread::yield_now();
    }
}

#[test]
fn what_can_not_be_launched_or_attached_to() {
    let error =
        Guest::launch(Command::new("/nonexistent"), Launch::default()).expect_err("missing");
    assert!(error.is_not_found(), "{error}");
    let error =
        Guest::launch(Command::new("/dev/null"), Launch::default()).expect_err("no program");
    assert_eq!(error.errno(), Some(13), "{error}");
    let error = Guest::attach(Pid(u32::MAX), Attach::default()).expect_err("nobody");
    assert!(error.is_dead(), "{error}");
    // A process can be traced once.
    let guest = launch("spin");
    let pid = guest.root();
    let second = std::thread::spawn(move || match Guest::attach(pid, Attach::default()) {
        Ok(_) => None,
        Err(error) => Some(error.is_denied() || error.is_dead()),
    });
    assert_eq!(second.join().expect("no panic"), Some(true));
}
