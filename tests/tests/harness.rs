//! The harness itself: what it starts is there, is who it should be, and is gone afterwards.

use std::path::PathBuf;

use hairspring_tests::{Guest, Need, Nobody, Process, guest_program, skip};

fn exists(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

#[test]
fn a_dropped_guest_is_gone() {
    let guest = Guest::start("idle", &["--threads=3"]);
    let pid = guest.pid();
    assert!(exists(pid));
    drop(guest);
    assert!(!exists(pid), "killed and reaped");
}

#[test]
fn nobody_has_no_privileges() {
    let Some(nobody) = Nobody::new() else {
        skip!(Need::Root, "only root can become another user");
    };
    let command = nobody.command(&guest_program("counter"));
    let mut guest = Guest::start_command("counter", command);
    assert!(!Process::new(guest.pid()).is_root());
    assert_eq!(guest.run().number("writes"), 400);
}
