//! What the command writes, and where: objects that its schema allows, on stdout; talk on stderr;
//! and what becomes of it when nobody listens or somebody interrupts it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use hairspring_tests::{Guest, Hairspring, Session, guest_program};
use jsonschema::Validator;
use serde_json::Value;

fn schema() -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/watch.schema.json");
    let text = std::fs::read_to_string(&path).expect("the schema is in the repository");
    let schema: Value = serde_json::from_str(&text).expect("it is JSON");
    jsonschema::validator_for(&schema).expect("it is a schema")
}

/// Every line is an object that the schema allows, and there is one of each of these kinds.
fn check(session: &Session, kinds: &[&str]) {
    let schema = schema();
    assert_eq!(session.text(), &[] as &[String], "only JSON is on stdout");
    for object in session.objects() {
        let errors: Vec<String> = schema.iter_errors(object).map(|e| e.to_string()).collect();
        assert_eq!(errors, [] as [String; 0], "{object}");
        assert_eq!(object["schema"], 1);
    }
    for kind in kinds {
        assert!(session.of_kind(kind).next().is_some(), "no {kind} in {:?}", session.objects());
    }
}

#[test]
fn the_schema_refuses_what_it_does_not_know() {
    let schema = schema();
    for (object, valid) in [
        (r#"{"schema":1,"kind":"lost","watch":0,"records":3}"#, true),
        (r#"{"schema":1,"kind":"lost","watch":0}"#, false),
        (r#"{"schema":1,"kind":"lost","watch":0,"records":"3"}"#, false),
        (r#"{"schema":1,"kind":"found","watch":0,"records":3}"#, false),
        (r#"{"kind":"lost","watch":0,"records":3}"#, false),
    ] {
        let value = serde_json::from_str(object).expect("it is JSON");
        assert_eq!(schema.is_valid(&value), valid, "{object}");
    }
}

#[test]
fn threads_and_hits() {
    let mut guest = Guest::start("churn", &["--threads=20", "--writes=5"]);
    let place = format!("{:#x}:8", guest.address("field"));
    let mut watching = Hairspring::watch(guest.pid(), &[&place, "--regs"]);
    watching.await_ready();
    guest.run();
    watching.interrupt();
    check(&watching.finish(), &["session", "hit", "thread", "summary"]);
}

#[test]
fn chains_that_move() {
    let mut guest = Guest::start("chain", &["--generations=5", "--writes=5", "--pace=busy"]);
    let mut watching = Hairspring::watch(guest.pid(), &["[[CATALOGUE]+16]:8"]);
    watching.await_ready();
    guest.run();
    watching.interrupt();
    check(&watching.finish(), &["session", "rebind", "summary"]);
}

#[test]
fn hits_that_are_lost() {
    let mut guest = Guest::start("tight", &["--threads=2", "--writes=5000"]);
    let place = format!("{:#x}:8", guest.address("field"));
    let mut watching = Hairspring::watch(guest.pid(), &[&place, "--ring=4"]);
    watching.await_ready();
    watching.signal_stop();
    guest.run();
    watching.signal_continue();
    watching.interrupt();
    check(&watching.finish(), &["session", "summary"]);
}

#[test]
fn values_of_more_than_eight_bytes() {
    let mut guest = Guest::start("counter", &["--threads=2", "--writes=5"]);
    let place = format!("{:#x}:16", guest.address("field") & !15);
    let mut watching = Hairspring::watch(guest.pid(), &[&place]);
    watching.await_ready();
    guest.run();
    watching.interrupt();
    let session = watching.finish();
    check(&session, &["session", "hit", "summary"]);
    let new = &session.of_kind("hit").last().expect("there is a hit")["new"];
    assert!(new.as_str().is_some_and(|new| new.len() == 2 + 32), "{new}");
}

/// An error is an object too, and is told on stderr with what to do about it.
#[test]
fn errors() {
    let guest = Guest::start("counter", &[]);
    for (arguments, told) in [
        (["no_such_symbol", "--pid", &guest.pid().to_string()], "no_such_symbol"),
        (["0x1000:8", "--pid", "999999999"], "999999999"),
    ] {
        let mut all = vec!["watch", "--json"];
        all.extend(arguments);
        let session = Hairspring::run(&all);
        check(&session, &["error"]);
        assert_eq!(session.code(), Some(2));
        assert!(session.stderr().contains(told), "{}", session.stderr());
    }
}

/// An error at the end must not cost what was written to the file before.
#[test]
fn an_output_file_has_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("hits.json");
    let mut guest = Guest::start("counter", &["--threads=2", "--writes=5"]);
    let place = format!("{:#x}:8", guest.address("field"));
    let path = file.to_str().expect("a temporary path is text");
    let mut watching = Hairspring::watch(guest.pid(), &[&place, "--output", path]);
    watching.await_ready();
    guest.run();
    watching.interrupt();
    let session = watching.finish();
    assert_eq!(session.objects(), &[] as &[Value], "nothing is on stdout");
    assert_eq!(session.code(), Some(0));
    let text = std::fs::read_to_string(&file).expect("the file is there");
    let kinds: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].clone())
        .collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "hit").count(), 10);
    assert_eq!(kinds.last(), Some(&Value::from("summary")));
}

/// Text on a pipe has no escape sequences, and a line a hit.
#[test]
fn text_for_a_pipe() {
    let mut guest = Guest::start("counter", &["--threads=2", "--writes=50"]);
    let (place, pid) = (format!("{:#x}:8", guest.address("field")), guest.pid().to_string());
    let mut watching = Hairspring::start(&["watch", &place, "--pid", &pid]);
    watching.await_ready();
    guest.run();
    watching.interrupt();
    let session = watching.finish();
    let text = session.text().join("\n");
    assert!(!text.contains('\x1b') && !session.stderr().contains('\x1b'), "{text}");
    let hits = session.text().iter().filter(|line| line.contains(" -> ")).count();
    assert_eq!(hits, 100, "{text}");
    assert!(text.contains("coverage  complete"), "{text}");
    assert_eq!(session.code(), Some(0));
}

/// As `| head -1` does: it is no failure when nobody reads any more, and the target runs on.
#[test]
fn a_broken_pipe_is_success() {
    let mut guest = Guest::start("tight", &["--threads=1"]);
    let (place, pid) = (format!("{:#x}:8", guest.address("field")), guest.pid().to_string());
    guest.go();
    guest.await_word("running");
    let mut child = Hairspring::command()
        .args(["watch", &place, "--pid", &pid])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut line).expect("a hit can be read");
    assert!(line.contains(" -> "), "{line}");
    let output = child.wait_with_output().expect("it ends by itself");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    guest.send("stop");
    guest.done();
}

/// A command that outlives its session is waited for, unless that is interrupted; it is not killed.
#[test]
fn waiting_for_a_command_can_be_interrupted() {
    // The guest ends when its stdin is closed, which is ours.
    let mut child = Hairspring::command()
        .args(["watch", "REQUESTS_SERVED", "--duration", "1ms", "--json", "--"])
        .arg(guest_program("counter"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let stdin = child.stdin.take();
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
    while !told.contains("waiting for the command") {
        let read = stderr.read_line(&mut told).expect("stderr can be read");
        assert!(read > 0, "it ended: {told}");
    }
    let number = told.rsplit("(process ").next().and_then(|rest| rest.split(')').next());
    let command: i32 = number.and_then(|n| n.parse().ok()).expect("the process is named");
    let signal = |pid, signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
    let hairspring = i32::try_from(child.id()).expect("a pid fits");
    signal(hairspring, Some(nix::sys::signal::Signal::SIGINT)).expect("it is there");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(1), "proved quiet: {told}");
    signal(command, None).expect("the command is there");
    drop(stdin);
}
