use crate::verbs::{Endpoints, Pollable, SharedReceiveQueue, SrqId};

/// No free slot, or the key is there already.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("queue pair table: no slot for key {key:#x}")]
pub struct TableFull<Q> {
    /// The key.
    pub key: u32,
    /// What could not be put in.
    pub qp: Q,
}

/// A table of queue pairs and shared receive queues over caller-provided slots.
///
/// A queue pair sits at its key modulo the number of slots, or in the next free slot: with keys that the caller
/// chooses (bnxt_re handles), or numbers that the device gives out in order, a lookup is one compare.
#[derive(Debug)]
pub struct QpTable<'t, Q, S> {
    slots: &'t mut [Option<Q>],
    srqs: &'t mut [S],
    mask: usize,
    flush_seq: u32,
}

impl<'t, Q: Pollable, S> QpTable<'t, Q, S> {
    /// An empty table over the longest power-of-two prefix of `slots`, and the shared receive queues `srqs`.
    pub fn new(slots: &'t mut [Option<Q>], srqs: &'t mut [S]) -> Self {
        slots.fill_with(|| None);
        let usable = if slots.is_empty() { 0 } else { 1usize << slots.len().ilog2() };
        let (slots, _) = slots.split_at_mut(usable);
        Self { slots, srqs, mask: usable.wrapping_sub(1), flush_seq: 0 }
    }

    fn probe(&self, key: u32) -> impl Iterator<Item = usize> + use<Q, S> {
        let (start, mask, len) = (key as usize, self.mask, self.slots.len());
        (0..len).map(move |step| start.wrapping_add(step) & mask)
    }

    fn find(&self, key: u32) -> Option<usize> {
        for i in self.probe(key) {
            if self.slots.get(i)?.as_ref()?.key() == key {
                return Some(i);
            }
        }
        None
    }

    /// The queue pair with `key` where it may be in another slot than its own, and the count of flushes.
    #[cold]
    #[inline(never)]
    fn search(&mut self, key: u32) -> Option<(&mut Q, &mut u32)> {
        let at = self.find(key)?;
        Some((self.slots.get_mut(at)?.as_mut()?, &mut self.flush_seq))
    }

    /// Puts a queue pair in.
    ///
    /// # Errors
    /// The table is full, or has that key already; the queue pair comes back.
    pub fn insert(&mut self, qp: Q) -> Result<(), TableFull<Q>> {
        let key = qp.key();
        for i in self.probe(key) {
            match self.slots.get_mut(i) {
                Some(slot @ None) => {
                    *slot = Some(qp);
                    // It may have come with requests to flush.
                    self.flush_seq = self.flush_seq.wrapping_add(1);
                    return Ok(());
                }
                Some(Some(other)) if other.key() != key => {}
                _ => break,
            }
        }
        Err(TableFull { key, qp })
    }

    /// Takes a queue pair out. Those that a lookup would no longer reach move up.
    pub fn remove(&mut self, key: u32) -> Option<Q> {
        let at = self.find(key)?;
        let removed = self.slots.get_mut(at)?.take();
        let mut next = (at + 1) & self.mask;
        while let Some(moved) = self.slots.get_mut(next).and_then(Option::take) {
            let put = self.insert(moved);
            debug_assert!(put.is_ok(), "a slot was freed for it");
            next = (next + 1) & self.mask;
        }
        removed
    }

    /// The shared receive queues.
    pub fn srqs(&mut self) -> &mut [S] {
        self.srqs
    }
}

/// Runs `f` on a queue pair, and moves `flush_seq` with its count.
#[inline(always)]
fn counted<Q: Pollable, R>(flush_seq: &mut u32, qp: &mut Q, f: impl FnOnce(&mut Q) -> R) -> R {
    let before = qp.flush_seq();
    let result = f(qp);
    let moved = qp.flush_seq().wrapping_sub(before);
    if moved != 0 {
        core::hint::cold_path();
        *flush_seq = flush_seq.wrapping_add(moved);
    }
    result
}

impl<Q: Pollable, S: SharedReceiveQueue> Endpoints<Q, S> for QpTable<'_, Q, S> {
    #[inline(always)]
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut Q) -> R) -> Option<R> {
        let flush_seq = &mut self.flush_seq;
        match self.slots.get_mut(key as usize & self.mask) {
            Some(Some(qp)) if qp.key() == key => Some(counted(flush_seq, qp, f)),
            _ => {
                let (qp, flush_seq) = self.search(key)?;
                Some(counted(flush_seq, qp, f))
            }
        }
    }

    #[inline(always)]
    fn qp_at_hand(&mut self, key: u32) -> Option<&mut Q> {
        let qp = self.slots.get_mut(key as usize & self.mask)?.as_mut()?;
        if qp.key() == key { Some(qp) } else { None }
    }

    fn with_srq<R>(&mut self, id: SrqId, f: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.srqs.iter_mut().find(|s| s.id() == id).map(f)
    }

    fn each_qp(&mut self, mut f: impl FnMut(&mut Q) -> bool) {
        for qp in self.slots.iter_mut().flatten() {
            if !counted(&mut self.flush_seq, qp, &mut f) {
                return;
            }
        }
    }

    fn flush_seq(&self) -> u32 {
        self.flush_seq
    }
}
