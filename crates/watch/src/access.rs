//! The instruction that made an access: pure, from code bytes and the registers afterwards.
//!
//! x86 reports a data breakpoint *after* the access (Intel SDM volume 3, section 19.3.1.1), so the
//! instruction pointer of a hit is where the processor goes on:
//!
//! ```text
//!   function:  48 89 e5        mov rbp, rsp
//!              c7 45 fc 07 ..  mov dword [rbp-4], 7     <- made the access
//!   ip ------> 8b 45 fc        mov eax, [rbp-4]
//! ```
//! - Mostly that is behind the instruction, which is found by decoding forward from the start of
//!   the function to the instruction that ends there.
//! - Inside a repeated string instruction it is the instruction itself, until its last iteration.
//! - Behind a call it is the function called, and the return address on the stack, which is what was
//!   written, says where the call is.
//! - Behind a return or an indirect jump it says nothing about where that was.
//!
//! Whether an instruction can have made the access is checked: the processor goes on behind it, its
//! operand overlaps the watched bytes, and it writes, where only writes are watched. What depends
//! on the code alone is worked out once for each ip
//! ([`Code`]), the rest for each hit ([`Code::explain`]).

mod operand;
mod written;

pub(crate) use written::Written;

use crate::event::Accessed;
use hairspring_model::{Access, Addr, Registers, Span};
use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Formatter, Instruction, NasmFormatter,
};
use operand::{Operand, Overlap};

/// The longest instruction of x86, in bytes.
pub(crate) const LONGEST: u64 = LONGEST_LEN as u64;

const LONGEST_LEN: usize = 15;

/// What the code around an instruction pointer is.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// The instruction that ends at the ip.
    before: Option<Candidate>,
    /// The repeated string instruction at the ip.
    repeated: Option<Candidate>,
    /// Whether the code could be decoded up to the ip.
    known: bool,
}

/// An instruction that may have made an access.
#[derive(Clone, Debug)]
struct Candidate {
    instruction: Instruction,
    operands: Vec<Operand>,
}

/// Where an access was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// By this instruction.
    At(Addr),
    /// By one of these two: the one that ends at the ip, or the one at it.
    Either(Addr, Addr),
    /// By the call that returns to this address.
    CallReturningTo(Addr),
    /// The hit's ip does not tell, for this reason.
    Unknown(&'static str),
}

/// What is known of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explained {
    pub(crate) place: Place,
    pub(crate) accessed: Accessed,
    /// The bytes of the watch that were there before, and that are there now.
    pub(crate) old: Option<Written>,
    pub(crate) new: Option<Written>,
}

impl Code {
    /// Looks at code that begins with an instruction at `start` and reaches beyond `ip`.
    pub(crate) fn new(start: Addr, bytes: &[u8], ip: Addr) -> Self {
        let length = ip.0.checked_sub(start.0).and_then(|length| usize::try_from(length).ok());
        let ends = length.filter(|length| *length <= bytes.len());
        let before = ends.and_then(|end| ending_at(start, bytes, end));
        let known = ip == start || before.is_some();
        let before = before.filter(|instruction| goes_on_at(instruction, ip));
        let at = ends.map_or(&[][..], |end| &bytes[end..]);
        let repeated = (known && !at.is_empty()).then(|| instruction_at(at, ip.0));
        let repeated = repeated.filter(|i| i.is_string_instruction() && repeats(i));
        let candidate =
            |instruction| Candidate { operands: Operand::all(&instruction), instruction };
        Self { before: before.map(candidate), repeated: repeated.map(candidate), known }
    }

    /// Nothing is known of the code.
    pub(crate) fn unknown() -> Self {
        Self { before: None, repeated: None, known: false }
    }

    /// What made the access to a watch of these bytes, after which the registers were these.
    /// `top` is the word at the top of the stack.
    pub(crate) fn explain(
        &self,
        registers: Option<&Registers>,
        span: Option<Span>,
        watched: Access,
        top: Option<Addr>,
    ) -> Explained {
        let overlap = |candidate: &Candidate| candidate.overlap(registers, span, watched);
        let fits = |candidate: &&Candidate| overlap(candidate) != Overlap::No;
        let before = self.before.as_ref().filter(fits);
        let repeated = self.repeated.as_ref().filter(|repeated| overlap(repeated) == Overlap::Yes);
        match (before, repeated) {
            (Some(one), None) | (None, Some(one)) => one.explain(registers, span, watched),
            (Some(before), Some(repeated)) => {
                // The operand that is certain wins over the one that can't be checked.
                if overlap(before) == Overlap::Yes {
                    let place = Place::Either(before.at(), repeated.at());
                    Explained { place, ..before.explain(registers, span, watched) }
                } else {
                    repeated.explain(registers, span, watched)
                }
            }
            (None, None) => self.explain_jump(registers, span, watched, top),
        }
    }

    /// An access behind which the processor went elsewhere.
    fn explain_jump(
        &self,
        registers: Option<&Registers>,
        span: Option<Span>,
        watched: Access,
        top: Option<Addr>,
    ) -> Explained {
        let nothing = |place, accessed| Explained { place, accessed, old: None, new: None };
        let only = if watched == Access::Write { Accessed::Write } else { Accessed::Unknown };
        if let (Some(registers), Some(span)) = (registers, span) {
            let word = |at: u64| Span::new(Addr(at), 8).is_some_and(|word| word.overlaps(span));
            // A call leaves its return address at the top of the stack.
            if word(registers.rsp) {
                return match top {
                    Some(to) => Explained {
                        new: Written::word(registers.rsp, to.0, span),
                        ..nothing(Place::CallReturningTo(to), Accessed::Write)
                    },
                    None => nothing(Place::Unknown("a call to here"), Accessed::Write),
                };
            }
            // A return has taken it off.
            if watched == Access::ReadWrite && word(registers.rsp.wrapping_sub(8)) {
                return nothing(Place::Unknown("a return to here"), Accessed::Read);
            }
        }
        let why = match (self.known, self.before.is_some()) {
            (false, _) => "the code before it can't be decoded",
            (true, false) => "a jump or call came here",
            (true, true) => {
                "the instruction before it does not access these bytes: a jump came here"
            }
        };
        nothing(Place::Unknown(why), only)
    }

    /// The text of the instruction at an address that `explain` has named.
    pub(crate) fn text(&self, at: Addr) -> Option<String> {
        let named = [&self.before, &self.repeated];
        let candidate = named.into_iter().flatten().find(|candidate| candidate.at() == at)?;
        Some(text(&candidate.instruction))
    }
}

/// The system call instruction that ends at `ip`: `syscall`, `sysenter` or `int 0x80`.
pub(crate) fn system_call_before(ip: Addr, bytes_before: [u8; 2]) -> Option<Addr> {
    let is_one = matches!(bytes_before, [0x0f, 0x05 | 0x34] | [0xcd, 0x80]);
    if is_one { ip.offset(-2) } else { None }
}

/// The call that ends at `to`, in code that begins with an instruction at `start`. A direct call must
/// go to `target`; where an indirect one goes is not known.
pub(crate) fn call_before(
    start: Addr,
    bytes: &[u8],
    to: Addr,
    target: Addr,
) -> Option<(Addr, String)> {
    let mut decoder = Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() && decoder.ip() < to.0 {
        decoder.decode_out(&mut instruction);
    }
    let calls = match instruction.flow_control() {
        FlowControl::Call => instruction.near_branch_target() == target.0,
        FlowControl::IndirectCall => true,
        _ => false,
    };
    (decoder.ip() == to.0 && calls).then(|| (Addr(instruction.ip()), text(&instruction)))
}

impl Candidate {
    fn at(&self) -> Addr {
        Addr(self.instruction.ip())
    }

    /// Whether an operand that is accessed as is watched overlaps the bytes.
    fn overlap(
        &self,
        registers: Option<&Registers>,
        span: Option<Span>,
        watched: Access,
    ) -> Overlap {
        let seen = |operand: &&Operand| watched == Access::ReadWrite || operand.writes();
        let overlap = |operand| self.overlap_of(operand, registers, span);
        self.operands.iter().filter(seen).map(overlap).max().unwrap_or(Overlap::No)
    }

    fn overlap_of(
        &self,
        operand: &Operand,
        registers: Option<&Registers>,
        span: Option<Span>,
    ) -> Overlap {
        match (registers, span) {
            (Some(registers), Some(span)) => operand.overlap(&self.instruction, registers, span),
            _ => Overlap::Unverifiable,
        }
    }

    fn explain(
        &self,
        registers: Option<&Registers>,
        span: Option<Span>,
        watched: Access,
    ) -> Explained {
        let place = Place::At(self.at());
        let (mut reads, mut writes) = (false, false);
        let mut explained = Explained { place, accessed: Accessed::Unknown, old: None, new: None };
        // Operands that are less certain than the best did not make it.
        let best = self.overlap(registers, span, watched);
        for operand in &self.operands {
            if self.overlap_of(operand, registers, span) != best {
                continue;
            }
            if let (Some(registers), Some(span), true) = (registers, span, operand.writes()) {
                let (old, new) = written::decode(&self.instruction, operand, registers, span);
                (explained.old, explained.new) = (old, new);
            }
            reads |= operand.reads();
            writes |= operand.writes();
        }
        explained.accessed = match (reads, writes) {
            (true, true) => Accessed::ReadWrite,
            (false, true) => Accessed::Write,
            (true, false) => Accessed::Read,
            (false, false) if watched == Access::Write => Accessed::Write,
            (false, false) => Accessed::Unknown,
        };
        explained
    }
}

/// The instruction that ends `end` bytes behind `start`, where the first one is. Behind bytes that
/// are no instruction (data, or one that is newer than the decoder) the next can begin anywhere: all
/// ways on are gone, which soon meet, and `None` is the answer where they don't.
fn ending_at(start: Addr, bytes: &[u8], end: usize) -> Option<Instruction> {
    let mut begins = vec![false; end];
    *begins.first_mut()? = true;
    let mut found = None;
    for at in 0..end {
        if !begins[at] {
            continue;
        }
        let instruction = instruction_at(&bytes[at..], start.0.wrapping_add(at as u64));
        if instruction.is_invalid() {
            if end - at <= LONGEST_LEN {
                return None;
            }
            begins[at + 1..=at + LONGEST_LEN].fill(true);
            continue;
        }
        match at + instruction.len() {
            next if next == end && found.is_some() => return None,
            next if next == end => found = Some(instruction),
            next => begins.get_mut(next).into_iter().for_each(|begins| *begins = true),
        }
    }
    found
}

fn instruction_at(bytes: &[u8], ip: u64) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}

/// Whether the processor can be at `ip` because it has executed the instruction that ends there. A
/// function that ends with a call which does not return has another function behind it, and after
/// a return what is behind a call is reached from elsewhere.
fn goes_on_at(instruction: &Instruction, ip: Addr) -> bool {
    match instruction.flow_control() {
        FlowControl::Return | FlowControl::IndirectCall => false,
        // `call $+5` puts its own address on the stack.
        FlowControl::Call => instruction.near_branch_target() == ip.0,
        // The first case of a jump table is often right behind its jump.
        _ => true,
    }
}

fn repeats(instruction: &Instruction) -> bool {
    instruction.has_rep_prefix() || instruction.has_repne_prefix()
}

fn text(instruction: &Instruction) -> String {
    let mut formatter = NasmFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_rip_relative_addresses(false);
    options.set_branch_leading_zeros(false);
    options.set_small_hex_numbers_in_decimal(true);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    debug_assert_ne!(instruction.code(), Opcode::INVALID);
    text
}

#[cfg(test)]
mod tests;
