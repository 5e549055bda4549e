//! What the samples of an event carry: chosen when it is opened, needed to decode them.

use hairspring_model::Register;
use hairspring_sys::perf_event::constant as k;

/// A set of registers to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet(u64);

/// The fields of a sample. An event and its decoder must be given the same value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The id of the event, or of the event that it was inherited from.
    pub identifier: bool,
    /// The instruction pointer: for a data breakpoint, behind the accessing instruction.
    pub ip: bool,
    /// Process and thread.
    pub tid: bool,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time: bool,
    /// For a breakpoint its own address, not that of the accessed byte.
    pub addr: bool,
    /// The processor.
    pub cpu: bool,
    /// The call chain: the kernel's part only.
    pub kernel_chain: bool,
    /// The user-mode registers; in a sample from the kernel, those of the interrupted user code.
    pub user_registers: RegisterSet,
    /// This many bytes from the user stack pointer up; a multiple of 8, below 64 KiB.
    pub user_stack: u16,
    /// The registers at the event itself, the kernel's where the event happened in the kernel.
    pub interrupt_registers: RegisterSet,
}

impl RegisterSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// The sixteen general registers, the instruction pointer and the flags.
    pub const GENERAL: Self = {
        const SEGMENTS: u64 = 0x3f << Register::Cs as u8;
        Self(((1 << 24) - 1) & !SEGMENTS)
    };

    /// The set of the registers listed.
    pub const fn of(registers: &[Register]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < registers.len() {
            bits |= 1 << registers[i] as u8;
            i += 1;
        }
        Self(bits)
    }

    /// The kernel's mask.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Layout {
    /// The kernel's `sample_type`.
    pub(crate) fn sample_type(&self) -> u64 {
        let bit = |on: bool, bit| if on { u64::from(bit) } else { 0 };
        bit(self.identifier, k::PERF_SAMPLE_IDENTIFIER)
            | bit(self.ip, k::PERF_SAMPLE_IP)
            | bit(self.tid, k::PERF_SAMPLE_TID)
            | bit(self.time, k::PERF_SAMPLE_TIME)
            | bit(self.addr, k::PERF_SAMPLE_ADDR)
            | bit(self.cpu, k::PERF_SAMPLE_CPU)
            | bit(self.kernel_chain, k::PERF_SAMPLE_CALLCHAIN)
            | bit(!self.user_registers.is_empty(), k::PERF_SAMPLE_REGS_USER)
            | bit(self.user_stack > 0, k::PERF_SAMPLE_STACK_USER)
            | bit(!self.interrupt_registers.is_empty(), k::PERF_SAMPLE_REGS_INTR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_general_registers_are_eighteen() {
        assert_eq!(RegisterSet::GENERAL.bits().count_ones(), 18);
        assert_eq!(RegisterSet::GENERAL.bits() & RegisterSet::of(&[Register::Cs]).bits(), 0);
        assert_eq!(RegisterSet::of(&[Register::Rax, Register::R15]).bits(), 1 | 1 << 23);
    }
}
