//! Each row: the instruction, the registers after it, the watch, and what is to be found.

use super::*;
use iced_x86::code_asm::*;
use proptest::prelude::*;

const START: u64 = 0x40_1000;

/// The watched field.
const FIELD: u64 = 0x60_0000;

type Assemble = fn(&mut CodeAssembler) -> Result<(), IcedError>;

struct Row {
    name: &'static str,
    assemble: Assemble,
    after: Registers,
    accessed: Accessed,
    old: Option<u64>,
    new: Option<u64>,
}

fn span(at: u64, len: u64) -> Span {
    Span::new(Addr(at), len).expect("a span")
}

/// Two instructions before and one behind; gives the code, and where the middle one is and ends.
fn code(assemble: fn(&mut CodeAssembler) -> Result<(), IcedError>) -> (Vec<u8>, u64, u64) {
    let part = |ip: u64, build: &dyn Fn(&mut CodeAssembler) -> Result<(), IcedError>| {
        let mut assembler = CodeAssembler::new(64).expect("64 bits exist");
        build(&mut assembler).expect("assembles");
        assembler.assemble(ip).expect("encodes")
    };
    let mut bytes = part(START, &|a| {
        a.push(rbp)?;
        a.mov(rbp, rsp)
    });
    let at = START + bytes.len() as u64;
    bytes.extend(part(at, &assemble));
    let end = START + bytes.len() as u64;
    bytes.extend(part(end, &|a| a.nop()));
    (bytes, at, end)
}

fn number(written: Option<Written>) -> Option<u64> {
    written.map(|w| w.bytes().iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn explain(row: &Row, watched: Access, ip: impl Fn(u64, u64) -> u64) -> (Explained, u64) {
    let (bytes, at, end) = code(row.assemble);
    let after = Registers { rip: ip(at, end), ..row.after };
    let code = Code::new(Addr(START), &bytes, Addr(after.rip));
    (code.explain(Some(&after), Some(span(FIELD, 8)), watched, None), at)
}

fn check(rows: &[Row]) {
    for row in rows {
        let watched =
            if row.accessed == Accessed::Read { Access::ReadWrite } else { Access::Write };
        let (explained, at) = explain(row, watched, |_, end| end);
        assert_eq!(explained.place, Place::At(Addr(at)), "{}", row.name);
        assert_eq!(explained.accessed, row.accessed, "{}", row.name);
        assert_eq!(number(explained.old), row.old, "{}: old", row.name);
        assert_eq!(number(explained.new), row.new, "{}: new", row.name);
    }
}

macro_rules! regs {
    ([$($register:ident = $value:expr),*]) => {
        Registers { $($register: $value,)* ..Registers::default() }
    };
}

macro_rules! row {
    ($name:literal, $assemble:expr, $after:tt, $accessed:ident, $old:expr, $new:expr) => {
        Row {
            name: $name,
            assemble: $assemble,
            after: regs!($after),
            accessed: Accessed::$accessed,
            old: $old,
            new: $new,
        }
    };
}

#[test]
fn stores() {
    check(&[
        row!("mov8", |a| a.mov(qword_ptr(rbx), rcx), [rbx = FIELD, rcx = 7], Write, None, Some(7)),
        row!(
            "mov4",
            |a| a.mov(dword_ptr(rbx + 4), ecx),
            [rbx = FIELD, rcx = 0xff_0000_0007],
            Write,
            None,
            Some(7)
        ),
        row!(
            "mov1 high",
            |a| a.mov(byte_ptr(rbx), ch),
            [rbx = FIELD, rcx = 0x1234],
            Write,
            None,
            Some(0x12)
        ),
        row!(
            "mov imm",
            |a| a.mov(qword_ptr(rbx), -2),
            [rbx = FIELD],
            Write,
            None,
            Some(u64::MAX - 1)
        ),
        row!(
            "scaled",
            |a| a.mov(qword_ptr(rbx + rdx * 8 + 0x10), rax),
            [rbx = FIELD - 0x30, rdx = 4, rax = 9],
            Write,
            None,
            Some(9)
        ),
        row!("absolute", |a| a.mov(qword_ptr(FIELD), rax), [rax = 5], Write, None, Some(5)),
        row!(
            "from below",
            |a| a.mov(qword_ptr(rbx - 4), rax),
            [rbx = FIELD, rax = 0x1122_3344_5566_7788],
            Write,
            None,
            Some(0x1122_3344)
        ),
        row!("own base", |a| a.mov(qword_ptr(rbx), rbx), [rbx = FIELD], Write, None, Some(FIELD)),
        row!(
            "movnti",
            |a| a.movnti(qword_ptr(rbx), rax),
            [rbx = FIELD, rax = 3],
            Write,
            None,
            Some(3)
        ),
        row!(
            "movbe",
            |a| a.movbe(dword_ptr(rbx), eax),
            [rbx = FIELD, rax = 0x0102_0304],
            Write,
            None,
            Some(0x0403_0201)
        ),
        row!("setne", |a| a.setne(byte_ptr(rbx)), [rbx = FIELD], Write, None, Some(1)),
        row!(
            "setl",
            |a| a.setl(byte_ptr(rbx)),
            [rbx = FIELD, rflags = 0x880],
            Write,
            None,
            Some(0)
        ),
        row!("movups", |a| a.movups(xmmword_ptr(rbx), xmm0), [rbx = FIELD - 8], Write, None, None),
        row!("fstp", |a| a.fstp(qword_ptr(rbx)), [rbx = FIELD], Write, None, None),
        row!("inc", |a| a.inc(qword_ptr(rbx)), [rbx = FIELD], ReadWrite, None, None),
        row!("add", |a| a.add(dword_ptr(rbx), 5), [rbx = FIELD], ReadWrite, None, None),
        row!("bts", |a| a.bts(qword_ptr(rbx), 3), [rbx = FIELD], ReadWrite, None, None),
        row!(
            "bts below",
            |a| a.bts(qword_ptr(rbx), rcx),
            [rbx = FIELD + 0x20, rcx = -256_i64 as u64],
            ReadWrite,
            None,
            None
        ),
        row!("and 0", |a| a.and(qword_ptr(rbx), 0), [rbx = FIELD], ReadWrite, None, Some(0)),
        row!("and 1", |a| a.and(qword_ptr(rbx), 1), [rbx = FIELD], ReadWrite, None, None),
        row!(
            "or -1",
            |a| a.or(dword_ptr(rbx), -1),
            [rbx = FIELD],
            ReadWrite,
            None,
            Some(0xffff_ffff)
        ),
    ]);
}

#[test]
fn exchanges() {
    check(&[
        row!(
            "xchg",
            |a| a.xchg(qword_ptr(rbx), rcx),
            [rbx = FIELD, rcx = 4],
            ReadWrite,
            Some(4),
            None
        ),
        row!(
            "xadd",
            |a| a.lock().xadd(qword_ptr(rbx), rcx),
            [rbx = FIELD, rcx = 4],
            ReadWrite,
            Some(4),
            None
        ),
        row!(
            "cmpxchg equal",
            |a| a.lock().cmpxchg(qword_ptr(rbx), rcx),
            [rbx = FIELD, rax = 4, rcx = 9, rflags = 0x40],
            ReadWrite,
            Some(4),
            Some(9)
        ),
        row!(
            "cmpxchg not",
            |a| a.lock().cmpxchg(qword_ptr(rbx), rcx),
            [rbx = FIELD, rax = 4, rcx = 9],
            ReadWrite,
            Some(4),
            Some(4)
        ),
        row!(
            "cmpxchg8b",
            |a| a.lock().cmpxchg8b(qword_ptr(rsi)),
            [rsi = FIELD, rax = 1, rdx = 2, rbx = 3, rcx = 4, rflags = 0x40],
            ReadWrite,
            Some(0x2_0000_0001),
            Some(0x4_0000_0003)
        ),
        row!(
            "upper half of cmpxchg16b",
            |a| a.lock().cmpxchg16b(xmmword_ptr(rsi)),
            [rsi = FIELD - 8, rax = 1, rdx = 2, rbx = 3, rcx = 4, rflags = 0x40],
            ReadWrite,
            Some(2),
            Some(4)
        ),
    ]);
}

#[test]
fn the_stack() {
    check(&[
        row!("push", |a| a.push(rcx), [rsp = FIELD, rcx = 6], Write, None, Some(6)),
        row!("push rsp", |a| a.push(rsp), [rsp = FIELD], Write, None, Some(FIELD + 8)),
        row!("push imm", |a| a.push(-1), [rsp = FIELD], Write, None, Some(u64::MAX)),
        row!("pop", |a| a.pop(rcx), [rsp = FIELD + 8], Read, None, None),
        row!(
            "mov [rsp]",
            |a| a.mov(qword_ptr(rsp), rcx),
            [rsp = FIELD, rcx = 2],
            Write,
            None,
            Some(2)
        ),
        row!("pushfq", |a| a.pushfq(), [rsp = FIELD], Write, None, None),
    ]);
}

#[test]
fn reads() {
    check(&[
        row!("mov", |a| a.mov(rcx, qword_ptr(rbx)), [rbx = FIELD], Read, None, None),
        row!("cmp", |a| a.cmp(qword_ptr(rbx), 1), [rbx = FIELD], Read, None, None),
        row!("overwrites its base", |a| a.mov(rbx, qword_ptr(rbx)), [rbx = 1], Read, None, None),
        row!("thread-local", |a| a.mov(rcx, qword_ptr(8).fs()), [], Read, None, None),
    ]);
}

#[test]
fn string_instructions() {
    check(&[
        row!("stosq", |a| a.stosq(), [rdi = FIELD + 8, rax = 1], Write, None, Some(1)),
        row!(
            "stosb down",
            |a| a.stosb(),
            [rdi = FIELD - 1, rax = 1, rflags = 0x400],
            Write,
            None,
            Some(1)
        ),
        row!("movsq", |a| a.movsq(), [rdi = FIELD + 8, rsi = 0x1000], Write, None, None),
        row!(
            "last of rep",
            |a| a.rep().stosb(),
            [rdi = FIELD + 1, rax = 0xab],
            Write,
            None,
            Some(0xab)
        ),
    ]);
}

#[test]
fn inside_a_repeated_one_the_ip_is_its_own() {
    let row = row!(
        "rep stosb",
        |a| a.rep().stosb(),
        [rdi = FIELD + 3, rcx = 5, rax = 1],
        Write,
        None,
        Some(1)
    );
    let (explained, at) = explain(&row, Access::Write, |at, _| at);
    assert_eq!((explained.place, explained.accessed), (Place::At(Addr(at)), Accessed::Write));
    assert_eq!(number(explained.new), Some(1));
}

#[test]
fn what_cannot_have_done_it_has_not() {
    let row = row!("far", |a| a.mov(qword_ptr(rbx), rcx), [rbx = FIELD + 8], Write, None, None);
    let (explained, _) = explain(&row, Access::Write, |_, end| end);
    assert!(matches!(explained.place, Place::Unknown(_)), "{explained:?}");
    assert_eq!(explained.accessed, Accessed::Write, "a watch for writes reports nothing else");
    let row = row!("lea", |a| a.lea(rcx, qword_ptr(rbx)), [rbx = FIELD], Write, None, None);
    let (explained, _) = explain(&row, Access::ReadWrite, |_, end| end);
    assert_eq!(explained.accessed, Accessed::Unknown);
}

/// What code does at an ip so many bytes into it, with 0x402005 at the top of the stack.
fn at(bytes: &[u8], ip: u64, after: Registers, watch: Span, watched: Access) -> Explained {
    let code = Code::new(Addr(START), bytes, Addr(START + ip));
    code.explain(Some(&after), Some(watch), watched, Some(Addr(0x40_2005)))
}

#[test]
fn what_does_not_go_on_behind_it_has_not_done_it() {
    let called = Place::CallReturningTo(Addr(0x40_2005));
    let unknown = Place::Unknown("a return to here");
    let (write, both) = (Access::Write, Access::ReadWrite);
    for (name, bytes, top, watch, watched, place, accessed) in [
        (
            "a call that does not return ends the function before the one that was called",
            &[0xe8, 0, 1, 0, 0][..],
            FIELD,
            span(FIELD, 8),
            write,
            called,
            Accessed::Write,
        ),
        ("so does a return", &[0xc3], FIELD, span(FIELD - 8, 16), write, called, Accessed::Write),
        (
            "a return goes behind a call",
            &[0xe8, 0, 1, 0, 0],
            FIELD + 8,
            span(FIELD, 8),
            both,
            unknown,
            Accessed::Read,
        ),
        (
            "a call to the next instruction is itself",
            &[0xe8, 0, 0, 0, 0],
            FIELD,
            span(FIELD, 8),
            write,
            Place::At(Addr(START)),
            Accessed::Write,
        ),
        (
            "a read is not seen by a watch for writes",
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0],
            FIELD,
            span(FIELD, 8),
            write,
            called,
            Accessed::Write,
        ),
    ] {
        let explained = at(bytes, bytes.len() as u64, regs!([rsp = top]), watch, watched);
        assert_eq!((explained.place, explained.accessed), (place, accessed), "{name}");
    }
}

#[test]
fn operands_that_are_certain_say_what_was_done() {
    // push qword [fs:0]
    let bytes = [0x64, 0xff, 0x34, 0x25, 0, 0, 0, 0];
    let explained = at(&bytes, 8, regs!([rsp = FIELD]), span(FIELD, 8), Access::ReadWrite);
    assert_eq!(explained.accessed, Accessed::Write);
}

#[test]
fn behind_bytes_that_are_no_instruction() {
    let watch =
        |bytes: &[u8], ip| at(bytes, ip, regs!([rbx = FIELD]), span(FIELD, 8), Access::Write).place;
    // 06 is none; then `mov [rbx], rax`, or its tail `mov [rbx], eax`.
    let close = [0x06, 0x48, 0x89, 0x03, 0x90];
    assert_eq!(watch(&close, 4), Place::Unknown("the code before it can't be decoded"));
    // All ways on from it have met long before.
    let mut far = vec![0x90; 40];
    far[0] = 0x06;
    far.extend([0x48, 0x89, 0x03, 0x90]);
    assert_eq!(watch(&far, 43), Place::At(Addr(START + 40)));
}

/// The recorded accesses are found, with the values that were in memory.
#[test]
fn recorded() {
    const CODE: u64 = 0x4_0100_0000;
    const WATCH: u64 = 0x6_0000_8000;
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut values = 0;
    for line in include_str!("recorded.txt").lines().filter(|line| !line.starts_with('#')) {
        let (facts, _) = line.split_once(" ; ").expect(line);
        let facts: Vec<&str> = facts.split(' ').collect();
        let mut bytes: Vec<u8> = (0..facts[0].len() / 2)
            .map(|at| hex(&facts[0][2 * at..2 * at + 2]).to_le_bytes()[0])
            .collect();
        let ip = if facts[2] == "at" { CODE } else { CODE + bytes.len() as u64 };
        bytes.extend([0x90; 16]);
        let mut after = Registers { rip: ip, ..Registers::default() };
        let (mut old, mut new) = (0, 0);
        for fact in &facts[3..] {
            let (name, value) = fact.split_once('=').expect(line);
            let place = match name {
                "old" => &mut old,
                "new" => &mut new,
                "rflags" => &mut after.rflags,
                "rax" => &mut after.rax,
                "rbx" => &mut after.rbx,
                "rcx" => &mut after.rcx,
                "rdx" => &mut after.rdx,
                "rsi" => &mut after.rsi,
                "rdi" => &mut after.rdi,
                "rbp" => &mut after.rbp,
                "rsp" => &mut after.rsp,
                "r8" => &mut after.r8,
                "r9" => &mut after.r9,
                "r10" => &mut after.r10,
                "r11" => &mut after.r11,
                "r12" => &mut after.r12,
                "r13" => &mut after.r13,
                "r14" => &mut after.r14,
                "r15" => &mut after.r15,
                other => panic!("{other} in {line}"),
            };
            *place = hex(value);
        }
        let code = Code::new(Addr(CODE), &bytes, Addr(ip));
        let wrote = facts[1] == "w";
        for watched in [Access::Write, Access::ReadWrite] {
            if watched == Access::Write && !wrote {
                continue;
            }
            let explained = code.explain(Some(&after), Some(span(WATCH, 8)), watched, None);
            assert_eq!(explained.place, Place::At(Addr(CODE)), "{line}");
            let wrong = if wrote { Accessed::Read } else { Accessed::Write };
            assert_ne!(explained.accessed, wrong, "{line}");
            assert_ne!(explained.accessed, Accessed::Unknown, "{line}");
            for (what, part, truth) in [("old", explained.old, old), ("new", explained.new, new)] {
                let Some(part) = part else { continue };
                let end = part.offset + part.bytes().len();
                assert_eq!(part.bytes(), &truth.to_le_bytes()[part.offset..end], "{what}: {line}");
                values += 1;
            }
        }
    }
    assert!(values > 100, "{values}");
}

#[test]
fn calls_and_returns() {
    let after = regs!([rsp = FIELD]);
    let code = Code::new(Addr(START), &[0x90], Addr(START));
    let watch = Some(span(FIELD, 8));
    let called = code.explain(Some(&after), watch, Access::Write, Some(Addr(0x40_2005)));
    assert_eq!(called.place, Place::CallReturningTo(Addr(0x40_2005)));
    assert_eq!((called.accessed, number(called.new)), (Accessed::Write, Some(0x40_2005)));
    let after = regs!([rsp = FIELD + 8]);
    let returned = code.explain(Some(&after), watch, Access::ReadWrite, None);
    assert_eq!(
        (returned.place, returned.accessed),
        (Place::Unknown("a return to here"), Accessed::Read)
    );
}

#[test]
fn the_call_before_a_return_address() {
    let bytes = [0x55, 0xe8, 0, 0, 0, 0, 0x90];
    let call =
        |to, target| call_before(Addr(START), &bytes, Addr(START + to), Addr(START + target));
    assert_eq!(call(6, 6).map(|(at, _)| at), Some(Addr(START + 1)));
    assert_eq!(call(6, 7), None, "it goes elsewhere");
    assert_eq!(call(1, 1), None, "a push");
    assert_eq!(call(3, 6), None, "inside");
}

#[test]
fn system_calls() {
    for (bytes, is_one) in
        [([0x0f, 0x05], true), ([0xcd, 0x80], true), ([0x0f, 0x34], true), ([0x90, 0x90], false)]
    {
        assert_eq!(system_call_before(Addr(0x10), bytes), is_one.then_some(Addr(0x0e)));
    }
}

#[test]
fn without_registers_the_code_speaks_alone() {
    let (bytes, at, end) = code(|a| a.mov(qword_ptr(rbx), rcx));
    let code = Code::new(Addr(START), &bytes, Addr(end));
    let explained = code.explain(None, None, Access::Write, None);
    assert_eq!((explained.place, explained.new), (Place::At(Addr(at)), None));
    assert_eq!(code.text(Addr(at)).as_deref(), Some("mov [rbx], rcx"));
}

/// Instructions of all lengths, with memory operands and without.
const MANY: &[Assemble] = &[
    |a| a.mov(qword_ptr(rbx), rcx),
    |a| a.mov(dword_ptr(rbx + 0x1234), 0x7fff_fff0),
    |a| a.mov(qword_ptr(rbx).fs(), -5),
    |a| a.lock().xadd(byte_ptr(rbx + rsi * 4), dl),
    |a| a.movups(xmmword_ptr(rbx - 8), xmm3),
    |a| a.vmovdqu(ymmword_ptr(rbx), ymm9),
    |a| a.push(rax),
    |a| a.push(0x1234),
    |a| a.stosd(),
    |a| a.inc(word_ptr(rbx)),
    |a| a.lea(rax, qword_ptr(rbx + 8)),
    |a| a.mov(r8, 0x1122_3344_5566_7788_u64),
    |a| a.add(rax, rcx),
    |a| a.nop(),
    |a| a.cmp(al, 5),
    |a| a.nop_1(dword_ptr(rax + rax * 1 + 0x100)),
];

proptest! {
    /// From the start of a function the instruction that ends at the ip is found, if it can have
    /// made the access, and never another.
    #[test]
    fn forward_decoding_keeps_in_step(
        picks in prop::collection::vec(0..MANY.len(), 1..40),
        stop in any::<prop::sample::Index>(),
        behind in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let stop = stop.index(picks.len());
        let mut bytes = Vec::new();
        let mut begin = 0;
        for pick in &picks[..=stop] {
            begin = bytes.len() as u64;
            let mut assembler = CodeAssembler::new(64).expect("64 bits exist");
            MANY[*pick](&mut assembler).expect("assembles");
            bytes.extend(assembler.assemble(START + begin).expect("encodes"));
        }
        let ip = bytes.len() as u64;
        bytes.extend(behind);
        // Without registers every instruction that writes memory can have been it.
        let code = Code::new(Addr(START), &bytes, Addr(START + ip));
        let place = code.explain(None, None, Access::Write, None).place;
        if picks[stop] < 10 {
            prop_assert_eq!(place, Place::At(Addr(START + begin)));
        } else {
            prop_assert!(matches!(place, Place::Unknown(_)), "{:?}", place);
        }
    }

    /// Whatever the code and the registers: an answer, and it is about the instruction at hand.
    #[test]
    fn nothing_is_too_odd(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        ip in 0_u64..70,
        words in any::<[u64; 4]>(),
        reads in any::<bool>(),
    ) {
        let [a, b, s, d] = words;
        let after = Registers { rax: a, rbx: b, rsp: s, rdi: d, ..Registers::default() };
        let code = Code::new(Addr(START), &bytes, Addr(START + ip));
        let watched = if reads { Access::ReadWrite } else { Access::Write };
        let explained = code.explain(Some(&after), Some(span(FIELD, 8)), watched, None);
        if let Place::At(at) = explained.place {
            prop_assert!(at.0 <= START + ip && at.0 + LONGEST >= START + ip);
            prop_assert!(code.text(at).is_some());
        }
    }
}
