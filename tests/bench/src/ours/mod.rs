//! The library of this workspace, used as a program uses it: queues whose bookkeeping is in boxes, in a table, with a
//! doorbell page of plain memory.

pub mod bnxt_re;
pub mod ionic;

use directverbs::verbs::{LKey, RKey, SendFlags, SendRequest, Sge};

use crate::side::{LANES, SGES};
use crate::work::{INLINE_BYTES, MANY, SGE_BYTES, Sends, Shape};

/// Slots of the table of queue pairs.
pub const TABLE: usize = 64;

/// Number of the first queue pair.
pub const FIRST_QP: u32 = 9;

/// Number of the first completion queue.
pub const FIRST_CQ: u32 = 30;

const _: () = assert!(LANES <= TABLE);

/// The SGEs that requests name.
pub fn sges() -> &'static [Sge] {
    let sge = |i| Sge::new(0x10_0000 + u64::from(i * SGE_BYTES), SGE_BYTES, LKey::truncated(0x1234));
    Vec::leak((0..SGES).map(sge).collect())
}

/// The send requests, by their index in [`Sends::ALL`].
pub fn send_requests() -> [&'static [SendRequest<'static>]; Sends::ALL.len()] {
    let sges = sges();
    let message: &'static [u8] = Vec::leak((0..INLINE_BYTES as u8).collect());
    let pieces: &'static [&'static [u8]] = Vec::leak(vec![message]);
    Sends::ALL.map(|sends| {
        let write = SendRequest::write(0x20_0000, RKey::truncated(0x77));
        let request = match sends.shape {
            Shape::Write => write.sges(&sges[..1]),
            Shape::Send => SendRequest::send().sges(&sges[..1]),
            Shape::Inline => write.inline(pieces),
            Shape::TwoSges => write.sges(sges),
        };
        let flags = |i| if sends.signals(i) { SendFlags::SIGNALED } else { SendFlags::empty() };
        &*Vec::leak((0..sends.count).map(|i| request.wr_id(i as u64).flags(flags(i))).collect())
    })
}

/// Room for the completions of a poll.
pub type Completions = [directverbs::verbs::WorkCompletion; MANY];

/// Checks completions: successes, the last of which is the last of its batch.
pub fn check(completions: &Completions, count: usize) {
    use directverbs::verbs::WcStatus;
    for (i, wc) in completions.iter().take(count).enumerate() {
        assert_eq!(wc.status, WcStatus::Success, "completion {i} of {count}");
        if count > 1 {
            assert_eq!(wc.wr_id, i as u64, "completion {i} of {count}");
        }
    }
}
