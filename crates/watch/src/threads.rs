//! The threads of a process, as `/proc` lists them, and what can be told of them without stopping.

use hairspring_model::{Pid, Tid};
use std::fs;
use std::io;

/// The system calls in which a thread makes another: `clone`, `fork`, `vfork`, `clone3`
/// (Linux arch/x86/entry/syscalls/syscall_64.tbl).
const BIRTHS: [u64; 4] = [56, 57, 58, 435];

/// The threads that exist now. A thread that is born or ends meanwhile may or may not be listed.
///
/// # Errors
/// `NotFound` where the process has been reaped.
pub(crate) fn list(pid: Pid) -> io::Result<Vec<Tid>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = entry?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse().ok()).map(Tid));
    }
    Ok(threads)
}

/// The thread's name; `None` once it has been reaped.
pub(crate) fn name(pid: Pid, tid: Tid) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// The time that the thread has spent in user mode, in clock ticks (proc_pid_stat(5), field 14).
pub(crate) fn user_time(pid: Pid, tid: Tid) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(14 - 3)?.parse().ok()
}

/// Whether the thread is certainly not in the middle of making another one: it waits in another
/// system call. `false` where it runs, or where we may not look.
pub(crate) fn waits_elsewhere(pid: Pid, tid: Tid) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default();
    let number = text.split_ascii_whitespace().next().and_then(|number| number.parse().ok());
    number.is_some_and(|number: u64| !BIRTHS.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_threads() {
        let pid = Pid(std::process::id());
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::Builder::new()
            .name("waits".into())
            .spawn(move || receive.recv().is_err())
            .expect("a thread");
        let named = || {
            list(pid)
                .expect("listed")
                .into_iter()
                .find(|t| name(pid, *t).as_deref() == Some("waits"))
        };
        let tid = std::iter::repeat_with(named).flatten().next().expect("it exists until told");
        while !waits_elsewhere(pid, tid) {
            std::thread::yield_now();
        }
        assert!(user_time(pid, tid).is_some());
        drop(send);
        assert!(waiting.join().expect("ended"));
    }

    #[test]
    fn nobody_has_no_threads() {
        assert!(list(Pid(u32::MAX)).is_err());
        assert!(!waits_elsewhere(Pid(u32::MAX), Tid(u32::MAX)));
        assert_eq!(name(Pid(u32::MAX), Tid(1)), None);
    }
}
