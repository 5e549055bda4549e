//! Names that resemble one that does not exist.

use crate::name::{demangle, last_identifier};
use std::borrow::Cow;

/// How many are suggested.
const MOST: usize = 5;
/// Demangling and comparing more takes longer than a user wants to wait for a suggestion.
const MAX_COMPARED: usize = 400_000;
/// A longer name is not a slip of the finger.
const MAX_LEN: usize = 256;

/// The existing names nearest to `wanted`, best first: the same last identifier in another scope,
/// then few differing letters.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = Cow<'a, str>>) -> Vec<String> {
    let key = last_identifier(wanted).unwrap_or(wanted);
    let most_differences = (key.chars().count() / 3).max(1);
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    for raw in names.take(MAX_COMPARED) {
        let name = demangle(&raw);
        let other = last_identifier(&name).unwrap_or(&name);
        if other.len() > MAX_LEN || key.len().abs_diff(other.len()) > most_differences * 4 {
            continue;
        }
        let differences = strsim::osa_distance(key, other);
        if differences > most_differences {
            continue;
        }
        let rest = name.len().abs_diff(wanted.len());
        if found.iter().any(|(.., known)| *known == name) {
            continue;
        }
        found.push((differences, rest, name.into_owned()));
        if found.len() > 4 * MOST {
            found.sort();
            found.truncate(MOST);
        }
    }
    found.sort();
    found.truncate(MOST);
    found.into_iter().map(|(.., name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, names: &[&str], expected: &[&str]) {
        assert_eq!(nearest(wanted, names.iter().map(|name| Cow::Borrowed(*name))), expected);
    }

    #[test]
    fn slips_and_scopes() {
        check("conter", &["counter", "printf", "center", "counter"], &["center", "counter"]);
        check("counter", &["_ZN2ns7counterE", "other"], &["ns::counter"]);
        check("x", &["a_very_long_name"], &[]);
        let many: Vec<_> = (0..100).map(|i| format!("field{i:02}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        check("field7", &many, &["field07", "field17", "field27", "field37", "field47"]);
    }
}
