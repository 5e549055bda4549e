//! Golden tests: what the command shows, in files that a person can read. After a change of the
//! output, `HAIRSPRING_BLESS=1 cargo test -p hairspring-cli` writes them anew; read the difference.

use crate::args::Cli;
use crate::lines::Lines;
use crate::{json, live, sample, summary, text, writers};
use clap::CommandFactory;
use hairspring::watch::{Standing, Summary};
use snapbox::assert::Action;
use std::path::Path;
use std::time::Duration;

/// Compares with a file, by its path from the root of the workspace.
fn check(path: &str, actual: &str) {
    let bless = std::env::var_os("HAIRSPRING_BLESS").is_some();
    let action = if bless { Action::Overwrite } else { Action::Verify };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let actual = anstream::adapter::strip_str(actual).to_string();
    // Backslashes are no folders' separators here.
    let assert = snapbox::Assert::new().action(action).normalize_paths(false);
    assert.eq(actual, snapbox::Data::read_from(&path, None));
}

fn check_shown(name: &str, actual: &str) {
    check(&format!("crates/cli/golden/{name}.txt"), actual);
}

#[test]
fn help() {
    let mut command = Cli::command().term_width(100);
    command.build();
    check_shown("help", &command.render_long_help().to_string());
    for verb in command.get_subcommands_mut().filter(|verb| !verb.is_hide_set()) {
        let name = verb.get_name().to_owned();
        if name != "help" {
            check_shown(&format!("help-{name}"), &verb.render_long_help().to_string());
        }
    }
}

#[test]
fn the_schema() {
    check("schema/watch.schema.json", &json::schema());
}

#[test]
fn sites() {
    let line = |(name, site): &(&str, _)| format!("{name:28} {}\n", text::site(site));
    check_shown("sites", &sample::sites().iter().map(line).collect::<String>());
}

#[test]
fn lines() {
    let ready = sample::ready();
    let mut lines = Lines::new(ready.since_ns, false);
    // Twice: the columns have grown by then.
    let text = lines.render(&sample::events()) + &lines.render(&sample::events()[..1]);
    check_shown("lines", &text);
}

#[test]
fn closing() {
    check_shown("complete", &summary::closing(&sample::summary(), &sample::ready()));
    check_shown("incomplete", &summary::closing(&sample::incomplete(), &sample::ready()));
}

/// A session with every kind of line.
fn json_session() -> String {
    let ready = sample::ready();
    let mut text = json::session(&ready);
    text.extend(sample::events().iter().filter_map(|event| json::event(event, false)));
    text.push_str(&json::summary(&sample::incomplete(), &ready));
    text + &json::error("no process 4711 to watch", Some("`ps` lists the processes"))
}

#[test]
fn json_lines() {
    check_shown("json", &json_session());
}

#[test]
fn json_lines_follow_the_schema() {
    let schema = serde_json::from_str(&json::schema()).expect("the schema is JSON");
    let schema = jsonschema::validator_for(&schema).expect("and a schema");
    for line in json_session().lines() {
        let mut object = serde_json::from_str(line).expect("a line is JSON");
        assert!(schema.is_valid(&object), "{line}");
        object["kind"] = "another".into();
        assert!(!schema.is_valid(&object), "{object}");
    }
}

fn standing(summary: &Summary) -> Vec<Standing> {
    let names = sample::ready().watches.into_iter().map(|watch| watch.name);
    let figures = names.zip(&summary.watches);
    figures
        .map(|(name, watch)| Standing { name, hits: watch.hits, writers: watch.writers.clone() })
        .collect()
}

#[test]
fn a_refreshing_table() {
    let (standing, ready_ns) = (standing(&sample::summary()), sample::ready().since_ns);
    for (width, height) in [(120, 40), (80, 24), (40, 6)] {
        let age = Duration::from_millis(2_500);
        let text = live::screen(&standing, ready_ns, age, Some(24_394), (width, height));
        check_shown(&format!("table-{width}x{height}"), &text);
    }
}

/// What is to be taken back line by line must not wrap, and must fit.
#[test]
fn a_refreshing_table_fits_its_terminal() {
    let (standing, ready_ns) = (standing(&sample::summary()), sample::ready().since_ns);
    for width in 1..200 {
        for height in [1, 2, 3, 5, 24] {
            let text = live::screen(&standing, ready_ns, Duration::ZERO, Some(0), (width, height));
            let text = anstream::adapter::strip_str(&text).to_string();
            assert!(text.lines().count() < height.max(2), "{width}x{height}: {text}");
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest < Some(width.max(2)), "{width}x{height}: {text}");
        }
    }
    let whole = writers::table(0, &standing[0], ready_ns, None);
    assert!(whole.contains("first"), "no column gives way where there is no width: {whole}");
}
