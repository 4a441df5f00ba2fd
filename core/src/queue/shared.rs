//! The form of a queue that several cores share: a spin lock around it.
//!
//! Lock order: a completion queue before a queue pair or shared receive queue, and never two of a kind at once. Polling
//! keeps to it by itself, and so does posting when the completion queue is locked first:
//!
//! ```ignore
//! cq.with(|cq| qp.with(|qp| qp.post_send(cq, &requests)))
//! ```

#[cfg(loom)]
use loom::sync::{Mutex, atomic::AtomicU32, atomic::Ordering::Relaxed};
#[cfg(not(loom))]
use {core::sync::atomic::AtomicU32, core::sync::atomic::Ordering::Relaxed, spin::Mutex};

use crate::verbs::{Endpoints, Pollable, SharedReceiveQueue, SrqId};

/// A queue that several cores share.
#[derive(Debug)]
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Puts a lock around a queue.
    #[cfg(not(loom))]
    pub const fn new(queue: T) -> Self {
        Self(Mutex::new(queue))
    }

    /// Puts a lock around a queue.
    #[cfg(loom)]
    pub fn new(queue: T) -> Self {
        Self(Mutex::new(queue))
    }

    /// Runs `f` while holding the lock.
    #[cfg(not(loom))]
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock())
    }

    /// Runs `f` while holding the lock.
    #[cfg(loom)]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        match self.0.lock() {
            Ok(mut guard) => f(&mut guard),
            Err(poisoned) => f(&mut poisoned.into_inner()),
        }
    }

    /// Takes the lock off.
    #[cfg(not(loom))]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// [`super::QpTable`] whose slots are locked one by one, for pollers and posters on several cores.
#[derive(Debug)]
pub struct SharedTable<'t, Q, S> {
    slots: &'t [Shared<Option<Q>>],
    srqs: &'t [Shared<S>],
    /// Held while one is put in, so that no two with the same key are. It comes before the slots in the lock order.
    inserting: Shared<()>,
    flush_seq: AtomicU32,
}

impl<'t, Q: Pollable, S> SharedTable<'t, Q, S> {
    /// A table over slots that are all empty, and shared receive queues. Slots past a power of two are not used.
    pub fn new(slots: &'t [Shared<Option<Q>>], srqs: &'t [Shared<S>]) -> Self {
        let usable = if slots.is_empty() { 0 } else { 1usize << slots.len().ilog2() };
        let (slots, _) = slots.split_at(usable);
        Self { slots, srqs, inserting: Shared::new(()), flush_seq: AtomicU32::new(0) }
    }

    fn probe(&self, key: u32) -> impl Iterator<Item = &'t Shared<Option<Q>>> + use<'t, Q, S> {
        let (slots, mask) = (self.slots, self.slots.len().wrapping_sub(1));
        (0..slots.len()).filter_map(move |step| slots.get((key as usize).wrapping_add(step) & mask))
    }

    /// Puts a queue pair in, or gives it back if the table is full or has its key already.
    ///
    /// # Errors
    /// The queue pair.
    pub fn insert(&self, qp: Q) -> Result<(), Q> {
        let key = qp.key();
        let mut qp = Some(qp);
        self.inserting.with(|()| {
            if self.with_qp(key, |_| ()).is_some() {
                return;
            }
            for slot in self.probe(key) {
                slot.with(|slot| {
                    if slot.is_none() {
                        *slot = qp.take();
                    }
                });
                if qp.is_none() {
                    // It may have come with requests to flush.
                    self.flush_seq.fetch_add(1, Relaxed);
                    return;
                }
            }
        });
        qp.map_or(Ok(()), Err)
    }

    /// Takes a queue pair out.
    pub fn remove(&self, key: u32) -> Option<Q> {
        self.probe(key).find_map(|slot| slot.with(|slot| slot.take_if(|qp| qp.key() == key)))
    }

    /// Runs `f` on the queue pair with `key`.
    #[inline]
    pub fn with_qp<R>(&self, key: u32, f: impl FnOnce(&mut Q) -> R) -> Option<R> {
        let mut f = Some(f);
        self.probe(key).find_map(|slot| {
            slot.with(|slot| {
                let qp = slot.as_mut().filter(|qp| qp.key() == key)?;
                Some(self.counted(qp, f.take()?))
            })
        })
    }

    fn counted<R>(&self, qp: &mut Q, f: impl FnOnce(&mut Q) -> R) -> R {
        let before = qp.flush_seq();
        let result = f(qp);
        let moved = qp.flush_seq().wrapping_sub(before);
        if moved != 0 {
            self.flush_seq.fetch_add(moved, Relaxed);
        }
        result
    }
}

impl<Q: Pollable, S: SharedReceiveQueue> Endpoints<Q, S> for &SharedTable<'_, Q, S> {
    #[inline]
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut Q) -> R) -> Option<R> {
        SharedTable::with_qp(self, key, f)
    }

    fn with_srq<R>(&mut self, id: SrqId, f: impl FnOnce(&mut S) -> R) -> Option<R> {
        let mut f = Some(f);
        self.srqs.iter().find_map(|srq| srq.with(|srq| (srq.id() == id).then(|| f.take().map(|f| f(srq)))?))
    }

    fn each_qp(&mut self, mut f: impl FnMut(&mut Q) -> bool) {
        for slot in self.slots {
            let go_on = slot.with(|slot| slot.as_mut().is_none_or(|qp| self.counted(qp, &mut f)));
            if !go_on {
                return;
            }
        }
    }

    fn flush_seq(&self) -> u32 {
        self.flush_seq.load(Relaxed)
    }
}
