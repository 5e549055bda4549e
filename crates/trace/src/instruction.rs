//! What the next instruction of a thread is, as far as the clock and the tracer care: pure.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Mnemonic};

/// The longest x86 instruction in bytes (Intel SDM vol. 2, 2.3.11).
pub(crate) const LONGEST: usize = 15;

/// A class of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `Jcc`, `LOOP`, `LOOPE`, `LOOPNE`, `JCXZ`, `JECXZ`, `JRCXZ`: retiring it is a tick.
    ConditionalBranch,
    /// `syscall`, `sysenter`, `int 0x80`: enters the kernel on purpose.
    SystemCall,
    /// `pushf`: shows the flags, and with them that the thread is being stepped.
    PushFlags,
    /// `popf`, `iret`: may set the trap flag for the guest itself.
    PopFlags,
    /// `rdtsc` and `rdtscp`.
    ReadTimeStamp,
    /// `cpuid`.
    Identify,
    /// Any other.
    Other,
    /// The bytes are no instruction of 64-bit mode, or too few.
    Invalid,
}

impl Instruction {
    /// The class of the instruction that the bytes begin with, in 64-bit mode.
    ///
    /// A transactional abort by `xbegin` is no conditional branch, though it may jump.
    pub fn decode(bytes: &[u8]) -> Self {
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return Self::Invalid;
        }
        match instruction.flow_control() {
            // iced counts LOOPcc and JrCXZ among the conditional branches too.
            FlowControl::ConditionalBranch => return Self::ConditionalBranch,
            FlowControl::Next
            | FlowControl::Call
            | FlowControl::Interrupt
            | FlowControl::Return => {}
            _ => return Self::Other,
        }
        match instruction.mnemonic() {
            Mnemonic::Syscall | Mnemonic::Sysenter => Self::SystemCall,
            Mnemonic::Int
                if instruction.code() == Code::Int_imm8 && instruction.immediate8() == 0x80 =>
            {
                Self::SystemCall
            }
            Mnemonic::Pushf | Mnemonic::Pushfq => Self::PushFlags,
            Mnemonic::Popf | Mnemonic::Popfq | Mnemonic::Iret | Mnemonic::Iretq => Self::PopFlags,
            Mnemonic::Rdtsc | Mnemonic::Rdtscp => Self::ReadTimeStamp,
            Mnemonic::Cpuid => Self::Identify,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_that_ticks_and_those_that_look_like_it() {
        let mut cases: Vec<(Vec<u8>, Instruction)> = Vec::new();
        for condition in 0..16 {
            cases.push((vec![0x70 | condition, 0xfe], Instruction::ConditionalBranch));
            cases.push((vec![0x0f, 0x80 | condition, 0, 0, 0, 0], Instruction::ConditionalBranch));
            // Branch hints and `bnd` are prefixes of the same instruction.
            cases.push((vec![0x2e, 0x70 | condition, 0], Instruction::ConditionalBranch));
            cases.push((vec![0xf2, 0x70 | condition, 0], Instruction::ConditionalBranch));
            // setcc and cmovcc test the same conditions and don't branch.
            cases.push((vec![0x0f, 0x90 | condition, 0xc0], Instruction::Other));
            cases.push((vec![0x0f, 0x40 | condition, 0xc1], Instruction::Other));
        }
        for opcode in 0xe0..=0xe3 {
            cases.push((vec![opcode, 0xfe], Instruction::ConditionalBranch));
            cases.push((vec![0x67, opcode, 0xfe], Instruction::ConditionalBranch));
        }
        let others: &[(&[u8], Instruction)] = &[
            (&[0xeb, 0xfe], Instruction::Other),             // jmp
            (&[0xff, 0xe0], Instruction::Other),             // jmp rax
            (&[0xe8, 0, 0, 0, 0], Instruction::Other),       // call
            (&[0xc3], Instruction::Other),                   // ret
            (&[0xc7, 0xf8, 0, 0, 0, 0], Instruction::Other), // xbegin
            (&[0xf3, 0xa4], Instruction::Other),             // rep movsb
            (&[0x0f, 0x05], Instruction::SystemCall),
            (&[0x0f, 0x34], Instruction::SystemCall),
            (&[0xcd, 0x80], Instruction::SystemCall),
            (&[0xcd, 0x81], Instruction::Other),
            (&[0xcc], Instruction::Other),
            (&[0x9c], Instruction::PushFlags),
            (&[0x66, 0x9c], Instruction::PushFlags),
            (&[0x9d], Instruction::PopFlags),
            (&[0x0f, 0x31], Instruction::ReadTimeStamp),
            (&[0x0f, 0x01, 0xf9], Instruction::ReadTimeStamp),
            (&[0x0f, 0xa2], Instruction::Identify),
            (&[0x90], Instruction::Other),
            (&[0x06], Instruction::Invalid),
            (&[0x0f], Instruction::Invalid),
            (&[], Instruction::Invalid),
        ];
        cases.extend(others.iter().map(|(bytes, class)| (bytes.to_vec(), *class)));
        for (bytes, class) in cases {
            assert_eq!(Instruction::decode(&bytes), class, "{bytes:02x?}");
        }
    }
}
