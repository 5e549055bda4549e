//! A watched place of eight bytes, and instructions that write it.

use std::arch::asm;
use std::cell::UnsafeCell;
use std::str::FromStr;

/// A place of eight bytes that threads write without agreement.
///
/// As a `static` with `#[unsafe(no_mangle)]` it is a symbol of exactly eight bytes.
#[derive(Debug)]
#[repr(C)]
pub struct Field(UnsafeCell<u64>);

// SAFETY: the bytes are only ever accessed by assembly and volatile reads, which the compiler
// does not reason about; a lost update is what the guests show.
unsafe impl Sync for Field {}

impl Field {
    /// A field that holds `value`.
    pub const fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The field's address.
    pub const fn place(&self) -> *mut u64 {
        self.0.get()
    }

    /// What the field holds now. This is a read that a `rw` watch sees, so the guests count it
    /// in `reads`.
    #[inline(never)]
    pub fn peek(&self) -> u64 {
        // SAFETY: the place is valid for as long as `self`; volatile, since threads write it.
        unsafe { self.place().read_volatile() }
    }
}

/// How a write is made. Each is one instruction, whatever the optimisation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `mov [place], value`: the last writer wins.
    Mov,
    /// `lock xadd [place], 1`: no update is lost.
    Xadd,
    /// `add qword ptr [place], 1`: updates may be lost between threads.
    Add,
}

impl Instruction {
    /// Writes `place` once: `value` for [`Instruction::Mov`], one more for the others.
    /// Returns the address of the instruction that wrote.
    ///
    /// # Safety
    /// `place` must be valid for writes of eight bytes.
    pub unsafe fn write(self, place: *mut u64, value: u64) -> usize {
        match self {
            // SAFETY: the caller vouches for the place.
            Self::Mov => unsafe { store(place, value) },
            // SAFETY: as above.
            Self::Xadd => unsafe { exchange_add(place) },
            // SAFETY: as above.
            Self::Add => unsafe { add_one(place) },
        }
    }

    /// The address of the instruction that [`Instruction::write`] executes.
    pub fn site(self) -> usize {
        let mut scratch = 0;
        // SAFETY: the scratch place is a local variable.
        unsafe { self.write(&raw mut scratch, 0) }
    }
}

impl FromStr for Instruction {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "mov" => Ok(Self::Mov),
            "xadd" => Ok(Self::Xadd),
            "add" => Ok(Self::Add),
            _ => Err("one of mov, xadd, add".to_owned()),
        }
    }
}

#[inline(never)]
unsafe fn store(place: *mut u64, value: u64) -> usize {
    let site: usize;
    // SAFETY: one store of eight bytes to a place that the caller vouches for.
    unsafe {
        asm!(
            "lea {site}, [rip + 22f]",
            "22: mov qword ptr [{place}], {value}",
            place = in(reg) place, value = in(reg) value, site = out(reg) site,
            options(nostack, preserves_flags)
        );
    }
    site
}

#[inline(never)]
unsafe fn exchange_add(place: *mut u64) -> usize {
    let site: usize;
    // SAFETY: one locked addition at a place that the caller vouches for.
    unsafe {
        asm!(
            "lea {site}, [rip + 22f]",
            "22: lock xadd qword ptr [{place}], {one}",
            place = in(reg) place, one = inout(reg) 1_u64 => _, site = out(reg) site,
            options(nostack)
        );
    }
    site
}

#[inline(never)]
unsafe fn add_one(place: *mut u64) -> usize {
    let site: usize;
    // SAFETY: one addition at a place that the caller vouches for.
    unsafe {
        asm!(
            "lea {site}, [rip + 22f]",
            "22: add qword ptr [{place}], 1",
            place = in(reg) place, site = out(reg) site,
            options(nostack)
        );
    }
    site
}
