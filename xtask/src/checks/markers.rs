//! Nothing is left to be done: no reminders, no placeholders, no tests that are switched off.

use super::{Finding, code, is_rust};

// Put together here, so that this file does not find itself.
const REMINDERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
const PLACEHOLDERS: &[&str] = &["todo!", "unimplemented!", "#[ignore"];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = find(path, text, REMINDERS);
    if is_rust(path) {
        findings.extend(find(path, &code::only(text), PLACEHOLDERS));
    }
    findings
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
        assert_eq!(found(check, "a.rs", "const A: &str = \"todo!\"; // todo!"), [0; 0]);
        assert_eq!(found(check, "a.md", "`#[ignore]` is not used"), [0; 0]);
        assert_eq!(found(check, "a.rs", "lint = todo_list"), [0; 0]);
    }
}
