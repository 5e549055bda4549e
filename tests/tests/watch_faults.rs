//! Bad input, missing rights, and targets that do what they like: a typed error with the remedy, or a
//! session that says what it has missed; and always a target that nothing has happened to.

use hairspring_tests::{
    Guest, Hairspring, Need, Nobody, Process, Session, guest_program, hairspring_program, skip,
};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A session that could not be had: exit status 2, the text and the remedy on stderr, and an object
/// of kind `error` on stdout.
fn refused(session: &Session, told: &[&str]) {
    assert_eq!(session.code(), Some(2), "{}", session.stderr());
    for text in told {
        assert!(session.stderr().contains(text), "no {text:?} in: {}", session.stderr());
    }
    assert!(session.text().is_empty(), "{:?}", session.text());
}

fn refuse(pid: u32, arguments: &[&str], told: &[&str]) {
    let session = Hairspring::watch(pid, arguments).finish();
    refused(&session, told);
}

/// Nothing of ours is left on the target: all four debug registers can be had.
fn assert_free(guest: &Guest) {
    Process::new(guest.pid()).assert_untouched();
    let place = format!("{:#x}:8", guest.address("field"));
    let base = guest.address("field");
    let others: Vec<String> = (1..4).map(|n| format!("{:#x}:8", base - 8 * n)).collect();
    let mut arguments = vec![place.as_str(), "--duration=1ms"];
    arguments.extend(others.iter().map(String::as_str));
    let session = Hairspring::watch(guest.pid(), &arguments).finish();
    assert_eq!(session.code(), Some(1), "{}", session.stderr());
}

#[test]
fn processes_that_are_not_there() {
    refuse(4_194_303, &["x"], &["no process 4194303", "what to do"]);
    let guest = Guest::start("idle", &["--threads=2"]);
    let threads = Process::new(guest.pid()).threads();
    let thread = threads.into_iter().find(|tid| *tid != guest.pid()).expect("another thread");
    refuse(thread, &["x"], &["that is a thread's id"]);
}

#[test]
fn places_that_are_none() {
    let guest = Guest::start("counter", &[]);
    let pid = guest.pid();
    refuse(pid, &["REQUESTS_SERVE"], &["REQUESTS_SERVED"]);
    refuse(pid, &["0x10:8"], &["0x10 is not mapped", "a run-time address changes"]);
    let session = Hairspring::watch(pid, &["0xffffffff81000000:8"]).finish();
    assert!(session.stderr().contains("kernel address"), "{}", session.stderr());
    let session = Hairspring::watch(pid, &["REQUESTS_SERVED:r"]).finish();
    assert!(session.stderr().contains("no watch for reads alone"), "{}", session.stderr());
    let field = guest.address("field");
    let five: Vec<String> = (0..5).map(|n| format!("{:#x}:8", field - 8 * n)).collect();
    let five: Vec<&str> = five.iter().map(String::as_str).collect();
    refuse(pid, &five, &["5 debug registers are needed, 4 exist"]);
    refuse(pid, &["REQUESTS_SERVED", "--bound", "REQUESTS_SERVED>=1"], &["no watch is a chain"]);
    assert_free(&guest);
}

/// Bytes at odd places take more slots, and are watched exactly.
#[test]
fn odd_places_take_more_slots() {
    let guest = Guest::start("forms", &["--form=mov8", "--times=2"]);
    let field = guest.address("field");
    for (offset, len, slots, hit) in
        [(1, 7, 3, true), (3, 3, 2, true), (8, 4, 1, false), (-4_i64, 4, 1, false)]
    {
        let mut guest = Guest::start("forms", &["--form=mov8", "--times=2"]);
        let at = guest.address("field").checked_add_signed(offset).expect("an address");
        let place = format!("{at:#x}:{len}");
        let mut watching = Hairspring::watch(guest.pid(), &[&place]);
        watching.await_ready();
        guest.run();
        watching.interrupt();
        let session = watching.finish();
        let armed = session.of_kind("session").next().expect("it was armed");
        assert_eq!(armed["slots"], slots, "{place}");
        assert_eq!(session.of_kind("hit").count(), if hit { 2 } else { 0 }, "{place}");
    }
    assert!(field > 0);
}

#[test]
fn another_users_process() {
    let Some(nobody) = Nobody::new() else {
        skip!(Need::Root, "only root can become another user");
    };
    let guest = Guest::start("counter", &[]);
    let mut command = nobody.command(&hairspring_program());
    command.args(["watch", "--json", "REQUESTS_SERVED", "--pid", &guest.pid().to_string()]);
    let session = Hairspring::start_command(command).finish();
    refused(&session, &["what to do"]);
    assert_free(&guest);
}

/// An ordinary user with the usual limits watches a process of their own.
#[test]
fn an_ordinary_user_with_little_locked_memory() {
    let Some(nobody) = Nobody::new() else {
        skip!(Need::Root, "only root can become another user");
    };
    let mut guest = Guest::start_command("counter", nobody.command(&guest_program("counter")));
    let mut command = nobody.command(Path::new("/bin/sh"));
    let hairspring = nobody.command(&hairspring_program());
    let line = format!(
        "ulimit -l 64; exec {} watch --json --ring=1048576 REQUESTS_SERVED --pid {}",
        hairspring.get_program().display(),
        guest.pid()
    );
    command.args(["-c", &line]);
    let mut watching = Hairspring::start_command(command);
    watching.await_ready();
    let done = guest.run();
    watching.interrupt();
    let session = watching.finish();
    assert_eq!(
        session.of_kind("hit").count() as u64,
        done.number("writes"),
        "{}",
        session.stderr()
    );
    assert!(session.stderr().contains("memory lock limit"), "{}", session.stderr());
    let armed = session.of_kind("session").next().expect("it was armed");
    assert_eq!(armed["kernel_visible"], false);
    let invisible = session.summary()["coverage"]["invisible"].to_string();
    assert!(invisible.contains("system calls"), "{invisible}");
}

#[test]
fn too_few_descriptors() {
    let guest = Guest::start("idle", &["--threads=100"]);
    let line = format!(
        "ulimit -n 64; exec {} watch --json JOBS_TAKEN --pid {}",
        hairspring_program().display(),
        guest.pid()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]);
    let session = Hairspring::start_command(command).finish();
    refused(&session, &["one descriptor is needed", "64"]);
    assert_free(&guest);
}

#[test]
fn a_target_that_exits() {
    for what in ["process", "killed"] {
        let mut guest = Guest::start("exiter", &[&format!("--what={what}"), "--writes=4"]);
        let place = format!("{:#x}:8", guest.address("field"));
        let mut watching = Hairspring::watch(guest.pid(), &[&place]);
        watching.await_ready();
        guest.go();
        let session = watching.finish();
        assert_eq!(session.summary()["stop_reason"], "exited", "{what}");
        assert_eq!(session.of_kind("hit").count(), 4, "{what}");
        assert_eq!(session.summary()["coverage"]["verdict"], "complete", "{what}");
    }
}

#[test]
fn a_target_that_execs() {
    for from in ["leader", "thread"] {
        let mut guest = Guest::start("execer", &["--writes=4", &format!("--from={from}")]);
        let place = format!("{:#x}:8", guest.address("field"));
        let mut watching = Hairspring::watch(guest.pid(), &[&place]);
        watching.await_ready();
        guest.run();
        guest.send("exec");
        guest.await_ready();
        let session = watching.finish();
        assert_eq!(session.summary()["stop_reason"], "exec", "{from}");
        assert_eq!(session.of_kind("hit").count(), 4, "{from}");
        assert_eq!(session.summary()["coverage"]["target"], "exec", "{from}");
        assert_free(&guest);
    }
}

/// Whatever it is caught in the middle of, arming ends in a session or a typed error.
#[test]
fn a_target_that_execs_while_being_armed() {
    let mut guest = Guest::start("execer", &["--threads=4"]);
    for _ in 0..20 {
        let watching = Hairspring::watch(guest.pid(), &["ACCOUNT", "--duration=50ms"]);
        guest.send("exec");
        guest.await_ready();
        let session = watching.finish();
        let code = session.code().expect("it ends by itself");
        assert!((0..=3).contains(&code), "{}", session.stderr());
        // In the middle of an exec there may be no symbols yet, or nobody to ask.
        assert_eq!(code == 2, session.stderr().contains("hairspring: "), "{}", session.stderr());
    }
    assert_free(&guest);
}

#[test]
fn killed_hairspring_leaves_nothing_behind() {
    let mut guest = Guest::start("counter", &["--threads=4", "--writes=100"]);
    let place = format!("{:#x}:8", guest.address("field"));
    for _ in 0..5 {
        let mut watching = Hairspring::watch(guest.pid(), &[&place]);
        watching.await_ready();
        guest.go();
        watching.kill();
        assert_eq!(guest.done().number("writes"), 400);
    }
    assert_free(&guest);
}

#[test]
fn a_reader_that_goes_away_is_success() {
    let mut guest = Guest::start("tight", &["--threads=1"]);
    let mut child = Hairspring::command()
        .args(["watch", "PACKETS_SEEN", "--pid", &guest.pid().to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut ready = String::new();
    stderr.read_line(&mut ready).expect("a line");
    assert!(ready.contains("ready"), "{ready}");
    guest.go();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("a line");
    assert!(line.contains("PACKETS") || line.contains("->"), "{line}");
    drop(stdout);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    guest.send("stop");
    guest.done();
    Process::new(guest.pid()).assert_untouched();
}

#[test]
fn limits_end_a_session() {
    let mut guest = Guest::start("counter", &["--threads=2", "--writes=50"]);
    let mut watching = Hairspring::watch(guest.pid(), &["REQUESTS_SERVED", "--max-hits=7"]);
    watching.await_ready();
    guest.run();
    let session = watching.finish();
    assert_eq!(session.of_kind("hit").count(), 7);
    assert_eq!(session.summary()["stop_reason"], "max-hits");
    let session = Hairspring::watch(guest.pid(), &["REQUESTS_SERVED", "--duration=10ms"]).finish();
    assert_eq!(session.summary()["stop_reason"], "duration");
    assert_eq!(session.code(), Some(1), "proved quiet");
}

#[test]
fn debug_registers_that_gdb_holds() {
    if Command::new("gdb").arg("--version").output().is_err() {
        skip!(Need::Program, "gdb");
    }
    let guest = Guest::start("idle", &["--threads=2"]);
    let field = guest.address("field");
    let watch = format!("watch *(long *){:#x}", field - 64);
    let mut gdb = Command::new("gdb")
        .args(["-q", "-nx", "-batch", "-p", &guest.pid().to_string()])
        .args(["-ex", &watch, "-ex", "continue"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("gdb starts");
    let place = format!("{field:#x}:32");
    // gdb sets its debug registers when it lets the process go on: first it has it stopped.
    let target = Process::new(guest.pid());
    for stopped in [true, false] {
        while (target.state() == Some('t')) != stopped {
            let ended = gdb.try_wait().expect("gdb is ours");
            assert!(ended.is_none(), "gdb ended by itself: {ended:?}");
            std::thread::yield_now();
        }
    }
    let session = Hairspring::watch(guest.pid(), &[&place, "--duration=1ms"]).finish();
    refused(&session, &["4 debug registers are needed, 3 of 4 are free", "a debugger"]);
    gdb.kill().expect("gdb is ours");
    gdb.wait().expect("reaped");
}

/// The smallest 32-bit program: an ELF header, a program header, and `pause` in a loop.
const PROGRAM_32: [u8; 95] = {
    let mut elf = [0; 95];
    let parts: [(usize, &[u8]); 3] = [
        (
            0,
            &[
                0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0,
                0x54, 0x80, 4, 8, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 32, 0, 1, 0, 0, 0, 0,
                0, 0, 0,
            ],
        ),
        (
            52,
            &[
                1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 4, 8, 0, 0x80, 4, 8, 95, 0, 0, 0, 95, 0, 0, 0, 5,
                0, 0, 0, 0, 0x10, 0, 0,
            ],
        ),
        // mov eax, 29 (pause); int 0x80; jmp back
        (84, &[0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7, 0x90, 0x90]),
    ];
    let mut part = 0;
    while part < parts.len() {
        let (at, bytes) = parts[part];
        let mut i = 0;
        while i < bytes.len() {
            elf[at + i] = bytes[i];
            i += 1;
        }
        part += 1;
    }
    elf
};

#[test]
fn a_32_bit_program_is_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("old");
    std::fs::write(&path, PROGRAM_32).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let Ok(mut child) = Command::new(&path).spawn() else {
        skip!(Need::Kernel, "this kernel runs no 32-bit programs");
    };
    let session = Hairspring::watch(child.id(), &["0x8048000:8"]).finish();
    child.kill().expect("ours");
    child.wait().expect("reaped");
    refused(&session, &["32-bit program", "what to do"]);
}

#[test]
fn a_target_in_another_mount_namespace() {
    if !Process::own().is_root() {
        skip!(Need::Root, "only root can make a mount namespace");
    }
    let mut command = Command::new("unshare");
    let line = format!(
        "mount -t tmpfs none /mnt && cp {} /mnt/counter && exec /mnt/counter",
        guest_program("counter").display()
    );
    command.args(["--mount", "sh", "-c", &line]);
    let mut guest = Guest::start_command("counter", command);
    let mut watching = Hairspring::watch(guest.pid(), &["REQUESTS_SERVED"]);
    watching.await_ready();
    let done = guest.run();
    watching.interrupt();
    let session = watching.finish();
    assert_eq!(
        session.of_kind("hit").count() as u64,
        done.number("writes"),
        "{}",
        session.stderr()
    );
    let function = session.of_kind("hit").next().map(|hit| hit["function"].to_string());
    assert!(
        function.is_some_and(|name| name.contains("store")),
        "symbols of the target's own file"
    );
}

/// A second Ctrl-C ends hairspring at once; the target does not notice.
#[test]
fn two_interruptions() {
    let guest = Guest::start("counter", &[]);
    let mut watching = Hairspring::watch(guest.pid(), &["REQUESTS_SERVED"]);
    watching.await_ready();
    watching.signal_stop();
    watching.interrupt();
    watching.interrupt();
    watching.signal_continue();
    let session = watching.finish();
    // Two pending SIGINTs may merge into one: then it ends properly.
    assert!(matches!(session.code(), Some(1 | 130)), "{:?}", session.code());
    assert_free(&guest);
}

#[test]
fn usage_is_explained() {
    for arguments in
        [&["watch", "x"][..], &["watch"], &["watch", "x", "--pid", "1", "--", "ls"], &["nonsense"]]
    {
        let session = Hairspring::run(arguments);
        assert_eq!(session.code(), Some(2), "{arguments:?}");
        assert!(!session.stderr().is_empty());
    }
    let mut file = tempfile::NamedTempFile::new().expect("a scratch file");
    file.write_all(b"not a program").expect("written");
    let session = Hairspring::run(&["watch", "x", "--", "/nonexistent/program"]);
    refused(&session, &["/nonexistent/program", "what to do"]);
}
