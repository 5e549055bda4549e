//! `tracee`: does one thing that a tracer must survive, and exits with status 7.
//!
//! The one argument names it: `exec-from-thread`, `vfork`, `fork`, `realtime`, `exit-group`,
//! `group-stop`, `spin`, `threads=N`, `nested-thread`, `segv`. Nothing is read or printed but for
//! `spin`, which prints its process id and runs until it is killed.

use std::io::Write as _;

fn main() {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let (what, number) = argument.split_once('=').unwrap_or((&argument, "1"));
    let number: usize = number.parse().expect("a number");
    match what {
        "exec-from-thread" => {
            let _ = std::thread::spawn(exec_again).join();
        }
        "vfork" => child(true),
        "fork" => child(false),
        "realtime" => realtime(),
        "exit-group" => {
            for _ in 0..number {
                std::thread::spawn(|| {
                    loop {
                        std::hint::spin_loop();
                    }
                });
            }
            // SAFETY: ends the process; nothing is left to be unwound.
            unsafe { libc::syscall(libc::SYS_exit_group, 7) };
        }
        "group-stop" => {
            // SAFETY: the process stops itself until somebody continues it.
            unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
        }
        "spin" => {
            println!("{}", std::process::id());
            std::io::stdout().flush().expect("stdout is open");
            for _ in 1..number {
                std::thread::spawn(|| {
                    loop {
                        std::hint::spin_loop();
                    }
                });
            }
            loop {
                std::hint::spin_loop();
            }
        }
        "threads" => {
            let threads: Vec<_> = (0..number).map(|_| std::thread::spawn(|| {})).collect();
            for thread in threads {
                thread.join().expect("it does nothing");
            }
        }
        "segv" => {
            // SAFETY: none; the process is to die here.
            unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
        }
        "done" => {}
        other => panic!("unknown: {other:?}"),
    }
    std::process::exit(7);
}

fn exec_again() {
    let path = c"/proc/self/exe";
    let arguments = [path.as_ptr(), c"done".as_ptr(), std::ptr::null()];
    // SAFETY: both are null-terminated strings in a null-terminated array.
    unsafe { libc::execv(path.as_ptr(), arguments.as_ptr()) };
}

fn child(share: bool) {
    let path = c"/proc/self/exe";
    let arguments = [path.as_ptr(), c"done".as_ptr(), std::ptr::null()];
    // SAFETY: the child does nothing but exec or exit, as vfork(2) demands.
    #[expect(deprecated, reason = "the tracer has to see a vfork")]
    let pid = unsafe { if share { libc::vfork() } else { libc::fork() } };
    if pid == 0 {
        // SAFETY: as in `exec_again`; `_exit` runs nothing of the parent's.
        unsafe {
            libc::execv(path.as_ptr(), arguments.as_ptr());
            libc::_exit(1);
        }
    }
    let mut status = 0;
    // SAFETY: the kernel writes one int.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(libc::WEXITSTATUS(status), 7);
}

fn realtime() {
    extern "C" fn ignore(_: libc::c_int) {}
    for signal in [libc::SIGRTMIN(), libc::SIGRTMAX()] {
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(signal, ignore as *const () as libc::sighandler_t) };
        // SAFETY: the handler above is installed.
        unsafe { libc::raise(signal) };
    }
}
