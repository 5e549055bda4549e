//! `chain`: a root pointer to a record that points to a buffer, which is replaced again and again.
//!
//! ```text
//! CATALOGUE ──> Record { magic, length, rows ──> [first row, ...] }
//! ```
//!
//! Watch `[[CATALOGUE]+16]`: the leaf is the first row, the slots are the root and `rows`.
//!
//! Flags: `--generations=20 --writes=5`; `--pace=wait|busy|none` is what happens after every
//! rebind: wait for a line `next` on stdin, a busy wait of about a millisecond, or nothing;
//! `--null` sets `rows` to null between generations, `--bad` to an address that is not mapped,
//! `--short` sets `length` to 0 before a new buffer and to 8 after the writes to it (so a bound
//! of 1 fails for every second generation); `--stale` also writes the *previous* buffer in every
//! generation; `--roots` replaces the record, and with it the root, in every fourth generation.
//!
//! Ready: `root` (the address of `CATALOGUE`), `record`, `slot` (of `rows`), `length` and `magic`
//! (their addresses), `leaf`, `site` (of the leaf's writes), `slot_site`, `root_site`. After every
//! rebind a line `rebound`: `generation`, `why` (`buffer`, `root`, `null`, `bad`), `slot`, `leaf`,
//! `bound` (the length now). Done: `writes` (to leaves by way of the chain), `short_writes` (those
//! of them that were made while `length` was 0), `slot_writes`, `root_writes`, `stale_writes`.

use std::arch::asm;
use std::str::FromStr;

use hairspring_guests::{Field, Flags, Instruction, Line, next_command};

const MAGIC: u64 = 0x4341_5441_4c4f_4755;
const ROWS: usize = 8;
/// Canonical, and below the lowest address that may be mapped.
const UNMAPPED: u64 = 0x1000;

#[unsafe(no_mangle)]
static CATALOGUE: Field = Field::new(0);

/// The layout is a part of the interface: the slot is at offset 16.
#[repr(C)]
struct Record {
    magic: Field,
    length: Field,
    rows: Field,
}

#[derive(Clone, Copy)]
enum Pace {
    Wait,
    Busy,
    None,
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "wait" => Ok(Self::Wait),
            "busy" => Ok(Self::Busy),
            "none" => Ok(Self::None),
            _ => Err("one of wait, busy, none".to_owned()),
        }
    }
}

#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a test program")]
struct Plan {
    generations: u64,
    writes: u64,
    pace: Pace,
    null: bool,
    bad: bool,
    short: bool,
    stale: bool,
    roots: bool,
}

#[derive(Default)]
struct Tally {
    generation: u64,
    leaf: u64,
    short: u64,
    slot: u64,
    root: u64,
    stale: u64,
}

fn main() {
    let mut flags = Flags::from_args();
    let plan = Plan {
        generations: flags.get("generations", 20),
        writes: flags.get("writes", 5),
        pace: flags.get("pace", Pace::None),
        null: flags.get("null", false),
        bad: flags.get("bad", false),
        short: flags.get("short", false),
        stale: flags.get("stale", false),
        roots: flags.get("roots", false),
    };
    flags.finish();

    let mut record = new_record();
    // SAFETY: the root is a static.
    let root_site = unsafe { set_root(CATALOGUE.place(), std::ptr::from_ref(record) as u64) };
    let mut scratch = 0;
    // SAFETY: the place is a local variable.
    let slot_site = unsafe { set_rows(&raw mut scratch, 0) };
    Line::ready()
        .address("root", CATALOGUE.place())
        .address("record", record)
        .address("slot", record.rows.place())
        .address("length", record.length.place())
        .address("magic", record.magic.place())
        .hex("leaf", record.rows.peek())
        .hex("site", Instruction::Mov.site() as u64)
        .hex("slot_site", slot_site as u64)
        .hex("root_site", root_site as u64)
        .print();
    while next_command().is_some() {
        let mut tally = Tally::default();
        for _ in 0..plan.generations {
            record = generation(plan, record, &mut tally);
        }
        Line::done(tally.leaf, 0)
            .value("short_writes", tally.short)
            .value("slot_writes", tally.slot)
            .value("root_writes", tally.root)
            .value("stale_writes", tally.stale)
            .print();
    }
}

/// A buffer that is never freed, so that a late write to an old one is harmless.
fn new_buffer() -> *mut u64 {
    Box::leak(Box::new([0_u64; ROWS])).as_mut_ptr()
}

/// A record with a buffer, never freed either.
fn new_record() -> &'static Record {
    Box::leak(Box::new(Record {
        magic: Field::new(MAGIC),
        length: Field::new(ROWS as u64),
        rows: Field::new(new_buffer() as u64),
    }))
}

/// Replaces the buffer (or the record) and writes the new leaf; returns the record to go on with.
fn generation(plan: Plan, mut record: &'static Record, tally: &mut Tally) -> &'static Record {
    tally.generation += 1;
    let old = record.rows.peek() as *mut u64;
    let short = plan.short && tally.generation.is_multiple_of(2);
    if short {
        write(&record.length, 0);
    }
    if plan.roots && tally.generation.is_multiple_of(4) {
        let next = new_record();
        if short {
            write(&next.length, 0);
        }
        // SAFETY: the root is a static.
        unsafe { set_root(CATALOGUE.place(), std::ptr::from_ref(next) as u64) };
        tally.root += 1;
        record = next;
        rebound(plan, "root", record, tally);
    } else {
        for (wanted, why, value) in [(plan.null, "null", 0), (plan.bad, "bad", UNMAPPED)] {
            if wanted {
                rebind(record, value, tally);
                rebound(plan, why, record, tally);
            }
        }
        rebind(record, new_buffer() as u64, tally);
        rebound(plan, "buffer", record, tally);
    }
    for value in 1..=plan.writes {
        let leaf = record.rows.peek() as *mut u64;
        // SAFETY: the leaf is the start of a buffer that is never freed.
        unsafe { Instruction::Mov.write(leaf, value) };
        if plan.stale {
            // SAFETY: so is the old leaf.
            unsafe { Instruction::Mov.write(old, value) };
            tally.stale += 1;
        }
    }
    tally.leaf += plan.writes;
    if short {
        tally.short += plan.writes;
        write(&record.length, ROWS as u64);
    }
    record
}

fn rebind(record: &Record, rows: u64, tally: &mut Tally) {
    // SAFETY: the slot belongs to a record that is never freed.
    unsafe { set_rows(record.rows.place(), rows) };
    tally.slot += 1;
}

fn write(field: &Field, value: u64) {
    // SAFETY: the place is valid for as long as the field.
    unsafe { Instruction::Mov.write(field.place(), value) };
}

fn rebound(plan: Plan, why: &str, record: &Record, tally: &Tally) {
    Line::new("rebound")
        .value("generation", tally.generation)
        .value("why", why)
        .address("slot", record.rows.place())
        .hex("leaf", record.rows.peek())
        .value("bound", record.length.peek())
        .print();
    match plan.pace {
        Pace::Wait => {
            if next_command().is_none() {
                std::process::exit(0);
            }
        }
        Pace::Busy => {
            let start = std::time::Instant::now();
            while start.elapsed().as_micros() < 1000 {
                std::hint::spin_loop();
            }
        }
        Pace::None => {}
    }
}

/// Writes the pointer slot and returns the address of the instruction that does.
#[inline(never)]
unsafe fn set_rows(slot: *mut u64, rows: u64) -> usize {
    let site: usize;
    // SAFETY: one store of eight bytes to a place that the caller vouches for.
    unsafe {
        asm!(
            "lea {site}, [rip + 22f]",
            "22: mov qword ptr [{slot}], {rows}",
            slot = in(reg) slot, rows = in(reg) rows, site = out(reg) site,
            options(nostack, preserves_flags)
        );
    }
    site
}

/// Writes the root and returns the address of the instruction that does.
#[inline(never)]
unsafe fn set_root(root: *mut u64, record: u64) -> usize {
    let site: usize;
    // SAFETY: one store of eight bytes to a place that the caller vouches for.
    unsafe {
        asm!(
            "lea {site}, [rip + 22f]",
            "22: mov qword ptr [{root}], {record}",
            root = in(reg) root, record = in(reg) record, site = out(reg) site,
            options(nostack, preserves_flags)
        );
    }
    site
}
