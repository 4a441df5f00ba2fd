//! The library of this workspace, used as a program uses it: queues whose bookkeeping is in boxes, in a table, with a
//! doorbell page of plain memory.

pub mod bnxt_re;
pub mod ionic;

use directverbs::verbs::{WcStatus, WorkCompletion};

use crate::side::LANES;
use crate::work::MANY;

/// Slots of the table of queue pairs.
const TABLE: usize = 64;

/// Number of the first queue pair.
const FIRST_QP: u32 = 9;

/// Number of the first completion queue.
const FIRST_CQ: u32 = 30;

const _: () = assert!(LANES <= TABLE);

/// Room for the completions of a poll.
type Completions = [WorkCompletion; MANY];

/// Checks completions: successes, in the order of the posts.
fn check(completions: &Completions, count: usize) {
    for (i, wc) in completions.iter().take(count).enumerate() {
        assert_eq!(wc.status, WcStatus::Success, "status of completion {i} of {count}");
        if count > 1 {
            assert_eq!(wc.wr_id, i as u64, "completion {i} of {count}");
        }
    }
}
