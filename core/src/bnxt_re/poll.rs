//! Polling: CQEs become work completions.
//!
//! A CQE is new when its phase bit is the ring's, which flips at every wrap. One requester CQE may complete many
//! requests; when `out` has no room for all, it stays and the next poll goes on with it.

use super::complete::{self, Cqe, Step, Taken};
use super::cq::CompletionQueue;
use super::cqe::{CqeType, PHASE_OFFSET};
use super::qp::{AsQueuePair, AsSharedReceiveQueue};
use crate::queue::Doorbell;
use crate::verbs::{CqFault, Endpoints, FaultKind, Pollable, SrqId, WorkCompletion};

/// Word of a CQE that holds its phase.
const PHASE_WORD: usize = PHASE_OFFSET / 8;

/// What a look at the next CQE has found.
enum Found {
    /// It is not new.
    Nothing,
    /// It completed one request, and was taken.
    One,
    /// Something else, which is still there.
    Other,
}

/// Bits of the word with the phase that differ from the ring's phase alone unless the CQE is new, and a requester's of
/// success: phase, type and status.
const NOT_PLAIN: u32 = 0xff1f;

impl CompletionQueue<'_> {
    /// Fills `out` with completions and returns how many.
    ///
    /// # Errors
    /// The first CQE that makes no sense; it was skipped, and the queue goes on. Completions found before it are
    /// returned first: the fault follows with the next call.
    #[inline]
    pub fn poll<'q, Q, R, E>(
        &mut self,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut [WorkCompletion],
    ) -> Result<usize, CqFault>
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let mut found = 0;
        if self.pending.is_none()
            && let Some(first) = out.first_mut()
        {
            // Most polls find one completion, or none.
            let one = self.poll_one::<false, _, _, _>(endpoints, doorbell, first);
            found = matches!(one, Found::One) as usize;
            let more = match one {
                Found::Nothing => false,
                Found::One => self.credit == 0 || self.is_new(),
                Found::Other => true,
            };
            if !more && u64::from(endpoints.flush_seq()) == self.flush_seen {
                return Ok(self.end_of_poll(doorbell, found));
            }
        }
        // The rest, or so many, that the way there may be longer.
        core::hint::cold_path();
        let found = self.poll_rest(endpoints, doorbell, out, found);
        if found == 0
            && let Some(fault) = self.pending.take()
        {
            return Err(fault);
        }
        Ok(found)
    }

    /// Goes on with a poll that has `filled` completions, and finds more, or something else than success of one request. If
    /// there is a fault, it is left pending.
    #[inline(never)]
    fn poll_rest<'q, Q, R, E>(
        &mut self,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut [WorkCompletion],
        filled: usize,
    ) -> usize
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let mut filled = filled;
        self.announce_due(doorbell);
        // A device that keeps writing CQEs that complete nothing does not keep the caller here.
        let mut idle = self.ring.entries();
        while self.pending.is_none() && idle != 0 {
            while let Some(wc) = out.get_mut(filled)
                && let Found::One = self.poll_one::<true, _, _, _>(endpoints, doorbell, wc)
            {
                filled += 1;
                self.announce_due(doorbell);
            }
            if filled >= out.len() {
                break;
            }
            let Some(cqe) = self.look(doorbell) else {
                self.flush(endpoints, out, &mut filled);
                break;
            };
            let before = filled;
            match self.take(&cqe, endpoints, doorbell, out, &mut filled) {
                Step::Kept => break,
                Step::Switched => continue,
                Step::Consumed => {}
            }
            idle -= (filled == before) as u32;
            self.advance();
            self.announce_due(doorbell);
        }
        self.end_of_poll(doorbell, filled)
    }

    /// Takes the next CQE if it is what most are: success of one request, see [`complete::one`]. The doorbell may be due
    /// after it. Without `SEARCH` it calls nothing, so that few registers have to be saved for a poll.
    #[inline(always)]
    fn poll_one<'q, const SEARCH: bool, Q, R, E>(
        &mut self,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut WorkCompletion,
    ) -> Found
    where
        Q: AsQueuePair<'q> + Pollable,
        E: Endpoints<Q, R>,
    {
        let entry = self.ring.entry();
        // One load tells phase, type and status.
        let other = (entry.load_valid::<PHASE_WORD>() ^ self.ring.phase()) & NOT_PLAIN;
        if other != 0 {
            return if other & 1 != 0 { Found::Nothing } else { Found::Other };
        }
        doorbell.from_device();
        if entry.high::<0>() != 0 {
            return Found::Other;
        }
        let (cq, key, index) = (self.id, entry.low::<0>(), entry.low::<1>() as u16);
        // The completion is put together outside, where it is seen that it does not touch the queue pair.
        let done = match endpoints.qp_at_hand(key) {
            Some(qp) => complete::one(qp.as_queue_pair(), cq, index),
            None if SEARCH => {
                core::hint::cold_path();
                endpoints.with_qp(key, |qp| complete::one(qp.as_queue_pair(), cq, index)).flatten()
            }
            None => None,
        };
        let Some((record, qp)) = done else { return Found::Other };
        *out = record.success(qp);
        self.advance();
        Found::One
    }

    /// Whether the next CQE is new.
    #[inline(always)]
    fn is_new(&self) -> bool {
        (self.ring.entry().load_valid::<PHASE_WORD>() ^ self.ring.phase()) & 1 == 0
    }

    /// The next CQE, if it is new.
    #[inline(always)]
    fn look(&self, doorbell: &impl Doorbell) -> Option<Cqe> {
        let entry = self.ring.entry();
        if !self.is_new() {
            return None;
        }
        doorbell.from_device();
        Some(Cqe(entry.load()))
    }

    /// Takes a CQE of any kind.
    #[inline(never)]
    fn take<'q, Q, R, E>(
        &mut self,
        cqe: &Cqe,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut [WorkCompletion],
        filled: &mut usize,
    ) -> Step
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let cq = self.id;
        let step = match cqe.cqe_type() {
            CqeType::REQ => with_qp(endpoints, cqe.word(0), |qp| {
                complete::requester(qp.as_queue_pair(), cq, cqe, out, filled)
            }),
            CqeType::RES_RC | CqeType::RES_UD | CqeType::RES_RAWETH_QP1 => {
                let mut tagged = None;
                let step = with_qp(endpoints, cqe.word(1), |qp| {
                    complete::responder(qp.as_queue_pair(), cq, cqe, out, filled, &mut tagged)
                });
                match tagged {
                    Some((srq, tag)) => Self::untag(endpoints, doorbell, srq, tag, out, filled, cqe),
                    None => step,
                }
            }
            CqeType::NO_OP => Ok(Step::Consumed),
            CqeType::TERMINAL => with_qp(endpoints, cqe.word(0), |qp| {
                qp.as_queue_pair().set_error();
                Ok(Step::Consumed)
            }),
            CqeType::CUT_OFF => match self.resize.take_new() {
                Some((new, plan)) => {
                    self.switch(new, &plan, cqe.resize_toggle(), doorbell);
                    Ok(Step::Switched)
                }
                None => Err(FaultKind::Unexpected(CqeType::CUT_OFF.0)),
            },
            CqeType(other) => Err(FaultKind::UnknownType(other)),
        };
        step.unwrap_or_else(|kind| {
            self.pending = Some(CqFault { cq, entry: self.ring.head(), kind, cqe: cqe.bytes() });
            Step::Consumed
        })
    }

    /// Finishes a completion whose request came from a shared receive queue.
    fn untag<'q, Q, R, E>(
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        srq: SrqId,
        tag: u32,
        out: &mut [WorkCompletion],
        filled: &mut usize,
        cqe: &Cqe,
    ) -> Taken
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let wr_id = endpoints.with_srq(srq, |srq| {
            let srq = srq.as_srq();
            let wr_id = srq.release(tag);
            if srq.starves() {
                srq.flush(doorbell);
            }
            wr_id
        });
        match (wr_id.flatten(), out.get_mut(*filled)) {
            (Some(wr_id), Some(wc)) => {
                wc.wr_id = wr_id;
                *filled += 1;
                Ok(Step::Consumed)
            }
            _ => Err(FaultKind::BadIndex { qp: cqe.word(1) as u32, index: tag }),
        }
    }

    #[inline]
    fn flush<'q, Q, R, E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion], filled: &mut usize)
    where
        Q: AsQueuePair<'q> + Pollable,
        E: Endpoints<Q, R>,
    {
        let seq = endpoints.flush_seq().into();
        if seq == self.flush_seen {
            return;
        }
        let cq = self.id;
        let mut done = true;
        endpoints.each_qp(|qp| {
            done = complete::flush(qp.as_queue_pair(), cq, out, filled);
            done
        });
        if done {
            self.flush_seen = seq;
        }
    }
}

/// Looks a queue pair up by the handle of a CQE. Zero is a CQE of a queue pair that is gone.
fn with_qp<Q, R, E: Endpoints<Q, R>>(
    endpoints: &mut E,
    handle: u64,
    f: impl FnOnce(&mut Q) -> Taken,
) -> Taken {
    if handle == 0 {
        return Ok(Step::Consumed);
    }
    let found = if handle >> 32 == 0 { endpoints.with_qp(handle as u32, f) } else { None };
    found.unwrap_or(Err(FaultKind::UnknownQp(handle)))
}
