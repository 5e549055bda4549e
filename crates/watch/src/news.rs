//! Births, exits, names, execs: what the side-band records say of the target's threads.

use crate::event::{Change, ThreadChange};
use crate::threads;
use hairspring_model::{Pid, Tid};
use hairspring_perf::{Record, Task};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One notice, on its way.
#[derive(Debug)]
struct Notice {
    time_ns: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Born(Task),
    Ended(Task),
    Named { pid: Pid, tid: Tid, name: Arc<str>, exec: bool },
    Mapped,
}

/// What is known of the threads.
///
/// Records are [collected](News::collect) from the rings of all processors and [taken
/// in](News::take_in) in the order of their times, up to a horizon: see `merge` for why.
#[derive(Debug)]
pub(crate) struct News {
    pid: Pid,
    held: Vec<Notice>,
    alive: HashSet<Tid>,
    names: HashMap<Tid, Arc<str>>,
    /// Threads that have ended, with the time: their names are kept for hits still on their way.
    ended: Vec<(u64, Tid)>,
    pub(crate) born: u64,
    pub(crate) gone: u64,
    pub(crate) lost: u64,
    pub(crate) exec: bool,
    /// Births to be looked at, parent and child.
    pub(crate) births: Vec<(Tid, Tid)>,
    /// When code was mapped first since this was looked at last, `CLOCK_MONOTONIC` nanoseconds.
    pub(crate) mapped_ns: Option<u64>,
}

impl News {
    pub(crate) fn new(pid: Pid, alive: HashSet<Tid>) -> Self {
        Self {
            pid,
            held: Vec::new(),
            alive,
            names: HashMap::new(),
            ended: Vec::new(),
            born: 0,
            gone: 0,
            lost: 0,
            exec: false,
            births: Vec::new(),
            mapped_ns: None,
        }
    }

    /// Keeps a record until the horizon has passed it.
    pub(crate) fn collect(&mut self, record: &Record<'_>) {
        let (time_ns, what) = match record {
            Record::Fork(task) => (task.time_ns, What::Born(*task)),
            Record::Exit(task) => (task.time_ns, What::Ended(*task)),
            Record::Comm(comm) => {
                let name = String::from_utf8_lossy(comm.name).into();
                let (pid, tid, exec) = (comm.pid, comm.tid, comm.exec);
                (comm.time_ns, What::Named { pid, tid, name, exec })
            }
            Record::Mmap(mmap) => (mmap.time_ns, What::Mapped),
            Record::Lost { lost, .. } => {
                self.lost += lost;
                return;
            }
            _ => return,
        };
        self.held.push(Notice { time_ns, what });
    }

    /// Takes in what happened up to the horizon; gives what a caller of the session is to hear.
    pub(crate) fn take_in(&mut self, horizon_ns: u64) -> Vec<ThreadChange> {
        self.held.sort_by_key(|notice| notice.time_ns);
        let ready = self.held.partition_point(|notice| notice.time_ns <= horizon_ns);
        let ready: Vec<Notice> = self.held.drain(..ready).collect();
        ready.into_iter().filter_map(|notice| self.take(notice)).collect()
    }

    fn take(&mut self, notice: Notice) -> Option<ThreadChange> {
        let time_ns = notice.time_ns;
        match notice.what {
            What::Born(task) => {
                self.births.push((task.parent_tid, task.tid));
                // A thread that two of ours follow is announced twice.
                if !self.alive.insert(task.tid) {
                    return None;
                }
                self.born += 1;
                if let Some(name) = self.names.get(&task.parent_tid).cloned() {
                    self.names.insert(task.tid, name);
                }
                let change = Change::Born { parent: task.parent_tid };
                Some(ThreadChange { pid: task.pid, tid: task.tid, time_ns, change })
            }
            What::Ended(task) => {
                if !self.alive.remove(&task.tid) {
                    return None;
                }
                self.gone += 1;
                self.ended.push((time_ns, task.tid));
                let change = Change::Ended;
                Some(ThreadChange { pid: task.pid, tid: task.tid, time_ns, change })
            }
            What::Named { pid, tid, name, exec } => {
                self.exec |= exec && pid == self.pid;
                self.names.insert(tid, name);
                None
            }
            What::Mapped => {
                self.mapped_ns.get_or_insert(time_ns);
                None
            }
        }
    }

    /// The threads that are alive, as far as has been announced.
    pub(crate) fn alive(&self) -> &HashSet<Tid> {
        &self.alive
    }

    /// The thread's name.
    pub(crate) fn name(&mut self, pid: Pid, tid: Tid) -> Arc<str> {
        let look = || threads::name(pid, tid).unwrap_or_else(|| "?".into()).into();
        Arc::clone(self.names.entry(tid).or_insert_with(look))
    }

    /// Forgets threads that ended before that time.
    pub(crate) fn forget_before(&mut self, time_ns: u64) {
        let old = self.ended.partition_point(|(ended, _)| *ended < time_ns);
        for (_, tid) in self.ended.drain(..old) {
            if !self.alive.contains(&tid) {
                self.names.remove(&tid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairspring_perf::Comm;

    fn task(tid: u32, time_ns: u64) -> Task {
        let (pid, parent_pid) = (Pid(1), Pid(1));
        Task { pid, tid: Tid(tid), parent_pid, parent_tid: Tid(1), time_ns }
    }

    fn comm(pid: u32, tid: u32, name: &[u8], exec: bool) -> Record<'_> {
        Record::Comm(Comm { pid: Pid(pid), tid: Tid(tid), name, exec, time_ns: 0 })
    }

    fn tell(news: &mut News, record: &Record<'_>) -> usize {
        news.collect(record);
        news.take_in(u64::MAX).len()
    }

    #[test]
    fn a_birth_that_is_announced_twice_is_one() {
        let mut news = News::new(Pid(1), HashSet::from([Tid(1)]));
        assert_eq!(tell(&mut news, &Record::Fork(task(2, 1))), 1);
        assert_eq!(tell(&mut news, &Record::Fork(task(2, 1))), 0);
        assert_eq!(news.births, [(Tid(1), Tid(2)), (Tid(1), Tid(2))], "both are looked at");
        assert_eq!(tell(&mut news, &Record::Exit(task(2, 2))), 1);
        assert_eq!(tell(&mut news, &Record::Exit(task(2, 2))), 0);
        assert_eq!((news.born, news.gone), (1, 1));
    }

    #[test]
    fn an_end_that_is_read_before_its_birth_comes_after_it() {
        let mut news = News::new(Pid(1), HashSet::from([Tid(1)]));
        news.collect(&Record::Exit(task(2, 20)));
        news.collect(&Record::Fork(task(2, 10)));
        assert!(news.take_in(9).is_empty());
        assert_eq!(news.take_in(15).len(), 1);
        assert_eq!(news.take_in(20).len(), 1);
        assert_eq!((news.born, news.gone), (1, 1));
    }

    #[test]
    fn names_are_inherited_and_outlive_their_threads_for_a_while() {
        let mut news = News::new(Pid(1), HashSet::from([Tid(1)]));
        tell(&mut news, &comm(1, 1, b"parent", false));
        tell(&mut news, &Record::Fork(task(2, 2)));
        assert_eq!(&*news.name(Pid(1), Tid(2)), "parent");
        tell(&mut news, &comm(1, 2, b"child", false));
        tell(&mut news, &Record::Exit(task(2, 2)));
        news.forget_before(2);
        assert_eq!(&*news.name(Pid(1), Tid(2)), "child");
        news.forget_before(3);
        assert!(!news.names.contains_key(&Tid(2)));
    }

    #[test]
    fn only_the_targets_exec_ends_the_session() {
        let mut news = News::new(Pid(1), HashSet::new());
        tell(&mut news, &comm(2, 2, b"x", true));
        assert!(!news.exec);
        tell(&mut news, &comm(1, 1, b"x", true));
        assert!(news.exec);
    }
}
