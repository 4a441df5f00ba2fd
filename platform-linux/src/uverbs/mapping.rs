//! What is mapped, until it is dropped.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use directverbs::queue::DeviceMemory;

use super::kernel::{Fd, Kernel, MapRequest, Protection};
use crate::error::{Error, Remedy, Result};

/// Mapped pages. They are unmapped when dropped.
pub struct Mapping {
    kernel: Arc<dyn Kernel>,
    address: NonNull<u8>,
    length: usize,
    /// Process that has mapped them.
    owner: u32,
}

// SAFETY: the address is that of memory that lives as long as the mapping, whoever holds it; access to its contents is
// by raw pointer, at the peril of the one who dereferences it.
unsafe impl Send for Mapping {}
// SAFETY: as above; the methods only read the fields.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn new(kernel: &Arc<dyn Kernel>, request: &MapRequest, object: &'static str) -> Result<Self> {
        let address = kernel.map(request).map_err(|errno| Error::Call {
            object,
            method: "mmap",
            errno,
            remedy: Remedy::for_call(errno, kernel.memlock_limit()),
        })?;
        Ok(Self { kernel: Arc::clone(kernel), address, length: request.length, owner: kernel.process() })
    }

    /// Maps `length` bytes at the cookie `offset` of `file`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn of_file(
        kernel: &Arc<dyn Kernel>,
        file: Fd,
        offset: u64,
        length: usize,
        protection: Protection,
        object: &'static str,
    ) -> Result<Self> {
        Self::new(kernel, &MapRequest { file: Some(file), offset, length, protection }, object)
    }

    /// First byte.
    pub fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }
}

impl Mapping {
    /// Stores a 64-bit word at `offset`, a multiple of 8; `false`, and nothing stored, if it is not or lies outside.
    pub fn store_u64(&self, offset: usize, value: u64) -> bool {
        let Some(place) = self.place(offset, size_of::<u64>()) else { return false };
        // SAFETY: `place` has checked bounds and alignment; the device sees the store, hence volatile.
        unsafe { place.cast::<u64>().write_volatile(value) };
        true
    }

    /// Loads a 32-bit word from `offset`, a multiple of 4; none if it is not or lies outside.
    pub fn load_u32(&self, offset: usize) -> Option<u32> {
        let place = self.place(offset, size_of::<u32>())?;
        // SAFETY: as in `store_u64`; the kernel or the device may store at any time, hence volatile.
        Some(unsafe { place.cast::<u32>().read_volatile() })
    }

    /// Where `length` bytes at `offset`, aligned to their length, are. A mapping begins at a page.
    fn place(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(length)?;
        let fits = offset.is_multiple_of(length) && end <= self.length;
        // SAFETY: the offset lies in the mapping.
        fits.then(|| unsafe { self.address.add(offset) })
    }
}

impl DeviceMemory for Mapping {
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.store_words(offset, block);
    }

    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.store_words(offset, block);
    }
}

impl Mapping {
    /// Stores a block by words in order. What lies outside is not stored.
    fn store_words(&self, offset: usize, block: &[u8]) {
        let (words, _) = block.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            self.store_u64(offset + i * size_of::<u64>(), u64::from_ne_bytes(*word));
        }
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({:p}, {})", self.address, self.length)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A child after fork does not have the mapping; something else may be in its place.
        if self.kernel.process() != self.owner {
            return;
        }
        // SAFETY: it was mapped by `new`, and its owner gives it up. The kernel fails only for ranges that are no mapping.
        let _ = unsafe { self.kernel.unmap(self.address, self.length) };
    }
}

/// Zeroed memory of whole pages that a device may be given: a ring, or a buffer of messages.
///
/// A device may write to it at any time, so its contents are copied in and out.
#[derive(Debug)]
pub struct Pages {
    mapping: Mapping,
}

impl Pages {
    /// At least `length` bytes, and one page at least.
    ///
    /// # Errors
    /// There is no memory, or `length` is too large.
    pub fn new(kernel: &Arc<dyn Kernel>, length: usize) -> Result<Self> {
        let page = kernel.page_size();
        let length = length.max(1).checked_next_multiple_of(page).ok_or(Error::Value {
            object: "memory",
            attribute: "length",
            what: "is more than there are addresses",
        })?;
        let request = MapRequest { file: None, offset: 0, length, protection: Protection::ReadWrite };
        Ok(Self { mapping: Mapping::new(kernel, &request, "memory")? })
    }

    /// Address of the first byte, as the kernel and the device are told it.
    pub fn address(&self) -> u64 {
        self.mapping.address.as_ptr() as u64
    }

    /// First byte.
    pub(super) fn first(&self) -> NonNull<u8> {
        self.mapping.address
    }

    /// Bytes, whole pages.
    pub fn len(&self) -> usize {
        self.mapping.length
    }

    /// Copies `bytes` to `offset`; `false`, and nothing written, if they do not fit.
    #[must_use]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(first) = self.range(offset, bytes.len()) else { return false };
        let (head, rest) = bytes.split_at(lead(first).min(bytes.len()));
        let (words, tail) = rest.as_chunks::<8>();
        let mut at = first;
        let put = |at: NonNull<u8>, bytes: &[u8]| {
            // SAFETY: `range` has checked that all of it lies in the mapping. The device, or another thread, may access it at
            // the same time, hence atomics.
            bytes.iter().enumerate().for_each(|(i, b)| unsafe { byte(at.add(i)) }.store(*b, Relaxed));
        };
        put(at, head);
        // SAFETY: as long as `bytes`, which are in the mapping.
        at = unsafe { at.add(head.len()) };
        for value in words {
            // SAFETY: as above; behind the head, words are aligned.
            unsafe { word(at) }.store(u64::from_ne_bytes(*value), Relaxed);
            // SAFETY: as above.
            at = unsafe { at.add(size_of::<u64>()) };
        }
        put(at, tail);
        true
    }

    /// Fills `bytes` from `offset`; `false`, and nothing read, if they do not fit.
    #[must_use]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let Some(first) = self.range(offset, bytes.len()) else { return false };
        let lead = lead(first).min(bytes.len());
        let (head, rest) = bytes.split_at_mut(lead);
        let (words, tail) = rest.as_chunks_mut::<8>();
        let mut at = first;
        let take = |at: NonNull<u8>, bytes: &mut [u8]| {
            // SAFETY: as in `write`.
            bytes.iter_mut().enumerate().for_each(|(i, b)| *b = unsafe { byte(at.add(i)) }.load(Relaxed));
        };
        take(at, head);
        // SAFETY: as in `write`.
        at = unsafe { at.add(lead) };
        for value in words {
            // SAFETY: as in `write`.
            *value = unsafe { word(at) }.load(Relaxed).to_ne_bytes();
            // SAFETY: as in `write`.
            at = unsafe { at.add(size_of::<u64>()) };
        }
        take(at, tail);
        true
    }

    /// Where `length` bytes at `offset` are.
    fn range(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(length)?;
        // SAFETY: the offset lies in the mapping, or right behind its last byte.
        (end <= self.mapping.length).then(|| unsafe { self.mapping.address.add(offset) })
    }
}

/// Bytes before the next whole word.
fn lead(at: NonNull<u8>) -> usize {
    (at.as_ptr() as usize).wrapping_neg() % size_of::<u64>()
}

/// The byte at `at`.
///
/// # Safety
/// It lies in a mapping that lives during `'m`.
unsafe fn byte<'m>(at: NonNull<u8>) -> &'m AtomicU8 {
    // SAFETY: mapped as the caller says, and accessed by atomics only.
    unsafe { AtomicU8::from_ptr(at.as_ptr()) }
}

/// The aligned word at `at`.
///
/// # Safety
/// It lies in a mapping that lives during `'m`, and is aligned.
unsafe fn word<'m>(at: NonNull<u8>) -> &'m AtomicU64 {
    // SAFETY: as for `byte`.
    unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) }
}

#[cfg(test)]
mod tests {
    use super::super::Linux;
    use super::*;

    #[test]
    fn bytes_are_copied_wherever_they_begin_and_end() {
        let pages = Pages::new(&(Arc::new(Linux) as Arc<dyn Kernel>), 1).expect("memory");
        let bytes: Vec<u8> = (1..=40).collect();
        for offset in 0..9 {
            for length in 0..=bytes.len() {
                assert!(pages.write(0, &[0; 64]) && pages.write(offset, &bytes[..length]));
                let mut all = [0; 64];
                assert!(pages.read(0, &mut all));
                let mut expected = [0; 64];
                expected[offset..offset + length].copy_from_slice(&bytes[..length]);
                assert_eq!(all, expected);
                let mut part = vec![0; length];
                assert!(pages.read(offset, &mut part));
                assert_eq!(part, bytes[..length]);
            }
        }
        assert!(!pages.write(pages.len(), &[1]) && !pages.read(usize::MAX, &mut [0]));
        assert!(pages.write(pages.len(), &[]));
    }
}
