//! Reading little-endian fields off the front of a record.

use crate::record::{HEADER, RecordError};

/// What is left of a record's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    /// The record's kind and whole size, for the error.
    kind: u32,
    size: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], kind: u32) -> Self {
        Self { bytes, kind, size: HEADER + bytes.len() }
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn u32(&mut self) -> Result<u32, RecordError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, RecordError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let (front, rest) = self.bytes.split_at_checked(len).ok_or(self.truncated(len))?;
        self.bytes = rest;
        Ok(front)
    }

    /// Takes `len` bytes off the end.
    pub(crate) fn cut_back(&mut self, len: usize) -> Result<Self, RecordError> {
        let at = self.bytes.len().checked_sub(len).ok_or(self.truncated(len))?;
        let (rest, back) = self.bytes.split_at(at);
        self.bytes = rest;
        Ok(Self { bytes: back, ..*self })
    }

    /// What is left, up to the first zero byte.
    pub(crate) fn text(&self) -> &'a [u8] {
        let end = self.bytes.iter().position(|b| *b == 0).unwrap_or(self.bytes.len());
        &self.bytes[..end]
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (front, rest) = self.bytes.split_first_chunk().ok_or(self.truncated(N))?;
        self.bytes = rest;
        Ok(*front)
    }

    fn truncated(&self, want: usize) -> RecordError {
        let needed = (self.size - self.bytes.len()).saturating_add(want);
        RecordError::Truncated { kind: self.kind, needed, available: self.size }
    }
}
