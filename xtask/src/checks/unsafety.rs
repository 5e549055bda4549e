//! `unsafe` is in `sys`, and in the guests, whose purpose it is.

use super::{Finding, code, is_rust};

const ALLOWED: &[&str] = &["crates/sys/", "guests/"];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !is_rust(path) || ALLOWED.iter().any(|place| path.starts_with(place)) {
        return Vec::new();
    }
    code::only(text)
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
        })
        .map(|(index, _)| Finding::new(path, index + 1, "unsafe belongs into crates/sys"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn only_code_is_searched() {
        let block = "fn a() {\n    unsafe { b() }\n}";
        assert_eq!(found(check, "crates/perf/src/a.rs", block), [2]);
        assert_eq!(found(check, "crates/sys/src/a.rs", block), [0; 0]);
        assert_eq!(found(check, "guests/src/bin/a.rs", block), [0; 0]);
        assert_eq!(found(check, "crates/perf/src/a.rs", "#[unsafe(no_mangle)]"), [1]);
        assert_eq!(found(check, "crates/perf/src/a.rs", "// unsafe\n\"unsafe\""), [0; 0]);
        assert_eq!(found(check, "crates/perf/src/a.rs", "#![forbid(unsafe_code)]"), [0; 0]);
        assert_eq!(found(check, "README.md", block), [0; 0]);
    }
}
