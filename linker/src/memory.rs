//! The memory that devices reach: a part of the image.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use directverbs_bare::identity::Memory;

/// Bytes for DMA.
const BYTES: usize = 48 << 20;
/// Pieces that it may be in: blocks, and gaps between them.
pub const PIECES: usize = 1024;

/// Memory of the image that only devices and their drivers use.
#[repr(C, align(4096))]
struct Pool(UnsafeCell<[u8; BYTES]>);

// SAFETY: the program never looks at it; it is lent to `Memory` once.
unsafe impl Sync for Pool {}

#[unsafe(link_section = ".bss.pool")]
static POOL: Pool = Pool(UnsafeCell::new([0; BYTES]));

/// The memory for DMA.
///
/// # Safety
/// Called once.
pub unsafe fn pool() -> Memory<PIECES> {
    let base = POOL.0.get();
    let base = NonNull::new(base).unwrap_or(NonNull::dangling()).cast();
    // SAFETY: the pool is used through this value alone, by the contract of this function; it is mapped where the bus has it,
    // and processors of both kinds are coherent with DMA on machines with PCI.
    unsafe { Memory::new(base, BYTES, base.as_ptr().addr() as u64) }
}
