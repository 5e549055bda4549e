//! Bytes of a ring to records: pure, without I/O, safe for any input.
//!
//! The caller owes the [`Layout`] with which the events of the ring were opened. Every byte is
//! accounted for: a record is decoded, or skipped by its size as [`Record::Unknown`], or an error
//! that says what was missing. The formats are those of perf_event_open(2), "MMAP layout".

use crate::cursor::Cursor;
use crate::layout::{Layout, RegisterSet};
use hairspring_model::{Addr, Cpu, Pid, Registers, Tid};
use hairspring_sys::perf_event::constant as k;

/// One record of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all records are samples; a box would cost an allocation each"
)]
pub enum Record<'a> {
    /// An event that happened.
    Sample(Sample<'a>),
    /// The ring was full: this many records of the event were dropped before this one. A lower
    /// bound at any moment, since it is written only once there is room again.
    Lost {
        /// The event's id.
        id: u64,
        /// How many records.
        lost: u64,
    },
    /// Hardware sampling dropped this many samples.
    LostSamples {
        /// How many samples.
        lost: u64,
    },
    /// A thread or process was born.
    Fork(Task),
    /// A thread has ended.
    Exit(Task),
    /// A thread has got a name, by exec or by itself.
    Comm(Comm<'a>),
    /// Executable memory was mapped.
    Mmap(Mmap<'a>),
    /// The kernel has stopped the event for a while, since it came too often.
    Throttle,
    /// The kernel lets the event go on.
    Unthrottle,
    /// A kind that this decoder does not know; skipped.
    Unknown {
        /// The kernel's number of the kind.
        kind: u32,
        /// The record's size in bytes.
        size: u16,
    },
}

/// Where the processor was at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In user code.
    User,
    /// In the kernel.
    Kernel,
    /// In a hypervisor or its guest, or not known.
    Other,
}

/// An event that happened. Fields that the [`Layout`] does not ask for are zero or `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Where the processor was.
    pub mode: Mode,
    /// The id of the event, or of the event that it was inherited from.
    pub id: u64,
    /// The instruction pointer.
    pub ip: Addr,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// For a breakpoint its own address.
    pub addr: Addr,
    /// The processor.
    pub cpu: Cpu,
    /// The call chain, innermost first.
    pub chain: Chain<'a>,
    /// The user-mode registers that were asked for, the others zero; `None` where the thread had
    /// none (a kernel thread).
    pub user: Option<Registers>,
    /// The bytes from the user stack pointer up.
    pub user_stack: &'a [u8],
    /// The registers at the event itself, as `user`.
    pub interrupt: Option<Registers>,
}

/// The addresses of a call chain, innermost first, with the kernel's context marks left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain<'a>(&'a [u8]);

/// A birth or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The process that the thread belongs to.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The process of the thread that made it.
    pub parent_pid: Pid,
    /// The thread that made it; at an exit, the first thread of the parent process.
    pub parent_tid: Tid,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
}

/// A new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The name, up to 15 bytes, of any encoding.
    pub name: &'a [u8],
    /// Whether it comes from an exec: the process has a new address space.
    pub exec: bool,
    /// `CLOCK_MONOTONIC`, nanoseconds; 0 where the layout has no time.
    pub time_ns: u64,
}

/// A mapping of a file's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The process.
    pub pid: Pid,
    /// Its first byte.
    pub start: Addr,
    /// Its length in bytes.
    pub len: u64,
    /// The path as the process sees it, or a name in brackets or `//anon`.
    pub path: &'a [u8],
    /// `CLOCK_MONOTONIC`, nanoseconds; 0 where the layout has no time.
    pub time_ns: u64,
}

/// Bytes that are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Fewer bytes than the record needs.
    #[error("a record of kind {kind} needs {needed} bytes, {available} are there")]
    Truncated {
        /// The kernel's number of the record's kind; 0 where not even that was there.
        kind: u32,
        /// Bytes that the record needs at least.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// The registers are those of a 32-bit program.
    #[error("a sample of a 32-bit program, whose registers this decoder does not read")]
    Registers32,
    /// A registers ABI that does not exist.
    #[error("a sample with an unknown registers ABI, {0}")]
    RegistersAbi(u64),
}

/// The records in `bytes`, which begin at a record and may end in the middle of one.
///
/// After an error about the inside of a record the iteration goes on behind it; after a truncated
/// last record it ends.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

/// Bytes of a record's header: kind, misc, size (`struct perf_event_header`).
pub(crate) const HEADER: usize = 8;

impl<'a> Records<'a> {
    /// The records of events that were opened with this layout.
    pub fn new(bytes: &'a [u8], layout: Layout) -> Self {
        Self { bytes, layout }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let available = self.bytes.len();
        let Some((header, _)) = self.bytes.split_first_chunk::<HEADER>() else {
            self.bytes = &[];
            return Some(Err(RecordError::Truncated { kind: 0, needed: HEADER, available }));
        };
        let [k0, k1, k2, k3, m0, m1, s0, s1] = *header;
        let kind = u32::from_le_bytes([k0, k1, k2, k3]);
        let misc = u16::from_le_bytes([m0, m1]);
        let size = usize::from(u16::from_le_bytes([s0, s1]));
        // A size below the header's can't be skipped by: nothing behind it can be trusted.
        let needed = size.max(HEADER);
        if size < HEADER || size > available {
            self.bytes = &[];
            return Some(Err(RecordError::Truncated {
                kind,
                needed,
                available: available.min(size),
            }));
        }
        let (record, rest) = self.bytes.split_at(size);
        self.bytes = rest;
        let body = Cursor::new(&record[HEADER..], kind);
        Some(decode(kind, misc, body, &self.layout))
    }
}

fn decode<'a>(
    kind: u32,
    misc: u16,
    mut body: Cursor<'a>,
    layout: &Layout,
) -> Result<Record<'a>, RecordError> {
    Ok(match kind {
        k::PERF_RECORD_SAMPLE => Record::Sample(sample(misc, body, layout)?),
        k::PERF_RECORD_LOST => Record::Lost { id: body.u64()?, lost: body.u64()? },
        k::PERF_RECORD_LOST_SAMPLES => Record::LostSamples { lost: body.u64()? },
        k::PERF_RECORD_FORK => Record::Fork(task(body)?),
        k::PERF_RECORD_EXIT => Record::Exit(task(body)?),
        k::PERF_RECORD_COMM => Record::Comm(comm(misc, body, layout)?),
        k::PERF_RECORD_MMAP2 => Record::Mmap(mmap(body, layout)?),
        k::PERF_RECORD_THROTTLE => Record::Throttle,
        k::PERF_RECORD_UNTHROTTLE => Record::Unthrottle,
        _ => {
            // The record came with a 16-bit size, so what is left of it fits.
            let size = u16::try_from(HEADER + body.left()).unwrap_or(u16::MAX);
            Record::Unknown { kind, size }
        }
    })
}

fn sample<'a>(misc: u16, mut body: Cursor<'a>, layout: &Layout) -> Result<Sample<'a>, RecordError> {
    let mode = match u32::from(misc) & k::PERF_RECORD_MISC_CPUMODE_MASK {
        k::PERF_RECORD_MISC_USER => Mode::User,
        k::PERF_RECORD_MISC_KERNEL => Mode::Kernel,
        _ => Mode::Other,
    };
    // In the order of the fields in perf_event_open(2), which is that of the bytes.
    let id = if layout.identifier { body.u64()? } else { 0 };
    let ip = Addr(if layout.ip { body.u64()? } else { 0 });
    let (pid, tid) = if layout.tid { (body.u32()?, body.u32()?) } else { (0, 0) };
    let time_ns = if layout.time { body.u64()? } else { 0 };
    let addr = Addr(if layout.addr { body.u64()? } else { 0 });
    let (cpu, _reserved) = if layout.cpu { (body.u32()?, body.u32()?) } else { (0, 0) };
    let chain = if layout.kernel_chain { chain(&mut body)? } else { Chain::default() };
    let user = registers(&mut body, layout.user_registers)?;
    let user_stack = if layout.user_stack > 0 { stack(&mut body)? } else { &[] };
    let interrupt = registers(&mut body, layout.interrupt_registers)?;
    let (pid, tid, cpu) = (Pid(pid), Tid(tid), Cpu(cpu));
    Ok(Sample { mode, id, ip, pid, tid, time_ns, addr, cpu, chain, user, user_stack, interrupt })
}

fn chain<'a>(body: &mut Cursor<'a>) -> Result<Chain<'a>, RecordError> {
    let frames = body.u64()?;
    let len = usize::try_from(frames).ok().and_then(|frames| frames.checked_mul(8));
    Ok(Chain(body.bytes(len.unwrap_or(usize::MAX))?))
}

/// The stack dump: asked size, that many bytes, and how many of them are real. A thread without a
/// user stack has size 0 and no third field.
fn stack<'a>(body: &mut Cursor<'a>) -> Result<&'a [u8], RecordError> {
    let asked = usize::try_from(body.u64()?).unwrap_or(usize::MAX);
    if asked == 0 {
        return Ok(&[]);
    }
    let bytes = body.bytes(asked)?;
    let real = usize::try_from(body.u64()?).unwrap_or(usize::MAX);
    Ok(&bytes[..real.min(bytes.len())])
}

fn registers(body: &mut Cursor<'_>, set: RegisterSet) -> Result<Option<Registers>, RecordError> {
    if set.is_empty() {
        return Ok(None);
    }
    match body.u64()? {
        abi if abi == u64::from(k::PERF_SAMPLE_REGS_ABI_NONE) => return Ok(None),
        abi if abi == u64::from(k::PERF_SAMPLE_REGS_ABI_64) => {}
        abi if abi == u64::from(k::PERF_SAMPLE_REGS_ABI_32) => {
            return Err(RecordError::Registers32);
        }
        abi => return Err(RecordError::RegistersAbi(abi)),
    }
    let mut values = [0; 24];
    for (number, value) in values.iter_mut().enumerate() {
        if set.bits() >> number & 1 == 1 {
            *value = body.u64()?;
        }
    }
    // The order of `hairspring_model::Register`.
    let [rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, rip, rflags, _, _, _, _, _, _, tail @ ..] = values;
    let [r8, r9, r10, r11, r12, r13, r14, r15] = tail;
    Ok(Some(Registers {
        rax,
        rbx,
        rcx,
        rdx,
        rsi,
        rdi,
        rbp,
        rsp,
        r8,
        r9,
        r10,
        r11,
        r12,
        r13,
        r14,
        r15,
        rip,
        rflags,
    }))
}

fn task(mut body: Cursor<'_>) -> Result<Task, RecordError> {
    let pid = Pid(body.u32()?);
    let parent_pid = Pid(body.u32()?);
    let tid = Tid(body.u32()?);
    let parent_tid = Tid(body.u32()?);
    Ok(Task { pid, tid, parent_pid, parent_tid, time_ns: body.u64()? })
}

fn comm<'a>(misc: u16, mut body: Cursor<'a>, layout: &Layout) -> Result<Comm<'a>, RecordError> {
    let pid = Pid(body.u32()?);
    let tid = Tid(body.u32()?);
    let time_ns = trailing_time(&mut body, layout)?;
    let exec = u32::from(misc) & k::PERF_RECORD_MISC_COMM_EXEC != 0;
    Ok(Comm { pid, tid, name: body.text(), exec, time_ns })
}

fn mmap<'a>(mut body: Cursor<'a>, layout: &Layout) -> Result<Mmap<'a>, RecordError> {
    let pid = Pid(body.u32()?);
    let _tid = body.u32()?;
    let start = Addr(body.u64()?);
    let len = body.u64()?;
    let _offset = body.u64()?;
    let _device_and_inode_or_build_id = body.bytes(24)?;
    let _protection_and_flags = body.u64()?;
    let time_ns = trailing_time(&mut body, layout)?;
    Ok(Mmap { pid, start, len, path: body.text(), time_ns })
}

/// Cuts the identity that ends every record but samples (`sample_id_all`) off, and reads its time.
fn trailing_time(body: &mut Cursor<'_>, layout: &Layout) -> Result<u64, RecordError> {
    let fields = [layout.tid, layout.time, layout.cpu, layout.identifier];
    let words = fields.iter().filter(|present| **present).count();
    let mut identity = body.cut_back(words * 8)?;
    if layout.tid {
        identity.u64()?;
    }
    if layout.time { identity.u64() } else { Ok(0) }
}

impl<'a> Chain<'a> {
    /// The addresses, innermost first.
    pub fn iter(self) -> impl Iterator<Item = Addr> + use<'a> {
        // Context marks are -1 to -4095 (PERF_CONTEXT_MAX).
        const FIRST_MARK: u64 = 0_u64.wrapping_sub(4095);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, b| word << 8 | u64::from(*b));
        self.0.chunks_exact(8).map(word).filter(|ip| *ip < FIRST_MARK).map(Addr)
    }
}

#[cfg(test)]
mod tests;
