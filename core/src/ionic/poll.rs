//! Polling: CQEs become completions.

use super::completion::Slots;
use super::cq::CompletionQueue;
use super::cq_ring::{COLOR, CqRing, QTF_WORD, STALE_QID};
use super::cqe::{CqeType, IdxTimestamp, QidTypeFlags, RecvCqe, SendCqe, Status};
use super::qp::QueuePair;
use crate::queue::{DeviceMemory, Doorbell, Entry, Store};
use crate::verbs::{CqFault, Endpoints, FaultKind, QpId, WorkCompletion};

/// A CQE as it was read.
#[derive(Clone, Copy)]
struct Cqe([u64; 4]);

impl Cqe {
    #[inline(always)]
    fn send(self) -> SendCqe {
        zerocopy::transmute!(self.0.map(u64::to_le))
    }

    #[inline(always)]
    fn recv(self) -> RecvCqe {
        zerocopy::transmute!(self.0.map(u64::to_le))
    }

    #[inline(always)]
    fn bytes(self) -> [u8; 32] {
        zerocopy::transmute!(self.0.map(u64::to_le))
    }
}

/// What tells a new CQE of success from all others, in the high half of its last word.
const KIND: u32 =
    QidTypeFlags::new().with_cqe_type(7).with_error(true).with_color(true).into_bits().swap_bytes();

/// The high half of a CQE's last word, as it differs from a new one's that tells of success.
#[derive(Clone, Copy)]
struct Seen(u32);

impl Seen {
    /// Whether the CQE is new.
    #[inline(always)]
    const fn is_new(self) -> bool {
        self.0 & COLOR == 0
    }

    /// Whether it is new, and tells that messages have completed with success.
    #[inline(always)]
    const fn is_success(self) -> bool {
        self.0 & KIND == 0
    }

    /// The queue pair it names.
    #[inline(always)]
    const fn qid(self) -> u32 {
        QidTypeFlags::from_bits(self.0.swap_bytes()).qid()
    }
}

impl CqRing<'_> {
    /// Looks at a CQE.
    #[inline(always)]
    fn look(&self, cqe: Entry<'_, 4>) -> Seen {
        Seen(cqe.load_valid_high::<QTF_WORD>() ^ self.success)
    }

    /// Goes on to the next CQE.
    #[inline(always)]
    fn advance(&mut self) {
        if self.cqes.advance() {
            core::hint::cold_path();
            self.success ^= COLOR;
        }
    }

    /// Takes what most CQEs are: success of the oldest request, which was signaled. Nothing was done if it is something
    /// else.
    ///
    /// # Errors
    /// What was seen instead.
    #[inline(always)]
    fn take_one<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        wc: &mut WorkCompletion,
    ) -> Result<(), Seen>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        let entry = self.cqes.entry();
        let seen = self.look(entry);
        if !seen.is_success() {
            return Err(seen);
        }
        doorbell.from_device();
        let (cqe, id, qid) = (Cqe(entry.load()).send(), self.id, seen.qid());
        let msn = cqe.msg_msn.get();
        let done = endpoints.qp_at_hand(qid).map(|qp| qp.sq.complete_one(id, msn));
        let Some(done) = done.filter(|done| done.plain) else { return Err(seen) };
        let time = IdxTimestamp::from_bits(cqe.npg_wqe_idx_timestamp.get());
        *wc = WorkCompletion {
            wr_id: done.wr_id,
            timestamp: time.timestamp(),
            byte_len: done.length,
            qp: QpId::truncated(qid),
            opcode: done.opcode,
            ..WorkCompletion::default()
        };
        self.credit.add(1);
        self.advance();
        Ok(())
    }

    /// Whether a poll that has seen this has nothing left to do but to ring: it is old, and there is nothing new to flush.
    #[inline(always)]
    fn is_done(&self, seen: Seen, flush_seq: u32) -> bool {
        !seen.is_new() && !self.flushes(flush_seq)
    }

    /// Fills `slots` with what this ring has.
    fn poll<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        slots: &mut Slots<'_>,
    ) -> Result<(), CqFault>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        if let Some(key) = self.left {
            let credit = &mut self.credit;
            let left = endpoints.with_qp(key, |qp| qp.sq.drain(slots, credit));
            if left != Some(true) {
                self.left = None;
            }
        }
        let mut result = Ok(());
        // A device that goes on writing cannot keep the poller for more than one pass.
        for _ in 0..=self.cqes.ring().mask() {
            if slots.len() == 0 {
                break;
            }
            let mut wc = WorkCompletion::default();
            let Err(seen) = self.take_one(endpoints, doorbell, &mut wc) else {
                if let Some(slot) = slots.next() {
                    *slot = wc;
                }
                continue;
            };
            if !seen.is_new() {
                self.flush(endpoints, slots);
                break;
            }
            doorbell.from_device();
            let (cqe, entry) = (Cqe(self.cqes.entry().load()), self.cqes.index());
            self.advance();
            if let Err(kind) = self.take(cqe, endpoints, slots) {
                result = Err(CqFault { cq: self.id, entry, kind, cqe: cqe.bytes() });
                break;
            }
        }
        self.sync_if_due(doorbell);
        result
    }

    /// Carries out one CQE.
    #[inline(always)]
    fn take<'q, S, M, E, X>(
        &mut self,
        words: Cqe,
        endpoints: &mut E,
        slots: &mut Slots<'_>,
    ) -> Result<(), FaultKind>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
    {
        let cqe = words.send();
        let qtf = QidTypeFlags::from_bits(cqe.qid_type_flags.get());
        let error = qtf.error().then(|| Status(cqe.status_length.get()));
        let (key, kind, id, credit) = (qtf.qid(), CqeType(qtf.cqe_type()), self.id, &mut self.credit);
        let done = endpoints.with_qp(key, |qp| {
            let time = IdxTimestamp::from_bits(cqe.npg_wqe_idx_timestamp.get());
            match kind {
                CqeType::SEND_MSN if qp.sq.cq == id => {
                    qp.sq.complete_message(cqe.msg_msn.get(), error, time.timestamp())?;
                }
                CqeType::SEND_NPG if qp.sq.cq == id => {
                    qp.sq.complete_position(time.wqe_idx(), error, time.timestamp())?;
                }
                CqeType::RECV if qp.rq.cq == id => {
                    qp.rq.complete(&words.recv(), error, slots, credit)?;
                    return Ok(false);
                }
                CqeType(0..=4) => return Err(FaultKind::Unexpected(kind.0)),
                CqeType(other) => return Err(FaultKind::UnknownType(other)),
            }
            Ok(qp.sq.drain(slots, credit))
        });
        match done {
            Some(Ok(false)) => Ok(()),
            Some(Ok(true)) => {
                self.left = Some(key);
                Ok(())
            }
            Some(Err(kind)) => Err(kind),
            None if key == STALE_QID => {
                if let Some(left) = self.stale.checked_sub(1) {
                    self.stale = left;
                    self.credit.add(1);
                }
                Ok(())
            }
            None => Err(FaultKind::UnknownQp(key.into())),
        }
    }

    /// Whether there may be something new to flush.
    #[inline(always)]
    fn flushes(&self, seq: u32) -> bool {
        self.flush_seen != u64::from(seq)
    }

    /// Reports what is flushed, if there may be something new.
    fn flush<'q, S, M, E, X>(&mut self, endpoints: &mut E, slots: &mut Slots<'_>)
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
    {
        let seq = endpoints.flush_seq();
        if !self.flushes(seq) {
            return;
        }
        let (id, credit) = (self.id, &mut self.credit);
        let mut all = true;
        endpoints.each_qp(|qp| {
            all &= qp.sq.cq != id || qp.sq.flush_out(slots, credit);
            all
        });
        endpoints.each_qp(|qp| {
            all &= qp.rq.cq != id || qp.rq.flush_out(slots, credit);
            all
        });
        if all {
            self.flush_seen = seq.into();
        }
    }
}

impl CompletionQueue<'_> {
    /// Fills `out` with completions and returns how many. The rings take turns in being first.
    ///
    /// # Errors
    /// The first CQE that makes no sense; it was skipped. Completions found before it are returned first, and the
    /// fault comes with the next call.
    #[inline]
    pub fn poll<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        out: &mut [WorkCompletion],
    ) -> Result<usize, CqFault>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        // What most polls find, nothing or one completion, needs few registers and no frame: it is handled here, and all
        // else in a function that is not inlined.
        let mut filled = 0;
        if !self.busy
            && let Some(wc) = out.first_mut()
        {
            let seen = match self.front.take_one(endpoints, doorbell, wc) {
                Err(seen) => seen,
                Ok(()) => {
                    filled = 1;
                    self.front.look(self.front.cqes.entry())
                }
            };
            if self.front.is_done(seen, endpoints.flush_seq()) && !self.front.sync_is_due() {
                return Ok(filled);
            }
        }
        match self.poll_more(endpoints, doorbell, out, filled) {
            Some(filled) => Ok(filled),
            None => self.take_fault(),
        }
    }

    /// Goes on with a poll that has found `filled` completions. `None` if there is a fault to be returned.
    #[inline(never)]
    fn poll_more<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        out: &mut [WorkCompletion],
        filled: usize,
    ) -> Option<usize>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        let mut filled = filled;
        if self.busy {
            return self.poll_rest(endpoints, doorbell, out, filled);
        }
        while let Some(wc) = out.get_mut(filled) {
            if let Err(seen) = self.front.take_one(endpoints, doorbell, wc) {
                if self.front.is_done(seen, endpoints.flush_seq()) {
                    break;
                }
                return self.poll_rest(endpoints, doorbell, out, filled);
            }
            filled += 1;
        }
        self.front.sync_if_due(doorbell);
        Some(filled)
    }

    /// Goes on with a poll of which there is more than success of one request after another. `None` if there is a fault
    /// to be returned.
    #[inline(never)]
    fn poll_rest<'q, S, M, E, X, D>(
        &mut self,
        endpoints: &mut E,
        doorbell: &D,
        out: &mut [WorkCompletion],
        filled: usize,
    ) -> Option<usize>
    where
        S: Store + 'q,
        M: DeviceMemory + 'q,
        E: Endpoints<QueuePair<'q, S, M>, X>,
        D: Doorbell,
    {
        let back_first = self.back_first;
        self.back_first = self.back.is_some() && !back_first;
        if self.fault.is_none() {
            let room = out.len();
            let mut slots = out.iter_mut();
            if let Some(last) = filled.checked_sub(1) {
                slots.nth(last);
            }
            let (front, back) = (Some(&mut self.front), self.back.as_mut());
            let turns = if back_first { [back, front] } else { [front, back] };
            for ring in turns.into_iter().flatten() {
                if slots.len() == 0 {
                    break;
                }
                if let Err(fault) = ring.poll(endpoints, doorbell, &mut slots) {
                    self.fault = Some(fault);
                    break;
                }
            }
            let filled = room.wrapping_sub(slots.len());
            if filled != 0 || self.fault.is_none() {
                self.set_busy();
                return Some(filled);
            }
        }
        None
    }

    #[cold]
    fn take_fault(&mut self) -> Result<usize, CqFault> {
        let fault = self.fault.take();
        self.set_busy();
        fault.map_or(Ok(0), Err)
    }
}
