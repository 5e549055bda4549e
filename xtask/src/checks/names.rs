//! No file or directory is a drawer: a name that says nothing is a boundary that was not found.

use std::path::Path;

use super::Finding;

const DRAWERS: &[&str] = &["util", "utils", "common", "shared", "misc", "helper", "helpers"];

pub(super) fn check(path: &str, _: &str) -> Vec<Finding> {
    Path::new(path)
        .iter()
        .filter_map(|part| Path::new(part).file_stem()?.to_str())
        .filter(|stem| DRAWERS.contains(stem))
        .map(|stem| Finding::new(path, 0, format!("{stem} says nothing; name what is in it")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn drawers_are_found_by_name() {
        assert_eq!(found(check, "crates/a/src/util.rs", ""), [0]);
        assert_eq!(found(check, "crates/common/src/lib.rs", ""), [0]);
        assert_eq!(found(check, "crates/a/src/utility_poles.rs", ""), [0; 0]);
    }
}
