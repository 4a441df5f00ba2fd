//! Bytes of bookkeeping for one entry of a queue: what is allocated besides the ring itself.
//!
//! Two queues of different depths are created, and what the heap and the anonymous mappings have grown by is compared,
//! less the rings. What does not depend on the depth falls out.

use directverbs::verbs::QpCapabilities;

use crate::device::Rings;
use crate::ours::{BnxtRe, Ionic, Queues as _};
use crate::side::{ASKED, CQES};
use crate::theirs;
use crate::work::Family;

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Send queue.
    Send,
    /// Receive queue.
    Recv,
    /// Completion queue.
    Completion,
}

impl Queue {
    /// All.
    pub const ALL: [Self; 3] = [Self::Send, Self::Recv, Self::Completion];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send queue",
            Self::Recv => "receive queue",
            Self::Completion => "completion queue",
        }
    }

    /// What to ask for so that this queue has `entries`.
    fn asked(self, entries: u32) -> (QpCapabilities, u32) {
        match self {
            Self::Send => (QpCapabilities { max_send_wr: entries, ..ASKED }, CQES),
            Self::Recv => (QpCapabilities { max_recv_wr: entries, ..ASKED }, CQES),
            Self::Completion => (ASKED, entries),
        }
    }
}

/// Entries of the two queues.
const ENTRIES: [u32; 2] = [1000, 8000];

/// Bytes for one entry: C's and ours.
pub fn for_one_entry(family: Family, queue: Queue) -> (f64, f64) {
    let theirs = ENTRIES.map(|entries| theirs_for(family, queue, entries));
    let ours = ENTRIES.map(|entries| ours_for(family, queue, entries));
    (slope(theirs), slope(ours))
}

/// Bytes for one entry more, to a tenth: the heap's own rounding is below that.
fn slope([few, many]: [usize; 2]) -> f64 {
    let tenths = many.saturating_sub(few) as f64 * 10.0 / f64::from(ENTRIES[1] - ENTRIES[0]);
    tenths.round() / 10.0
}

fn theirs_for(family: Family, queue: Queue, entries: u32) -> usize {
    let (asked, cqes) = queue.asked(entries);
    let rings = Rings::new(family, &asked, cqes);
    let pd = theirs::open(family);
    let (grown, _queues) = growth(|| {
        let cq = theirs::completion_queue(&pd, cqes);
        (theirs::queue_pair(&pd, &cq, asked), cq)
    });
    grown - rings.queue_pair_bytes - rings.completion_queue_bytes
}

/// Our rings are in pages that are counted nowhere.
fn ours_for(family: Family, queue: Queue, entries: u32) -> usize {
    let (asked, cqes) = queue.asked(entries);
    match family {
        Family::BnxtRe => growth(|| BnxtRe::make(0, &asked, cqes)).0,
        Family::Ionic => growth(|| Ionic::make(0, &asked, cqes)).0,
    }
}

/// What `f` has made, and bytes that the heap and the anonymous mappings have grown by meanwhile.
fn growth<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = in_use();
    let made = f();
    (in_use() - before, made)
}

/// Bytes of the heap in use, and of anonymous mappings that a library made by itself.
fn in_use() -> usize {
    // SAFETY: reads the allocator's counts.
    let heap = unsafe { libc::mallinfo2() };
    heap.uordblks + heap.hblkhd + preload::anonymous_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_with_the_depth_counts_and_the_rest_does_not() {
        assert_eq!(slope([500 + 24 * 1000, 500 + 24 * 8000]), 24.0);
        assert_eq!((slope([500, 516]), slope([516, 500])), (0.0, 0.0));
    }

    #[test]
    fn an_allocation_is_seen_in_the_heap() {
        let (grown, made) = growth(|| vec![1u8; 1 << 20]);
        assert!(grown >= made.len(), "{grown}");
    }
}
