//! The program of `hairspring demo`: a bank in which money moves by itself.
//!
//! Four customers and the bank's own vault lie side by side in one ledger. Tellers move money
//! between customers, and the keeper puts fees into the vault, so that the sum of all stays the
//! same. One thread pays interest to every customer, and counts one customer too many.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard};
use std::thread;

const CUSTOMERS: usize = 4;

/// The vault's place in the ledger, behind the customers.
pub(crate) const VAULT: usize = CUSTOMERS;

/// The customers' balances, and the vault's.
pub(crate) static LEDGER: [AtomicI64; CUSTOMERS + 1] = [
    AtomicI64::new(100),
    AtomicI64::new(200),
    AtomicI64::new(300),
    AtomicI64::new(400),
    AtomicI64::new(5000),
];

/// All postings are made under this lock: what goes wrong here is no race.
static BOOKS: Mutex<()> = Mutex::new(());

pub(crate) fn run() {
    let day = Barrier::new(4);
    thread::scope(|bank| {
        let start = |name: &str, work: fn(&Barrier)| {
            let day = &day;
            let worker = thread::Builder::new().name(name.into());
            // Without threads there is no demo, and the one that watches it says so.
            worker.spawn_scoped(bank, move || work(day)).is_ok()
        };
        start("teller-1", |day| transfers(day, 0, 1));
        start("teller-2", |day| transfers(day, 2, 3));
        start("keeper", fees);
        start("interest", interest);
    });
}

fn books() -> MutexGuard<'static, ()> {
    BOOKS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn transfers(day: &Barrier, from: usize, to: usize) {
    day.wait();
    for _ in 0..50 {
        let _books = books();
        LEDGER[from].fetch_sub(1, Ordering::Relaxed);
        LEDGER[to].fetch_add(1, Ordering::Relaxed);
    }
    day.wait();
}

fn fees(day: &Barrier) {
    day.wait();
    for _ in 0..3 {
        collect_fee();
    }
    day.wait();
}

#[inline(never)]
fn collect_fee() {
    let _books = books();
    let _before =
        LEDGER[VAULT].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |vault| Some(vault + 2));
}

fn interest(day: &Barrier) {
    day.wait();
    // In the evening, when everybody else is done.
    day.wait();
    pay_interest();
}

#[inline(never)]
fn pay_interest() {
    let _books = books();
    let mut account = 0;
    // The bug: `<=` should be `<`.
    while account <= CUSTOMERS {
        let _before =
            LEDGER[account].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |balance| {
                Some(balance / 50 * 51)
            });
        account += 1;
    }
}
