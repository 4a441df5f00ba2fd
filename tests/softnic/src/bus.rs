//! The bus between a NIC and its host: DMA and interrupts.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A DMA access outside the memory that the host has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no host memory at {addr:#x}, {len} bytes")]
pub struct BusError {
    /// Bus address of the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: usize,
}

/// What a NIC reaches its host through.
pub trait Bus: Send + Sync {
    /// Copies host memory at bus address `addr` into `out`.
    ///
    /// # Errors
    /// The range is not all host memory; `out` may be partly filled.
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), BusError>;

    /// Copies `bytes` into host memory at bus address `addr`.
    ///
    /// # Errors
    /// The range is not all host memory; nothing was written.
    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError>;

    /// As [`Bus::write`], but the last 8 bytes become visible after all others: for entries whose valid bit is there.
    ///
    /// # Errors
    /// As for [`Bus::write`].
    fn publish(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        let (body, valid) = bytes.split_at(bytes.len().saturating_sub(8));
        self.write(addr, body)?;
        self.write(addr.wrapping_add(body.len() as u64), valid)
    }

    /// Raises interrupt `vector`.
    fn interrupt(&self, vector: u16);

    /// A notification waits in the NIC: where the host has no other way to learn of it.
    fn notified(&self) {}
}

/// Page size of host memory blocks, and alignment of rings.
pub const PAGE: usize = 4096;

#[derive(Debug)]
struct Block {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a block is plain memory without an owner thread; all accesses go through raw copies.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// Bus address of the first block: above 4 GiB, so that a half of an address that is lost is noticed.
const FIRST_ADDRESS: u64 = 0x12_3400_0000;

/// Host memory of the process: a [`Bus`] over the blocks that the in-process host has allocated.
///
/// Bus addresses are given out in order, as an IOMMU would, with a page that is not there between two blocks, and never
/// again: the same run has the same addresses on the wire, and an access to freed memory is an error.
#[derive(Debug)]
pub struct HostMemory {
    blocks: RwLock<BTreeMap<u64, Block>>,
    next: AtomicU64,
    interrupts: Mutex<Vec<u16>>,
}

/// A block of host memory, zeroed and page-aligned; freed on drop. Its bytes may be changed by a NIC at any time, so
/// they are only copied in and out.
#[derive(Debug)]
pub struct HostBlock {
    memory: Arc<HostMemory>,
    addr: u64,
    base: NonNull<u8>,
    len: usize,
    align: usize,
}

// SAFETY: as for `Block`.
unsafe impl Send for HostBlock {}

impl HostMemory {
    /// No memory yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            blocks: RwLock::default(),
            next: AtomicU64::new(FIRST_ADDRESS),
            interrupts: Mutex::default(),
        })
    }

    /// Allocates at least `len` bytes (a whole number of pages, at least one).
    pub fn alloc(self: &Arc<Self>, len: usize) -> HostBlock {
        self.alloc_aligned(len, PAGE)
    }

    /// Allocates as [`HostMemory::alloc`], at multiples of `align`, which is rounded up to a page.
    ///
    /// # Panics
    /// `align` is no power of two.
    pub fn alloc_aligned(self: &Arc<Self>, len: usize, align: usize) -> HostBlock {
        let align = align.max(PAGE);
        let len = len.max(1).next_multiple_of(PAGE);
        let layout = Layout::from_size_align(len, align).expect("a page multiple");
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { std::alloc::handle_alloc_error(layout) };
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let addr = self.next.load(Ordering::Relaxed).next_multiple_of(align as u64);
        self.next.store(addr + (len + PAGE) as u64, Ordering::Relaxed);
        blocks.insert(addr, Block { base, len });
        HostBlock { memory: self.clone(), addr, base, len, align }
    }

    /// Bytes of all blocks.
    pub fn allocated(&self) -> usize {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        blocks.values().map(|block| block.len).sum()
    }

    /// Bus address of the byte at address `process` of the process, if a block holds it.
    pub fn bus_address(&self, process: usize) -> Option<u64> {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        blocks.iter().find_map(|(addr, block)| {
            let offset = process.checked_sub(block.base.as_ptr() as usize)?;
            (offset < block.len).then_some(addr + offset as u64)
        })
    }

    /// The interrupts raised since the last call, in order.
    pub fn take_interrupts(&self) -> Vec<u16> {
        std::mem::take(&mut self.interrupts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with<R>(&self, addr: u64, len: usize, f: impl FnOnce(*mut u8) -> R) -> Result<R, BusError> {
        let error = BusError { addr, len };
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let (start, block) = blocks.range(..=addr).next_back().ok_or(error)?;
        let offset = (addr - start) as usize;
        if offset > block.len || len > block.len - offset {
            return Err(error);
        }
        // SAFETY: `offset` lies in the block, which lives while the lock is held.
        Ok(f(unsafe { block.base.as_ptr().add(offset) }))
    }
}

impl Bus for HostMemory {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        self.with(addr, out.len(), |from| {
            // SAFETY: `with` has checked the range; `out` is a reference, so it cannot overlap memory that has none.
            unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) }
        })
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.with(addr, bytes.len(), |to| {
            // SAFETY: as in `read`.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
        })
    }

    fn publish(&self, addr: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.with(addr, bytes.len(), |to| {
            let (body, valid) = match bytes.split_last_chunk::<8>() {
                Some((body, valid)) if (addr + body.len() as u64).is_multiple_of(8) => (body, Some(valid)),
                _ => (bytes, None),
            };
            // SAFETY: as in `read`.
            unsafe { std::ptr::copy_nonoverlapping(body.as_ptr(), to, body.len()) };
            if let Some(valid) = valid {
                // SAFETY: in the checked range, aligned as just checked; the host meets it with volatile or atomic
                // loads.
                let word = unsafe { AtomicU64::from_ptr(to.add(body.len()).cast()) };
                word.store(u64::from_ne_bytes(*valid), Ordering::Release);
            }
        })
    }

    fn interrupt(&self, vector: u16) {
        self.interrupts.lock().unwrap_or_else(PoisonError::into_inner).push(vector);
    }
}

impl HostBlock {
    /// Bus address of the first byte.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// The first byte, for a queue's ring memory.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies `bytes` to `offset`; `false`, and nothing written, if they do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let fits = offset <= self.len && bytes.len() <= self.len - offset;
        if fits {
            // SAFETY: checked to lie in the block, which lives as long as `self`.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(offset), bytes.len());
            }
        }
        fits
    }

    /// Fills `out` from `offset`; `false`, and nothing read, if it does not fit.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        let fits = offset <= self.len && out.len() <= self.len - offset;
        if fits {
            // SAFETY: as in `write`.
            unsafe {
                std::ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), out.as_mut_ptr(), out.len());
            }
        }
        fits
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        let mut blocks = self.memory.blocks.write().unwrap_or_else(PoisonError::into_inner);
        blocks.remove(&self.addr);
        let layout = Layout::from_size_align(self.len, self.align).expect("as allocated");
        // SAFETY: allocated with the same layout, and the NIC cannot reach it any more: it looks in `blocks` under
        // the lock that is held.
        unsafe { dealloc(self.base.as_ptr(), layout) };
    }
}
