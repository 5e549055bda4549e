//! Each row: the instruction, the registers after it, the watch, and what is to be found.

use super::*;
use iced_x86::code_asm::*;
use proptest::prelude::*;

const START: u64 = 0x40_1000;

/// The watched field.
const FIELD: u64 = 0x60_0000;

struct Row {
    name: &'static str,
    assemble: fn(&mut CodeAssembler) -> Result<(), IcedError>,
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

proptest! {
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
