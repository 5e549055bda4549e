//! Every thread, from its first instruction, while others come and go.

use hairspring_tests::{Guest, Hairspring, Process, Session};

/// Watches the guest's field while it runs once; the coverage must be complete.
fn watch_once(guest: &mut Guest, options: &[&str]) -> (hairspring_tests::Line, Session) {
    let place = format!("{:#x}:8", guest.address("field"));
    let mut arguments = vec![place.as_str()];
    arguments.extend(options);
    let mut watching = Hairspring::watch(guest.pid(), &arguments);
    watching.await_ready();
    let done = guest.run();
    watching.interrupt();
    let session = watching.finish();
    let coverage = &session.summary()["coverage"];
    assert_eq!(coverage["verdict"], "complete", "{coverage}");
    Process::new(guest.pid()).assert_untouched();
    (done, session)
}

fn check(name: &str, flags: &[&str], rounds: u32) {
    for round in 0..rounds {
        let mut guest = Guest::start(name, flags);
        let (done, session) = watch_once(&mut guest, &["--summary"]);
        let watch = &session.summary()["watches"][0];
        assert_eq!(
            watch["hits"],
            done.number("writes"),
            "{name} {flags:?} in round {round}: {watch}"
        );
        assert_eq!(watch["counted"], watch["delivered"], "{watch}");
        assert_eq!(session.code(), Some(0));
    }
}

/// How often the storms are repeated: more where somebody asks for a soak.
fn rounds() -> u32 {
    std::env::var("HAIRSPRING_SOAK").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(5)
}

#[test]
fn threads_that_live_for_five_writes() {
    check("churn", &["--threads=2000", "--writes=5"], rounds());
}

#[test]
fn threads_made_by_threads() {
    check("churn", &["--threads=1000", "--writes=5", "--nested"], rounds());
}

/// Threads are made all the while, so that arming races with their births.
#[test]
fn threads_that_are_born_while_being_armed() {
    check("churn", &["--threads=1000", "--writes=5", "--background"], rounds());
}

#[test]
fn threads_that_were_there_before() {
    for instruction in ["mov", "xadd", "add"] {
        check(
            "counter",
            &["--threads=8", "--writes=50", &format!("--instruction={instruction}")],
            1,
        );
    }
    check("idle", &["--threads=300", "--writes=2"], 1);
}

#[test]
fn threads_die_while_being_armed() {
    for flags in [["--mode=handler"], ["--mode=fatal"]] {
        let mut guest = Guest::start("signals", &flags);
        let place = format!("{:#x}:8", guest.address("field"));
        let mut watching = Hairspring::watch(guest.pid(), &[&place]);
        watching.await_ready();
        guest.go();
        if flags == ["--mode=handler"] {
            let done = guest.done();
            watching.interrupt();
            let session = watching.finish();
            assert_eq!(session.of_kind("hit").count() as u64, done.number("writes"));
            continue;
        }
        let session = watching.finish();
        assert_eq!(session.summary()["stop_reason"], "exited");
        assert_eq!(session.summary()["coverage"]["verdict"], "complete");
    }
}

#[test]
fn each_hit_names_its_thread() {
    let mut guest = Guest::start("counter", &["--threads=3", "--writes=4"]);
    let (_done, session) = watch_once(&mut guest, &[]);
    let mut names: Vec<_> = session.of_kind("hit").map(|hit| hit["thread"].to_string()).collect();
    assert_eq!(names.len(), 12);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
}

/// A fork has a copy of the memory: watched only where asked for.
#[test]
fn children_are_watched_only_where_asked_for() {
    for (options, children) in [(&[][..], false), (&["--children"][..], true)] {
        let mut guest = Guest::start("forker", &["--children=3", "--writes=7"]);
        let (done, session) = watch_once(&mut guest, options);
        let extra = if children { done.number("child_writes") } else { 0 };
        let hits = session.of_kind("hit").count() as u64;
        assert_eq!(hits, done.number("writes") + extra, "{options:?}");
        let own = session.of_kind("hit").filter(|hit| hit["pid"] == guest.pid()).count() as u64;
        assert_eq!(own, done.number("writes"));
    }
}

/// Where the reader can't keep up, nothing is lost silently.
#[test]
fn a_small_ring_still_adds_up() {
    let mut guest = Guest::start("tight", &["--threads=4", "--writes=20000"]);
    let place = format!("{:#x}:8", guest.address("field"));
    let mut watching = Hairspring::watch(guest.pid(), &[&place, "--ring=4"]);
    watching.await_ready();
    // A reader that is stopped can't keep up.
    watching.signal_stop();
    let done = guest.run();
    watching.signal_continue();
    watching.interrupt();
    let session = watching.finish();
    let watch = &session.summary()["watches"][0];
    let number = |key: &str| watch[key].as_u64().expect("a number");
    assert_eq!(number("counted"), done.number("writes"));
    assert_eq!(number("counted"), number("delivered") + number("lost"), "{watch}");
    assert!(number("lost") > 0, "{watch}");
    assert_eq!(session.summary()["coverage"]["verdict"], "incomplete");
    assert_eq!(session.code(), Some(3));
}
