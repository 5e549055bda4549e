//! The objects of `--json`, one a line.
//!
//! Times are `CLOCK_MONOTONIC` nanoseconds, addresses are hexadecimal strings, values are
//! little-endian integers with their width in bytes: numbers up to eight bytes, and hexadecimal
//! strings beyond. Every object has `schema` and `kind`. A field that is not known is null.

use hairspring::model::{Addr, Registers, Span, Value};
use hairspring::watch::{
    Accessed, Certainty, Change, Event, Frame, Hit, Ready, Source, Still, StopReason, Summary,
    SystemCall, Verdict, WatchSummary,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of these objects. It grows when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

/// One line of output.
#[derive(Serialize, JsonSchema)]
struct Line {
    /// The version of the schema: 1.
    schema: u32,
    #[serde(flatten)]
    body: Body,
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Body {
    /// Everything is armed; from now on nothing is missed.
    Session(SessionLine),
    /// Watched bytes were accessed.
    Hit(Box<HitLine>),
    /// A chain leads elsewhere now.
    Rebind(RebindLine),
    /// A thread was born or has ended.
    Thread(ThreadLine),
    /// Hits were lost: more came than the ring could hold.
    Lost(LostLine),
    /// A library that a watch waits for was loaded.
    Loaded(LoadedLine),
    /// The end of the session, in figures.
    Summary(SummaryLine),
    /// The session could not be had, or has failed.
    Error(ErrorLine),
}

#[derive(Serialize, JsonSchema)]
struct SessionLine {
    pid: u32,
    time_ns: u64,
    threads: usize,
    /// Debug registers used in each thread, of 4.
    slots: usize,
    /// Whether accesses by system calls are seen.
    kernel_visible: bool,
    /// Bytes of records that may wait on each CPU.
    ring_bytes: usize,
    watches: Vec<SessionWatch>,
}

#[derive(Serialize, JsonSchema)]
struct SessionWatch {
    watch: usize,
    name: String,
    /// Null where a chain leads nowhere yet, or the library is not loaded.
    address: Option<String>,
    len: Option<u64>,
    /// `w` or `rw`.
    access: String,
    slots: usize,
    /// Pointers that are followed.
    pointers: usize,
}

#[derive(Serialize, JsonSchema)]
struct HitLine {
    /// Which watch, by its place on the command line, from 0.
    watch: usize,
    time_ns: u64,
    pid: u32,
    tid: u32,
    /// The thread's name.
    thread: String,
    cpu: u32,
    /// The instruction pointer as the hardware gave it: usually behind the accessing instruction.
    ip: String,
    /// The accessing instruction; see `certainty`.
    site: String,
    /// `exact`; `ambiguous`: one of `candidates`; `unknown`: before `site`, for the reason `why`.
    certainty: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    instruction: Option<String>,
    module: Option<String>,
    /// Where the module's file is not simply the one at the path: deleted, replaced, unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_state: Option<String>,
    /// The site's address in the module's file.
    link_address: Option<String>,
    function: Option<String>,
    /// Bytes from the function's start.
    offset: u64,
    /// The source of the innermost frame that is not a compiler's own library.
    file: Option<String>,
    line: Option<u32>,
    /// The functions inlined at the site, innermost first, and the function itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    frames: Vec<FrameObject>,
    /// The system call in which the kernel made the access; `?` where its name is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_call: Option<String>,
    /// `read`, `write`, `read-write`, or `access` where it is not known.
    access: String,
    old: Option<JsonValue>,
    new: Option<JsonValue>,
    /// Bytes of `old` and `new`.
    width: Option<usize>,
    /// Of `new`: `decoded` from the instruction and registers, exact; or `later`, read from the
    /// target when the hit was reported.
    source: Option<String>,
    /// How often the chain had been re-aimed.
    generation: u64,
    /// Records that the hardware made of this one access.
    records: u32,
    /// The registers after the access, with `--regs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    regs: Option<BTreeMap<&'static str, String>>,
}

#[derive(Serialize, JsonSchema)]
struct FrameObject {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

/// An integer, or a hexadecimal string where it has more than eight bytes.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum JsonValue {
    Integer(u64),
    Long(String),
}

#[derive(Serialize, JsonSchema)]
struct RebindLine {
    watch: usize,
    time_ns: u64,
    generation: u64,
    /// Where it led; null where the watch was off.
    old: Option<String>,
    /// Where it leads; null where the watch is off.
    new: Option<String>,
    reason: String,
    /// From the write of the pointer until the new aim was in force.
    blind_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct ThreadLine {
    time_ns: u64,
    pid: u32,
    tid: u32,
    /// `born` or `ended`.
    change: String,
    parent: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct LostLine {
    watch: usize,
    /// So far, at least.
    records: u64,
}

#[derive(Serialize, JsonSchema)]
struct LoadedLine {
    watch: usize,
    address: String,
    len: u64,
    blind_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct SummaryLine {
    /// `exited`, `exec`, `duration`, `max-hits` or `cancelled`.
    stop_reason: String,
    duration_ns: u64,
    watches: Vec<SummaryWatch>,
    coverage: CoverageObject,
}

#[derive(Serialize, JsonSchema)]
struct SummaryWatch {
    watch: usize,
    name: String,
    /// What the hardware counted: hits + coalesced + `pointer_writes` + early + beyond +
    /// lost.
    counted: u64,
    delivered: u64,
    lost: u64,
    coalesced: u64,
    pointer_writes: u64,
    early: u64,
    /// After the limit of `--max-hits` was reached.
    beyond: u64,
    hits: u64,
    writers: Vec<WriterObject>,
}

#[derive(Serialize, JsonSchema)]
struct WriterObject {
    site: String,
    function: Option<String>,
    offset: u64,
    file: Option<String>,
    line: Option<u32>,
    access: String,
    threads: usize,
    /// The name of the thread that came first.
    thread: String,
    hits: u64,
    first_ns: u64,
    last_ns: u64,
    last_value: Option<JsonValue>,
}

#[derive(Serialize, JsonSchema)]
struct CoverageObject {
    /// `complete` or `incomplete`.
    verdict: String,
    /// What keeps it from being complete.
    reasons: Vec<String>,
    threads_found: u64,
    threads_armed: u64,
    threads_born: u64,
    threads_ended: u64,
    /// Listings of threads until nothing new was found.
    listings: u64,
    /// By CPU: whether a breakpoint has fired; null where it could not be tried.
    self_test: BTreeMap<u32, Option<bool>>,
    blind_windows: u64,
    blind_total_ns: u64,
    blind_longest_ns: u64,
    /// Classes of access that can't be seen here.
    invisible: Vec<String>,
    /// `same`, `exec` or `exited`.
    target: String,
}

#[derive(Serialize, JsonSchema)]
struct ErrorLine {
    message: String,
    remedy: Option<String>,
}

/// The JSON Schema of a line.
pub(crate) fn schema() -> String {
    // What is written, not what could be read: a field that is always there is required.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Line>();
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

pub(crate) fn error(message: &str, remedy: Option<&str>) -> String {
    line(Body::Error(ErrorLine { message: message.into(), remedy: remedy.map(Into::into) }))
}

pub(crate) fn session(ready: &Ready) -> String {
    let watches = ready.watches.iter().enumerate().map(|(watch, ready)| SessionWatch {
        watch,
        name: ready.name.clone(),
        address: ready.span.map(|span| span.start().to_string()),
        len: ready.span.map(Span::len),
        access: ready.access.to_string(),
        slots: ready.slots,
        pointers: ready.pointers,
    });
    line(Body::Session(SessionLine {
        pid: ready.pid.0,
        time_ns: ready.since_ns,
        threads: ready.threads,
        slots: ready.slots,
        kernel_visible: ready.kernel_visible,
        ring_bytes: ready.ring_bytes,
        watches: watches.collect(),
    }))
}

/// The line of an event; `None` for one that this version has no line for.
pub(crate) fn event(event: &Event, registers: bool) -> Option<String> {
    let body = match event {
        Event::Hit(hit) => Body::Hit(Box::new(hit_line(hit, registers))),
        Event::Rebind(rebind) => Body::Rebind(RebindLine {
            watch: rebind.watch,
            time_ns: rebind.time_ns,
            generation: rebind.generation,
            old: rebind.old.map(|span| span.start().to_string()),
            new: rebind.new.map(|span| span.start().to_string()),
            reason: rebind.reason.to_string(),
            blind_ns: nanoseconds(rebind.blind),
        }),
        Event::Thread(thread) => {
            let (change, parent) = match thread.change {
                Change::Born { parent } => ("born", Some(parent.0)),
                Change::Ended => ("ended", None),
            };
            let (time_ns, pid, tid) = (thread.time_ns, thread.pid.0, thread.tid.0);
            Body::Thread(ThreadLine { time_ns, pid, tid, change: change.into(), parent })
        }
        Event::Lost(lost) => Body::Lost(LostLine { watch: lost.watch, records: lost.records }),
        Event::Loaded(loaded) => Body::Loaded(LoadedLine {
            watch: loaded.watch,
            address: loaded.span.start().to_string(),
            len: loaded.span.len(),
            blind_ns: nanoseconds(loaded.blind),
        }),
        _ => return None,
    };
    Some(line(body))
}

fn hit_line(hit: &Hit, registers: bool) -> HitLine {
    let site = &hit.site;
    let (certainty, candidates, why) = match &site.certainty {
        Certainty::Exact => ("exact", &[][..], None),
        Certainty::Ambiguous { candidates } => ("ambiguous", &candidates[..], None),
        Certainty::Unknown { why } => ("unknown", &[][..], Some((*why).into())),
    };
    HitLine {
        watch: hit.watch,
        time_ns: hit.time_ns,
        pid: hit.pid.0,
        tid: hit.tid.0,
        thread: hit.thread.to_string(),
        cpu: hit.cpu.0,
        ip: hit.ip.to_string(),
        site: site.address.to_string(),
        certainty: certainty.into(),
        candidates: candidates.iter().map(Addr::to_string).collect(),
        why,
        instruction: site.instruction.clone(),
        module: site.module.clone(),
        file_state: site.file_state.clone(),
        link_address: site.link_address.map(|address| address.to_string()),
        function: site.function.clone(),
        offset: site.offset,
        file: site.culprit().and_then(|frame| frame.file.clone()),
        line: site.culprit().and_then(|frame| frame.line),
        frames: site.frames.iter().map(frame_object).collect(),
        system_call: site.system_call.as_ref().map(|call| match call {
            SystemCall::Named(name) => name.clone(),
            SystemCall::Other | SystemCall::Unnamed => "?".into(),
        }),
        access: accessed(hit.access),
        old: hit.old.map(value),
        new: hit.new.map(|new| value(new.value)),
        width: hit.new.map(|new| new.value).or(hit.old).map(|value| value.bytes().len()),
        source: hit.new.map(|new| match new.source {
            Source::Decoded => "decoded".into(),
            Source::Later => "later".into(),
        }),
        generation: hit.generation,
        records: hit.records,
        regs: hit.registers.as_ref().filter(|_| registers).map(named),
    }
}

pub(crate) fn summary(summary: &Summary, ready: &Ready) -> String {
    let coverage = &summary.coverage;
    let name = |watch: usize| ready.watches.get(watch).map_or_else(String::new, |w| w.name.clone());
    let watches = summary.watches.iter().enumerate();
    line(Body::Summary(SummaryLine {
        stop_reason: match summary.stop_reason {
            StopReason::Exited => "exited".into(),
            StopReason::Exec => "exec".into(),
            StopReason::Duration => "duration".into(),
            StopReason::Hits => "max-hits".into(),
            _ => "cancelled".into(),
        },
        duration_ns: nanoseconds(summary.duration),
        watches: watches
            .map(|(watch, figures)| summary_watch(watch, name(watch), figures))
            .collect(),
        coverage: CoverageObject {
            verdict: match coverage.verdict() {
                Verdict::Complete => "complete".into(),
                Verdict::Incomplete => "incomplete".into(),
            },
            reasons: coverage.gaps.iter().map(ToString::to_string).collect(),
            threads_found: coverage.threads.found,
            threads_armed: coverage.threads.armed,
            threads_born: coverage.threads.born,
            threads_ended: coverage.threads.ended,
            listings: coverage.threads.listings,
            self_test: coverage.self_tests.iter().map(|(cpu, fired)| (cpu.0, *fired)).collect(),
            blind_windows: coverage.blind.windows,
            blind_total_ns: nanoseconds(coverage.blind.total),
            blind_longest_ns: nanoseconds(coverage.blind.longest),
            invisible: coverage.invisible.iter().map(ToString::to_string).collect(),
            target: match coverage.target {
                Still::Same => "same".into(),
                Still::AnotherProgram => "exec".into(),
                Still::Gone => "exited".into(),
            },
        },
    }))
}

fn summary_watch(watch: usize, name: String, figures: &WatchSummary) -> SummaryWatch {
    let writers = figures.writers.iter().map(|writer| WriterObject {
        site: writer.site.address.to_string(),
        function: writer.site.function.clone(),
        offset: writer.site.offset,
        file: writer.site.culprit().and_then(|frame| frame.file.clone()),
        line: writer.site.culprit().and_then(|frame| frame.line),
        access: accessed(writer.access),
        threads: writer.threads,
        thread: writer.thread.to_string(),
        hits: writer.hits,
        first_ns: writer.first_ns,
        last_ns: writer.last_ns,
        last_value: writer.last_value.map(|new| value(new.value)),
    });
    SummaryWatch {
        watch,
        name,
        counted: figures.counted,
        delivered: figures.delivered,
        lost: figures.lost,
        coalesced: figures.coalesced,
        pointer_writes: figures.pointer_writes,
        early: figures.early,
        beyond: figures.beyond,
        hits: figures.hits,
        writers: writers.collect(),
    }
}

fn line(body: Body) -> String {
    // These types have no map with keys that are not strings, the only thing that can fail.
    serde_json::to_string(&Line { schema: SCHEMA, body }).unwrap_or_default() + "\n"
}

fn frame_object(frame: &Frame) -> FrameObject {
    FrameObject { function: frame.function.clone(), file: frame.file.clone(), line: frame.line }
}

fn accessed(accessed: Accessed) -> String {
    accessed.to_string()
}

fn value(value: Value) -> JsonValue {
    value.integer().map_or_else(|| JsonValue::Long(format!("{value:x}")), JsonValue::Integer)
}

fn named(registers: &Registers) -> BTreeMap<&'static str, String> {
    registers.named().into_iter().map(|(name, value)| (name, format!("{value:#x}"))).collect()
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
