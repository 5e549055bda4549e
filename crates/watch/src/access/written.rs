//! What an instruction wrote, where the registers afterwards say it exactly.

use super::operand::{Operand, extended, value};
use hairspring_model::{Registers, Span};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

/// The zero flag and its like (Intel SDM volume 1, section 3.4.3).
const CARRY: u64 = 1 << 0;
const PARITY: u64 = 1 << 2;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;

/// The bytes of a watch that an instruction has touched: up to sixteen, since more don't fit into two
/// general registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Where in the watch they begin.
    pub(crate) offset: usize,
    bytes: [u8; Self::MOST_BYTES],
    len: usize,
}

impl Written {
    const MOST_BYTES: usize = 16;

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The part of a word that was pushed at `at`.
    pub(crate) fn word(at: u64, value: u64, watch: Span) -> Option<Self> {
        Self::new(at, 8, value.into(), watch)
    }

    /// The part of an operand's value that lies in the watch.
    fn new(at: u64, size: u64, value: u128, watch: Span) -> Option<Self> {
        let operand = Span::new(hairspring_model::Addr(at), size)?;
        let (first, last) = (operand.start().max(watch.start()), operand.last().min(watch.last()));
        let len = usize::try_from(last.0.checked_sub(first.0)? + 1).ok()?;
        let skip = usize::try_from(first.0 - at).ok()?;
        let mut bytes = [0; Self::MOST_BYTES];
        bytes.get_mut(..len)?.copy_from_slice(value.to_le_bytes().get(skip..skip + len)?);
        let offset = usize::try_from(first.0 - watch.start().0).ok()?;
        Some(Self { offset, bytes, len })
    }
}

/// The bytes before and after, as far as they are certain.
pub(crate) fn decode(
    instruction: &Instruction,
    operand: &Operand,
    after: &Registers,
    watch: Span,
) -> (Option<Written>, Option<Written>) {
    let Some(at) = operand.address(instruction, after) else { return (None, None) };
    let size = operand.size();
    let (old, new) = match size {
        1..=8 => {
            let (old, new) = values(instruction, size, after);
            (old.map(u128::from), new.map(u128::from))
        }
        16 => pairs(instruction, 64, after),
        _ => (None, None),
    };
    let part = |value: Option<u128>| value.and_then(|value| Written::new(at.0, size, value, watch));
    (part(old), part(new))
}

/// The operand's values before and after.
fn values(instruction: &Instruction, size: u64, after: &Registers) -> (Option<u64>, Option<u64>) {
    let source = || source(instruction, 1, after);
    match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movnti | Mnemonic::Movdiri => (None, source()),
        // Compilers clear and fill memory so when they optimise for size.
        Mnemonic::And if constant(instruction) == Some(0) => (None, Some(0)),
        Mnemonic::Or if constant(instruction) == Some(u64::MAX) => (None, Some(u64::MAX)),
        Mnemonic::Movbe => (None, source().map(|value| value.swap_bytes() >> (64 - 8 * size))),
        Mnemonic::Push => (None, pushed(instruction, after)),
        Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq => {
            (None, Some(after.rax))
        }
        // The register has what was in memory before.
        Mnemonic::Xchg => {
            let register = [instruction.op0_kind(), instruction.op1_kind()];
            let number = register.iter().position(|kind| *kind == OpKind::Register);
            (number.and_then(|number| self::source(instruction, number, after)), None)
        }
        Mnemonic::Xadd => (source(), None),
        // The accumulator has what was in memory before, whether it was equal or not; if not, the
        // processor writes that back (Intel SDM volume 2, CMPXCHG).
        Mnemonic::Cmpxchg if after.rflags & ZERO != 0 => (Some(after.rax), source()),
        Mnemonic::Cmpxchg => (Some(after.rax), Some(after.rax)),
        Mnemonic::Cmpxchg8b => {
            let (old, new) = pairs(instruction, 32, after);
            let word = |pair: u128| u64::try_from(pair).ok();
            (old.and_then(word), new.and_then(word))
        }
        _ if instruction.condition_code() != ConditionCode::None && size == 1 => {
            (None, Some(holds(instruction.condition_code(), after.rflags).into()))
        }
        _ => (None, None),
    }
}

/// Before and after an exchange of pairs of registers with so many bits each (Intel SDM volume 2,
/// CMPXCHG8B/CMPXCHG16B).
fn pairs(instruction: &Instruction, bits: u32, after: &Registers) -> (Option<u128>, Option<u128>) {
    if !matches!(instruction.mnemonic(), Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b) {
        return (None, None);
    }
    let low = |register: u64| u128::from(register) & ((1 << bits) - 1);
    let old = low(after.rdx) << bits | low(after.rax);
    let equal = after.rflags & ZERO != 0;
    (Some(old), Some(if equal { low(after.rcx) << bits | low(after.rbx) } else { old }))
}

/// An immediate second operand, with its sign.
fn constant(instruction: &Instruction) -> Option<u64> {
    let register = instruction.try_op_kind(1).ok()? == OpKind::Register;
    let value = instruction.try_immediate(1).ok().filter(|_| !register)?;
    extended(value, instruction.memory_size().size()).map(|value| value as u64)
}

/// A register or immediate operand.
fn source(instruction: &Instruction, number: usize, after: &Registers) -> Option<u64> {
    let number = u32::try_from(number).ok()?;
    match instruction.try_op_kind(number).ok()? {
        OpKind::Register => value(instruction.try_op_register(number).ok()?, after),
        _ => instruction.try_immediate(number).ok(),
    }
}

/// What a push has pushed; the stack pointer is pushed as it was before (Intel SDM volume 2, PUSH).
fn pushed(instruction: &Instruction, after: &Registers) -> Option<u64> {
    let value = source(instruction, 0, after)?;
    if instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == iced_x86::Register::RSP
    {
        let moved = i64::from(instruction.stack_pointer_increment());
        return Some(value.wrapping_sub(moved as u64));
    }
    Some(value)
}

/// Whether a condition holds (Intel SDM volume 1, appendix B).
fn holds(condition: ConditionCode, flags: u64) -> bool {
    let set = |flag| flags & flag != 0;
    let less = set(SIGN) != set(OVERFLOW);
    match condition {
        ConditionCode::o => set(OVERFLOW),
        ConditionCode::no => !set(OVERFLOW),
        ConditionCode::b => set(CARRY),
        ConditionCode::ae => !set(CARRY),
        ConditionCode::e => set(ZERO),
        ConditionCode::ne => !set(ZERO),
        ConditionCode::be => set(CARRY) || set(ZERO),
        ConditionCode::a => !set(CARRY) && !set(ZERO),
        ConditionCode::s => set(SIGN),
        ConditionCode::ns => !set(SIGN),
        ConditionCode::p => set(PARITY),
        ConditionCode::np => !set(PARITY),
        ConditionCode::l => less,
        ConditionCode::ge => !less,
        ConditionCode::le => less || set(ZERO),
        ConditionCode::g => !less && !set(ZERO),
        ConditionCode::None => false,
    }
}
