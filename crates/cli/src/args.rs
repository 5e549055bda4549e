//! The command line.

use clap::{Args, Parser, Subcommand};
use hairspring::watch::place::{Bound, Guard, What};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Honest watchpoints for Linux programs: who touched this memory, on every thread of a live
/// process, without stopping it, and with a proof of what was covered.
#[derive(Debug, Parser)]
#[command(name = "hairspring", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  hairspring demo                          see it find a culprit
  hairspring doctor                        does it work on this machine?
  hairspring watch counter --pid 4711      who writes to the variable `counter`?";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    // A comment here would hide the long text of the verb's own options.
    Watch(Watch),
    Doctor(Doctor),
    /// Run a bundled program in which one thread corrupts another's data, and find the culprit
    Demo,
    Completions(Completions),
    Man(Man),
    /// Write the JSON Schema of `watch --json` to stdout
    #[command(hide = true)]
    Schema,
    /// The program of the demo
    #[command(hide = true, name = "demo-program")]
    Program,
}

#[derive(Args, Debug)]
#[command(
    about = "Report every access to some bytes of a process, with the writer and the value",
    long_about = WATCH_ABOUT,
    after_help = WATCH_EXAMPLES,
    override_usage = "hairspring watch [OPTIONS] WHAT... --pid PID\n       \
                      hairspring watch [OPTIONS] WHAT... -- COMMAND [ARG]..."
)]
pub(crate) struct Watch {
    /// What to watch: PLACE[:LEN][:w|rw]
    #[arg(required = true, value_name = "WHAT")]
    pub(crate) what: Vec<What>,

    /// The process to watch; it is never stopped
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// The command to start and watch from its first instruction
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// End after this time, such as 10s or 1m30s
    #[arg(short, long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// End after this many hits
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_hits: Option<u64>,

    /// Show the registers of each hit
    #[arg(long)]
    pub(crate) regs: bool,

    /// Write one JSON object a line: session, hit, rebind, thread, lost, loaded, summary, error
    #[arg(long)]
    pub(crate) json: bool,

    /// Show only the closing table, not each hit
    #[arg(long)]
    pub(crate) summary: bool,

    /// Watch processes forked later too; each has its own copy of the memory
    #[arg(long)]
    pub(crate) children: bool,

    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Follow chains only while the number at PLACE is at least N: a length, say
    #[arg(long, value_name = "PLACE>=N")]
    pub(crate) bound: Vec<Bound>,

    /// Follow chains only while the number at PLACE is VALUE: a magic number, say
    #[arg(long, value_name = "PLACE==VALUE")]
    pub(crate) guard: Vec<Guard>,

    /// How long a chain may be without a watch when its pointer changes, for the coverage to be
    /// complete all the same
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "0s")]
    pub(crate) blind_limit: Duration,

    /// KiB of hits that may wait on each CPU to be read
    #[arg(long, value_name = "KIB", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    pub(crate) ring: u32,
}

const WATCH_ABOUT: &str = "\
Report every access to some bytes of a process: which instruction, in which thread, when, and with \
which value. The process is never stopped and pays only for the hits.

PLACE is
  SYMBOL, MODULE!SYMBOL   a variable, C++ and Rust names too; with an optional +OFFSET
  0xADDRESS               a run-time address
  MODULE@0xADDRESS        an address in the file
  [PLACE]+OFFSET          behind the pointer at PLACE, followed as it changes; can be nested

LEN is 1 to 32 bytes (default: the symbol's size, or else 8). `w` (default) reports writes, `rw` \
reads too; x86 has no watch for reads alone. There are four debug registers of eight bytes.";

const WATCH_EXAMPLES: &str = "\
Exit status:
  0  at least one hit, and the coverage is complete
  1  proved quiet: no hit, and the coverage is complete
  2  wrong usage, or nothing could be armed
  3  coverage incomplete: what was seen is shown, and what may have been missed is named
  The first Ctrl-C ends the session properly, a second one at once (130).

Examples:
  hairspring watch counter --pid 4711                    every write to a variable
  hairspring watch 'ledger::TOTAL:8:rw' -p 4711 -d 10s   reads too, for ten seconds
  hairspring watch '[server+24]+8:4' -p 4711             a field behind a pointer
  hairspring watch libfoo.so!state -- ./test --fast      from the first instruction
  hairspring watch 0x55d0c0de4010:4 -p 4711 --json | jq 'select(.kind == \"hit\") | .function'";

const DOCTOR_EXAMPLES: &str = "\
Exit status:
  0  `hairspring watch` works here
  1  it does not, and the layer that is in the way is named";

/// Say what works on this machine, what does not, and what to do about it
#[derive(Args, Debug)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct Doctor {
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write completions for a shell to stdout
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  hairspring completions bash > ~/.local/share/bash-completion/completions/hairspring"
)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Write man pages
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  hairspring man --out ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder to write a page a verb to; without it, the main page goes to stdout
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_may_have_options_of_its_own() {
        let line = ["hairspring", "watch", "x:4", "--json", "--", "ls", "--color", "-p"];
        let Verb::Watch(watch) = Cli::try_parse_from(line).expect("parses").verb else {
            panic!("it is a watch");
        };
        assert_eq!(watch.command, ["ls", "--color", "-p"]);
        assert_eq!(watch.pid, None);
    }
}
