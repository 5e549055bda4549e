//! `ARCHITECTURE.md` is short enough to be read.

use super::Finding;

const WORDS: usize = 1500;

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let words = text.split_whitespace().count();
    if path != "ARCHITECTURE.md" || words < WORDS {
        return Vec::new();
    }
    vec![Finding::new(path, 0, format!("{words} words; it must stay below {WORDS}"))]
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{WORDS, check};

    #[test]
    fn only_a_long_architecture_is_found() {
        let long = "word ".repeat(WORDS);
        let short = "word ".repeat(WORDS - 1);
        assert_eq!(found(check, "ARCHITECTURE.md", &long), [0]);
        assert_eq!(found(check, "ARCHITECTURE.md", &short), [0; 0]);
        assert_eq!(found(check, "README.md", &long), [0; 0]);
    }
}
