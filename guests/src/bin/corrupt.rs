//! `corrupt`: a ledger whose balance is overwritten, now and then, by a thread that has nothing to
//! do with it.
//!
//! Tellers post entries to the accounts; the auditor remembers the latest amounts in the ring
//! that lies just below the balance, with room for eight, and counts to nine.
//!
//! Flags: `--tellers=4 --entries=1000 --audits=90`. Ready: `ledger`, `field` (the balance),
//! `site` (of the tellers), `rogue_site` (of the auditor), `offset` (of the balance in `LEDGER`).
//! Done: `writes` (all writes to the balance), `rogue_writes` (those of the auditor).

use std::arch::asm;

use hairspring_guests::{Crew, Field, Flags, Instruction, Line, next_command};

const REMEMBERED: usize = 8;

#[repr(C)]
struct Account {
    latest: [Field; REMEMBERED],
    balance: Field,
}

#[unsafe(no_mangle)]
static LEDGER: Account =
    Account { latest: [const { Field::new(0) }; REMEMBERED], balance: Field::new(1000) };

#[inline(never)]
fn post_entry() {
    // SAFETY: the place is a static.
    unsafe { Instruction::Xadd.write(LEDGER.balance.place(), 1) };
}

/// Remembers an amount; returns the address of the instruction that does.
#[inline(never)]
fn remember_amount(audit: usize, amount: usize) -> usize {
    // The mistake: one slot too many, and the last one is the balance.
    let slot = audit % (REMEMBERED + 1);
    let site: usize;
    // SAFETY: one store inside of `LEDGER`, though not inside of the array that it is meant for.
    unsafe {
        asm!(
            "lea {site}, [rip + 22f]",
            "22: mov qword ptr [{ring} + {slot}*8], {amount}",
            ring = in(reg) LEDGER.latest[0].place(),
            slot = in(reg) slot,
            amount = in(reg) amount,
            site = out(reg) site,
            options(nostack, preserves_flags)
        );
    }
    site
}

fn main() {
    let mut flags = Flags::from_args();
    let tellers: usize = flags.get("tellers", 4);
    let entries: usize = flags.get("entries", 1000);
    let audits: usize = flags.get("audits", 90);
    flags.finish();

    let rogue_site = remember_amount(0, 0);
    let post = Crew::parked("teller", tellers, move |_| {
        for _ in 0..entries {
            post_entry();
        }
    });
    let audit = Crew::parked("auditor", 1, move |_| {
        for audit in 0..audits {
            remember_amount(audit, 100 + audit);
        }
    });
    Line::ready()
        .address("ledger", &raw const LEDGER)
        .address("field", LEDGER.balance.place())
        .hex("site", Instruction::Xadd.site() as u64)
        .hex("rogue_site", rogue_site as u64)
        .value("offset", std::mem::offset_of!(Account, balance))
        .print();
    let rogue_writes = audits / (REMEMBERED + 1);
    while next_command().is_some() {
        post.release();
        audit.release();
        post.wait();
        audit.wait();
        Line::done((entries * tellers + rogue_writes) as u64, 1)
            .hex("final", LEDGER.balance.peek())
            .value("rogue_writes", rogue_writes)
            .print();
    }
}
