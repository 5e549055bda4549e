//! Every form of access, on the real hardware: the site is the accessing instruction, and each
//! access is one hit.

use hairspring_tests::{Guest, Hairspring, Session, guest_program};
use serde_json::Value;
use std::process::Command;

const TIMES: u64 = 3;

/// Watches a form while it is executed.
fn watch(form: &str, access: &str) -> (Guest, hairspring_tests::Line, Session) {
    let times = format!("--times={TIMES}");
    let mut guest = Guest::start("forms", &[&format!("--form={form}"), &times]);
    let len = if form == "vmovups" { 32 } else { 8 };
    let place = format!("{:#x}:{len}:{access}", guest.address("field"));
    let mut watching = Hairspring::watch(guest.pid(), &[&place]);
    watching.await_ready();
    let done = guest.run();
    watching.interrupt();
    let session = watching.finish();
    assert_eq!(
        session.summary()["coverage"]["verdict"],
        "complete",
        "{form}: {}",
        session.stderr()
    );
    (guest, done, session)
}

fn forms() -> Vec<String> {
    let output = Command::new(guest_program("forms")).arg("--list").output().expect("it runs");
    String::from_utf8(output.stdout).expect("names").lines().map(str::to_owned).collect()
}

fn hits(session: &Session) -> Vec<&Value> {
    session.of_kind("hit").collect()
}

/// Where the hardware's ip does not lead back to the instruction: behind a return or a jump through
/// memory, which only a watch for reads sees.
const NOT_FOUND: [&str; 4] = ["ret", "call_return", "jump_through", "call_through"];

#[test]
fn the_site_is_the_accessing_instruction() {
    let mut found = 0;
    for form in forms() {
        let (guest, done, session) = watch(&form, "rw");
        if guest.address("site") == 0 || done.has("kernel_bytes") {
            continue;
        }
        let site = format!("{:#x}", guest.address("site"));
        // The guest's own look at the final value is one read more.
        let expected = done.number("writes") + done.number("reads");
        assert_eq!(hits(&session).len() as u64, expected, "{form}");
        if NOT_FOUND.contains(&form.as_str()) {
            continue;
        }
        for hit in hits(&session) {
            assert_eq!(hit["site"], site, "{form}: {hit}");
            assert_eq!(hit["certainty"], "exact", "{form}: {hit}");
            let function = hit["function"].as_str().unwrap_or_default();
            assert!(function.starts_with("form_"), "{form}: {hit}");
        }
        found += 1;
    }
    assert!(found >= 35, "only {found} forms were checked");
}

#[test]
fn stored_values_are_exact() {
    for form in ["mov8", "mov_rip", "mov_indexed", "push", "rep_stosq", "movnti"] {
        let (_guest, _done, session) = watch(form, "w");
        let told: Vec<_> = hits(&session)
            .iter()
            .map(|hit| (hit["old"].clone(), hit["new"].clone(), hit["source"].clone()))
            .collect();
        let expected: Vec<_> = (1..=TIMES)
            .map(|n| (Value::from(n - 1), Value::from(n), Value::from("decoded")))
            .collect();
        assert_eq!(told, expected, "{form}");
    }
}

#[test]
fn a_call_names_the_call_and_what_it_pushed() {
    let (guest, _done, session) = watch("call", "w");
    for hit in hits(&session) {
        assert_eq!(hit["site"], format!("{:#x}", guest.address("site")));
        assert_eq!(hit["new"], guest.address("next"));
    }
    assert_eq!(hits(&session).len() as u64, TIMES);
}

#[test]
fn exchanges_tell_what_was_there() {
    for (form, new_is_known) in
        [("cmpxchg_success", true), ("cmpxchg_failure", true), ("xchg", false)]
    {
        let (_guest, _done, session) = watch(form, "w");
        let last = hits(&session).pop().cloned().expect("hits");
        assert_eq!(last["access"], "read-write", "{form}");
        assert!(last["old"].is_u64(), "{form}");
        assert_eq!(last["source"] == "decoded", new_is_known, "{form}: {last}");
    }
}

#[test]
fn a_store_over_four_slots_is_one_hit() {
    if !forms().contains(&"vmovups".to_owned()) {
        hairspring_tests::skip!(hairspring_tests::Need::Processor, "no AVX");
    }
    let (_guest, _done, session) = watch("vmovups", "w");
    assert_eq!(hits(&session).len() as u64, TIMES);
    assert!(hits(&session).iter().all(|hit| hit["records"] == 4));
    let watch = &session.summary()["watches"][0];
    assert_eq!((&watch["counted"], &watch["coalesced"]), (&Value::from(12), &Value::from(9)));
}

/// A store over two watches is a hit of each, and each one's account is its own.
#[test]
fn a_store_over_two_watches_is_one_hit_of_each() {
    let mut guest = Guest::start("forms", &["--form=movups", "--times=3"]);
    let field = guest.address("field");
    let (low, high) = (format!("{field:#x}:8"), format!("{:#x}:8", field + 8));
    let mut watching = Hairspring::watch(guest.pid(), &[&low, &high]);
    watching.await_ready();
    guest.run();
    watching.interrupt();
    let session = watching.finish();
    for watch in 0..2 {
        let mine: Vec<_> = session.of_kind("hit").filter(|hit| hit["watch"] == watch).collect();
        assert_eq!(mine.len(), 3);
        assert!(mine.iter().all(|hit| hit["records"] == 1));
        let figures = &session.summary()["watches"][watch];
        assert_eq!(
            (&figures["counted"], &figures["coalesced"]),
            (&Value::from(3), &Value::from(0))
        );
    }
}

#[test]
fn a_system_call_that_writes_is_one_hit_and_named() {
    for (form, name) in [("read", "read"), ("pread3", "pread64"), ("recvmsg", "recvmsg")] {
        let (guest, done, session) = watch(form, "w");
        let kernel_bytes = done.number("kernel_bytes");
        assert_eq!(session.summary()["watches"][0]["counted"], kernel_bytes, "{form}");
        assert_eq!(hits(&session).len() as u64, TIMES, "{form}");
        for hit in hits(&session) {
            assert_eq!(hit["system_call"], name);
            assert_eq!(hit["site"], format!("{:#x}", guest.address("site")), "{form}");
            assert_eq!(hit["instruction"], "syscall");
        }
    }
}

/// What the hardware can't see is not seen, and the coverage says so beforehand.
#[test]
fn what_is_invisible_is_listed() {
    for form in ["madvise", "process_vm_writev", "alias"] {
        let (_guest, done, session) = watch(form, "w");
        assert_eq!(done.number("invisible"), TIMES, "{form}");
        assert_eq!(hits(&session).len(), 0, "{form}");
        assert_eq!(session.code(), Some(1), "{form}");
        let invisible = session.summary()["coverage"]["invisible"].as_array().expect("a list");
        assert!(invisible.len() >= 4, "{form}: {invisible:?}");
    }
}
