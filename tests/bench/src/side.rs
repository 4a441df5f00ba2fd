//! Who does the work: the library of this workspace, or the vendor's C provider.

use crate::meter::Meter;
use crate::work::{MANY, Operation, Sends};

/// Queue pairs of a side, each with a completion queue of its own.
pub const LANES: usize = 8;

/// Capabilities asked for: enough for what one round posts, and small enough that all lanes stay in the second-level
/// cache.
pub const SEND_WRS: u32 = 64;
/// Receive requests asked for.
pub const RECV_WRS: u32 = 64;
/// SGEs of a request asked for.
pub const SGES: u32 = 2;
/// Inline bytes asked for.
pub const INLINE: u32 = 64;
/// Completions asked for.
pub const CQES: u32 = 150;

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
pub fn round<M: Meter>(side: &mut impl Side, operation: Operation, meter: &M) {
    let nothing = crate::meter::Nothing;
    match operation {
        Operation::PostSend(index) => {
            (0..LANES).for_each(|lane| side.post_send(lane, index, meter));
            for lane in 0..LANES {
                side.complete_sends(lane, index);
                finish(side, lane, Sends::ALL[index].completions());
            }
        }
        Operation::PostRecv(count) => {
            (0..LANES).for_each(|lane| side.post_recv(lane, count, meter));
            for lane in 0..LANES {
                side.complete_recvs(lane, count);
                finish(side, lane, count);
            }
        }
        Operation::Poll(index) => {
            for lane in 0..LANES {
                side.post_send(lane, index, &nothing);
                side.complete_sends(lane, index);
            }
            let mut polled = [0; LANES];
            for (lane, polled) in polled.iter_mut().enumerate() {
                *polled = side.poll(lane, meter);
            }
            let expected = Sends::ALL[index].completions();
            assert_eq!(polled, [expected; LANES], "completions of {operation}");
            side.check(expected);
        }
    }
}

fn finish(side: &mut impl Side, lane: usize, completions: usize) {
    assert_eq!(side.poll(lane, &crate::meter::Nothing), completions, "completions of a round");
    side.check(completions);
}

const _: () = assert!(MANY <= RECV_WRS as usize && MANY <= SEND_WRS as usize);
