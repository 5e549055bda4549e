//! The mapped ring of a perf event: the kernel produces at the head, we consume at the tail.
//!
//! ```text
//!   page 0            2^n pages of data, used round and round
//!  +-----------+-----------------------------------------------+
//!  | head tail |  …consumed… |tail  …records of ours…  head|…  |
//!  +-----------+-----------------------------------------------+
//! ```
//! Positions only grow; a position modulo the size is an offset. The kernel never writes between
//! tail and head (perf_event_open(2), "MMAP layout"), so what lies there is ours until it is
//! [released](RingMap::release). Not here: what the bytes mean (crate `perf`).

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use crate::perf_event::{self, Attr, OnCpu, flag};
use perf_event_open_sys::bindings::perf_event_mmap_page as Header;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// An event of the calling thread with its mapped ring; unmapped and closed when dropped.
///
/// The event is opened here, so that it is a perf event, that it does not overwrite, and that no
/// second mapping can move the tail: on that the reads of this file stand.
#[derive(Debug)]
pub struct RingMap {
    event: OwnedFd,
    base: NonNull<u8>,
    page: usize,
    /// Bytes of data, a power of two.
    size: usize,
    /// Position up to which we have consumed.
    tail: u64,
}

// SAFETY: the mapping belongs to the value alone, and its memory is not tied to a thread.
unsafe impl Send for RingMap {}

/// Why there is no ring.
#[derive(Debug)]
pub enum RingError {
    /// The event could not be opened.
    Open(io::Error),
    /// Its ring could not be mapped.
    Map(io::Error),
}

impl RingMap {
    /// Opens the event on the calling thread and maps a ring of `pages` data pages (a power of two)
    /// for it.
    ///
    /// # Errors
    /// [`RingError::Open`] as [`perf_event::open`]; [`RingError::Map`] with `EPERM` over the memory
    /// lock limit, `EINVAL` for an inherited event that is not bound to one processor, `ENOMEM`,
    /// and `InvalidInput` for an event that overwrites or a number of pages that is not a power of
    /// two.
    pub fn open(attr: &Attr, cpu: OnCpu, pages: usize) -> Result<Self, RingError> {
        let event = perf_event::open(attr, None, cpu, None).map_err(RingError::Open)?;
        let forward = attr.flags & flag::WRITE_BACKWARD == 0;
        let size = pages.checked_mul(page_size()).filter(|_| forward && pages.is_power_of_two());
        let size = size.ok_or(RingError::Map(io::ErrorKind::InvalidInput.into()))?;
        Self::map(event, size).map_err(RingError::Map)
    }

    fn map(event: OwnedFd, size: usize) -> io::Result<Self> {
        let page = page_size();
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { event, base, page, size, tail: 0 })
    }

    /// Bytes of data that the ring holds.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The position up to which the kernel has written.
    pub fn head(&self) -> u64 {
        // Acquire: the records below the head are read after it (pairs with the kernel's barrier
        // in perf_output_put_handle, kernel/events/ring_buffer.c).
        self.word(offset_of!(Header, data_head)).load(Ordering::Acquire)
    }

    /// The position up to which we have consumed.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Copies the bytes from `position` on.
    ///
    /// # Errors
    /// `InvalidInput` where they are not all between tail and head.
    pub fn copy(&self, position: u64, into: &mut [u8]) -> io::Result<()> {
        let end = position.checked_add(into.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        if position < self.tail || end > self.head() || into.len() > self.size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Less than the size, so that it fits.
        let offset = usize::try_from(position % self.size as u64).unwrap_or_default();
        let first = into.len().min(self.size - offset);
        let (before_wrap, after_wrap) = into.split_at_mut(first);
        self.copy_straight(offset, before_wrap);
        self.copy_straight(0, after_wrap);
        Ok(())
    }

    /// Gives the bytes below `position` back to the kernel.
    ///
    /// # Errors
    /// `InvalidInput` where the position is not between tail and head.
    pub fn release(&mut self, position: u64) -> io::Result<()> {
        if position < self.tail || position > self.head() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.tail = position;
        // Release: our reads are done before the kernel may write there again.
        self.word(offset_of!(Header, data_tail)).store(position, Ordering::Release);
        Ok(())
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is that of an aligned u64 field of the first page, which is mapped.
        let word = unsafe { self.base.add(offset) }.cast::<u64>();
        // SAFETY: the word lives as long as the mapping, that is `self`; kernel and we access it
        // with single aligned loads and stores only.
        unsafe { AtomicU64::from_ptr(word.as_ptr()) }
    }

    /// Copies data bytes that don't wrap; the callers have checked the range.
    fn copy_straight(&self, offset: usize, into: &mut [u8]) {
        assert!(offset + into.len() <= self.size, "the callers have checked the range");
        // SAFETY: page + offset is inside the mapping, by the assertion.
        let from = unsafe { self.base.add(self.page + offset) };
        // SAFETY: `into.len()` bytes from there are mapped, by the assertion; the kernel does not
        // write between tail and head, where `copy` has checked the range to be; a mapping of the
        // kernel's can't overlap our slice.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), into.len()) };
    }
}

impl AsFd for RingMap {
    /// The event's descriptor: to poll, and to send other events' records to the ring.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for RingMap {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping that we made, and no reference into it
        // outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

/// The size of a page in bytes.
pub fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_event::constant as k;

    fn dummy() -> Attr {
        Attr {
            kind: k::PERF_TYPE_SOFTWARE,
            config: u64::from(k::PERF_COUNT_SW_DUMMY),
            flags: flag::EXCLUDE_KERNEL,
            ..Attr::default()
        }
    }

    #[test]
    fn only_whole_powers_of_two_and_no_overwriting() {
        let backward = Attr { flags: dummy().flags | flag::WRITE_BACKWARD, ..dummy() };
        for (attr, pages) in [(dummy(), 0), (dummy(), 3), (dummy(), usize::MAX), (backward, 1)] {
            match RingMap::open(&attr, OnCpu::Any, pages) {
                Err(RingError::Map(error)) => {
                    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{pages} pages");
                }
                other => panic!("{pages} pages: {other:?}"),
            }
        }
    }

    #[test]
    fn nothing_but_what_is_there_can_be_read_or_released() {
        let mut ring = RingMap::open(&dummy(), OnCpu::Any, 1).expect("a ring of one page");
        assert_eq!((ring.size(), ring.head(), ring.tail()), (page_size(), 0, 0));
        for (position, len) in [(0, 1), (1, 0), (u64::MAX, 8), (0, 2 * page_size())] {
            let error = ring.copy(position, &mut vec![0; len]).expect_err("it is empty");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{position} {len}");
        }
        assert!(ring.copy(0, &mut []).is_ok());
        assert!(ring.release(1).is_err() && ring.release(0).is_ok());
    }
}
