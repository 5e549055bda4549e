//! What the kernel refuses, in processes of their own: few descriptors, little locked memory, and
//! an ordinary user. Each test runs an ignored one of this file there.

use hairspring_model::{Access, Addr, Tid};
use hairspring_perf::{
    Breakpoint, Capability, Event, Host, Inherit, Layer, Layout, Length, OnCpu, Piece, Ring,
};
use hairspring_tests::{Need, Nobody, skip};
use nix::sys::resource::{Resource, setrlimit};
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

fn this_program() -> PathBuf {
    std::env::current_exe().expect("a test has a program")
}

fn run(mut command: Command, test: &str) {
    let output = command.args([test, "--exact", "--ignored", "--nocapture"]).output();
    let output = output.expect("it starts");
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn breakpoint(thread: Option<Tid>) -> Result<Event, hairspring_perf::Error> {
    let spec = Breakpoint {
        piece: Piece::new(Addr(0x1000), Length::Eight).expect("aligned"),
        access: Access::Write,
        inherit: Inherit::No,
        on: false,
        kernel: false,
        layout: Layout { ip: true, ..Layout::default() },
        urgent: false,
        count_lost: false,
    };
    Event::breakpoint(thread, OnCpu::Any, &spec, None)
}

#[test]
fn descriptors_run_out() {
    run(Command::new(this_program()), "with_few_descriptors");
}

#[test]
#[ignore = "run by descriptors_run_out"]
fn with_few_descriptors() {
    setrlimit(Resource::RLIMIT_NOFILE, 32, 32).expect("fewer are always allowed");
    let host = Host::read();
    let mut open = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        open.push(file);
    }
    let error = breakpoint(None).expect_err("none is left");
    open.clear();
    assert!(error.is_out_of_descriptors() && !error.is_out_of_slots(), "{error}");
    let refusal = error.refusal(&host);
    assert_eq!(refusal.layer, Layer::Descriptors);
    assert!(refusal.remedy.contains("32"), "{}", refusal.remedy);
    breakpoint(None).expect("there are some again");
}

#[test]
fn locked_memory_runs_out() {
    let Some(nobody) = Nobody::new() else {
        skip!(Need::Root, "only root can become an ordinary user");
    };
    run(nobody.command(&this_program()), "with_little_locked_memory");
}

#[test]
#[ignore = "run by locked_memory_runs_out"]
fn with_little_locked_memory() {
    const WANTED: usize = 64 << 20;
    setrlimit(Resource::RLIMIT_MEMLOCK, 64 << 10, 64 << 10).expect("less is always allowed");
    let host = Host::read();
    assert!(!host.can(Capability::IpcLock));
    let Some(limit) = host.ring_limit() else {
        assert!(host.paranoid < 0, "an ordinary user has a limit");
        return;
    };
    let mut rings: Vec<Ring> = Vec::new();
    let error = loop {
        match Ring::new(host.cpus[0], WANTED, &host) {
            Ok(ring) => rings.push(ring),
            Err(error) => break error,
        }
    };
    let sizes: Vec<usize> = rings.iter().map(Ring::size).collect();
    assert!(!sizes.is_empty() && sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    assert!(sizes[0] < WANTED && sizes[0] as u64 <= limit, "{sizes:?}");
    let all: u64 = sizes.iter().map(|size| *size as u64).sum();
    assert!(all <= limit * host.cpus.len() as u64, "{sizes:?} of {limit} on each CPU");
    assert_eq!(error.refusal(&host).layer, Layer::LockedMemory, "{error}");
    drop(rings);
    assert_eq!(Ring::new(host.cpus[0], WANTED, &host).expect("free again").size(), sizes[0]);
}

#[test]
fn others_processes_are_refused() {
    let Some(nobody) = Nobody::new() else {
        skip!(Need::Root, "only root can become an ordinary user");
    };
    run(nobody.command(&this_program()), "as_an_ordinary_user");
}

#[test]
#[ignore = "run by others_processes_are_refused"]
fn as_an_ordinary_user() {
    let host = Host::read();
    let error = breakpoint(Some(Tid(1))).expect_err("the first process is root's");
    assert!(error.is_denied() && !error.is_gone(), "{error}");
    assert_eq!(error.thread(), Some(Tid(1)));
    let layer = if host.paranoid > 2 { Layer::Paranoid } else { Layer::Process };
    assert_eq!(error.refusal(&host).layer, layer, "{error}");
}
