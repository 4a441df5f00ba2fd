//! Memory that a device reaches by DMA.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use directverbs::queue::RingMemory;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Why there is no such memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DmaError {
    /// It would be too much.
    #[error("no DMA memory for {bytes} bytes aligned to {align}")]
    Exhausted {
        /// Bytes asked for.
        bytes: usize,
        /// Alignment asked for, as [`shown`].
        align: u32,
    },
    /// The alignment is no power of two, or more than the host can give.
    #[error("DMA memory cannot be aligned to {0}")]
    Alignment(usize),
    /// The host refuses it for this reason of its own (an error number on Linux: often a limit on locked memory).
    #[error("{bytes} bytes cannot be made DMA memory: error {code}")]
    Refused {
        /// Bytes asked for.
        bytes: usize,
        /// The host's error number.
        code: i32,
    },
}

/// A block of memory that the processor and the device share, contiguous at the device's addresses, zeroed when it is
/// given. The device may write at any time, so contents are copied in and out. Dropping it frees it: only once the device
/// has been told to forget it. Otherwise it is [abandoned](Self::abandon).
///
/// # Safety
/// `base` is valid for reads and writes of `len` bytes until the value is dropped or abandoned, no matter where it is moved. No other block overlaps it. The memory is coherent: stores before
/// [`directverbs::queue::barrier::to_device`] are seen by a device that a register store after it makes look, and what a
/// device has written before its valid bit is seen after [`directverbs::queue::barrier::from_device`].
pub unsafe trait DmaMemory: fmt::Debug {
    /// The first byte, as the processor addresses it.
    fn base(&self) -> NonNull<u8>;

    /// The first byte, as the device addresses it.
    fn device_address(&self) -> u64;

    /// Length in bytes: what was asked for, or somewhat more.
    fn len(&self) -> usize;

    /// Gives the memory up although the device may still know it. Nobody gets it before [`super::Host::quiesce`] has taken
    /// the device off the bus.
    fn abandon(self);

    /// Copies `bytes` to `offset`; `false`, and nothing written, if they do not fit.
    #[must_use]
    fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let fits = inside(self.len(), offset, bytes.len());
        if fits {
            // SAFETY: in bounds as just checked, valid by the trait's contract, and no references to DMA memory exist that
            // `bytes` could be.
            unsafe {
                self.base().as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
        fits
    }

    /// Fills `out` from `offset`; `false`, and nothing read, if it does not fit.
    #[must_use]
    fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        let fits = inside(self.len(), offset, out.len());
        if fits {
            // SAFETY: as in `write`.
            unsafe {
                out.as_mut_ptr().copy_from_nonoverlapping(self.base().as_ptr().add(offset), out.len());
            }
        }
        fits
    }

    /// Copies `value` to `offset`; `false`, and nothing written, if it does not fit.
    #[must_use]
    fn store<T: IntoBytes + Immutable>(&mut self, offset: usize, value: &T) -> bool {
        self.write(offset, value.as_bytes())
    }

    /// Copies a value out of `offset`; `None` if it does not fit.
    fn load<T: FromBytes + IntoBytes>(&self, offset: usize) -> Option<T> {
        let mut value = T::new_zeroed();
        self.read(offset, value.as_mut_bytes()).then_some(value)
    }

    /// Loads the byte at `offset` in one piece that the compiler neither drops nor moves: for valid bytes. `None` outside.
    fn load_valid(&self, offset: usize) -> Option<u8> {
        // SAFETY: in bounds as just checked, and valid by the trait's contract.
        inside(self.len(), offset, 1).then(|| unsafe { self.base().as_ptr().add(offset).read_volatile() })
    }

    /// Fills it with zero bytes.
    fn zero(&mut self) {
        // SAFETY: all of it is writable by the trait's contract.
        unsafe { self.base().as_ptr().write_bytes(0, self.len()) };
    }
}

const fn inside(has: usize, offset: usize, len: usize) -> bool {
    offset <= has && len <= has - offset
}

/// A queue and the DMA memory under it, which it alone reaches.
///
/// A queue that the device has destroyed is [released](Self::release), which frees the memory. One that is dropped before
/// abandons it: the device may still write there.
pub(crate) struct Owned<Q, D: DmaMemory, const N: usize> {
    queue: ManuallyDrop<Q>,
    blocks: ManuallyDrop<[D; N]>,
    /// A block that takes the place of the first one, or has taken it.
    other: Option<D>,
}

impl<Q, D: DmaMemory, const N: usize> Owned<Q, D, N> {
    /// Builds a queue over `blocks`; `build` gets the ring memory of each, in order. The device must not know the blocks yet:
    /// if `build` fails, they are freed.
    ///
    /// Within this crate only: `build` must keep the memory in the queue and nowhere else, which its type does not say.
    ///
    /// # Errors
    /// Those of `build`.
    pub(crate) fn build<E>(
        blocks: [D; N],
        build: impl FnOnce([RingMemory<'static>; N]) -> Result<Q, E>,
    ) -> Result<Self, E> {
        let rings = blocks.each_ref().map(|block| {
            // SAFETY: a block's memory stays valid wherever the block is moved. It is locked up with the queue that takes
            // the ring, never lent, and dropped or abandoned after the queue is dropped.
            unsafe { RingMemory::from_raw(block.base(), block.len()) }
        });
        let queue = build(rings)?;
        Ok(Self { queue: ManuallyDrop::new(queue), blocks: ManuallyDrop::new(blocks), other: None })
    }

    /// Makes another queue of it, over the same blocks. If that fails, they are abandoned.
    ///
    /// # Errors
    /// Those of `change`.
    pub(crate) fn try_map<R, E>(self, change: impl FnOnce(Q) -> Result<R, E>) -> Result<Owned<R, D, N>, E> {
        let mut this = ManuallyDrop::new(self);
        let other = this.other.take();
        // SAFETY: neither is used again, as `this` is never dropped.
        let (queue, blocks) =
            unsafe { (ManuallyDrop::take(&mut this.queue), ManuallyDrop::take(&mut this.blocks)) };
        match change(queue) {
            Ok(queue) => {
                Ok(Owned { queue: ManuallyDrop::new(queue), blocks: ManuallyDrop::new(blocks), other })
            }
            Err(error) => {
                blocks.into_iter().chain(other).for_each(D::abandon);
                Err(error)
            }
        }
    }

    /// Device addresses of the blocks.
    pub fn device_addresses(&self) -> [u64; N] {
        self.blocks.each_ref().map(D::device_address)
    }

    /// Drops the queue and frees its memory: the device has forgotten it.
    pub fn release(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: neither is used again, as `this` is never dropped; the queue goes first, so that nothing reaches the
        // memory when it is freed.
        unsafe {
            ManuallyDrop::drop(&mut this.queue);
            ManuallyDrop::drop(&mut this.blocks);
        }
        drop(this.other.take());
    }
}

/// Queues that move to other memory: bnxt_re's completion queues do, when they are resized.
#[cfg(feature = "bnxt-re")]
impl<Q, D: DmaMemory, const N: usize> Owned<Q, D, N> {
    /// Gives the queue more memory, `block`, of which `take` gets the ring. Only one at a time.
    ///
    /// # Errors
    /// Those of `take`: the queue has not taken it, and it is freed.
    pub(crate) fn extend<E>(
        &mut self,
        block: D,
        take: impl FnOnce(&mut Q, RingMemory<'static>) -> Result<(), E>,
    ) -> Result<(), E> {
        // SAFETY: as in `build`: the block stays with the queue.
        let ring = unsafe { RingMemory::from_raw(block.base(), block.len()) };
        take(&mut self.queue, ring)?;
        self.other = Some(block);
        Ok(())
    }

    /// Whether it has two blocks now.
    pub(crate) const fn is_extended(&self) -> bool {
        self.other.is_some()
    }

    /// Takes back the one of two blocks that the queue has given up: `ring`, its first memory, is the proof. `None` if it is of
    /// neither.
    pub(crate) fn reduce(&mut self, ring: &RingMemory<'_>) -> Option<D> {
        let is_of = |block: &D| ring.base() == block.base();
        if !self.other.as_ref().is_some_and(is_of)
            && let (Some(first), Some(other)) = (self.blocks.first_mut(), self.other.as_mut())
            && is_of(first)
        {
            core::mem::swap(first, other);
        }
        self.other.take_if(|block| is_of(block))
    }
}

impl<Q, D: DmaMemory, const N: usize> Drop for Owned<Q, D, N> {
    fn drop(&mut self) {
        // SAFETY: neither is used again; the queue goes first, as in `release`.
        let blocks = unsafe {
            ManuallyDrop::drop(&mut self.queue);
            ManuallyDrop::take(&mut self.blocks)
        };
        blocks.into_iter().chain(self.other.take()).for_each(D::abandon);
    }
}

impl<Q, D: DmaMemory, const N: usize> Deref for Owned<Q, D, N> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.queue
    }
}

impl<Q, D: DmaMemory, const N: usize> DerefMut for Owned<Q, D, N> {
    fn deref_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

impl<Q: fmt::Debug, D: DmaMemory, const N: usize> fmt::Debug for Owned<Q, D, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("queue", &*self.queue).field("blocks", &*self.blocks).finish()
    }
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;

    use super::*;

    /// What became of blocks, by their length.
    #[derive(Debug, Default)]
    struct Fates {
        freed: heapless::Vec<usize, 4>,
        abandoned: heapless::Vec<usize, 4>,
    }

    #[derive(Debug)]
    struct Block<'f>(NonNull<u8>, usize, &'f RefCell<Fates>);

    // SAFETY: every block is of memory that outlives it, no two overlap, and no device is there.
    unsafe impl DmaMemory for Block<'_> {
        fn base(&self) -> NonNull<u8> {
            self.0
        }

        fn device_address(&self) -> u64 {
            0
        }

        fn len(&self) -> usize {
            self.1
        }

        fn abandon(self) {
            self.2.borrow_mut().abandoned.push(self.1).unwrap();
            core::mem::forget(self);
        }
    }

    impl Drop for Block<'_> {
        fn drop(&mut self) {
            self.2.borrow_mut().freed.push(self.1).unwrap();
        }
    }

    #[test]
    fn a_queue_that_was_not_released_abandons_its_memory() {
        let (mut first, mut second) = ([0_u64; 8], [0_u64; 16]);
        let places = (NonNull::from(&mut first).cast(), NonNull::from(&mut second).cast());
        let fates = RefCell::default();
        let build = |fails: bool| {
            Owned::build([Block(places.0, 64, &fates), Block(places.1, 128, &fates)], |[first, second]| {
                assert_eq!((first.len(), second.len()), (64, 128));
                if fails { Err(()) } else { Ok((first, second)) }
            })
        };
        let fate = || {
            let Fates { freed, abandoned } = fates.take();
            (freed.to_vec(), abandoned.to_vec())
        };
        let (none, both) = (std::vec::Vec::new, std::vec![64, 128]);
        assert!(build(true).is_err());
        assert_eq!(fate(), (both.clone(), none()));
        build(false).unwrap().release();
        assert_eq!(fate(), (both.clone(), none()));
        drop(build(false).unwrap());
        assert_eq!(fate(), (none(), both.clone()));
        assert!(build(false).unwrap().try_map(|_| Err::<(), _>(())).is_err());
        assert_eq!(fate(), (none(), both));
    }
}
