use std::collections::HashMap;

use directverbs::verbs::{QpId, WcStatus, WorkCompletion};

/// Which requests are outstanding: whatever a device says, each completes at most once, and only if it was posted.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    posted: HashMap<u64, QpId>,
    next: u64,
}

impl Ledger {
    /// The number of the next request to post.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// A request with [`Ledger::next`] was posted to `qp`.
    pub fn posted(&mut self, qp: QpId) {
        self.posted.insert(self.next, qp);
        self.next += 1;
    }

    /// A queue pair was reset.
    pub fn forget(&mut self, qp: QpId) {
        self.posted.retain(|_, at| *at != qp);
    }

    /// Checks completions off.
    pub fn completed(&mut self, completions: &[WorkCompletion]) {
        for wc in completions {
            let qp = self.posted.remove(&wc.wr_id);
            assert_eq!(qp, Some(wc.qp), "completion of a request that is not outstanding: {wc:?}");
            assert!(wc.status != WcStatus::WrFlush || wc.vendor_err == 0, "flushed by the driver: {wc:?}");
        }
    }
}

/// Completions before a poll, to see that it writes no more than it says.
pub(super) const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// An array of completions, all [`UNTOUCHED`].
pub(super) fn blank<const N: usize>() -> [WorkCompletion; N] {
    [WorkCompletion { wr_id: UNTOUCHED, ..WorkCompletion::default() }; N]
}

/// Checks that only the first `count` completions were written.
pub(super) fn check_blank(out: &[WorkCompletion], count: usize) {
    assert!(count <= out.len(), "{count} completions, room for {}", out.len());
    assert!(out.iter().skip(count).all(|wc| wc.wr_id == UNTOUCHED), "completions beyond the count");
}
