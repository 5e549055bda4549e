//! A session that never was, for tests of how sessions are shown.

use hairspring::model::{Access, Addr, Cpu, Pid, Span, Tid, Value};
use hairspring::watch::{
    Accessed, Blind, Certainty, Change, Coverage, Event, Frame, Gap, Hit, Invisible, Loaded, Lost,
    NewValue, Ready, ReadyWatch, Rebind, RebindReason, Site, Source, Still, StopReason, Summary,
    SystemCall, ThreadChange, Threads, WatchSummary, Writer,
};
use std::sync::Arc;
use std::time::Duration;

const READY_NS: u64 = 5_000_000_000;

fn value(integer: u64) -> Value {
    Value::new(&integer.to_le_bytes()).expect("eight bytes are a value")
}

fn span(start: u64) -> Span {
    Span::new(Addr(start), 8).expect("a short span")
}

pub(crate) fn site() -> Site {
    let frame = |function: &str, file: &str, line| Frame {
        function: Some(function.into()),
        file: Some(file.into()),
        line: Some(line),
    };
    Site {
        address: Addr(0x5561_0000_1044),
        certainty: Certainty::Exact,
        instruction: Some("mov [rdi],rax".into()),
        module: Some("bank".into()),
        file_state: None,
        link_address: Some(Addr(0x1044)),
        function: Some("bank::pay_interest".into()),
        offset: 0x44,
        frames: vec![frame("bank::pay_interest", "/home/me/bank/src/interest.rs", 87)],
        system_call: None,
    }
}

/// Sites of every kind, by name.
pub(crate) fn sites() -> Vec<(&'static str, Site)> {
    let bare = Site { function: None, frames: Vec::new(), ..site() };
    let mut inlined = site();
    inlined.frames.insert(
        0,
        Frame {
            function: Some("bank::Account::add".into()),
            file: Some("/home/me/bank/src/account.rs".into()),
            line: Some(12),
        },
    );
    vec![
        ("with its source", site()),
        ("inlined", inlined),
        ("without debug information", Site { frames: Vec::new(), ..site() }),
        ("at the function's start", Site { frames: Vec::new(), offset: 0, ..site() }),
        ("without symbols", bare.clone()),
        ("of a replaced file", Site { file_state: Some("replaced since".into()), ..bare.clone() }),
        ("in no module", Site { module: None, link_address: None, ..bare.clone() }),
        (
            "in a system call",
            Site { system_call: Some(SystemCall::Named("read".into())), ..site() },
        ),
        ("in the kernel", Site { system_call: Some(SystemCall::Other), ..bare.clone() }),
        ("in an unnamed system call", Site { system_call: Some(SystemCall::Unnamed), ..bare }),
        (
            "ambiguous",
            Site {
                certainty: Certainty::Ambiguous { candidates: vec![Addr(1), Addr(2)] },
                ..site()
            },
        ),
        (
            "unknown",
            Site { certainty: Certainty::Unknown { why: "the code can't be read" }, ..site() },
        ),
    ]
}

fn hit() -> Hit {
    Hit {
        watch: 0,
        time_ns: READY_NS + 13_689_123,
        pid: Pid(4711),
        tid: Tid(4715),
        thread: "interest".into(),
        cpu: Cpu(1),
        ip: Addr(0x5561_0000_1047),
        site: Arc::new(site()),
        access: Accessed::Write,
        old: Some(value(5006)),
        new: Some(NewValue { value: value(5100), source: Source::Decoded }),
        generation: 0,
        registers: None,
        records: 1,
    }
}

/// Events of every kind.
pub(crate) fn events() -> Vec<Event> {
    let long = Value::new(&[0x11; 32]).expect("32 bytes are a value");
    let rebind = Rebind {
        watch: 1,
        time_ns: READY_NS + 20_000_000,
        generation: 1,
        old: None,
        new: Some(span(0x7fff_0000_1000)),
        reason: RebindReason::Moved,
        blind: Duration::from_nanos(585_172),
    };
    vec![
        Event::Hit(hit()),
        Event::Hit(Hit {
            time_ns: READY_NS + 1_500_000_000,
            thread: "teller-1".into(),
            tid: Tid(31_337),
            access: Accessed::ReadWrite,
            old: None,
            new: Some(NewValue { value: value(0xdead_beef), source: Source::Later }),
            ..hit()
        }),
        Event::Hit(Hit { access: Accessed::Unknown, old: Some(long), new: None, ..hit() }),
        Event::Rebind(rebind.clone()),
        Event::Rebind(Rebind {
            old: rebind.new,
            new: None,
            generation: 2,
            reason: RebindReason::Null,
            ..rebind
        }),
        Event::Thread(ThreadChange {
            pid: Pid(4711),
            tid: Tid(4720),
            time_ns: READY_NS,
            change: Change::Born { parent: Tid(4711) },
        }),
        Event::Thread(ThreadChange {
            pid: Pid(4711),
            tid: Tid(4720),
            time_ns: READY_NS + 9,
            change: Change::Ended,
        }),
        Event::Lost(Lost { watch: 0, records: 830 }),
        Event::Loaded(Loaded {
            watch: 1,
            span: span(0x7fff_0000_2000),
            blind: Duration::from_micros(1_978),
        }),
    ]
}

pub(crate) fn ready() -> Ready {
    let watch = |name: &str, span, pointers| ReadyWatch {
        name: name.into(),
        span,
        access: Access::Write,
        slots: 1 + pointers,
        pointers,
        waits: false,
    };
    Ready {
        pid: Pid(4711),
        since_ns: READY_NS,
        threads: 5,
        watches: vec![
            watch("bank::LEDGER+32:8", Some(span(0x5561_0001_0020)), 0),
            watch("[CATALOGUE]+16:8", None, 1),
        ],
        slots: 3,
        events: 40,
        kernel_visible: true,
        ring_bytes: 8 << 20,
        ring_limited: false,
    }
}

pub(crate) fn summary() -> Summary {
    let writer = |thread: &str, threads, hits, last| Writer {
        site: Arc::new(site()),
        access: Accessed::Write,
        hits,
        threads,
        thread: thread.into(),
        first_ns: READY_NS + 11_172_000,
        last_ns: READY_NS + 12_013_689_000,
        last_value: Some(last),
    };
    let decoded = NewValue { value: value(5100), source: Source::Decoded };
    let later = NewValue { value: value(u64::MAX), source: Source::Later };
    let quiet = WatchSummary {
        counted: 0,
        delivered: 0,
        lost: 0,
        coalesced: 0,
        pointer_writes: 0,
        early: 0,
        beyond: 0,
        hits: 0,
        writers: Vec::new(),
    };
    Summary {
        stop_reason: StopReason::Exited,
        duration: Duration::from_millis(12_204),
        watches: vec![
            WatchSummary {
                counted: 1_234_578,
                delivered: 1_234_578,
                coalesced: 7,
                early: 3,
                hits: 1_234_568,
                writers: vec![
                    writer("keeper", 3, 1_234_567, decoded),
                    writer("interest", 1, 1, later),
                ],
                ..quiet.clone()
            },
            WatchSummary { counted: 2, delivered: 2, pointer_writes: 2, ..quiet },
        ],
        coverage: Coverage {
            threads: Threads { found: 5, armed: 5, born: 4, ended: 9, listings: 2 },
            self_tests: vec![(Cpu(0), Some(true)), (Cpu(1), Some(true))],
            blind: Blind::default(),
            invisible: vec![
                Invisible::OtherMappings,
                Invisible::ForeignWrites,
                Invisible::PageReplacement,
                Invisible::Dma,
            ],
            target: Still::Same,
            gaps: Vec::new(),
        },
    }
}

/// A summary of a session in which nothing went as it should.
pub(crate) fn incomplete() -> Summary {
    let mut summary = summary();
    let watch = &mut summary.watches[0];
    (watch.counted, watch.lost) = (watch.counted + 830, 830);
    summary.stop_reason = StopReason::Cancelled;
    summary.coverage = Coverage {
        threads: Threads { found: 5, armed: 3, born: 0, ended: 1, listings: 4 },
        self_tests: vec![(Cpu(0), Some(true)), (Cpu(1), None), (Cpu(2), Some(false))],
        blind: Blind {
            windows: 2,
            total: Duration::from_micros(2_563),
            longest: Duration::from_micros(1_978),
        },
        invisible: vec![Invisible::SystemCalls],
        target: Still::AnotherProgram,
        gaps: vec![
            Gap::Lost { watch: 0, records: 830 },
            Gap::Untested { cpu: Cpu(1) },
            Gap::Blind { watch: 1, windows: 2, longest: Duration::from_micros(1_978) },
        ],
    };
    summary
}
