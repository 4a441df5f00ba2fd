//! Memory of rings, and the queues on it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use directverbs::queue::RingMemory;
use directverbs::text;
use directverbs::verbs::MemoryError;

use super::kernel::Kernel;
use super::mapping::Pages;
use crate::error::Result;

/// Memory of a ring. Its contents are reached by the device, and by the one queue on it.
pub struct RingPages {
    memory: Memory,
    /// A queue is on it.
    taken: AtomicBool,
}

impl RingPages {
    /// At least `length` bytes, and one page at least.
    ///
    /// # Errors
    /// There is no memory, or `length` is too large.
    pub fn new(kernel: &Arc<dyn Kernel>, length: usize) -> Result<Arc<Self>> {
        Ok(Self::of(Memory::Own(Pages::new(kernel, length)?)))
    }

    /// The ring of a queue that another library has created in this process.
    ///
    /// # Safety
    /// `length` bytes at `first` are readable and writable until what is returned is dropped, and until then nobody in this
    /// process reads or writes there: the other library neither posts to nor polls the queue any more.
    pub unsafe fn foreign(first: NonNull<u8>, length: usize) -> Arc<Self> {
        Self::of(Memory::Foreign(first, length))
    }

    fn of(memory: Memory) -> Arc<Self> {
        Arc::new(Self { memory, taken: AtomicBool::new(false) })
    }

    /// Address of the first byte, as the kernel and the device are told it.
    pub fn address(&self) -> u64 {
        self.first().as_ptr() as u64
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        match &self.memory {
            Memory::Own(pages) => pages.len(),
            Memory::Foreign(_, length) => *length,
        }
    }

    fn first(&self) -> NonNull<u8> {
        match &self.memory {
            Memory::Own(pages) => pages.first(),
            Memory::Foreign(first, _) => *first,
        }
    }
}

/// Whose memory it is.
enum Memory {
    /// Mapped for it, zeroed whole pages.
    Own(Pages),
    /// Another library's.
    Foreign(NonNull<u8>, usize),
}

// SAFETY: foreign memory is valid and untouched by others, as its giver vouches, from whatever thread it is reached.
unsafe impl Send for Memory {}
// SAFETY: as above; a shared reference only tells where it is.
unsafe impl Sync for Memory {}

impl fmt::Debug for RingPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RingPages({:#x}, {})", self.address(), self.len())
    }
}

/// A queue of the core and the ring memory under it.
///
/// The queue's memory lives as long as this value does, not for ever as its type says: the queue must never be moved out.
#[derive(Debug)]
pub(crate) struct Owned<Q> {
    // Dropped in this order: the queue before its memory.
    queue: Q,
    rings: Vec<Taken>,
}

/// Ring memory with a queue on it.
#[derive(Debug)]
struct Taken(Arc<RingPages>);

impl Taken {
    fn take(pages: &Arc<RingPages>) -> std::result::Result<Self, MemoryError> {
        if pages.taken.swap(true, Ordering::Acquire) {
            return Err(MemoryError::Mismatch(text!("the ring memory has a queue on it already")));
        }
        Ok(Self(Arc::clone(pages)))
    }

    /// The memory.
    ///
    /// # Safety
    /// It is asked for once, and `self` outlives what is returned.
    unsafe fn memory(&self) -> RingMemory<'static> {
        let Self(ring) = self;
        // SAFETY: the memory is there, readable and writable, and nothing but the queue that has taken them and the device
        // reads or writes there: they are handed out by address only. That they outlive the queue, the caller vouches for.
        unsafe { RingMemory::from_raw(ring.first(), ring.len()) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

impl<Q> Owned<Q> {
    /// Builds a queue over `rings`; `build` gets the memory of each that there is, in order.
    ///
    /// # Errors
    /// Those of `build`, or a ring that has a queue on it already.
    pub fn build<const N: usize>(
        rings: [Option<&Arc<RingPages>>; N],
        build: impl FnOnce([Option<RingMemory<'static>>; N]) -> std::result::Result<Q, MemoryError>,
    ) -> std::result::Result<Self, MemoryError> {
        let mut taken = Vec::with_capacity(N);
        let mut memory = [const { None }; N];
        for (ring, memory) in rings.into_iter().zip(&mut memory) {
            if let Some(ring) = ring {
                let ring = Taken::take(ring)?;
                // SAFETY: asked for once, and kept until the queue is gone; if building fails, the queue does not come to be,
                // and what `build` had is gone when it returns.
                *memory = Some(unsafe { ring.memory() });
                taken.push(ring);
            }
        }
        Ok(Self { queue: build(memory)?, rings: taken })
    }

    /// Gives the queue one more ring. What it gives up stays mapped as long as the queue: the device may still write there.
    ///
    /// # Errors
    /// Those of `take`, or a ring that has a queue on it already.
    pub fn extend(
        &mut self,
        ring: &Arc<RingPages>,
        take: impl FnOnce(&mut Q, RingMemory<'static>) -> std::result::Result<(), MemoryError>,
    ) -> std::result::Result<(), MemoryError> {
        let ring = Taken::take(ring)?;
        // SAFETY: asked for once, and kept until the queue is gone.
        let memory = unsafe { ring.memory() };
        self.rings.push(ring);
        take(&mut self.queue, memory)
    }
}

impl<Q> Deref for Owned<Q> {
    type Target = Q;

    #[inline(always)]
    fn deref(&self) -> &Q {
        &self.queue
    }
}

impl<Q> DerefMut for Owned<Q> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

#[cfg(test)]
mod tests {
    use super::super::Linux;
    use super::*;

    #[test]
    fn ring_memory_has_one_queue_at_a_time() {
        let ring = RingPages::new(&(Arc::new(Linux) as Arc<dyn Kernel>), 1).expect("memory");
        let queue = || Owned::build([Some(&ring), None], |[a, b]| Ok((a.map(|m| m.len()), b.is_some())));
        let first = queue().expect("free");
        assert_eq!(*first, (Some(ring.len()), false));
        assert_eq!(
            queue().expect_err("taken"),
            MemoryError::Mismatch(text!("the ring memory has a queue on it already"))
        );
        drop(first);
        assert!(queue().is_ok());
        let twice = Owned::build([Some(&ring), Some(&ring)], |_| Ok(()));
        assert!(twice.is_err() && queue().is_ok());
        let failed = Owned::build([Some(&ring)], |_| Err::<(), _>(MemoryError::Mismatch(text!("no"))));
        assert!(failed.is_err() && queue().is_ok());
    }
}
