//! `hairspring doctor`: every layer, what works, what does not, and what to do about it.

use crate::args::Doctor;
use crate::exit::Exit;
use crate::output::Output;
use crate::problem::Problem;
use crate::text::style;
use hairspring::perf::{Capability, Host, Probe, SelfTest};
use serde::Serialize;
use std::fmt::Write;

/// How a layer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    /// Nothing to be wished for.
    Ok,
    /// It works with less than it could.
    Limited,
    /// It does not work.
    Broken,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) layer: &'static str,
    pub(crate) health: Health,
    pub(crate) fact: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

/// A part of hairspring and what it stands on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) part: &'static str,
    pub(crate) works: bool,
    pub(crate) findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    kind: &'static str,
    sections: &'a [Section],
}

pub(crate) fn run(args: &Doctor) -> Result<Exit, Problem> {
    let sections = [machine(&Host::read()), watch(&Probe::run())];
    let works = sections.iter().all(|section| section.works);
    let text = if args.json {
        let report = Report { schema: 1, kind: "doctor", sections: &sections };
        serde_json::to_string(&report).unwrap_or_default() + "\n"
    } else {
        sections.iter().map(render).collect()
    };
    Output::open(None)?.write(&text)?;
    Ok(if works { Exit::Works } else { Exit::DoesNotWork })
}

/// What the machine is; it is as it is.
fn machine(host: &Host) -> Section {
    let kind = if host.virtual_machine { "a virtual machine" } else { "no virtual machine" };
    let counters = if host.pmu {
        "the kernel drives its performance counters"
    } else {
        "no hardware performance counters; watchpoints don't need any"
    };
    let cpus = host.cpus.len();
    Section {
        part: "machine",
        works: true,
        findings: vec![
            ok("kernel", format!("Linux {}", host.release)),
            ok("processor", format!("{cpus} CPUs online, {kind}; {counters}")),
        ],
    }
}

/// What `hairspring watch` stands on.
fn watch(probe: &Probe) -> Section {
    let findings = vec![
        permission(&probe.host),
        slots(probe),
        self_test(probe),
        kernel_writes(probe),
        threads(probe),
        accounts(probe),
        rings(&probe.host),
        descriptors(&probe.host),
    ];
    let works = findings.iter().all(|finding| finding.health != Health::Broken);
    Section { part: "watch", works, findings }
}

fn ok(layer: &'static str, fact: impl Into<String>) -> Finding {
    Finding { layer, health: Health::Ok, fact: fact.into(), remedy: None }
}

fn limited(layer: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { layer, health: Health::Limited, fact: fact.into(), remedy: Some(remedy.into()) }
}

fn broken(layer: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { layer, health: Health::Broken, fact: fact.into(), remedy: Some(remedy.into()) }
}

fn permission(host: &Host) -> Finding {
    let mut notes = vec![format!("kernel.perf_event_paranoid is {}", host.paranoid)];
    for (capability, name) in
        [(Capability::Perfmon, "CAP_PERFMON"), (Capability::SysPtrace, "CAP_SYS_PTRACE")]
    {
        if host.can(capability) {
            notes.push(format!("{name} is there"));
        }
    }
    if host.seccomp {
        notes.push("a seccomp filter is on this process".into());
    }
    if host.lockdown {
        notes.push("the kernel is locked down".into());
    }
    let fact = notes.join(", ");
    if host.can(Capability::Perfmon) && host.can(Capability::SysPtrace) {
        ok("permission", fact)
    } else {
        let remedy = "only processes of this user can be watched: for others run as root, or \
                      `setcap cap_perfmon,cap_sys_ptrace=ep` on the binary";
        limited("permission", fact, remedy)
    }
}

fn slots(probe: &Probe) -> Finding {
    const ALL: usize = 4;
    match &probe.slots {
        Ok(ALL) => ok("debug registers", "4 of 4 can be used in a thread"),
        Ok(0) => broken(
            "debug registers",
            "none is free in a thread",
            "somebody holds them all CPU-wide: end other perf sessions",
        ),
        Ok(free) => limited(
            "debug registers",
            format!("{free} of 4 can be used in a thread"),
            "somebody holds the others CPU-wide: end other perf sessions",
        ),
        Err(e) => broken("debug registers", e.to_string(), e.refusal(&probe.host).remedy),
    }
}

fn self_test(probe: &Probe) -> Finding {
    let mut told = Vec::new();
    let mut worst = Health::Ok;
    for (cpu, test) in &probe.self_tests {
        match test {
            SelfTest::Fires => {}
            SelfTest::Silent { expected, counted } => {
                worst = Health::Broken;
                told.push(format!("CPU {cpu}: {expected} writes, {counted} counted"));
            }
            SelfTest::Untested(e) => {
                worst = if worst == Health::Broken { worst } else { Health::Limited };
                told.push(format!("CPU {cpu}: not tried ({e})"));
            }
        }
    }
    match worst {
        Health::Ok => ok(
            "self-test",
            format!("a breakpoint fires on each of the {} CPUs", probe.self_tests.len()),
        ),
        Health::Limited if probe.fires() => {
            limited("self-test", told.join("; "), "the coverage of a session will name these CPUs")
        }
        _ => broken(
            "self-test",
            told.join("; "),
            "this (virtual) machine accepts breakpoints that never fire: watch elsewhere",
        ),
    }
}

fn kernel_writes(probe: &Probe) -> Finding {
    if probe.kernel {
        let what = if probe.interrupt_registers { "" } else { ", byte by byte" };
        ok("system calls", format!("writes by the kernel for the target are seen{what}"))
    } else {
        limited(
            "system calls",
            "writes by the kernel for the target (such as read(2) into the field) are invisible",
            "run as root, with CAP_PERFMON, or with kernel.perf_event_paranoid below 2",
        )
    }
}

fn threads(probe: &Probe) -> Finding {
    if probe.inherit_thread {
        ok("new threads", "inherit their watches from the kernel, from their first instruction")
    } else {
        broken(
            "new threads",
            "this kernel can't let threads inherit a watch",
            "use Linux 5.13 or newer",
        )
    }
}

fn accounts(probe: &Probe) -> Finding {
    if probe.counts_lost {
        ok("accounts", "the kernel counts what it loses: counted = delivered + lost is checked")
    } else {
        limited(
            "accounts",
            "the kernel does not count what it loses: what is missing is taken for lost",
            "use Linux 6.0 or newer",
        )
    }
}

fn rings(host: &Host) -> Finding {
    const WISHED: u64 = 8 << 20;
    match host.ring_limit() {
        None => ok("rings", "no limit of locked memory"),
        Some(limit) if limit > WISHED => ok("rings", format!("up to {} KiB a CPU", limit / 1024)),
        Some(limit) => limited(
            "rings",
            format!(
                "up to {} KiB of hits may wait on each CPU; bursts beyond that are lost, and counted",
                limit / 1024
            ),
            "raise `ulimit -l` or kernel.perf_event_mlock_kb",
        ),
    }
}

fn descriptors(host: &Host) -> Finding {
    // A thread with one slot needs one for it and one for births and exits, on each CPU.
    let threads = host.descriptors_hard / (2 * host.cpus.len().max(1) as u64);
    let fact = format!(
        "enough for about {threads} threads with one slot each (hard limit {})",
        host.descriptors_hard
    );
    if threads >= 1000 {
        ok("descriptors", fact)
    } else {
        limited("descriptors", fact, "raise `ulimit -Hn`")
    }
}

fn render(section: &Section) -> String {
    let (head, dim) = (style::HEAD, style::DIM);
    let verdict = if section.part == "machine" {
        String::new()
    } else if section.works {
        format!("  {0}works here{0:#}", style::GOOD)
    } else {
        format!("  {0}does not work here{0:#}", style::BAD)
    };
    let mut text = format!("{head}{}{head:#}{verdict}\n", section.part);
    for finding in &section.findings {
        let (mark, style) = match finding.health {
            Health::Ok => ("ok", style::GOOD),
            Health::Limited => ("limited", style::WARN),
            Health::Broken => ("broken", style::BAD),
        };
        // Writing to a string can't fail.
        let _ =
            writeln!(text, "  {style}{mark:7}{style:#}  {:15}  {}", finding.layer, finding.fact);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "  {:7}  {:15}  {dim}what to do: {remedy}{dim:#}", "", "");
        }
    }
    text
}
