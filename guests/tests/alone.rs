//! Every guest without a tool: the counts that it announces are the ones that it made.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use hairspring_tests::{
    Guest, Line, Linkage, Process, guest_program, guest_program_linked, late_library,
};

/// Runs a guest for three rounds; each must announce `writes`, and the field must count them all.
fn check_counts(name: &str, flags: &[&str], writes: u64) {
    let mut guest = Guest::start(name, flags);
    for round in 1..=3 {
        let done = guest.run();
        assert_eq!(done.number("writes"), writes, "{name} {flags:?}");
        assert_eq!(done.number("final"), round * writes, "{name} {flags:?}, round {round}");
    }
    assert!(guest.finish().success(), "{name} {flags:?}");
}

#[test]
fn counts_are_exact() {
    check_counts("counter", &["--threads=3", "--writes=50", "--instruction=xadd"], 150);
    check_counts("counter", &["--threads=1", "--writes=50", "--instruction=add"], 50);
    check_counts("counter", &["--threads=0", "--writes=50", "--instruction=xadd"], 0);
    check_counts("churn", &["--threads=101", "--writes=5"], 505);
    check_counts("churn", &["--threads=101", "--writes=5", "--nested", "--alive=3"], 505);
    check_counts("churn", &["--threads=100", "--writes=5", "--background"], 500);
    check_counts("tight", &["--threads=2", "--writes=1000", "--instruction=xadd"], 2000);
    check_counts("idle", &["--threads=200", "--writes=2"], 400);
    check_counts("forker", &["--children=3", "--writes=7"], 7);
    check_counts("execer", &["--writes=7"], 7);
    check_counts("signals", &["--threads=3", "--writes=7"], 21);
}

#[test]
fn a_moved_value_is_the_last_one() {
    let mut guest = Guest::start("counter", &["--threads=3", "--writes=50"]);
    assert_eq!(guest.run().number("final"), 50);
}

#[test]
fn tight_stops_when_told() {
    let mut guest = Guest::start("tight", &["--threads=3", "--instruction=xadd"]);
    let mut total = 0;
    for _ in 0..2 {
        guest.go();
        guest.await_word("running");
        guest.send("stop");
        let done = guest.done();
        assert!(done.number("writes") >= 3, "every thread wrote: {done:?}");
        total += done.number("writes");
        assert_eq!(done.number("final"), total);
    }
}

#[test]
fn pingpong_is_measured() {
    let mut guest = Guest::start("idle", &["--threads=1", "--pingpong=100"]);
    assert!(guest.run().number("rounds_per_second") > 0);
}

#[test]
fn every_form_does_what_it_announces() {
    let output = Command::new(guest_program("forms")).arg("--list").output().expect("it runs");
    let names = String::from_utf8(output.stdout).expect("names are ASCII");
    assert!(names.lines().count() > 50, "{names}");
    for name in names.lines() {
        let mut guest = Guest::start("forms", &[&format!("--form={name}"), "--times=70"]);
        for _ in 0..2 {
            let done = guest.run();
            if name == "clock_gettime" {
                assert_ne!(done.number("final"), 0, "{name}");
            } else {
                assert_eq!(done.number("final"), done.number("expected"), "{name}: {done:?}");
            }
            let seen = done.number("writes") + done.number("reads");
            let unseen = |key| if done.has(key) { done.number(key) } else { 0 };
            let all = seen + unseen("kernel_bytes") + unseen("invisible");
            assert!(all > 0 && all.is_multiple_of(70), "{name}: {done:?}");
        }
        let ready = guest.ready();
        let length = ready.number("next") - ready.number("site");
        assert!(length <= 15, "{name}: no instruction has {length} bytes");
        assert!(guest.finish().success(), "{name}");
    }
}

#[test]
fn a_chain_is_rebound_as_often_as_announced() {
    let check = |flags: &[&str], rebinds: u64, expected: [(&str, u64); 5]| {
        let mut guest = Guest::start("chain", flags);
        let mut leaf = guest.address("leaf");
        guest.go();
        let mut seen = 0;
        let done = loop {
            let line = guest.line();
            if line.word() == "done" {
                break line;
            }
            assert_eq!(line.word(), "rebound");
            assert_ne!(line.number("leaf"), leaf, "the leaf moves: {line:?}");
            leaf = line.number("leaf");
            seen += 1;
            if flags.contains(&"--pace=wait") {
                guest.send("next");
            }
        };
        assert_eq!(seen, rebinds, "{flags:?}");
        for (key, value) in expected {
            assert_eq!(done.number(key), value, "{key} with {flags:?}");
        }
    };
    let counts = |writes, short, slots, roots, stale| {
        [
            ("writes", writes),
            ("short_writes", short),
            ("slot_writes", slots),
            ("root_writes", roots),
            ("stale_writes", stale),
        ]
    };
    check(&["--generations=4", "--writes=5"], 4, counts(20, 0, 4, 0, 0));
    check(&["--generations=4", "--writes=5", "--pace=wait"], 4, counts(20, 0, 4, 0, 0));
    check(&["--generations=4", "--pace=busy", "--null"], 8, counts(20, 0, 8, 0, 0));
    let all = ["--generations=4", "--null", "--bad", "--short", "--stale", "--roots"];
    check(&all, 10, counts(20, 10, 9, 1, 20));
}

#[test]
fn children_are_named() {
    let mut guest = Guest::start("forker", &["--children=3", "--writes=7"]);
    let done = guest.run();
    assert_eq!(done.number("child_writes"), 21);
    assert_eq!(done.text("children").split(',').count(), 3);
}

#[test]
fn exec_keeps_the_pid() {
    for from in ["leader", "thread"] {
        let mut guest = Guest::start("execer", &["--writes=7", &format!("--from={from}")]);
        let pid = guest.ready().number("pid");
        assert_eq!(guest.run().number("final"), 7);
        guest.send("exec");
        guest.await_ready();
        assert_eq!(guest.ready().number("pid"), pid, "{from}");
        assert_eq!(guest.ready().number("execs"), 1, "{from}");
        assert_eq!(guest.run().number("final"), 7, "memory is new after exec from {from}");
    }
}

#[test]
fn ends_are_as_asked() {
    let end = |name: &str, flags: &[&str]| {
        let mut guest = Guest::start(name, flags);
        let done = guest.run();
        assert_eq!(done.number("final"), done.number("writes"), "{name} {flags:?}");
        guest.finish()
    };
    assert_eq!(end("exiter", &["--status=3"]).code(), Some(3));
    assert_eq!(end("exiter", &["--status=3", "--what=leader"]).code(), Some(3));
    assert_eq!(end("exiter", &["--what=killed"]).signal(), Some(9));
    for signal in [6, 11, 15] {
        let flags = ["--mode=fatal", &format!("--signal={signal}")];
        assert_eq!(end("signals", &flags).signal(), Some(signal));
    }
}

#[test]
fn a_late_library_comes_and_goes() {
    let library = format!("--library={}", late_library().display());
    let mut guest = Guest::start("dlopener", &[&library, "--writes=7"]);
    guest.send("open");
    let opened: Line = guest.await_word("opened");
    assert_ne!(opened.number("field"), 0);
    assert_eq!(guest.run().number("final"), 7);
    assert_eq!(guest.run().number("final"), 14);
    guest.send("close");
    assert_eq!(guest.await_word("closed").text("loaded"), "false");
    guest.send("all");
    assert_eq!(guest.done().number("final"), 7, "a fresh copy of the library");
}

#[test]
fn the_ledger_is_corrupted_as_often_as_announced() {
    let mut guest = Guest::start("corrupt", &["--tellers=2", "--entries=10", "--audits=93"]);
    let done = guest.run();
    assert_eq!(done.number("writes"), 30);
    assert_eq!(done.number("rogue_writes"), 10);
    // The last amount that went astray, and the entries that came after it.
    assert!((189..=209).contains(&done.number("final")), "{done:?}");
    assert_eq!(guest.address("ledger") + guest.ready().number("offset"), guest.address("field"));
}

#[test]
fn a_static_guest_is_at_the_addresses_of_its_file() {
    for linkage in [Linkage::StaticPie, Linkage::Static] {
        let program = guest_program_linked("counter", linkage);
        let mut guest = Guest::start_command("counter", Command::new(program));
        assert_eq!(guest.run().number("writes"), 400);
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", guest.pid())).expect("alive");
        assert!(!maps.contains(".so"), "{linkage:?} has shared libraries:\n{maps}");
        let low = guest.address("field") < 0x1000_0000;
        assert_eq!(low, linkage == Linkage::Static, "{linkage:?}");
    }
}

#[test]
fn nobody_touches_a_guest() {
    let guest = Guest::start("idle", &["--threads=10"]);
    let process = Process::new(guest.pid());
    assert_eq!(process.threads().len(), 11);
    process.assert_untouched();
}

#[test]
fn unknown_flags_are_refused() {
    let output = Command::new(guest_program("counter")).arg("--thread=1").output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--threads"));
}
