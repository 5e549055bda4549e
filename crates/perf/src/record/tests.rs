//! Records that are built byte by byte, as the kernel writes them.

use super::*;
use hairspring_model::Register;
use proptest::prelude::*;

/// A record's bytes.
#[derive(Clone, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn text(mut self, text: &[u8]) -> Self {
        self.0.extend(text);
        // Names are padded to eight bytes, with one zero at least.
        self.0.resize((self.0.len() / 8 + 1) * 8, 0);
        self
    }

    fn record(self, kind: u32, misc: u16) -> Vec<u8> {
        let size = u16::try_from(HEADER + self.0.len()).expect("a short record");
        let header = [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes()].concat();
        [header, self.0].concat()
    }
}

const PLAIN: Layout = Layout { tid: true, time: true, ..NOTHING };

const NOTHING: Layout = Layout {
    identifier: false,
    ip: false,
    tid: false,
    time: false,
    addr: false,
    cpu: false,
    kernel_chain: false,
    user_registers: RegisterSet::NONE,
    user_stack: 0,
    interrupt_registers: RegisterSet::NONE,
};

fn check(bytes: &[u8], layout: Layout, expected: &[Result<Record<'_>, RecordError>]) {
    let records: Vec<_> = Records::new(bytes, layout).collect();
    assert_eq!(records, expected);
}

fn identity(bytes: Bytes) -> Bytes {
    bytes.u32(7).u32(8).u64(99)
}

#[test]
fn births_and_ends() {
    let task =
        Task { pid: Pid(1), tid: Tid(3), parent_pid: Pid(2), parent_tid: Tid(4), time_ns: 5 };
    let bytes = || identity(Bytes::default().u32(1).u32(2).u32(3).u32(4).u64(5));
    check(&bytes().record(k::PERF_RECORD_FORK, 0), PLAIN, &[Ok(Record::Fork(task))]);
    check(&bytes().record(k::PERF_RECORD_EXIT, 0), PLAIN, &[Ok(Record::Exit(task))]);
}

#[test]
fn names() {
    for (misc, exec) in [(0, false), (1 << 13, true)] {
        let bytes = identity(Bytes::default().u32(1).u32(2).text(b"worker"))
            .record(k::PERF_RECORD_COMM, misc);
        let comm = Comm { pid: Pid(1), tid: Tid(2), name: b"worker", exec, time_ns: 99 };
        check(&bytes, PLAIN, &[Ok(Record::Comm(comm))]);
    }
}

#[test]
fn mappings() {
    let bytes =
        Bytes::default().u32(1).u32(2).u64(0x1000).u64(0x2000).u64(3).u64(4).u64(5).u64(6).u64(7);
    let bytes = identity(bytes.text(b"/lib/x.so")).record(k::PERF_RECORD_MMAP2, 0);
    let mmap =
        Mmap { pid: Pid(1), start: Addr(0x1000), len: 0x2000, path: b"/lib/x.so", time_ns: 99 };
    check(&bytes, PLAIN, &[Ok(Record::Mmap(mmap))]);
}

#[test]
fn losses_and_pauses() {
    let bytes = [
        identity(Bytes::default().u64(11).u64(22)).record(k::PERF_RECORD_LOST, 0),
        identity(Bytes::default().u64(33)).record(k::PERF_RECORD_LOST_SAMPLES, 0),
        Bytes::default().u64(1).u64(2).u64(3).record(k::PERF_RECORD_THROTTLE, 0),
        Bytes::default().u64(1).u64(2).u64(3).record(k::PERF_RECORD_UNTHROTTLE, 0),
        Bytes::default().u64(1).record(77, 0),
    ]
    .concat();
    check(
        &bytes,
        PLAIN,
        &[
            Ok(Record::Lost { id: 11, lost: 22 }),
            Ok(Record::LostSamples { lost: 33 }),
            Ok(Record::Throttle),
            Ok(Record::Unthrottle),
            Ok(Record::Unknown { kind: 77, size: 16 }),
        ],
    );
}

fn sample() -> Sample<'static> {
    Sample {
        mode: Mode::Other,
        id: 0,
        ip: Addr(0),
        pid: Pid(0),
        tid: Tid(0),
        time_ns: 0,
        addr: Addr(0),
        cpu: Cpu(0),
        chain: Chain::default(),
        user: None,
        user_stack: &[],
        interrupt: None,
    }
}

#[test]
fn samples_with_registers_of_each_abi() {
    let set = RegisterSet::of(&[Register::Rax, Register::Rip, Register::R15]);
    let layout = Layout { ip: true, user_registers: set, ..NOTHING };
    let ip = Bytes::default().u64(0x40);
    let full = ip.clone().u64(2).u64(1).u64(2).u64(3).record(k::PERF_RECORD_SAMPLE, 2);
    let user = Some(Registers { rax: 1, rip: 2, r15: 3, ..Registers::default() });
    let expected = Sample { mode: Mode::User, ip: Addr(0x40), user, ..sample() };
    check(&full, layout, &[Ok(Record::Sample(expected))]);
    let none = ip.clone().u64(0).record(k::PERF_RECORD_SAMPLE, 1);
    let expected = Sample { mode: Mode::Kernel, ip: Addr(0x40), ..sample() };
    check(&none, layout, &[Ok(Record::Sample(expected))]);
    let old = ip.clone().u64(1).u64(1).u64(2).u64(3).record(k::PERF_RECORD_SAMPLE, 2);
    check(&old, layout, &[Err(RecordError::Registers32)]);
    let odd = ip.u64(9).record(k::PERF_RECORD_SAMPLE, 2);
    check(&odd, layout, &[Err(RecordError::RegistersAbi(9))]);
}

#[test]
fn chains_leave_the_marks_out() {
    let layout = Layout { kernel_chain: true, ..NOTHING };
    let mark = 0_u64.wrapping_sub(128);
    let bytes =
        Bytes::default().u64(3).u64(mark).u64(0x10).u64(0x20).record(k::PERF_RECORD_SAMPLE, 0);
    let mut records = Records::new(&bytes, layout);
    let Some(Ok(Record::Sample(sample))) = records.next() else { panic!("a sample") };
    assert_eq!(sample.chain.iter().collect::<Vec<_>>(), [Addr(0x10), Addr(0x20)]);
    let long = Bytes::default().u64(u64::MAX).record(k::PERF_RECORD_SAMPLE, 0);
    assert!(matches!(Records::new(&long, layout).next(), Some(Err(RecordError::Truncated { .. }))));
}

#[test]
fn stacks_end_where_they_are_real() {
    let layout = Layout { user_stack: 16, ..NOTHING };
    let dumped = |asked: u64, real: u64| {
        let bytes = Bytes::default().u64(asked).u64(1).u64(2);
        if asked == 0 { Bytes::default().u64(0) } else { bytes.u64(real) }
            .record(k::PERF_RECORD_SAMPLE, 0)
    };
    for (asked, real, len) in [(16, 16, 16), (16, 8, 8), (16, 99, 16), (0, 0, 0)] {
        let bytes = dumped(asked, real);
        let Some(Ok(Record::Sample(sample))) = Records::new(&bytes, layout).next() else {
            panic!("a sample of {asked} {real}");
        };
        assert_eq!(sample.user_stack.len(), len, "{asked} {real}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let bytes = Bytes::default().u64(1).u64(2).record(k::PERF_RECORD_LOST, 0);
    for available in 0..bytes.len() {
        let records: Vec<_> = Records::new(&bytes[..available], NOTHING).collect();
        let (kind, needed) =
            if available < HEADER { (0, HEADER) } else { (k::PERF_RECORD_LOST, bytes.len()) };
        let expected = RecordError::Truncated { kind, needed, available };
        let expected: Vec<_> = if available == 0 { Vec::new() } else { vec![Err(expected)] };
        assert_eq!(records, expected, "{available}");
    }
    // A record whose own size is too small for what it should hold, and the one behind it.
    let short = Bytes::default().u64(1).record(k::PERF_RECORD_LOST, 0);
    let both = [short, bytes].concat();
    let truncated = RecordError::Truncated { kind: k::PERF_RECORD_LOST, needed: 24, available: 16 };
    check(&both, NOTHING, &[Err(truncated), Ok(Record::Lost { id: 1, lost: 2 })]);
    // A size below the header's own ends it.
    let tiny = [1, 0, 0, 0, 0, 0, 3, 0, 9, 9];
    let error = RecordError::Truncated { kind: 1, needed: HEADER, available: 3 };
    check(&tiny, NOTHING, &[Err(error)]);
}

fn layouts() -> impl Strategy<Value = Layout> {
    let flags = any::<[bool; 7]>();
    let sets = (any::<bool>(), any::<bool>(), prop_oneof![Just(0_u16), Just(8), Just(64)]);
    (flags, sets).prop_map(|(flags, (user, interrupt, user_stack))| {
        let [identifier, ip, tid, time, addr, cpu, kernel_chain] = flags;
        let set = |on| if on { RegisterSet::GENERAL } else { RegisterSet::NONE };
        Layout {
            identifier,
            ip,
            tid,
            time,
            addr,
            cpu,
            kernel_chain,
            user_registers: set(user),
            user_stack,
            interrupt_registers: set(interrupt),
        }
    })
}

/// The bytes of a sample with these fields, in the kernel's order.
fn encode(sample: &Sample<'_>, layout: &Layout) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let word = |bytes: Bytes, on: bool, value: u64| if on { bytes.u64(value) } else { bytes };
    bytes = word(bytes, layout.identifier, sample.id);
    bytes = word(bytes, layout.ip, sample.ip.0);
    bytes = if layout.tid { bytes.u32(sample.pid.0).u32(sample.tid.0) } else { bytes };
    bytes = word(bytes, layout.time, sample.time_ns);
    bytes = word(bytes, layout.addr, sample.addr.0);
    bytes = if layout.cpu { bytes.u32(sample.cpu.0).u32(0) } else { bytes };
    if layout.kernel_chain {
        let frames: Vec<Addr> = sample.chain.iter().collect();
        bytes =
            frames.iter().fold(bytes.u64(frames.len() as u64), |bytes, frame| bytes.u64(frame.0));
    }
    bytes = registers_of(bytes, layout.user_registers, sample.user.as_ref());
    if layout.user_stack > 0 {
        bytes = bytes.u64(sample.user_stack.len() as u64);
        if !sample.user_stack.is_empty() {
            bytes.0.extend(sample.user_stack);
            bytes = bytes.u64(sample.user_stack.len() as u64);
        }
    }
    registers_of(bytes, layout.interrupt_registers, sample.interrupt.as_ref())
        .record(k::PERF_RECORD_SAMPLE, 2)
}

fn registers_of(bytes: Bytes, set: RegisterSet, registers: Option<&Registers>) -> Bytes {
    if set.is_empty() {
        return bytes;
    }
    let Some(r) = registers else { return bytes.u64(0) };
    let order = [
        r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.rip, r.rflags, r.r8, r.r9, r.r10,
        r.r11, r.r12, r.r13, r.r14, r.r15,
    ];
    order.into_iter().fold(bytes.u64(2), Bytes::u64)
}

proptest! {
    /// What is encoded is decoded, whatever the layout.
    #[test]
    fn samples_go_both_ways(
        layout in layouts(),
        words in any::<[u64; 6]>(),
        values in any::<[u64; 18]>(),
        frames in prop::collection::vec(0_u64..1 << 48, 0..5),
        alive in any::<bool>(),
        stack in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let [id, ip, ids, time_ns, addr, cpu] = words;
        let low = |word: u64| u32::try_from(word & 0xffff_ffff).expect("32 bits");
        let chain: Vec<u8> = frames.iter().flat_map(|frame| frame.to_le_bytes()).collect();
        let [rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, tail @ ..] = values;
        let [r10, r11, r12, r13, r14, r15, rip, rflags] = tail;
        let registers = Registers {
            rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip, rflags,
        };
        let on = |on: bool, value: u64| if on { value } else { 0 };
        let registers_if = |set: RegisterSet| (alive && !set.is_empty()).then_some(registers);
        let sample = Sample {
            mode: Mode::User,
            id: on(layout.identifier, id),
            ip: Addr(on(layout.ip, ip)),
            pid: Pid(low(on(layout.tid, ids))),
            tid: Tid(low(on(layout.tid, ids >> 32))),
            time_ns: on(layout.time, time_ns),
            addr: Addr(on(layout.addr, addr)),
            cpu: Cpu(low(on(layout.cpu, cpu))),
            chain: Chain(if layout.kernel_chain { &chain } else { &[] }),
            user: registers_if(layout.user_registers),
            user_stack: if layout.user_stack > 0 { &stack } else { &[] },
            interrupt: registers_if(layout.interrupt_registers),
        };
        let bytes = encode(&sample, &layout);
        prop_assert_eq!(Records::new(&bytes, layout).collect::<Vec<_>>(), [Ok(Record::Sample(sample))]);
    }

    /// Any bytes, some of which look like headers: each record is told of once, in its place.
    #[test]
    fn every_byte_is_accounted_for(
        parts in prop::collection::vec((0_u32..20, 0_u16..100, any::<[u8; 40]>()), 0..12),
        layout in layouts(),
    ) {
        let bytes: Vec<u8> = parts
            .iter()
            .flat_map(|(kind, size, body)| {
                let header = Bytes::default().u32(*kind).u32(u32::from(*size) << 16);
                let body = &body[..usize::from(*size).saturating_sub(HEADER).min(body.len())];
                [&header.0, body].concat()
            })
            .collect();
        let records: Vec<_> = Records::new(&bytes, layout).collect();
        let mut rest = &bytes[..];
        for record in &records {
            let Some([k0, k1, k2, k3, _, _, s0, s1]) = rest.first_chunk().copied() else {
                let cut = RecordError::Truncated { kind: 0, needed: HEADER, available: rest.len() };
                prop_assert_eq!(record, &Err(cut));
                rest = &[];
                continue;
            };
            let kind = u32::from_le_bytes([k0, k1, k2, k3]);
            let size = u16::from_le_bytes([s0, s1]);
            let whole = rest.get(usize::from(size)..).filter(|_| usize::from(size) >= HEADER);
            if let Ok(Record::Unknown { kind: its_kind, size: its_size }) = record {
                prop_assert_eq!((*its_kind, *its_size), (kind, size));
            }
            prop_assert!(record.is_err() || whole.is_some());
            rest = whole.unwrap_or_default();
        }
        prop_assert!(rest.is_empty(), "{} bytes of nobody's", rest.len());
    }
}
