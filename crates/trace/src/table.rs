//! The threads of a guest: shared by the guest and by the values of its stopped threads.

use crate::memory::Memory;
use crate::{Ended, Error};
use hairspring_model::{Addr, Pid, Tid};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What is known of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) pid: Pid,
    /// Distinguishes two threads of one id: an exec gives its thread the id of the leader.
    pub(crate) generation: u64,
    pub(crate) stopped: bool,
    /// Was attached to, and has not made its first stop.
    pub(crate) fresh: bool,
    /// Between the entry to and the exit from a system call.
    pub(crate) in_syscall: bool,
    /// Whether it was resumed for one instruction.
    pub(crate) stepping: bool,
    /// The signal that it is stopped for and that a detach must not lose.
    pub(crate) signal: i32,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    records: RefCell<BTreeMap<Tid, Record>>,
    memories: RefCell<BTreeMap<Pid, Rc<Memory>>>,
    /// Where each process has a system-call instruction that nobody minds.
    gates: RefCell<BTreeMap<Pid, Addr>>,
    generations: Cell<u64>,
    /// Ends that were met while waiting for something else.
    ends: RefCell<Vec<Ended>>,
}

impl Table {
    pub(crate) fn insert(&self, tid: Tid, pid: Pid) -> Record {
        self.generations.set(self.generations.get() + 1);
        let record = Record {
            pid,
            generation: self.generations.get(),
            stopped: true,
            fresh: false,
            in_syscall: false,
            stepping: false,
            signal: 0,
        };
        self.records.borrow_mut().insert(tid, record);
        record
    }

    pub(crate) fn get(&self, tid: Tid) -> Option<Record> {
        self.records.borrow().get(&tid).copied()
    }

    pub(crate) fn update(&self, tid: Tid, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.records.borrow_mut().get_mut(&tid) {
            change(record);
        }
    }

    pub(crate) fn remove(&self, tid: Tid) -> Option<Record> {
        let record = self.records.borrow_mut().remove(&tid)?;
        if !self.records.borrow().values().any(|other| other.pid == record.pid) {
            self.forget_program(record.pid);
        }
        Some(record)
    }

    /// Forgets what an exec of the process has made untrue.
    pub(crate) fn forget_program(&self, pid: Pid) {
        self.memories.borrow_mut().remove(&pid);
        self.gates.borrow_mut().remove(&pid);
    }

    pub(crate) fn threads(&self) -> Vec<(Tid, Record)> {
        self.records.borrow().iter().map(|(tid, record)| (*tid, *record)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.borrow().is_empty()
    }

    pub(crate) fn memory(&self, tid: Tid, pid: Pid) -> Result<Rc<Memory>, Error> {
        if let Some(memory) = self.memories.borrow().get(&pid) {
            return Ok(Rc::clone(memory));
        }
        let memory = Memory::open(tid).map_err(|e| Error::on("open(/proc/PID/mem)", tid, e))?;
        let memory = Rc::new(memory);
        self.memories.borrow_mut().insert(pid, Rc::clone(&memory));
        Ok(memory)
    }

    pub(crate) fn push_end(&self, ended: Ended) {
        self.ends.borrow_mut().push(ended);
    }

    pub(crate) fn pop_end(&self) -> Option<Ended> {
        self.ends.borrow_mut().pop()
    }

    pub(crate) fn gate(&self, pid: Pid) -> Option<Addr> {
        self.gates.borrow().get(&pid).copied()
    }

    pub(crate) fn set_gate(&self, pid: Pid, gate: Addr) {
        self.gates.borrow_mut().insert(pid, gate);
    }
}
