//! The guest's memory and interrupts: the bus of a device that is served. All `unsafe` code for memory that is shared with the
//! guest is here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use directverbs_softnic::bus::{Bus, BusError};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A file of memory, mapped once as a whole: behind an IOMMU, its pages come and go one by one, thousands of them.
#[derive(Debug)]
struct Backing {
    /// Device and number of the file.
    id: (u64, u64),
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: mapped memory without an owner thread; all accesses go through raw copies.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl Backing {
    fn new(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        let len = usize::try_from(meta.len()).map_err(io::Error::other)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of no fixed address.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file.as_fd(), 0)? };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self { id: (meta.dev(), meta.ino()), base, len })
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nobody reaches it any more: regions keep it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// A part of the guest's memory: `len` bytes of a file from `offset`, all of them in it.
#[derive(Debug)]
struct Region {
    backing: Arc<Backing>,
    offset: usize,
    len: usize,
}

/// Regions by their bus addresses, which do not overlap.
#[derive(Debug, Default)]
struct Regions {
    by_address: BTreeMap<u64, Region>,
    files: Vec<Weak<Backing>>,
}

impl Regions {
    /// The mapping of a file: one that is there, or a new one.
    fn backing(&mut self, file: &File) -> io::Result<Arc<Backing>> {
        let meta = file.metadata()?;
        self.files.retain(|backing| backing.strong_count() > 0);
        let known = self.files.iter().filter_map(Weak::upgrade);
        let mut known = known.filter(|known| known.id == (meta.dev(), meta.ino()));
        if let Some(known) = known.find(|known| known.len as u64 == meta.len()) {
            return Ok(known);
        }
        let new = Arc::new(Backing::new(file)?);
        self.files.push(Arc::downgrade(&new));
        Ok(new)
    }

    /// The region that has the byte at `address`, and where in it.
    fn find(&self, address: u64) -> Option<(&Region, usize)> {
        let (start, region) = self.by_address.range(..=address).next_back()?;
        let offset = usize::try_from(address - start).ok()?;
        (offset < region.len).then_some((region, offset))
    }
}

/// What the client has shared: memory, and an event for each interrupt vector.
#[derive(Debug, Default)]
pub struct Guest {
    regions: RwLock<Regions>,
    vectors: Mutex<Vec<Option<File>>>,
    notified: (Mutex<bool>, Condvar),
}

impl Guest {
    /// Shares `len` bytes of a file from `offset` at bus address `address`.
    ///
    /// # Errors
    /// It cannot be mapped, is not in the file, or overlaps what is shared already.
    pub fn map(&self, file: &File, offset: u64, address: u64, len: u64) -> io::Result<()> {
        let (offset, len) = (usize::try_from(offset), usize::try_from(len));
        let (offset, len) = (offset.map_err(io::Error::other)?, len.map_err(io::Error::other)?);
        let last = (len as u64).checked_sub(1).and_then(|more| address.checked_add(more));
        let last = last.ok_or_else(|| io::Error::other("no bytes, or it wraps"))?;
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        if regions.find(address).is_some() || regions.by_address.range(address..=last).next().is_some() {
            return Err(io::Error::other("memory is shared at this address already"));
        }
        let backing = regions.backing(file)?;
        if offset.checked_add(len).is_none_or(|end| end > backing.len) {
            return Err(io::Error::other("it is not in the file"));
        }
        regions.by_address.insert(address, Region { backing, offset, len });
        Ok(())
    }

    /// Takes back all that lies in this range.
    pub fn unmap(&self, address: u64, len: u64) {
        let end = address.saturating_add(len);
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        let inside = regions.by_address.range(address..end);
        let inside = inside.filter(|(start, region)| end - **start >= region.len as u64);
        let inside: Vec<u64> = inside.map(|(start, _)| *start).collect();
        for start in inside {
            regions.by_address.remove(&start);
        }
    }

    /// Takes back all memory.
    pub fn unmap_all(&self) {
        self.regions.write().unwrap_or_else(PoisonError::into_inner).by_address.clear();
    }

    /// Sets the events of the vectors from `start` on; no events at all take away every one.
    pub fn set_vectors(&self, start: u32, count: u32, events: Vec<File>) {
        let mut vectors = lock(&self.vectors);
        if count == 0 {
            vectors.clear();
            return;
        }
        let mut events = events.into_iter();
        for vector in start as usize..start as usize + count.min(u16::MAX.into()) as usize {
            if vectors.len() <= vector {
                vectors.resize_with(vector + 1, || None);
            }
            vectors[vector] = events.next();
        }
    }

    /// The client is gone: nothing is shared any more.
    pub fn clear(&self) {
        self.unmap_all();
        lock(&self.vectors).clear();
    }

    /// Waits until the device has something to tell, or `limit` is over.
    pub fn wait(&self, limit: Duration) {
        let mut notified = lock(&self.notified.0);
        if !*notified {
            notified =
                self.notified.1.wait_timeout(notified, limit).unwrap_or_else(PoisonError::into_inner).0;
        }
        *notified = false;
    }

    /// Calls `then` for each piece of a range: the piece's address in this process, its offset in the range, and its length.
    fn pieces(
        &self,
        addr: u64,
        len: usize,
        mut then: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), BusError> {
        let error = BusError { addr, len };
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        // First all pieces are looked for, so that nothing is done if one is missing.
        for check in [true, false] {
            let mut done = 0;
            while done < len {
                let at = addr.checked_add(done as u64).ok_or(error)?;
                let (region, offset) = regions.find(at).ok_or(error)?;
                let piece = (region.len - offset).min(len - done);
                if !check {
                    // SAFETY: the offset lies in the region, whose file is mapped while the lock is held.
                    then(unsafe { region.backing.base.as_ptr().add(region.offset + offset) }, done, piece);
                }
                done += piece;
            }
        }
        Ok(())
    }
}

impl Bus for Guest {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        let len = out.len();
        self.pieces(addr, len, |from, at, piece| {
            // SAFETY: `pieces` has checked the range; `out` is memory of this process's own.
            unsafe { from.copy_to_nonoverlapping(out[at..at + piece].as_mut_ptr(), piece) };
        })
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.pieces(addr, bytes.len(), |to, at, piece| {
            // SAFETY: as in `read`.
            unsafe { to.copy_from_nonoverlapping(bytes[at..at + piece].as_ptr(), piece) };
        })
    }

    fn publish(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        let Some((body, valid)) = bytes.split_last_chunk::<8>() else { return self.write(addr, bytes) };
        // All or nothing, as for a write.
        self.pieces(addr, bytes.len(), |_, _, _| {})?;
        self.write(addr, body)?;
        let at = addr.wrapping_add(body.len() as u64);
        self.pieces(at, 8, |to, done, piece| {
            if piece == 8 && to.cast::<u64>().is_aligned() {
                // SAFETY: in a region, as `pieces` has checked, and aligned.
                let word = unsafe { AtomicU64::from_ptr(to.cast()) };
                word.store(u64::from_ne_bytes(*valid), Ordering::Release);
            } else {
                // SAFETY: as in `read`.
                unsafe { to.copy_from_nonoverlapping(valid[done..done + piece].as_ptr(), piece) };
            }
        })
    }

    fn interrupt(&self, vector: u16) {
        if let Some(Some(event)) = lock(&self.vectors).get_mut(usize::from(vector)) {
            // A full counter means that the guest has not looked at the last one yet.
            let _ = event.write_all(&1u64.to_ne_bytes());
        }
    }

    fn notified(&self) {
        *lock(&self.notified.0) = true;
        self.notified.1.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn file(len: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        file
    }

    #[test]
    fn the_devices_stores_are_in_the_shared_file() {
        let guest = Guest::default();
        let (low, high) = (file(0x2000), file(0x1000));
        guest.map(&low, 0x1000, 0x10_0000, 0x1000).unwrap();
        guest.map(&high, 0, 0x10_1000, 0x1000).unwrap();
        guest.publish(0x10_0ff0, &[7; 32]).unwrap();
        let mut bytes = [0; 16];
        low.read_exact_at(&mut bytes, 0x1ff0).unwrap();
        assert_eq!(bytes, [7; 16]);
        high.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [7; 16], "an access may go on in the next part");
        let mut out = [0; 33];
        guest.read(0x10_0ff0, &mut out).unwrap();
        assert_eq!(out[..32], [7; 32]);
    }

    #[test]
    fn what_is_not_shared_is_not_reached() {
        let guest = Guest::default();
        let memory = file(0x1000);
        guest.map(&memory, 0, 0x1000, 0x1000).unwrap();
        assert!(guest.map(&memory, 0, 0x1fff, 0x1000).is_err(), "it overlaps");
        let outside = |addr, len| guest.write(addr, &vec![1; len]) == Err(BusError { addr, len });
        assert!(outside(0xfff, 2) && outside(0x1fff, 2) && outside(u64::MAX, 2));
        let mut bytes = [9];
        memory.read_exact_at(&mut bytes, 0xfff).unwrap();
        assert_eq!(bytes, [0], "nothing of it was written");
        guest.unmap(0, 0x1fff);
        assert!(!outside(0x1000, 1), "only a part was named");
        guest.unmap(0x1000, 0x1000);
        assert!(outside(0x1000, 1));
        let past = guest.map(&memory, 0x800, 0x1000, 0x1000);
        assert!(past.is_err() && outside(0x1000, 1), "it ends behind the file");
        assert!(guest.map(&memory, 0, 0, 0).is_err() && guest.map(&memory, 0, u64::MAX, 2).is_err());
    }

    #[test]
    fn pages_of_a_file_come_and_go_one_by_one() {
        let guest = Guest::default();
        let memory = file(64 << 12);
        // Backwards, as an IOMMU may have them.
        for page in 0..64 {
            guest.map(&memory, (63 - page) << 12, 1 << 32 | page << 12, 1 << 12).unwrap();
        }
        assert_eq!(guest.regions.read().unwrap().files.len(), 1, "the file is mapped once");
        guest.write((1 << 32) + 0xffe, &[1, 2, 3, 4]).unwrap();
        let mut bytes = [0; 2];
        memory.read_exact_at(&mut bytes, (63 << 12) + 0xffe).unwrap();
        assert_eq!(bytes, [1, 2]);
        memory.read_exact_at(&mut bytes, 62 << 12).unwrap();
        assert_eq!(bytes, [3, 4]);
        guest.unmap(1 << 32 | 8 << 12, 8 << 12);
        let reaches = |page: u64| guest.read(1 << 32 | page << 12, &mut [0; 8]).is_ok();
        assert_eq!([7, 8, 15, 16].map(reaches), [true, false, false, true]);
        guest.map(&memory, 0, 1 << 32 | 8 << 12, 8 << 12).unwrap();
        assert!(reaches(15));
        guest.unmap_all();
        assert!(!(0..64).any(reaches));
    }
}
