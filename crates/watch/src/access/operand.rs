//! A memory operand, and where it was, from the registers after the instruction.

use hairspring_model::{Addr, Registers, Span};
use iced_x86::{
    CodeSize, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, UsedMemory,
};

/// The direction flag (Intel SDM volume 1, section 3.4.3).
const DIRECTION: u64 = 1 << 10;

/// A memory operand of an instruction, an implicit one too.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    memory: UsedMemory,
    /// Bytes; 0 where it depends on more than the instruction (`xsave`).
    size: u64,
    /// Whether the instruction overwrites a register that the address is made of, so that the
    /// address is not known afterwards.
    overwritten: bool,
    /// What the instruction adds to the base register, at each iteration: the stack pointer by
    /// pushes and pops, the string registers upwards.
    moves: i64,
    /// The register that numbers a bit, from the operand on.
    bit: Option<Register>,
}

/// Whether an operand overlaps the watched bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Overlap {
    No,
    /// It can't be told afterwards.
    Unverifiable,
    Yes,
}

impl Operand {
    /// The operands of an instruction.
    pub(crate) fn all(instruction: &Instruction) -> Vec<Self> {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        let writes = |register: Register| {
            register != Register::None
                && info.used_registers().iter().any(|used| {
                    used.register().full_register() == register.full_register()
                        && writing(used.access())
                })
        };
        let operand = |memory: &UsedMemory| {
            // `lea` and `nop` have an operand that they don't access.
            if !reading(memory.access()) && !writing(memory.access()) {
                return None;
            }
            let size = size(instruction, memory);
            let moves = moves(instruction, memory, size);
            let bit = bit_number(instruction);
            let base = moves.is_none() && writes(memory.base());
            let overwritten = base || writes(memory.index());
            Some(Self { memory: *memory, size, overwritten, moves: moves.unwrap_or(0), bit })
        };
        info.used_memory().iter().filter_map(operand).collect()
    }

    pub(crate) fn reads(&self) -> bool {
        reading(self.memory.access())
    }

    pub(crate) fn writes(&self) -> bool {
        writing(self.memory.access())
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn overlap(
        &self,
        instruction: &Instruction,
        after: &Registers,
        watched: Span,
    ) -> Overlap {
        match self.address(instruction, after) {
            None => Overlap::Unverifiable,
            // How far it reaches is not known: it can only be excluded from above.
            Some(at) if self.size == 0 => {
                if at <= watched.last() {
                    Overlap::Unverifiable
                } else {
                    Overlap::No
                }
            }
            Some(at) => match Span::new(at, self.size) {
                Some(span) if span.overlaps(watched) => Overlap::Yes,
                _ => Overlap::No,
            },
        }
    }

    /// Where it was; `None` where that can't be told.
    pub(crate) fn address(&self, instruction: &Instruction, after: &Registers) -> Option<Addr> {
        // The bases of fs and gs are not sampled, and vector indices aren't either.
        if self.overwritten || matches!(self.memory.segment(), Register::FS | Register::GS) {
            return None;
        }
        let moves = if instruction.is_string_instruction() && after.rflags & DIRECTION != 0 {
            -self.moves
        } else {
            self.moves
        };
        let address = self.memory.virtual_address(0, |register, _, _| {
            let value = if is_segment(register) { Some(0) } else { value(register, after) };
            // Before the instruction.
            if register == self.memory.base() {
                value.map(|value| value.wrapping_sub(moves as u64))
            } else {
                value
            }
        })?;
        let Some(bit) = self.bit else { return Some(Addr(address)) };
        if self.memory.address_size() != CodeSize::Code64 {
            return None;
        }
        let distance = element(bit, after)?.checked_mul(i64::try_from(self.size).ok()?)?;
        Some(Addr(address.wrapping_add_signed(distance)))
    }
}

/// The signed number of so many bytes, 1 to 8, at the low end of a word.
pub(crate) fn extended(word: u64, bytes: usize) -> Option<i64> {
    let unused =
        u32::try_from(bytes.checked_mul(8)?).ok().and_then(|bits| 64_u32.checked_sub(bits));
    let unused = unused.filter(|unused| *unused < 64)?;
    Some(((word << unused) as i64) >> unused)
}

/// The value of a general register, or of a part of one.
pub(crate) fn value(register: Register, registers: &Registers) -> Option<u64> {
    let full = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        _ => return None,
    };
    let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    let shifted = if high { full >> 8 } else { full };
    Some(match register.size() {
        8 => shifted,
        bytes => shifted & ((1 << (8 * bytes)) - 1),
    })
}

fn is_segment(register: Register) -> bool {
    matches!(register, Register::CS | Register::DS | Register::ES | Register::SS)
}

/// How many bytes it has: of a repeated string instruction, those of one iteration; of a bit string,
/// those of the element that has the bit.
fn size(instruction: &Instruction, memory: &UsedMemory) -> u64 {
    if let Some(bit) = bit_number(instruction) {
        return bit.size() as u64;
    }
    let string = instruction.is_string_instruction();
    let size = if string { instruction.memory_size() } else { memory.memory_size() };
    size.size() as u64
}

/// The register that says which bit of a string in memory is meant, which reaches beyond the operand
/// both ways (Intel SDM volume 2, BT).
fn bit_number(instruction: &Instruction) -> Option<Register> {
    let bits = matches!(
        instruction.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    );
    (bits && instruction.op1_register() != Register::None).then(|| instruction.op1_register())
}

/// How many elements of the register's size the bit that it numbers is away.
fn element(bit: Register, after: &Registers) -> Option<i64> {
    let bits = i64::try_from(8 * bit.size()).ok()?;
    Some(extended(value(bit, after)?, bit.size())?.div_euclid(bits))
}

/// What the instruction has added to the operand's base register when it is done with one
/// iteration, where that is all it does to it.
fn moves(instruction: &Instruction, memory: &UsedMemory, size: u64) -> Option<i64> {
    let base = memory.base();
    if instruction.is_string_instruction()
        && matches!(base.full_register(), Register::RSI | Register::RDI)
    {
        return i64::try_from(size).ok();
    }
    // `pop rsp` and `leave` set the stack pointer to something else; `pop sp` a part of it.
    let pop_rsp = instruction.mnemonic() == Mnemonic::Pop
        && instruction.op0_register().full_register() == Register::RSP;
    let relative = !matches!(instruction.mnemonic(), Mnemonic::Leave | Mnemonic::Enter) && !pop_rsp;
    if base == Register::RSP && instruction.is_stack_instruction() && relative {
        return Some(instruction.stack_pointer_increment().into());
    }
    None
}

fn reading(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn writing(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}
