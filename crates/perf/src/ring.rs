//! A ring of records of one processor, and taking whole records out of it.

use crate::event::ring_owner;
use crate::record::HEADER;
use crate::{Error, Host};
use hairspring_model::Cpu;
use hairspring_sys::perf_event::OnCpu;
use hairspring_sys::ring::{RingError, RingMap, page_size};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The operation whose EPERM means the memory lock limit.
pub(crate) const MAP: &str = "mmap of a ring";

/// A ring that events of the same processor send their records to. It takes and gives records as
/// long as the value lives, whatever becomes of the threads; but once the thread that made it has
/// ended, no more events can be opened to it (`ENODEV`, seen on Linux 6.18).
#[derive(Debug)]
pub struct Ring {
    map: RingMap,
    cpu: Cpu,
}

impl Ring {
    /// Makes a ring of at most `bytes` (rounded down to a power of two of pages, at least one) for
    /// one processor, smaller where the memory lock limits want it: [`Ring::size`] says.
    ///
    /// # Errors
    /// [`crate::Layer::LockedMemory`] where not even one page may be locked.
    pub fn new(cpu: Cpu, bytes: usize, host: &Host) -> Result<Self, Error> {
        let limit = host.ring_limit().and_then(|limit| usize::try_from(limit).ok());
        let wanted = limit.map_or(bytes, |limit| bytes.min(limit.saturating_sub(page_size())));
        let mut pages = prev_power_of_two((wanted / page_size()).max(1));
        loop {
            let watermark = u32::try_from(pages * page_size() / 4).unwrap_or(u32::MAX);
            let (operation, error) =
                match RingMap::open(&ring_owner(watermark), OnCpu::One(cpu), pages) {
                    Ok(map) => return Ok(Self { map, cpu }),
                    // Other rings of this user count against the limit too: try with less.
                    Err(RingError::Map(e)) if is_over_limit(&e) && pages > 1 => {
                        pages /= 2;
                        continue;
                    }
                    Err(RingError::Map(e)) => (MAP, e),
                    Err(RingError::Open(e)) => ("perf_event_open", e),
                };
            return Err(Error::new(operation, error).on(None, Some(cpu)));
        }
    }

    /// Bytes of records that it holds.
    pub fn size(&self) -> usize {
        self.map.size()
    }

    /// The processor.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// The position up to which the kernel has written; give it to [`Ring::take`].
    pub fn head(&self) -> u64 {
        self.map.head()
    }

    /// Replaces `into` by the whole records up to the position `head`, about `limit` bytes of them
    /// at most but at least one, and gives their room back to the kernel. Returns whether records
    /// below `head` are left.
    ///
    /// # Errors
    /// Where the ring's contents make no sense, which would be a fault of the kernel's.
    pub fn take(&mut self, head: u64, limit: usize, into: &mut Vec<u8>) -> Result<bool, Error> {
        into.clear();
        let start = self.map.tail();
        let mut end = start;
        let bad = |e| Error::new("reading a ring", e);
        while end < head {
            let mut header = [0; HEADER];
            self.map.copy(end, &mut header).map_err(bad)?;
            let [.., low, high] = header;
            let size = u64::from(u16::from_le_bytes([low, high]));
            if size < HEADER as u64 || end + size > head {
                return Err(bad(io::ErrorKind::InvalidData.into()));
            }
            if end > start && end + size - start > limit as u64 {
                break;
            }
            end += size;
        }
        // Not more than the ring holds, which fits.
        into.resize(usize::try_from(end - start).unwrap_or_default(), 0);
        self.map.copy(start, into).map_err(bad)?;
        self.map.release(end).map_err(bad)?;
        Ok(end < head)
    }
}

impl AsFd for Ring {
    /// The descriptor to poll for the ring's watermark, and to redirect events to.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

fn is_over_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn prev_power_of_two(n: usize) -> usize {
    1 << n.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two() {
        for (n, power) in [(1, 1), (2, 2), (3, 2), (4, 4), (1023, 512)] {
            assert_eq!(prev_power_of_two(n), power);
        }
    }

    #[test]
    fn a_ring_is_as_large_as_asked() {
        let host = Host::read();
        let ring = Ring::new(host.cpus[0], 64 * 1024, &host).expect("a ring");
        assert!(ring.size() <= 64 * 1024);
        assert_eq!(ring.head(), 0);
    }
}
