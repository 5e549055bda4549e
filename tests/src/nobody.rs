//! Running programs as a user without privileges.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::process::Process;

/// The user and group id of `nobody` on Linux distributions.
const NOBODY: u32 = 65534;

/// The right to run programs as the user and group 65534.
///
/// The programs are copied into a directory that everybody may read, since the directory of the
/// build may be closed to others. Dropping it removes the directory.
#[derive(Debug)]
pub struct Nobody {
    directory: TempDir,
}

impl Nobody {
    /// `None` where this process is not root and so can't become anybody else: a test then skips
    /// with [`Need::Root`](crate::Need::Root).
    pub fn new() -> Option<Self> {
        if !Process::own().is_root() {
            return None;
        }
        let directory = TempDir::new().expect("a temporary directory can be made");
        open_to_all(directory.path());
        Some(Self { directory })
    }

    /// A command that runs a copy of `program` as nobody.
    pub fn command(&self, program: &Path) -> Command {
        let name = program.file_name().expect("a program has a name");
        let copy = self.directory.path().join(name);
        if !copy.exists() {
            // By another process: a descriptor of ours that may write the copy would be inherited by
            // what other tests start meanwhile, and the copy could not be run (ETXTBSY).
            let copied = Command::new("cp").arg("--").args([program, &copy]).status();
            let copied = copied.expect("cp starts");
            assert!(copied.success(), "copying {}: {copied}", program.display());
            open_to_all(&copy);
        }
        let mut command = Command::new(copy);
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        command
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .unwrap_or_else(|error| panic!("opening {}: {error}", path.display()));
}
