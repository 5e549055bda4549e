//! `forker`: children that write their own copies of the field.
//!
//! Flags: `--children=4 --writes=10`. Ready: `field`, `site`. On `go` the parent forks the
//! children one after the other; each writes its copy `--writes` times and exits, then the parent
//! writes as often itself. Done: `writes` and `final` are the parent's, `child_writes` those of
//! all children, `children` their pids.

use hairspring_guests::{Field, Flags, Instruction, Line, next_command};

#[unsafe(no_mangle)]
static BALANCE: Field = Field::new(0);

fn deposit(writes: u64) {
    for value in 0..writes {
        // SAFETY: the place is a static.
        unsafe { Instruction::Xadd.write(BALANCE.place(), value) };
    }
}

fn main() {
    let mut flags = Flags::from_args();
    let children: u64 = flags.get("children", 4);
    let writes: u64 = flags.get("writes", 10);
    flags.finish();

    Line::ready()
        .address("field", BALANCE.place())
        .hex("site", Instruction::Xadd.site() as u64)
        .print();
    while next_command().is_some() {
        let pids: Vec<String> = (0..children).map(|_| fork_and_write(writes).to_string()).collect();
        deposit(writes);
        Line::done(writes, 1)
            .hex("final", BALANCE.peek())
            .value("child_writes", children * writes)
            .value("children", pids.join(","))
            .print();
    }
}

/// Forks a child that writes and exits, and waits for it.
fn fork_and_write(writes: u64) -> libc::pid_t {
    // SAFETY: this program has one thread, so the child may do what it likes.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        deposit(writes);
        // SAFETY: ends the child without running what the parent registered.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is a local variable and the child is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child ended well");
    child
}
