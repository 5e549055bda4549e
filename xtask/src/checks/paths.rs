//! The repository stands alone: nothing in it names a place on somebody's machine.

use super::Finding;

// Put together here, so that this file does not find itself.
const PLACES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp", "/hs"),
    concat!("../sha", "red"),
];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    text.lines()
        .enumerate()
        .flat_map(|(index, line)| {
            PLACES.iter().filter(move |place| names(line, place)).map(move |place| {
                Finding::new(path, index + 1, format!("{place} is a place on one machine only"))
            })
        })
        .collect()
}

/// Whether `place` stands in `line` as the start of a path, not in the middle of a longer one.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{PLACES, check};

    #[test]
    fn places_are_found_in_any_file() {
        for place in PLACES {
            assert_eq!(found(check, "a.md", &format!("see\n{place}x")), [2]);
            assert_eq!(found(check, "a.rs", &format!("see (`{place}x`)")), [1]);
            assert_eq!(found(check, "a.md", &format!("see target{place}x")), [0; 0]);
        }
    }
}
