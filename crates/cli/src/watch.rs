//! `hairspring watch`: arm, show, end.

use crate::args::Watch;
use crate::exit::Exit;
use crate::json;
use crate::live::Live;
use crate::output::Output;
use crate::problem::Problem;
use crate::summary;
use crate::text::{self, style};
use hairspring::model::Pid;
use hairspring::perf::Probe;
use hairspring::watch::{
    Armed, Event, Limits, Ready, Report, Request, Session, State, StopReason, Summary, Target,
};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long to wait for something to happen before looking around.
const POLL: Duration = Duration::from_millis(50);

/// Where the facts go.
enum View {
    /// Lines or a table, and the closing statement.
    Person(Live),
    /// One object a line.
    Json,
}

pub(crate) fn run(args: &Watch) -> Result<Exit, Problem> {
    let interrupted = interruptions()?;
    raise_descriptor_limit();
    let mut output = Output::open(args.output.as_deref())?;
    let outcome = watch(args, &mut output, &interrupted);
    if let (Err(problem), true) = (&outcome, args.json) {
        let (text, remedy) = problem.told();
        // The problem itself is reported whether or not this can still be written.
        let _ = output.write(&json::error(&text, remedy.as_deref()));
    }
    outcome
}

fn watch(args: &Watch, output: &mut Output, interrupted: &AtomicBool) -> Result<Exit, Problem> {
    let target = target(args)?;
    let Armed { mut session, ready, child } = target.arm(&request(args), Probe::run())?;
    tell_ready(&ready);
    let mut view = if args.json {
        output.write(&json::session(&ready))?;
        View::Json
    } else {
        View::Person(Live::new(ready.since_ns, args.regs, output.can_erase()))
    };
    let mut events = Vec::new();
    let reason = loop {
        let state = session.poll(POLL, &mut events)?;
        view.show(&events, &session, args, output)?;
        events.clear();
        match state {
            State::Over(reason) => break reason,
            State::Running if interrupted.load(Ordering::Relaxed) => break StopReason::Cancelled,
            State::Running => {}
        }
    };
    let summary = session.finish(reason, &mut events)?;
    view.close(&events, &summary, &ready, args, output)?;
    if let Some(child) = child {
        wait(child, reason, interrupted)?;
    }
    Ok(Exit::of(&summary))
}

impl View {
    fn show(
        &mut self,
        events: &[Event],
        session: &Session,
        args: &Watch,
        output: &mut Output,
    ) -> Result<(), Problem> {
        match self {
            Self::Person(live) => live.show(events, session, output),
            Self::Json => write_json(events, args, output),
        }
    }

    fn close(
        &mut self,
        events: &[Event],
        summary: &Summary,
        ready: &Ready,
        args: &Watch,
        output: &mut Output,
    ) -> Result<(), Problem> {
        match self {
            Self::Person(live) => {
                live.end(events, output)?;
                output.write(&summary::closing(summary, ready))
            }
            Self::Json => {
                write_json(events, args, output)?;
                output.write(&json::summary(summary, ready))
            }
        }
    }
}

fn write_json(events: &[Event], args: &Watch, output: &mut Output) -> Result<(), Problem> {
    let text: String = events.iter().filter_map(|event| json::event(event, args.regs)).collect();
    if text.is_empty() { Ok(()) } else { output.write(&text) }
}

fn target(args: &Watch) -> Result<Target, Problem> {
    match (args.pid, args.command.split_first()) {
        (Some(pid), None) => Ok(Target::attach(Pid(pid))?),
        (None, Some((program, arguments))) => {
            Ok(Target::launch(Command::new(program).args(arguments))?)
        }
        _ => Err(Problem::Usage("give either --pid PID or a command behind `--`".into())),
    }
}

fn request(args: &Watch) -> Request {
    Request {
        bounds: args.bound.clone(),
        guards: args.guard.clone(),
        children: args.children,
        limits: Limits { duration: args.duration, hits: args.max_hits },
        report: if args.summary { Report::Nothing } else { Report::Every },
        ring_bytes: args.ring as usize * 1024,
        blind_limit: args.blind_limit,
        ..Request::new(args.what.clone())
    }
}

/// The line on stderr that says that from now on nothing is missed.
fn tell_ready(ready: &Ready) {
    let (good, dim, warn) = (style::GOOD, style::DIM, style::WARN);
    let watches: Vec<String> = ready
        .watches
        .iter()
        .map(|watch| {
            let place = match (watch.span, watch.waits) {
                (Some(span), _) => format!("at {span}"),
                (None, true) => "waits for its library".into(),
                (None, false) => "leads nowhere yet".into(),
            };
            format!("{} {place}", watch.name)
        })
        .collect();
    anstream::eprintln!(
        "{good}ready{good:#}  process {}, {}, {} of 4 debug registers: {}",
        ready.pid,
        text::count(ready.threads as u64, "thread"),
        ready.slots,
        watches.join(", "),
    );
    if !ready.kernel_visible {
        anstream::eprintln!(
            "  {warn}note{warn:#}  writes by system calls are invisible here: that needs root, CAP_PERFMON, \
             or kernel.perf_event_paranoid below 2"
        );
    }
    if ready.ring_limited {
        anstream::eprintln!(
            "  {dim}note  the memory lock limit made the rings {} KiB a CPU (ulimit -l, kernel.perf_event_mlock_kb){dim:#}",
            ready.ring_bytes / 1024
        );
    }
}

/// Waits for a launched command, which is never killed by us, unless it is interrupted.
fn wait(mut child: Child, reason: StopReason, interrupted: &AtomicBool) -> Result<(), Problem> {
    let failed = || Problem::io("can't wait for the command");
    // An interruption that ended the session has been obeyed.
    let was = interrupted.load(Ordering::Relaxed);
    let mut told = reason == StopReason::Exited;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed())? {
            break status;
        }
        if !told {
            told = true;
            anstream::eprintln!(
                "hairspring: the session is over; waiting for the command (process {}), Ctrl-C ends the waiting",
                child.id()
            );
        }
        if !was && interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        std::thread::sleep(POLL);
    };
    if !status.success() {
        anstream::eprintln!("hairspring: the command ended with {status}");
    }
    Ok(())
}

/// The first interruption ends the session properly, the second one ends the process at once: the
/// kernel takes back what is armed.
fn interruptions() -> Result<Arc<AtomicBool>, Problem> {
    const BY_SIGNAL: i32 = 128;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let failed = || Problem::io("can't handle signals");
        let flag = || Arc::clone(&interrupted);
        signal_hook::flag::register_conditional_shutdown(signal, BY_SIGNAL + signal, flag())
            .map_err(failed())?;
        signal_hook::flag::register(signal, flag()).map_err(failed())?;
    }
    Ok(interrupted)
}

/// A descriptor is needed for each thread, slot and CPU.
fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Where it can't be raised, arming says that there are not enough.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
