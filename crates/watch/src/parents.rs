//! Threads that may have been in the middle of making another one while they were armed.

use crate::threads;
use hairspring_model::{Pid, Tid};
use std::collections::HashMap;

/// How much more time in user mode, in clock ticks (100 a second), proves that a thread is not in
/// the middle of the same birth any more. The kernel scales the split between user and system
/// time, so that a little of it proves nothing; a birth takes microseconds, or, of a process with
/// much memory, some tens of milliseconds.
const PROOF: u64 = 10;

/// Armed threads of which it is not yet proved that every child they announce from now on has
/// inherited all that they have.
///
/// A child inherits at the beginning of its birth and is announced at the end. A parent that is
/// seen outside of a birth after it was armed is proved; so is one whose first announced child has
/// been looked at, since births don't overlap in one thread.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// With the time spent in user mode when the thread was armed.
    unproved: HashMap<Tid, u64>,
}

/// Threads that have been seen outside of a birth.
#[derive(Debug)]
pub(crate) struct SeenElsewhere(Vec<Tid>);

impl Parents {
    /// Adds a thread that has just been armed. The listing of threads that follows will show the
    /// child that it may have been making, if it is found outside of a birth now.
    pub(crate) fn add(&mut self, pid: Pid, tid: Tid) {
        if !threads::waits_elsewhere(pid, tid) {
            let user_time = threads::user_time(pid, tid).unwrap_or(u64::MAX);
            self.unproved.insert(tid, user_time);
        }
    }

    /// Whether the thread is unproved; it is proved from now on, by what the caller does next.
    pub(crate) fn take(&mut self, tid: Tid) -> bool {
        self.unproved.remove(&tid).is_some()
    }

    /// Looks where the unproved threads are now. The children that they have announced up to here
    /// are to be looked at before [`Parents::prove`].
    pub(crate) fn look(&self, pid: Pid) -> SeenElsewhere {
        let elsewhere = |(tid, then): (&Tid, &u64)| {
            // A thread that is gone makes no others.
            let ran =
                threads::user_time(pid, *tid).is_none_or(|now| now >= then.saturating_add(PROOF));
            (ran || threads::waits_elsewhere(pid, *tid)).then_some(*tid)
        };
        SeenElsewhere(self.unproved.iter().filter_map(elsewhere).collect())
    }

    /// Whether all are proved.
    pub(crate) fn all_proved(&self) -> bool {
        self.unproved.is_empty()
    }

    /// Takes note of what was seen.
    pub(crate) fn prove(&mut self, seen: &SeenElsewhere) {
        for tid in &seen.0 {
            self.unproved.remove(tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_thread_that_runs_is_unproved_until_its_first_child_is_looked_at() {
        let (pid, stop) = (Pid(std::process::id()), AtomicBool::new(false));
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                send.send(nix::unistd::gettid()).expect("the test waits for it");
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let tid = Tid(receive.recv().expect("sent").as_raw().unsigned_abs());
            // It may still be in the system call that woke us.
            while threads::waits_elsewhere(pid, tid) {
                std::hint::spin_loop();
            }
            let mut parents = Parents::default();
            parents.add(pid, tid);
            assert!(parents.take(tid));
            assert!(!parents.take(tid), "the second child has inherited everything");
            stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn what_was_seen_is_proved_only_when_told() {
        let (pid, me) = (Pid(std::process::id()), Tid(7));
        let mut parents = Parents::default();
        parents.unproved.insert(me, 0);
        let seen = SeenElsewhere(vec![me]);
        assert_eq!(parents.look(pid).0, [me], "a thread that is gone makes no others");
        assert!(!parents.all_proved());
        parents.prove(&seen);
        assert!(parents.all_proved() && !parents.take(me));
    }
}
