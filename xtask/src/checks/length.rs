//! A file of code has at most 600 lines, its tests not counted.

use super::{Finding, is_rust};

const LINES: usize = 600;

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    // Files that are nothing but tests are as long as their subject needs.
    if !is_rust(path) || path.contains("/tests/") || path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let lines = lines_without_tests(text);
    if lines <= LINES {
        return Vec::new();
    }
    vec![Finding::new(path, 0, format!("{lines} lines without tests; at most {LINES}"))]
}

/// The module of tests is the last thing in a file.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests"))
        .unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{LINES, check};

    #[test]
    fn tests_do_not_count() {
        let code = "code\n".repeat(LINES);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert_eq!(found(check, "crates/a/src/b.rs", &code), [0; 0]);
        assert_eq!(found(check, "crates/a/src/b.rs", &format!("{code}{tests}")), [0; 0]);
        assert_eq!(found(check, "crates/a/src/b.rs", &format!("{code}code\n{tests}")), [0]);
        assert_eq!(found(check, "tests/src/b.rs", &format!("{code}code\n")), [0]);
        assert_eq!(found(check, "tests/tests/b.rs", &format!("{code}code\n")), [0; 0]);
        assert_eq!(found(check, "notes.md", &format!("{code}code\n")), [0; 0]);
    }
}
