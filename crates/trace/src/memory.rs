//! A process's memory, by `/proc/PID/mem`: also where the page forbids the access.

use hairspring_model::{Addr, Tid};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The open memory of one program in one process. Valid until the process execs or ends.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
}

impl Memory {
    pub(crate) fn open(tid: Tid) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(format!("/proc/{tid}/mem"))?;
        Ok(Self { file })
    }

    /// How many bytes from the address on could be read.
    pub(crate) fn read(&self, at: Addr, bytes: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(bytes, at.0)
    }

    pub(crate) fn write(&self, at: Addr, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at.0)
    }
}
