//! The files of `/proc/PID`, pinned to one process.

use crate::maps::Device;
use crate::{Error, Result};
use hairspring_model::{Addr, Pid, Span};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A process by an open handle on its directory: when the process is gone and its pid belongs to
/// another one, the handle's files answer ESRCH instead of describing a stranger.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    directory: File,
}

impl Process {
    pub(crate) fn open(pid: Pid) -> Result<Self> {
        let directory = File::open(format!("/proc/{pid}"))
            .map_err(|source| Error::process("opening the process's directory", pid, source))?;
        Ok(Self { pid, directory })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(name)
    }

    /// The text of `maps`; a process without memory (exited, not yet reaped) is gone.
    pub(crate) fn maps(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let read = File::open(self.path("maps")).and_then(|mut file| file.read_to_end(&mut text));
        match read {
            Ok(0) => Err(io::Error::from_raw_os_error(nix::libc::ESRCH)),
            Ok(_) => Ok(text),
            Err(error) => Err(error),
        }
        .map_err(|source| Error::process("reading the memory map", self.pid, source))
    }

    /// The main executable's device and inode number and path, where they may be known.
    pub(crate) fn executable(&self) -> Option<(FileId, PathBuf)> {
        let link = self.path("exe");
        let id = FileId::of(&std::fs::metadata(&link).ok()?);
        Some((id, std::fs::read_link(link).unwrap_or_default()))
    }

    /// Opens the file behind the main executable, whatever happened to its path.
    pub(crate) fn open_executable(&self) -> io::Result<File> {
        open_regular(&self.path("exe"))
    }

    /// Opens the very file that is mapped at `span`, one whole mapping. Needs CAP_SYS_ADMIN or
    /// CAP_CHECKPOINT_RESTORE (`map_files_get_link` in Linux `fs/proc/base.c`).
    pub(crate) fn open_mapped(&self, span: Span) -> io::Result<File> {
        let end = span.last().0.checked_add(1).ok_or(io::ErrorKind::InvalidInput)?;
        open_regular(&self.path(format!("map_files/{:x}-{end:x}", span.start().0)))
    }

    /// Opens a path as the process sees it, and, should its root be forbidden or the path be
    /// outside of it, as we see it.
    pub(crate) fn open_path(&self, path: &Path) -> io::Result<File> {
        let below = path.strip_prefix("/").unwrap_or(path);
        open_regular(&self.path("root").join(below)).or_else(|_| open_regular(path))
    }

    /// Reads the process's memory; fewer bytes than asked for are an error.
    pub(crate) fn read_memory(&self, addr: Addr, buf: &mut [u8]) -> io::Result<()> {
        File::open(self.path("mem"))?.read_exact_at(buf, addr.0)
    }
}

/// A file's identity as stat(2) reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: Device,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(metadata: &std::fs::Metadata) -> Self {
        let (device, inode) = (metadata.dev(), metadata.ino());
        // makedev(3): the low 8 bits of the minor number, 12 of the major, then the upper bits.
        let major = ((device >> 8) & 0xfff) | ((device >> 32) & 0xffff_f000);
        let minor = (device & 0xff) | ((device >> 12) & 0xffff_ff00);
        #[expect(clippy::cast_possible_truncation, reason = "both are masked to 32 bits")]
        Self { device: Device { major: major as u32, minor: minor as u32 }, inode }
    }
}

/// Opens a regular file and nothing else: to open a device or a pipe may have effects, or block.
fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY)
        .open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}
