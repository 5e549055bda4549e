//! `forms`: one instruction form, executed N times by one thread.
//!
//! Flags: `--form=NAME --times=100`; `--list` prints the names that work on this processor.
//! Ready: `field` (watch 8 bytes), `form`, `site` (the accessing instruction), `next` (the one
//! behind it), `offset` and `size` of one access. Done: `kernel_bytes` (written by the kernel on
//! the program's behalf), `invisible` (changes that no debug register sees), `final` (read
//! by `process_vm_readv`, so not an access that counts), `expected` (absent where not known).
//!
//! Before `ready` the field is set up; `go` does nothing but execute the form.

mod instructions;
mod kernel;

use std::arch::global_asm;

use hairspring_guests::{Flags, Line, next_command};
use instructions::{Before, FORMS, Form, VMOVUPS};
use kernel::{CALLS, Call, Effect};

// The field with known neighbours: 64 bytes below it and 56 above it are nobody else's.
global_asm!(
    ".pushsection .data.forms_field,\"aw\",@progbits",
    ".p2align 6",
    ".zero 64",
    ".globl FORMS_FIELD",
    ".type FORMS_FIELD, @object",
    "FORMS_FIELD: .zero 8",
    ".size FORMS_FIELD, 8",
    ".zero 56",
    ".popsection",
);

unsafe extern "C" {
    static mut FORMS_FIELD: u64;
}

enum Chosen {
    Instruction(Form),
    Call(Call),
}

fn main() {
    let mut flags = Flags::from_args();
    let name = flags.get("form", "mov8".to_owned());
    let times: u64 = flags.get("times", 100);
    let list = flags.get("list", false);
    flags.finish();

    let avx = std::arch::is_x86_feature_detected!("avx").then_some(VMOVUPS);
    let instructions = || FORMS.iter().copied().chain(avx);
    if list {
        let calls = CALLS.iter().map(|call| call.name);
        for name in instructions().map(|form| form.name).chain(calls) {
            println!("{name}");
        }
        return;
    }
    let chosen = instructions()
        .find(|form| form.name == name)
        .map(Chosen::Instruction)
        .or_else(|| CALLS.iter().copied().find(|call| call.name == name).map(Chosen::Call));
    match chosen {
        Some(Chosen::Instruction(form)) => run_instruction(form, times),
        Some(Chosen::Call(call)) => run_call(call, times),
        None => {
            eprintln!("no form {name}; --list prints them");
            std::process::exit(2);
        }
    }
}

/// The value of the field, read by the kernel from our memory: not an access that a debug
/// register sees.
fn unseen(field: *const u64) -> u64 {
    let mut bytes = [0; 8];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: 8 };
    let remote = libc::iovec { iov_base: field.cast_mut().cast(), iov_len: 8 };
    // SAFETY: both vectors describe eight bytes of this program.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    assert_eq!(read, 8, "process_vm_readv: {}", std::io::Error::last_os_error());
    u64::from_le_bytes(bytes)
}

fn run_instruction(form: Form, times: u64) {
    let field = &raw mut FORMS_FIELD;
    let mut expected = match form.before {
        Before::Zero => 0,
        Before::Target(target) => *target as u64,
    };
    // SAFETY: the field is eight bytes of this program.
    unsafe { field.write_volatile(expected) };
    ready(form.name, field, *form.site)
        .value("offset", form.offset)
        .value("size", form.size)
        .print();
    let mut execution = 0;
    while next_command().is_some() {
        for _ in 0..times {
            execution += 1;
            expected = (form.after)(execution, expected);
            // SAFETY: the form accesses the field and its neighbours only.
            unsafe { (form.run)(field, execution) };
        }
        done(form.writes * times, form.reads * times, field).hex("expected", expected).print();
    }
}

fn run_call(call: Call, times: u64) {
    let place = call.home.place(&raw mut FORMS_FIELD);
    ready(call.name, place.field, call.site()).print();
    let mut execution = 0;
    while next_command().is_some() {
        let mut expected = 0;
        for _ in 0..times {
            execution += 1;
            expected = call.execute(&place, execution);
        }
        let (writes, kernel_bytes, invisible) = match call.effect {
            Effect::Kernel { bytes } => (0, bytes * times, 0),
            Effect::Vdso => (times, 0, 0),
            Effect::Invisible => (0, 0, times),
        };
        let done = done(writes, 0, place.field)
            .value("kernel_bytes", kernel_bytes)
            .value("invisible", invisible);
        match call.effect {
            Effect::Vdso => done.print(),
            Effect::Kernel { .. } | Effect::Invisible => done.hex("expected", expected).print(),
        }
    }
}

fn ready(name: &str, field: *const u64, [site, next]: [usize; 2]) -> Line {
    Line::ready()
        .value("form", name)
        .address("field", field)
        .hex("site", site as u64)
        .hex("next", next as u64)
}

fn done(writes: u64, reads: u64, field: *const u64) -> Line {
    Line::done(writes, reads).hex("final", unseen(field))
}
