//! Memory of the process, as the kernel reaches it: what is not there is an error, not a fault.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use directverbs_softnic::bus::{Bus, BusError};
use rustix::fs::fstat;
use rustix::mm::{Advice, madvise};

use crate::Errno;
use crate::pages::{Region, Rights, Stores};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Copies from the process.
///
/// # Errors
/// EFAULT: not all of it is readable.
pub fn copy_in(address: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    if length == 0 {
        return Ok(bytes);
    }
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: length };
    // SAFETY: `local` is ours; the system call checks `remote`.
    let done = unsafe { libc::process_vm_readv(own_id(), &local, 1, &remote, 1, 0) };
    if done == length as isize { Ok(bytes) } else { Err(Errno::FAULT) }
}

/// Copies to the process.
///
/// # Errors
/// EFAULT: not all of it is writable.
///
/// # Safety
/// There are no references to these bytes.
pub unsafe fn copy_out(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    if bytes.is_empty() {
        return Ok(());
    }
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
    // SAFETY: `local` is only read; the system call checks that `remote` is writable, and the caller that nobody minds.
    let done = unsafe { libc::process_vm_writev(own_id(), &local, 1, &remote, 1, 0) };
    if done == bytes.len() as isize { Ok(()) } else { Err(Errno::FAULT) }
}

fn own_id() -> libc::pid_t {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Memory that a device reaches: what was pinned and is still.
#[derive(Debug, Default)]
pub struct PinnedMemory {
    ranges: RwLock<Vec<(u64, u64, u64)>>,
    next: AtomicU64,
    /// Bytes that may be pinned; `u64::MAX` says any number.
    limit: AtomicU64,
    dmabufs: RwLock<Vec<Region>>,
    waiting: Waiting,
}

/// Says that a NIC has something to tell.
#[derive(Debug, Default)]
struct Waiting(std::sync::Mutex<bool>, std::sync::Condvar);

/// Pinned bytes. They are unpinned when it is dropped.
#[derive(Debug)]
pub struct Pin {
    memory: Arc<PinnedMemory>,
    number: u64,
    start: u64,
}

impl Pin {
    /// First byte.
    pub const fn start(&self) -> u64 {
        self.start
    }
}

impl PinnedMemory {
    /// None pinned, and no limit.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { limit: AtomicU64::new(u64::MAX), ..Self::default() })
    }

    /// Sets how many bytes may be pinned.
    pub fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Bytes that may be pinned, if there is a limit.
    pub fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != u64::MAX)
    }

    /// Number of ranges pinned.
    pub fn count(&self) -> usize {
        self.ranges.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Pins `length` bytes at `start`, whole pages around them.
    ///
    /// # Errors
    /// EINVAL: none, or they wrap. EFAULT: not all are there, or not writable if they must be. ENOMEM: over the limit.
    pub fn pin(self: &Arc<Self>, start: u64, length: u64, write: bool) -> Result<Pin, Errno> {
        let end = start.checked_add(length).filter(|end| *end > start).ok_or(Errno::INVAL)?;
        let last = end.checked_next_multiple_of(PAGE).ok_or(Errno::INVAL)?;
        let first = start & !(PAGE - 1);
        let advice = if write { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        // Faulting pages in needs the same rights as pinning them.
        // SAFETY: the advice changes no byte.
        match unsafe { madvise(first as *mut _, (last - first) as usize, advice) } {
            Ok(()) => {}
            // Kernels before 5.14 do not know it.
            Err(Errno::INVAL) => drop(copy_in(start, 1).and_then(|_| copy_in(end - 1, 1))?),
            Err(_) => return Err(Errno::FAULT),
        }
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let pages = |(_, start, end): &(u64, u64, u64)| end.next_multiple_of(PAGE) - (start & !(PAGE - 1));
        let pinned: u64 = ranges.iter().map(pages).sum();
        if pinned.saturating_add(last - first) > self.limit.load(Ordering::Relaxed) {
            return Err(Errno::NOMEM);
        }
        Ok(self.hold(&mut ranges, start, end))
    }

    fn hold(self: &Arc<Self>, ranges: &mut Vec<(u64, u64, u64)>, start: u64, end: u64) -> Pin {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ranges.push((number, start, end));
        Pin { memory: Arc::clone(self), number, start }
    }

    /// Makes a dma-buf, whose descriptor can be mapped. Its memory stays as long as this.
    ///
    /// # Errors
    /// There is no more memory, or no more descriptors.
    pub fn new_dmabuf(&self, bytes: usize) -> std::io::Result<OwnedFd> {
        let region = Region::new(bytes, Rights::Any, Stores::Plain)?;
        let descriptor = region.descriptor()?;
        self.dmabufs.write().unwrap_or_else(PoisonError::into_inner).push(region);
        Ok(descriptor)
    }

    /// Pins `length` bytes of a dma-buf. They do not count as the process's.
    ///
    /// # Errors
    /// EBADF: there is no such descriptor. EINVAL: it is no dma-buf; no bytes, or some behind its end.
    pub fn pin_dmabuf(self: &Arc<Self>, fd: i32, offset: u64, length: u64) -> Result<Pin, Errno> {
        // SAFETY: the call only asks; a descriptor that is not open is an error.
        fstat(unsafe { BorrowedFd::borrow_raw(fd) })?;
        let dmabufs = self.dmabufs.read().unwrap_or_else(PoisonError::into_inner);
        let dmabuf = dmabufs.iter().find(|dmabuf| dmabuf.is(fd) == Ok(true)).ok_or(Errno::INVAL)?;
        let inside = |end: &u64| *end > offset && *end <= dmabuf.len() as u64;
        let end = offset.checked_add(length).filter(inside).ok_or(Errno::INVAL)?;
        let (start, end) = (dmabuf.here() + offset, dmabuf.here() + end);
        Ok(self.hold(&mut self.ranges.write().unwrap_or_else(PoisonError::into_inner), start, end))
    }

    /// Waits until a NIC has something to tell, at most for `time`.
    pub fn wait(&self, time: std::time::Duration) {
        let Waiting(told, condition) = &self.waiting;
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = condition.wait_timeout_while(told, time, |told| !*told);
        *wait.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn with<R>(&self, addr: u64, len: usize, f: impl FnOnce(*mut u8) -> R) -> Result<R, BusError> {
        let error = BusError { addr, len };
        let end = addr.checked_add(len as u64).ok_or(error)?;
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let within =
            ranges.iter().any(|(_, from, to)| from & !(PAGE - 1) <= addr && end <= to.next_multiple_of(PAGE));
        if within { Ok(f(addr as *mut u8)) } else { Err(error) }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut ranges = self.memory.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.retain(|(number, ..)| *number != self.number);
    }
}

/// Bus addresses are those of the process, as under an IOMMU that shares its page tables.
impl Bus for PinnedMemory {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        self.with(addr, out.len(), |from| {
            // SAFETY: pinned while the lock is held, and the process keeps what it has pinned mapped; `out` is a
            // reference, so it does not overlap memory that has none.
            unsafe { from.copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) }
        })
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.with(addr, bytes.len(), |to| {
            // SAFETY: as in `read`.
            unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
        })
    }

    fn publish(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.with(addr, bytes.len(), |to| {
            let (body, valid) = match bytes.split_last_chunk::<8>() {
                Some((body, valid)) if (addr + body.len() as u64).is_multiple_of(8) => (body, Some(valid)),
                _ => (bytes, None),
            };
            // SAFETY: as in `read`.
            unsafe { to.copy_from_nonoverlapping(body.as_ptr(), body.len()) };
            if let Some(valid) = valid {
                // SAFETY: as above, and aligned; the process meets it with volatile or atomic loads.
                let word = unsafe { AtomicU64::from_ptr(to.add(body.len()).cast()) };
                word.store(u64::from_ne_bytes(*valid), Ordering::Release);
            }
        })
    }

    fn interrupt(&self, _vector: u16) {
        self.notified();
    }

    fn notified(&self) {
        *self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.waiting.1.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let bytes = [1u8, 2, 3];
        assert_eq!(copy_in(bytes.as_ptr() as u64, 3), Ok(vec![1, 2, 3]));
        assert_eq!(copy_in(8, 3), Err(Errno::FAULT));
        // SAFETY: nothing is there.
        assert_eq!(unsafe { copy_out(8, &bytes) }, Err(Errno::FAULT));
    }

    #[test]
    fn what_is_pinned_can_be_reached_and_nothing_else() {
        // SAFETY: a new mapping.
        let at = unsafe {
            mmap_anonymous(std::ptr::null_mut(), 8192, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let at = at.unwrap() as u64;
        let memory = PinnedMemory::new();
        assert!(memory.read(at, &mut [0; 8]).is_err());
        let pin = memory.pin(at + 8, 100, true).unwrap();
        assert_eq!(pin.start(), at + 8);
        assert!(memory.write(at + 8, &[7; 8]).is_ok() && memory.read(at + 4095, &mut [0]).is_ok());
        assert!(memory.read(at + 4090, &mut [0; 8]).is_err());
        drop(pin);
        assert!(memory.read(at + 8, &mut [0; 8]).is_err());
        memory.set_limit(Some(4096));
        assert_eq!(memory.pin(at + 4000, 200, true).err(), Some(Errno::NOMEM));
        assert_eq!(memory.pin(at, 0, true).err(), Some(Errno::INVAL));
        // SAFETY: nobody uses it.
        unsafe { munmap(at as *mut _, 8192) }.unwrap();
        assert_eq!(memory.pin(at, 4096, true).err(), Some(Errno::FAULT));
    }
}
