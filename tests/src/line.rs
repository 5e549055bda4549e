//! A line of a guest: a word and `key=value` pairs.

use std::collections::BTreeMap;

/// A line that a guest printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    word: String,
    values: BTreeMap<String, String>,
}

impl Line {
    /// Takes a line apart; words without `=` after the first are an error.
    pub fn parse(text: &str) -> Self {
        let mut words = text.split_ascii_whitespace();
        let word = words.next().unwrap_or_default().to_owned();
        let values = words
            .map(|pair| match pair.split_once('=') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                None => panic!("no key=value: {pair:?} in {text:?}"),
            })
            .collect();
        Self { word, values }
    }

    /// The first word: `ready`, `done`, and others that the guest documents.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Whether there is a value called `key`.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The value of `key`, as it stands. Panics where there is none.
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).unwrap_or_else(|| panic!("no {key} in {self:?}"))
    }

    /// The value of `key`, decimal or, with `0x`, hexadecimal. Panics where there is no number.
    pub fn number(&self, key: &str) -> u64 {
        let text = self.text(key);
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        }
        .unwrap_or_else(|error| panic!("{key}={text}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_line_is_a_word_and_values() {
        let line = Line::parse("done writes=400 final=0x190 why=null");
        assert_eq!(line.word(), "done");
        assert_eq!(line.number("writes"), 400);
        assert_eq!(line.number("final"), 400);
        assert_eq!(line.text("why"), "null");
        assert!(!line.has("reads"));
    }

    #[test]
    #[should_panic(expected = "no reads in")]
    fn a_missing_value_is_named() {
        Line::parse("done writes=1").number("reads");
    }

    #[test]
    #[should_panic(expected = "no key=value")]
    fn a_stray_word_is_refused() {
        Line::parse("done well");
    }
}
