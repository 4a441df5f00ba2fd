use std::collections::HashMap;

use directverbs::queue::Doorbell;
use directverbs::verbs::{QpId, WorkCompletion};

/// Which requests are outstanding: whatever a device says, each completes at most once, and only if it was posted.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The queue pair of each, or `None` for one that a shared receive queue holds for any of them.
    posted: HashMap<u64, Option<QpId>>,
    next: u64,
}

impl Ledger {
    /// The number of the next request to post.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// A request with [`Ledger::next`] was posted to `qp`, or to a shared receive queue.
    pub fn posted(&mut self, qp: Option<QpId>) {
        self.posted.insert(self.next, qp);
        self.next += 1;
    }

    /// A queue pair was reset.
    pub fn forget(&mut self, qp: QpId) {
        self.posted.retain(|_, at| *at != Some(qp));
    }

    /// Checks completions off.
    pub fn completed(&mut self, completions: &[WorkCompletion]) {
        for wc in completions {
            let posted = self.posted.remove(&wc.wr_id);
            let known = posted.is_some_and(|qp| qp.is_none_or(|qp| qp == wc.qp));
            assert!(known, "completion of a request that is not outstanding: {wc:?}");
        }
    }
}

/// A doorbell page that nobody listens to.
pub(super) struct Silent;

impl Doorbell for Silent {
    fn store(&self, _: usize, _: u64) {}
}

/// Completions before a poll, to see that it writes no more than it says.
pub(super) const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// An array of completions, all [`UNTOUCHED`].
pub(super) fn blank<const N: usize>() -> [WorkCompletion; N] {
    [WorkCompletion { wr_id: UNTOUCHED, ..WorkCompletion::default() }; N]
}

/// Checks that only the first `count` completions were written; the next may have been begun.
pub(super) fn check_blank(out: &[WorkCompletion], count: usize) {
    assert!(count <= out.len(), "{count} completions, room for {}", out.len());
    assert!(out.iter().skip(count + 1).all(|wc| wc.wr_id == UNTOUCHED), "completions beyond the count");
}
