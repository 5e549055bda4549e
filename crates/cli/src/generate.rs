//! What is generated from the command line and the output types: completions, man pages, schema.

use crate::args::{Cli, Completions, Man};
use crate::exit::Exit;
use crate::json;
use crate::problem::Problem;
use clap::CommandFactory;
use std::fs;
use std::io::Write;

pub(crate) fn completions(args: &Completions) -> Result<Exit, Problem> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hairspring", &mut text);
    write(&text)
}

pub(crate) fn man(args: &Man) -> Result<Exit, Problem> {
    let Some(folder) = &args.out else {
        let mut text = Vec::new();
        let page = clap_mangen::Man::new(Cli::command());
        page.render(&mut text).map_err(Problem::io("can't render the man page"))?;
        return write(&text);
    };
    let failed = || Problem::io(format!("can't write man pages to {}", folder.display()));
    fs::create_dir_all(folder).map_err(failed())?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed())?;
    Ok(Exit::Done)
}

pub(crate) fn schema() -> Result<Exit, Problem> {
    write(json::schema().as_bytes())
}

fn write(text: &[u8]) -> Result<Exit, Problem> {
    std::io::stdout().write_all(text).map_err(Problem::io("can't write to stdout"))?;
    Ok(Exit::Done)
}
