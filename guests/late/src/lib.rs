//! A shared library with one field and the only function that writes it.

use std::arch::asm;
use std::sync::atomic::AtomicU64;

/// The watched place.
#[unsafe(no_mangle)]
pub static LATE_FIELD: AtomicU64 = AtomicU64::new(0);

/// Adds one to the field, `writes` times; returns the address of the instruction that does.
#[unsafe(no_mangle)]
pub extern "C" fn late_write(writes: u64) -> usize {
    let site: usize;
    // SAFETY: the place is a static; only locked additions are made.
    unsafe {
        asm!(
            "lea {site}, [rip + 23f]",
            "test {left}, {left}",
            "jz 24f",
            "22:",
            "mov {one:e}, 1",
            "23: lock xadd qword ptr [{place}], {one}",
            "dec {left}",
            "jnz 22b",
            "24:",
            place = in(reg) LATE_FIELD.as_ptr(),
            left = inout(reg) writes => _,
            one = out(reg) _,
            site = out(reg) site,
            options(nostack)
        );
    }
    site
}
