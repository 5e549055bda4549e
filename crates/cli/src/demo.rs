//! `hairspring demo`: the bundled program, watched.

use crate::exit::Exit;
use crate::live::Live;
use crate::output::Output;
use crate::problem::Problem;
use crate::program;
use crate::summary;
use crate::text::{self, style};
use hairspring::perf::Probe;
use hairspring::watch::{Armed, Event, Hit, Request, State, Target};
use std::process::Command;
use std::time::Duration;

pub(crate) fn run() -> Result<Exit, Problem> {
    let here = std::env::current_exe().map_err(Problem::io("can't find this program"))?;
    let (head, dim) = (style::HEAD, style::DIM);
    let what = format!("hairspring::program::LEDGER+{}:8", 8 * program::VAULT);
    let mut output = Output::open(None)?;
    output.write(&format!(
        "A small bank: two tellers move money between customers, the keeper puts three fees of 2 into\n\
         the vault, and every evening the vault's balance is wrong. Who else writes to it?\n\n\
         {dim}${dim:#} {head}hairspring watch '{what}' -- bank{head:#}\n"
    ))?;
    let request = Request::new(vec![what.parse().map_err(|e| Problem::Usage(format!("{e}")))?]);
    let target = Target::launch(Command::new(here).arg("demo-program"))?;
    let Armed { mut session, ready, child } = target.arm(&request, Probe::run())?;
    let mut live = Live::new(ready.since_ns, false, false);
    let (mut events, mut hits) = (Vec::new(), Vec::new());
    let reason = loop {
        let state = session.poll(Duration::from_millis(20), &mut events)?;
        live.show(&events, &session, &mut output)?;
        keep_hits(&mut events, &mut hits);
        if let State::Over(reason) = state {
            break reason;
        }
    };
    let summary = session.finish(reason, &mut events)?;
    live.end(&events, &mut output)?;
    keep_hits(&mut events, &mut hits);
    output.write(&summary::closing(&summary, &ready))?;
    output.write(&conclusion(&hits))?;
    if let Some(mut child) = child {
        child.wait().map_err(Problem::io("can't wait for the program"))?;
    }
    Ok(Exit::of(&summary))
}

fn keep_hits(events: &mut Vec<Event>, hits: &mut Vec<Hit>) {
    hits.extend(events.drain(..).filter_map(|event| match event {
        Event::Hit(hit) => Some(hit),
        _ => None,
    }));
}

/// What a person would conclude, from the hits and nothing else.
fn conclusion(hits: &[Hit]) -> String {
    let stranger = hits.iter().find(|hit| &*hit.thread != "keeper");
    let Some(hit) = stranger else {
        return "\nOnly the keeper has written to the vault: the bug did not show this time.\n"
            .into();
    };
    let (head, place) = (style::HEAD, style::PLACE);
    format!(
        "\nThe keeper is not alone: thread {head}{}{head:#} writes to the vault in {place}{}{place:#} ({}).\n\
         Its loop runs over one customer too many, and the vault lies behind the last one.\n",
        hit.thread,
        text::site(&hit.site),
        text::change(hit),
    )
}
