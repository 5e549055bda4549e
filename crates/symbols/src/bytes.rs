//! Where the bytes of an object are: in a file, or in memory. Every read is checked.

use crate::elf::ElfError;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Nothing larger is read at once: a file can claim any size (it may be sparse).
const MAX_READ: u64 = 2 << 30;

/// Files are read with pread(2), section by section, and not mapped: a mapped file that somebody
/// truncates kills its reader by SIGBUS, and the files of a live service do get replaced.
#[derive(Debug)]
pub(crate) enum Bytes {
    File { file: File, len: u64 },
    Memory(Vec<u8>),
}

impl Bytes {
    pub(crate) fn file(file: File) -> Result<Self, ElfError> {
        let len = file.metadata().map_err(|e| ElfError::Read(e.kind()))?.len();
        Ok(Self::File { file, len })
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Exactly `len` bytes from `offset`.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>, ElfError> {
        let end = offset.checked_add(len).ok_or(ElfError::Truncated)?;
        if end > self.len() {
            return Err(ElfError::Truncated);
        }
        if len > MAX_READ {
            return Err(ElfError::TooLarge);
        }
        let size = usize::try_from(len).map_err(|_| ElfError::TooLarge)?;
        match self {
            Self::File { file, .. } => {
                let mut bytes = vec![0; size];
                file.read_exact_at(&mut bytes, offset).map_err(|e| ElfError::Read(e.kind()))?;
                Ok(bytes)
            }
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).map_err(|_| ElfError::Truncated)?;
                let range = bytes.get(start..start + size).ok_or(ElfError::Truncated)?;
                Ok(range.to_vec())
            }
        }
    }
}

/// A little-endian number of a record, `None` past its end.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// As [`u16_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// As [`u16_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The bytes up to the first zero, at most `limit` of them.
pub(crate) fn c_string(bytes: &[u8], at: usize, limit: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let rest = &rest[..rest.len().min(limit)];
    let end = memchr::memchr(0, rest)?;
    Some(&rest[..end])
}
