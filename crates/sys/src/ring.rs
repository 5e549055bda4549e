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

use perf_event_open_sys::bindings::perf_event_mmap_page as Header;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mapped ring; unmapped when dropped.
#[derive(Debug)]
pub struct RingMap {
    base: NonNull<u8>,
    page: usize,
    /// Bytes of data, a power of two.
    size: usize,
    /// Position up to which we have consumed.
    tail: u64,
}

// SAFETY: the mapping belongs to the value alone, and its memory is not tied to a thread.
unsafe impl Send for RingMap {}

impl RingMap {
    /// Maps a ring of `pages` data pages (a power of two) for the event.
    ///
    /// # Errors
    /// `EPERM` over the memory lock limit, `EINVAL` for a number of pages that is not a power of
    /// two and for an inherited event that is not bound to one processor, `ENOMEM`.
    pub fn map(event: BorrowedFd<'_>, pages: usize) -> io::Result<Self> {
        let page = page_size();
        let size = pages.checked_mul(page).filter(|_| pages.is_power_of_two());
        let size = size.ok_or(io::ErrorKind::InvalidInput)?;
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
        Ok(Self { base, page, size, tail: 0 })
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
