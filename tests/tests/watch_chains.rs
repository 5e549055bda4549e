//! Places behind pointers, and in libraries that come later.

use hairspring_tests::{Guest, Hairspring, Session, guest_program, late_library};
use serde_json::Value;

/// Watches the catalogue's first row while the guest replaces the buffer it is in, one line at a
/// time: each time the guest waits until the new place is armed.
fn follow(flags: &[&str], options: &[&str]) -> (hairspring_tests::Line, Session) {
    let mut all = vec!["--pace=wait"];
    all.extend(flags);
    let mut guest = Guest::start("chain", &all);
    let mut arguments = vec!["[[CATALOGUE]+16]"];
    arguments.extend(options);
    let mut watching = Hairspring::watch(guest.pid(), &arguments);
    watching.await_ready();
    guest.go();
    loop {
        let line = guest.line();
        if line.word() == "done" {
            watching.interrupt();
            return (line, watching.finish());
        }
        if line.word() == "rebound" {
            let rebind = await_rebind(&mut watching, &line);
            assert!(rebind["blind_ns"].is_u64());
            guest.send("next");
        }
    }
}

/// Waits for the rebind that the guest has just told of.
fn await_rebind(watching: &mut Hairspring, line: &hairspring_tests::Line) -> Value {
    let leaf = line.number("leaf");
    let leads_somewhere = leaf > 0x1000 && line.number("bound") > 0;
    loop {
        let object = watching.next_object().expect("the session goes on");
        if object["kind"] != "rebind" {
            continue;
        }
        let expected = format!("{leaf:#x}");
        if !leads_somewhere || object["new"] == expected.as_str() {
            return object;
        }
    }
}

#[test]
fn a_buffer_that_is_replaced_is_followed() {
    let (done, session) = follow(&["--generations=10", "--writes=5"], &["--blind-limit=10s"]);
    let hits: Vec<_> = session.of_kind("hit").collect();
    assert_eq!(hits.len() as u64, done.number("writes"));
    let generations: Vec<_> = hits.iter().map(|hit| hit["generation"].as_u64()).collect();
    assert!(generations.is_sorted(), "{generations:?}");
    // The first value of a new buffer has no value before it that is known.
    let firsts = hits.iter().filter(|hit| hit["new"] == 1);
    assert!(firsts.map(|hit| &hit["old"]).all(Value::is_null), "{hits:?}");
    let coverage = &session.summary()["coverage"];
    assert_eq!(coverage["verdict"], "complete", "{coverage}");
    assert_eq!(coverage["blind_windows"], session.of_kind("rebind").count());
    let watch = &session.summary()["watches"][0];
    assert_eq!(watch["pointer_writes"], done.number("slot_writes"));
}

#[test]
fn without_a_limit_any_blind_window_leaves_it_incomplete() {
    let (done, session) = follow(&["--generations=3", "--writes=5"], &[]);
    assert_eq!(session.of_kind("hit").count() as u64, done.number("writes"));
    assert_eq!(session.code(), Some(3));
}

#[test]
fn null_and_bad_pointers_turn_it_off_and_good_ones_on_again() {
    for (flag, reason) in [("--null", "null"), ("--bad", "can't be watched")] {
        let (done, session) =
            follow(&["--generations=4", "--writes=3", flag], &["--blind-limit=10s"]);
        assert_eq!(session.of_kind("hit").count() as u64, done.number("writes"), "{flag}");
        let off = session.of_kind("rebind").filter(|rebind| rebind["new"].is_null());
        let reasons: Vec<_> = off.map(|rebind| rebind["reason"].to_string()).collect();
        if flag == "--null" {
            assert!(
                !reasons.is_empty() && reasons.iter().all(|r| r.contains(reason)),
                "{reasons:?}"
            );
        }
    }
}

#[test]
fn a_bound_keeps_the_watch_off() {
    let options = ["--bound", "[CATALOGUE]+8>=1", "--blind-limit=10s"];
    let (done, session) = follow(&["--generations=4", "--writes=3", "--short"], &options);
    let bound = |rebind: &&Value| rebind["reason"].as_str().is_some_and(|r| r.contains("bound"));
    assert!(session.of_kind("rebind").filter(bound).count() > 0);
    // What was written while the bound did not hold is not seen, and all the rest is.
    assert!(done.number("short_writes") > 0);
    let expected = done.number("writes") - done.number("short_writes");
    assert_eq!(session.of_kind("hit").count() as u64, expected);
}

#[test]
fn a_command_is_watched_from_its_first_instruction() {
    let program = guest_program("counter");
    let mut command = Hairspring::command();
    command.args(["watch", "--json", "REQUESTS_SERVED", "--duration=20s", "--"]).arg(program);
    let session = Hairspring::start_command(command).finish();
    // Without `go` the guest ends at once, by the end of its input.
    assert_eq!(session.summary()["stop_reason"], "exited", "{}", session.stderr());
    assert_eq!(session.summary()["coverage"]["verdict"], "complete");
    assert!(session.stderr().contains("ready"));
}

/// A library that the command is linked with is mapped by the loader, after the exec.
#[test]
fn a_place_in_a_linked_library_can_be_watched() {
    let mut command = Hairspring::command();
    command.args(["watch", "--json", "libc.so.6!environ:8:rw", "--", "env"]);
    let session = Hairspring::start_command(command).finish();
    assert_eq!(session.code(), Some(0), "{}", session.stderr());
    assert!(session.of_kind("hit").count() > 0, "env reads its environment");
}

#[test]
fn a_library_that_is_loaded_later_is_waited_for() {
    let library = format!("--library={}", late_library().display());
    let mut guest = Guest::start("dlopener", &[&library, "--writes=6"]);
    let options = ["libhairspring_late.so!LATE_FIELD", "--blind-limit=10s"];
    let mut watching = Hairspring::watch(guest.pid(), &options);
    watching.await_ready();
    guest.send("open");
    let opened = guest.await_word("opened");
    let loaded = loop {
        let object = watching.next_object().expect("the session goes on");
        if object["kind"] == "loaded" {
            break object;
        }
    };
    assert_eq!(loaded["address"], format!("{:#x}", opened.number("field")));
    let done = guest.run();
    watching.interrupt();
    let session = watching.finish();
    assert_eq!(session.of_kind("hit").count() as u64, done.number("writes"));
    assert_eq!(session.summary()["coverage"]["verdict"], "complete");
}

#[test]
fn a_library_that_never_comes_is_a_gap() {
    let guest = Guest::start("counter", &[]);
    let mut watching = Hairspring::watch(guest.pid(), &["libnever.so!x"]);
    watching.await_ready();
    watching.interrupt();
    let session = watching.finish();
    assert_eq!(session.code(), Some(3));
    let reasons = session.summary()["coverage"]["reasons"].to_string();
    assert!(reasons.contains("never loaded"), "{reasons}");
}
