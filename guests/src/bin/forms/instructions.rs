//! One function of assembly for each form, and what the hardware makes of one execution.
//!
//! Every function takes the field's address in `rdi` and the number of the execution in `rsi`,
//! and marks its accessing instruction by two labels, which are exported as a pair of addresses:
//! where the instruction starts and where it ends. None of them touches the field by anything
//! but that instruction.

use std::arch::global_asm;

/// A form: an instruction and its exact effect on the field.
#[derive(Clone, Copy)]
pub struct Form {
    /// What `--form` selects.
    pub name: &'static str,
    /// Executes the form once.
    pub run: unsafe extern "C" fn(field: *mut u64, execution: u64),
    /// Start and end of the accessing instruction.
    pub site: &'static [usize; 2],
    /// Accesses by one execution that a `w` watch on the eight bytes of the field reports.
    pub writes: u64,
    /// Accesses by one execution that only a `rw` watch reports.
    pub reads: u64,
    /// Where the access starts, relative to the field.
    pub offset: i64,
    /// How many bytes one access covers.
    pub size: u64,
    /// What the field must hold before the first execution.
    pub before: Before,
    /// The field after an execution.
    pub after: After,
}

/// What the field must hold before the first execution.
#[derive(Clone, Copy)]
pub enum Before {
    /// Anything.
    Zero,
    /// The address of the code that ends the form.
    Target(&'static usize),
}

/// The field after an execution, given the execution's number and the field before it.
pub type After = fn(execution: u64, before: u64) -> u64;

macro_rules! forms {
    ($($name:ident $effect:tt { $($prepare:literal)* => $access:literal => $($finish:literal)* })*) => {
        unsafe extern "C" {
            $(#[link_name = concat!("form_", stringify!($name))] fn $name(field: *mut u64, execution: u64);)*
        }
        mod sites {
            unsafe extern "C" {
                $(#[link_name = concat!("form_", stringify!($name), "_site")] pub safe static $name: [usize; 2];)*
            }
        }
        $(global_asm!(
            concat!(".pushsection .text.", stringify!($name), ",\"ax\",@progbits"),
            concat!(".globl form_", stringify!($name)),
            concat!(".hidden form_", stringify!($name)),
            concat!(".type form_", stringify!($name), ", @function"),
            concat!("form_", stringify!($name), ":"),
            ".cfi_startproc",
            $($prepare,)*
            "77:",
            $access,
            "78:",
            $($finish,)*
            ".cfi_endproc",
            concat!(".size form_", stringify!($name), ", .-form_", stringify!($name)),
            ".popsection",
            ".pushsection .data.rel.ro.sites,\"aw\",@progbits",
            ".p2align 3",
            concat!(".globl form_", stringify!($name), "_site"),
            concat!(".hidden form_", stringify!($name), "_site"),
            concat!(".type form_", stringify!($name), "_site, @object"),
            concat!("form_", stringify!($name), "_site:"),
            ".quad 77b, 78b",
            concat!(".size form_", stringify!($name), "_site, 16"),
            ".popsection",
        );)*
        /// Every form that is one instruction.
        pub static FORMS: &[Form] = &[
            $(forms!(@form $name $effect),)*
        ];
    };
    (@form $name:ident (w $writes:literal r $reads:literal, $size:literal at $offset:literal, $after:expr)) => {
        forms!(@form $name (w $writes r $reads, $size at $offset, $after, Before::Zero))
    };
    (@form $name:ident (w $writes:literal r $reads:literal, $size:literal at $offset:literal, $after:expr, $before:expr)) => {
        Form {
            name: stringify!($name),
            run: $name,
            site: &sites::$name,
            writes: $writes,
            reads: $reads,
            offset: $offset,
            size: $size,
            before: $before,
            after: $after,
        }
    };
}

/// The low `bytes` bytes of `field` replaced by those of `value`.
const fn low(bytes: u32, field: u64, value: u64) -> u64 {
    let mask = (1 << (8 * bytes)) - 1;
    field & !mask | value & mask
}

fn same(_: u64, before: u64) -> u64 {
    before
}

fn execution(i: u64, _: u64) -> u64 {
    i
}

forms! {
    // Stores from a register and of an immediate, in every width.
    mov1 (w 1 r 0, 1 at 0, |i, f| low(1, f, i)) { => "mov byte ptr [rdi], sil" => "ret" }
    mov2 (w 1 r 0, 2 at 0, |i, f| low(2, f, i)) { => "mov word ptr [rdi], si" => "ret" }
    mov4 (w 1 r 0, 4 at 0, |i, f| low(4, f, i)) { => "mov dword ptr [rdi], esi" => "ret" }
    mov8 (w 1 r 0, 8 at 0, execution) { => "mov qword ptr [rdi], rsi" => "ret" }
    imm1 (w 1 r 0, 1 at 0, |_, f| low(1, f, 0x5a)) { => "mov byte ptr [rdi], 0x5a" => "ret" }
    imm2 (w 1 r 0, 2 at 0, |_, f| low(2, f, 0x5a5a)) { => "mov word ptr [rdi], 0x5a5a" => "ret" }
    imm4 (w 1 r 0, 4 at 0, |_, f| low(4, f, 0x5a5a_5a5a)) { => "mov dword ptr [rdi], 0x5a5a5a5a" => "ret" }
    // The immediate of an eight-byte store is four bytes, sign-extended.
    imm8 (w 1 r 0, 8 at 0, |_, _| 0xffff_ffff_ffff_ff9c) { => "mov qword ptr [rdi], -100" => "ret" }
    // The upper byte register: `ah` is bits 8 to 15.
    mov_high_byte (w 1 r 0, 1 at 0, |i, f| low(1, f, i)) { "mov eax, esi" "shl eax, 8" => "mov byte ptr [rdi], ah" => "ret" }

    // Addressing.
    mov_rip (w 1 r 0, 8 at 0, execution) { => "mov qword ptr [rip + FORMS_FIELD], rsi" => "ret" }
    mov_indexed (w 1 r 0, 8 at 0, execution) { "lea rdx, [rdi - 0x20]" "mov ecx, 2" => "mov qword ptr [rdx + rcx*8 + 0x10], rsi" => "ret" }
    // A store that starts four bytes below the field.
    mov_below (w 1 r 0, 8 at -4, |i, f| low(4, f, i)) { "mov rdx, rsi" "shl rdx, 32" => "mov qword ptr [rdi - 4], rdx" => "ret" }
    // The same value every time is a write all the same.
    mov_same (w 1 r 0, 8 at 0, |_, _| 7) { "mov eax, 7" => "mov qword ptr [rdi], rax" => "ret" }
    // Store and load share an operand with the result: after the access the base is gone.
    load_over_base (w 0 r 1, 8 at 0, same) { => "mov rdi, qword ptr [rdi]" => "ret" }
    movnti (w 1 r 0, 8 at 0, execution) { => "movnti qword ptr [rdi], rsi" => "sfence" "ret" }

    // The stack: `rsp` is moved to the field for one instruction.
    push (w 1 r 0, 8 at 0, execution) { "mov rax, rsp" "lea rsp, [rdi + 8]" => "push rsi" => "mov rsp, rax" "ret" }
    pop (w 0 r 1, 8 at 0, same) { "mov rax, rsp" "mov rsp, rdi" => "pop rcx" => "mov rsp, rax" "ret" }
    // The hit's ip is the target of the call, not the instruction behind it.
    call (w 1 r 0, 8 at 0, |_, _| form_call_site[1] as u64) {
        "mov rax, rsp" "lea rsp, [rdi + 8]" => "call 79f" => "ud2" "79: mov rsp, rax" "ret"
    }
    // The call writes, the return reads; the site is the call's.
    call_return (w 1 r 1, 8 at 0, |_, _| form_call_return_site[1] as u64) {
        "mov rax, rsp" "lea rsp, [rdi + 8]" => "call 79f" => "mov rsp, rax" "ret" "79: ret"
    }
    // The hit's ip is where the return lands.
    ret (w 0 r 1, 8 at 0, same, Before::Target(&form_ret_target)) {
        "mov rax, rsp" "mov rsp, rdi" => "ret" => "ud2"
        "79: mov rsp, rax" "ret"
        ".pushsection .data.rel.ro.sites,\"aw\",@progbits" ".p2align 3" ".globl form_ret_target" ".hidden form_ret_target" "form_ret_target: .quad 79b" ".popsection"
    }
    jump_through (w 0 r 1, 8 at 0, same, Before::Target(&form_jump_target)) {
        => "jmp qword ptr [rdi]" => "ud2"
        "79: ret"
        ".pushsection .data.rel.ro.sites,\"aw\",@progbits" ".p2align 3" ".globl form_jump_target" ".hidden form_jump_target" "form_jump_target: .quad 79b" ".popsection"
    }
    call_through (w 0 r 1, 8 at 0, same, Before::Target(&form_call_target)) {
        => "call qword ptr [rdi]" => "ret"
        "79: ret"
        ".pushsection .data.rel.ro.sites,\"aw\",@progbits" ".p2align 3" ".globl form_call_target" ".hidden form_call_target" "form_call_target: .quad 79b" ".popsection"
    }
    push_from (w 0 r 1, 8 at 0, same) { => "push qword ptr [rdi]" => "pop rax" "ret" }
    pop_into (w 1 r 0, 8 at 0, execution) { "push rsi" => "pop qword ptr [rdi]" => "ret" }

    // String instructions: one hit an iteration, with ip at the instruction itself.
    rep_stosb (w 8 r 0, 1 at 0, |i, _| u64::from_ne_bytes([i.to_le_bytes()[0]; 8])) { "mov eax, esi" "mov ecx, 8" => "rep stosb" => "ret" }
    // Four words of which the second is the field.
    rep_stosq (w 1 r 0, 8 at 0, execution) { "sub rdi, 8" "mov rax, rsi" "mov ecx, 4" => "rep stosq" => "ret" }
    rep_movsb (w 8 r 0, 1 at 0, execution) { "push rsi" "mov rsi, rsp" "mov ecx, 8" => "rep movsb" => "pop rsi" "ret" }
    rep_movsb_from (w 0 r 8, 1 at 0, same) { "mov rsi, rdi" "sub rsp, 8" "mov rdi, rsp" "mov ecx, 8" => "rep movsb" => "add rsp, 8" "ret" }
    movsq (w 1 r 0, 8 at 0, execution) { "push rsi" "mov rsi, rsp" => "movsq" => "pop rsi" "ret" }

    // Atomics and read-modify-write: one access that is a write.
    cmpxchg_success (w 1 r 0, 8 at 0, execution) { "lea rax, [rsi - 1]" => "lock cmpxchg qword ptr [rdi], rsi" => "ret" }
    cmpxchg_failure (w 1 r 0, 8 at 0, same) { "mov rax, -1" => "lock cmpxchg qword ptr [rdi], rsi" => "ret" }
    cmpxchg16b (w 1 r 0, 16 at 0, execution) {
        "push rbx" "lea rax, [rsi - 1]" "mov rdx, rax" "mov rbx, rsi" "mov rcx, rsi"
        => "lock cmpxchg16b xmmword ptr [rdi]" => "pop rbx" "ret"
    }
    xadd (w 1 r 0, 8 at 0, |_, f| f + 3) { "mov eax, 3" => "xadd qword ptr [rdi], rax" => "ret" }
    lock_xadd (w 1 r 0, 8 at 0, |_, f| f + 3) { "mov eax, 3" => "lock xadd qword ptr [rdi], rax" => "ret" }
    xchg (w 1 r 0, 8 at 0, execution) { "mov rax, rsi" => "xchg qword ptr [rdi], rax" => "ret" }
    inc (w 1 r 0, 8 at 0, |_, f| f + 1) { => "inc qword ptr [rdi]" => "ret" }
    add (w 1 r 0, 8 at 0, |i, f| f + i) { => "add qword ptr [rdi], rsi" => "ret" }
    setcc (w 1 r 0, 1 at 0, |i, f| low(1, f, i & 1)) { "test sil, 1" => "setne byte ptr [rdi]" => "ret" }
    bts (w 1 r 0, 8 at 0, |i, f| f | 1 << (i % 64)) { "mov ecx, esi" "and ecx, 63" => "bts qword ptr [rdi], rcx" => "ret" }
    // The bit index reaches beyond the operand: the bytes are not where the operand says.
    bts_far (w 1 r 0, 8 at 0, |i, f| f | 1 << (i % 64)) {
        "mov ecx, esi" "and ecx, 63" "add ecx, 256" "lea rdx, [rdi - 32]" => "bts qword ptr [rdx], rcx" => "ret"
    }

    // Vectors and floating point.
    movups (w 1 r 0, 16 at 0, execution) { "movq xmm0, rsi" "punpcklqdq xmm0, xmm0" => "movups xmmword ptr [rdi], xmm0" => "ret" }
    fst (w 1 r 0, 8 at 0, |_, _| 1_f64.to_bits()) { "fld1" => "fst qword ptr [rdi]" => "fstp st(0)" "ret" }

    // Reads.
    load (w 0 r 1, 8 at 0, same) { => "mov rax, qword ptr [rdi]" => "ret" }
    load1 (w 0 r 1, 1 at 3, same) { => "movzx eax, byte ptr [rdi + 3]" => "ret" }
    compare (w 0 r 1, 8 at 0, same) { => "cmp qword ptr [rdi], rsi" => "ret" }
    // A branch lies between the access and the next label: ip is the branch.
    compare_branch (w 0 r 1, 8 at 0, same) { => "cmp qword ptr [rdi], rsi" => "je 79f" "nop" "79: ret" }
}

unsafe extern "C" {
    safe static form_call_site: [usize; 2];
    safe static form_call_return_site: [usize; 2];
    safe static form_ret_target: usize;
    safe static form_jump_target: usize;
    safe static form_call_target: usize;
}

// A store of 32 bytes, covering four pieces of eight; only where the processor has AVX.
global_asm!(
    ".pushsection .text.avx,\"ax\",@progbits",
    ".globl form_vmovups",
    ".hidden form_vmovups",
    ".type form_vmovups, @function",
    "form_vmovups:",
    ".cfi_startproc",
    "movq xmm0, rsi",
    "punpcklqdq xmm0, xmm0",
    "vinsertf128 ymm0, ymm0, xmm0, 1",
    "77:",
    "vmovups ymmword ptr [rdi], ymm0",
    "78:",
    "vzeroupper",
    "ret",
    ".cfi_endproc",
    ".size form_vmovups, .-form_vmovups",
    ".popsection",
    ".pushsection .data.rel.ro.sites,\"aw\",@progbits",
    ".p2align 3",
    ".globl form_vmovups_site",
    ".hidden form_vmovups_site",
    "form_vmovups_site: .quad 77b, 78b",
    ".popsection",
);

unsafe extern "C" {
    fn form_vmovups(field: *mut u64, execution: u64);
    safe static form_vmovups_site: [usize; 2];
}

/// The form that needs AVX.
pub static VMOVUPS: Form = Form {
    name: "vmovups",
    run: form_vmovups,
    site: &form_vmovups_site,
    writes: 1,
    reads: 0,
    offset: 0,
    size: 32,
    before: Before::Zero,
    after: execution,
};
