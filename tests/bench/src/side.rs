//! Who does the work: the library of this workspace, or the vendor's C provider.

use directverbs::verbs::QpCapabilities;

use crate::meter::{Meter, Nothing};
use crate::work::{MANY, Operation, Sends};

/// Queue pairs of a side, each with a completion queue of its own. One window of the timer calls each once.
pub const LANES: usize = 8;

/// SGEs of a request.
pub const SGES: u32 = 2;

/// Capabilities asked for: enough for what one round posts, and small enough that all lanes stay in the second-level
/// cache.
pub const ASKED: QpCapabilities = QpCapabilities {
    max_send_wr: 64,
    max_recv_wr: 64,
    max_send_sge: SGES,
    max_recv_sge: SGES,
    max_inline_data: 64,
};

/// Completions asked for.
pub const CQES: u32 = 150;

const _: () = assert!(MANY <= ASKED.max_recv_wr as usize && MANY <= ASKED.max_send_wr as usize);

/// A side, with [`LANES`] queue pairs in state RTS. Whatever fails ends the process: a benchmark of failures says
/// nothing.
pub trait Side {
    /// Posts [`Sends::ALL`] at `index` to a lane, under one doorbell.
    fn post_send<M: Meter>(&mut self, lane: usize, index: usize, meter: &M);

    /// Posts receive requests to a lane, under one doorbell.
    fn post_recv<M: Meter>(&mut self, lane: usize, count: usize, meter: &M);

    /// Writes, in place of the device, CQEs for the [`Sends::ALL`] at `index` that was posted last to a lane: one for
    /// each request that asked for a completion.
    fn complete_sends(&mut self, lane: usize, index: usize);

    /// Writes, in place of the device, CQEs for `count` receive requests of a lane.
    fn complete_recvs(&mut self, lane: usize, count: usize);

    /// Polls a lane once, with room for [`MANY`] completions, and gives their number.
    fn poll<M: Meter>(&mut self, lane: usize, meter: &M) -> usize;

    /// Checks the completions that the last poll gave: all successes, in the order of the posts.
    fn check(&self, completions: usize);
}

/// Carries out `operation` once on each lane under the meter, and what has to be before and after without it.
pub fn round<M: Meter>(side: &mut impl Side, operation: Operation, meter: &mut M) {
    match operation {
        Operation::PostSend(index) => {
            meter.window(|m| (0..LANES).for_each(|lane| side.post_send(lane, index, m)));
            for lane in 0..LANES {
                side.complete_sends(lane, index);
                finish(side, lane, Sends::ALL[index].completions());
            }
        }
        Operation::PostRecv(count) => {
            meter.window(|m| (0..LANES).for_each(|lane| side.post_recv(lane, count, m)));
            for lane in 0..LANES {
                side.complete_recvs(lane, count);
                finish(side, lane, count);
            }
        }
        Operation::Poll(index) => {
            for lane in 0..LANES {
                side.post_send(lane, index, &Nothing);
                side.complete_sends(lane, index);
            }
            let mut polled = [0; LANES];
            meter.window(|m| {
                for (lane, polled) in polled.iter_mut().enumerate() {
                    *polled = side.poll(lane, m);
                }
            });
            let expected = Sends::ALL[index].completions();
            assert_eq!(polled, [expected; LANES], "completions of {operation}");
            side.check(expected);
        }
    }
}

fn finish(side: &mut impl Side, lane: usize, completions: usize) {
    assert_eq!(side.poll(lane, &Nothing), completions, "completions of a round");
    side.check(completions);
}
