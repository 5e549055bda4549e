//! Records to accesses: pure.
//!
//! One access may make several records:
//! - a store over several slots makes one for each, all in the same debug exception: same thread,
//!   same instruction, same registers, each slot once. Two accesses can't look like that: with
//!   the same registers the instruction would have the same address and hit the same slots, so a
//!   slot would come again;
//! - a copy by the kernel makes one a byte or word: same thread, same user-mode registers, with the
//!   destination register going up by a word at most.
//!
//! The records of an access are neighbours in the ring of its processor, so one coalescer works on
//! one processor's records in their order.

use crate::plan::SLOTS;
use hairspring_model::{Addr, Cpu, Pid, Registers, Tid};
use hairspring_perf::{Mode, Sample};

/// A set of slots, bit by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SlotSet(u8);

/// One access as the hardware reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawAccess {
    /// The slots that reported it.
    pub(crate) slots: SlotSet,
    /// The slot that reported first, and where it was aimed then.
    pub(crate) first: (usize, Addr),
    /// How many records it made, by slot.
    pub(crate) records: [u32; SLOTS],
    pub(crate) time_ns: u64,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) cpu: Cpu,
    /// The instruction pointer in user mode; the kernel's in `kernel`.
    pub(crate) ip: Addr,
    pub(crate) registers: Option<Registers>,
    /// The word at the top of the user stack.
    pub(crate) top: Option<u64>,
    /// Set where the kernel made it; boxed, since it is large and rare.
    pub(crate) kernel: Option<Box<KernelSite>>,
}

/// Where in the kernel an access was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelSite {
    /// The instruction pointer in the kernel.
    pub(crate) ip: Addr,
    /// The call chain, innermost first, as far as it is kept.
    pub(crate) chain: [Addr; CHAIN],
    /// The destination register of a copy, to tell its next byte from another copy's first.
    destination: Option<u64>,
}

/// One record of that slot.
fn one_record(slot: usize) -> [u32; SLOTS] {
    std::array::from_fn(|other| u32::from(other == slot))
}

/// How many frames of the kernel's call chain are kept: enough to reach the system call's entry.
pub(crate) const CHAIN: usize = 16;

/// Collects the records of one processor into accesses.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    open: Option<RawAccess>,
}

impl SlotSet {
    pub(crate) fn one(slot: usize) -> Self {
        Self(1 << slot)
    }

    pub(crate) fn contains(self, slot: usize) -> bool {
        self.0 >> slot & 1 == 1
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |slot| self.contains(*slot))
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl RawAccess {
    /// What one record says.
    pub(crate) fn new(sample: &Sample<'_>, slot: usize) -> Self {
        let user_ip = sample.user.map(|registers| Addr(registers.rip));
        let kernel = (sample.mode == Mode::Kernel).then(|| {
            let mut chain = [Addr(0); CHAIN];
            for (kept, ip) in chain.iter_mut().zip(sample.chain.iter()) {
                *kept = ip;
            }
            let destination = sample.interrupt.map(|registers| registers.rdi);
            Box::new(KernelSite { ip: sample.ip, chain, destination })
        });
        Self {
            slots: SlotSet::one(slot),
            first: (slot, sample.addr),
            records: one_record(slot),
            time_ns: sample.time_ns,
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            ip: if kernel.is_some() { user_ip.unwrap_or_default() } else { sample.ip },
            registers: sample.user,
            top: sample.user_stack.first_chunk().map(|word| u64::from_le_bytes(*word)),
            kernel,
        }
    }

    /// Whether `next`, of one record, is the same access.
    fn continues_with(&self, next: &Self) -> bool {
        if self.tid != next.tid || self.ip != next.ip || self.registers != next.registers {
            return false;
        }
        match (&self.kernel, &next.kernel) {
            (None, None) => self.registers.is_some() && self.slots.with(next.slots) != self.slots,
            // Not the kernel's ip: it is that of the `rep movsb`, but behind it for the last byte.
            (Some(this), Some(next)) => {
                let both = this.destination.zip(next.destination);
                both.is_some_and(|(this, next)| next > this && next - this <= 8)
            }
            _ => false,
        }
    }
}

impl Coalescer {
    /// Takes the next record; gives the access that it shows to be complete.
    pub(crate) fn add(&mut self, next: RawAccess) -> Option<RawAccess> {
        match &mut self.open {
            Some(open) if open.continues_with(&next) => {
                open.slots = open.slots.with(next.slots);
                for (all, more) in open.records.iter_mut().zip(next.records) {
                    *all += more;
                }
                if let (Some(open), Some(next)) = (&mut open.kernel, &next.kernel) {
                    open.destination = next.destination;
                }
                None
            }
            open => open.replace(next),
        }
    }

    /// When the open access happened.
    pub(crate) fn open_ns(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.time_ns)
    }

    /// Gives the open access if it is complete by itself: no other record can belong to it where
    /// there is one slot and the kernel is not involved, nor if it is older than `quiet_since`.
    pub(crate) fn flush(&mut self, slots: usize, quiet_since: u64) -> Option<RawAccess> {
        let complete = |open: &mut RawAccess| {
            (slots == 1 && open.kernel.is_none()) || open.time_ns < quiet_since
        };
        self.open.take_if(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(tid: u32, ip: u64, rax: u64, slot: usize) -> RawAccess {
        RawAccess {
            slots: SlotSet::one(slot),
            first: (slot, Addr(0x1000 + 8 * slot as u64)),
            records: one_record(slot),
            time_ns: 0,
            pid: Pid(1),
            tid: Tid(tid),
            cpu: Cpu(0),
            ip: Addr(ip),
            registers: Some(Registers { rax, ..Registers::default() }),
            top: None,
            kernel: None,
        }
    }

    fn copy(ip: u64, destination: u64) -> RawAccess {
        let destination = Some(destination);
        let kernel = KernelSite { ip: Addr(ip), chain: [Addr(0); CHAIN], destination };
        RawAccess { kernel: Some(Box::new(kernel)), ..user(1, 0x40, 0, 0) }
    }

    /// How many records each access has.
    fn check(records: &[RawAccess], expected: &[u32]) {
        let mut coalescer = Coalescer::default();
        let mut accesses: Vec<_> =
            records.iter().filter_map(|r| coalescer.add(r.clone())).collect();
        accesses.extend(coalescer.flush(4, u64::MAX));
        let counts: Vec<u32> = accesses.iter().map(|access| access.records.iter().sum()).collect();
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_wide_store_is_one_access() {
        check(&[user(1, 2, 3, 0), user(1, 2, 3, 1), user(1, 2, 3, 2)], &[3]);
        // The same store again: a slot comes a second time.
        check(&[user(1, 2, 3, 0), user(1, 2, 3, 1), user(1, 2, 3, 0), user(1, 2, 3, 1)], &[2, 2]);
        // The same instruction with another address.
        check(&[user(1, 2, 3, 0), user(1, 2, 4, 1)], &[1, 1]);
        check(&[user(1, 2, 3, 0), user(2, 2, 3, 1)], &[1, 1]);
        check(&[user(1, 2, 3, 0), user(1, 3, 3, 1)], &[1, 1]);
    }

    #[test]
    fn without_registers_nothing_is_certain() {
        let blind = |slot| RawAccess { registers: None, ..user(1, 2, 3, slot) };
        check(&[blind(0), blind(1)], &[1, 1]);
    }

    #[test]
    fn a_copy_of_the_kernel_is_one_access() {
        let bytes: Vec<_> = (0..8).map(|byte| copy(0xff, byte)).collect();
        check(&bytes, &[8]);
        let twice: Vec<_> = bytes.iter().chain(&bytes).cloned().collect();
        check(&twice, &[8, 8]);
        check(&[copy(0xff, 1), copy(0x101, 2)], &[2]);
        check(&[copy(0xff, 1), copy(0xff, 10)], &[1, 1]);
        check(&[user(1, 0x40, 0, 0), copy(0xff, 2)], &[1, 1]);
    }

    #[test]
    fn what_can_be_complete_is_not_held_back() {
        let mut coalescer = Coalescer::default();
        coalescer.add(user(1, 2, 3, 0));
        assert!(coalescer.flush(2, 0).is_none(), "another slot may still report it");
        assert!(coalescer.flush(1, 0).is_some());
        coalescer.add(copy(0xff, 1));
        assert!(coalescer.flush(1, 0).is_none(), "the next byte may still come");
        assert!(coalescer.flush(1, 1).is_some());
    }
}
