//! The files that git tracks, or would if they were added.

use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

/// All text files; files that are not UTF-8 are left out.
pub(crate) fn files(root: &Path) -> Result<Vec<File>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let paths = String::from_utf8_lossy(&output.stdout);
    Ok(paths
        .split_terminator('\0')
        .filter_map(|path| {
            // A file that was deleted but not committed, or is not text, has nothing to check.
            let text = std::fs::read_to_string(root.join(path)).ok()?;
            Some(File { path: path.to_owned(), text })
        })
        .collect())
}
