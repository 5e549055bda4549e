//! Nothing is left to be done: no reminders, no placeholders, no tests that are switched off.

use super::{Finding, code, is_rust};

// Put together here, so that this file does not find itself.
const REMINDERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
const PLACEHOLDERS: &[&str] = &["todo!", "unimplemented!", "#[ignore"];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = find(path, text, REMINDERS);
    if is_rust(path) {
        let placeholders = find(path, &code::only(text), PLACEHOLDERS);
        findings
            .extend(placeholders.into_iter().filter(|finding| !is_run_by_another(finding, text)));
    }
    findings
}

/// Whether it is the half of a test that runs in a process of its own, which another test of the
/// same file starts: `#[ignore = "run by NAME"]`.
fn is_run_by_another(finding: &Finding, text: &str) -> bool {
    let line = text.lines().nth(finding.line - 1).unwrap_or_default().trim();
    let name = line.strip_prefix("#[ignore = \"run by ").and_then(|rest| rest.strip_suffix("\"]"));
    name.is_some_and(|name| text.contains(&format!("fn {name}(")))
}

fn find(path: &str, text: &str, markers: &[&str]) -> Vec<Finding> {
    text.lines()
        .enumerate()
        .flat_map(|(index, line)| {
            markers.iter().filter(move |marker| line.contains(**marker)).map(move |marker| {
                Finding::new(path, index + 1, format!("{marker}: finish it or leave it out"))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{REMINDERS, check};

    #[test]
    fn markers_are_found_where_they_count() {
        for reminder in REMINDERS {
            assert_eq!(found(check, "a.rs", &format!("\n// {reminder} later\n")), [2]);
            assert_eq!(found(check, "a.md", &format!("{reminder} later")), [1]);
        }
        assert_eq!(found(check, "a.rs", "fn a() { todo!() }"), [1]);
        assert_eq!(found(check, "a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}"), [2]);
        let half = "#[ignore = \"run by a\"]\nfn child() {}";
        assert_eq!(found(check, "a.rs", half), [1], "nobody runs it");
        assert_eq!(found(check, "a.rs", &format!("{half}\nfn a() {{}}")), [0; 0]);
        assert_eq!(found(check, "a.rs", "const A: &str = \"todo!\"; // todo!"), [0; 0]);
        assert_eq!(found(check, "a.md", "`#[ignore]` is not used"), [0; 0]);
        assert_eq!(found(check, "a.rs", "lint = todo_list"), [0; 0]);
    }
}
