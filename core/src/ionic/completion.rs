//! What completions do to send and receive queues: the device tells of messages and of positions, and the requests
//! are reported in the order they were posted.

use core::slice::IterMut;

use super::cqe::{IdxTimestamp, RecvCqe, RecvOp, SrcQpnOp, Status};
use super::record::{SqFlags, SqRecord};
use super::recv::RecvQueue;
use super::send::{MSN_MASK, SendQueue};
use super::work::Flush;
use crate::queue::{DeviceMemory, Store};
use crate::verbs::{CqId, FaultKind, QpId, WcFlags, WcOpcode, WcStatus, WorkCompletion};

/// Where completions go.
pub(super) type Slots<'o> = IterMut<'o, WorkCompletion>;

/// Room in a completion queue that completions give back. It never passes what a ring holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Credit(pub i32);

impl Credit {
    #[inline(always)]
    pub fn add(&mut self, entries: u32) {
        self.0 = self.0.wrapping_add(entries as i32);
    }
}

/// What [`SendQueue::complete_one`] has found.
#[derive(Clone, Copy)]
pub(super) struct Completed {
    /// It is a request that has completed with success; otherwise nothing was done.
    pub plain: bool,
    pub wr_id: u64,
    pub length: u32,
    pub opcode: WcOpcode,
}

fn flushed(wr_id: u64, qp: QpId) -> WorkCompletion {
    WorkCompletion { wr_id, qp, status: WcStatus::WrFlush, ..WorkCompletion::default() }
}

impl<S: Store, M: DeviceMemory> SendQueue<'_, S, M> {
    /// All messages before `msn` have completed. Takes the one request that this completes, if it is just one, the oldest,
    /// and signaled.
    #[inline(always)]
    pub(super) fn complete_one(&mut self, cq: CqId, msn: u32) -> Completed {
        let cons = self.ring.cons;
        let msn_next = self.msn_cons.wrapping_add(1);
        let &SqRecord { wr_id, length, opcode, flags, .. } = self.record(cons);
        let plain = self.plain_cq == cq.get()
            && (msn ^ msn_next) & MSN_MASK == 0
            && cons != self.ring.prod
            && flags == SqFlags::REMOTE.union(SqFlags::SIGNALED);
        if plain {
            self.ring.cons = cons.wrapping_add(1);
            self.msn_cons = msn_next;
        }
        Completed { plain, wr_id, length, opcode }
    }

    /// All messages before `msn` have completed, the last one with `error` if there is one.
    pub(super) fn complete_message(
        &mut self,
        msn: u32,
        error: Option<Status>,
        timestamp: u64,
    ) -> Result<(), FaultKind> {
        if self.ring.flush() == Flush::Yes {
            return Ok(());
        }
        let msn = msn & MSN_MASK;
        let completed = msn.wrapping_sub(self.msn_cons) & MSN_MASK;
        let outstanding = self.msn_prod().wrapping_sub(self.msn_cons) & MSN_MASK;
        if completed == 0 || completed > outstanding {
            return Err(FaultKind::BadIndex { qp: self.qp.get(), index: msn });
        }
        self.msn_cons = msn;
        let (mut acked, mut left) = (self.acked(), completed);
        while left != 0 && acked != self.ring.prod {
            let record = self.record_mut(acked);
            if record.flags.contains(SqFlags::REMOTE) {
                record.timestamp = timestamp;
                left -= 1;
                if left == 0
                    && let Some(status) = error
                {
                    fail(record, status);
                }
            }
            acked = acked.wrapping_add(1);
        }
        self.set_acked(acked);
        Ok(())
    }

    /// The request at `index` has completed, with `error` if there is one.
    pub(super) fn complete_position(
        &mut self,
        index: u16,
        error: Option<Status>,
        timestamp: u64,
    ) -> Result<(), FaultKind> {
        if self.ring.flush() == Flush::Yes {
            return Ok(());
        }
        if error == Some(Status::WQE_FLUSHED) {
            // It names no request. What has completed is reported first, then the rest is flushed.
            self.set_flush(Flush::Told);
            return Ok(());
        }
        let ahead = self.ring.wqes.index(u32::from(index).wrapping_sub(self.ring.cons));
        let position = self.ring.cons.wrapping_add(ahead);
        if ahead >= self.ring.used(self.ring.prod) {
            let index = self.ring.wqes.index(index.into());
            return Err(FaultKind::BadIndex { qp: self.qp.get(), index });
        }
        let record = self.record_mut(position);
        record.timestamp = timestamp;
        let before = record.flags;
        if let Some(status) = error {
            record.flags |= SqFlags::DONE;
            fail(record, status);
        } else if !before.contains(SqFlags::REMOTE) {
            record.flags |= SqFlags::DONE;
        }
        if record.flags.difference(before).contains(SqFlags::DONE) {
            self.done = self.done.wrapping_add(1);
            self.set_acked(self.acked());
        }
        Ok(())
    }

    /// Whether the oldest request has completed.
    #[inline(always)]
    fn ready(&self) -> bool {
        let cons = self.ring.cons;
        if cons == self.ring.prod {
            return false;
        }
        let flags = self.record(cons).flags;
        flags.contains(SqFlags::DONE) || flags.contains(SqFlags::REMOTE) && cons != self.acked()
    }

    /// Goes on to the next request.
    #[inline(always)]
    fn pop(&mut self, flags: SqFlags) {
        let acked = self.acked();
        let behind = self.ring.cons.wrapping_add(1);
        let acked = if acked == self.ring.cons { behind } else { acked };
        self.ring.cons = behind;
        self.done = self.done.wrapping_sub(flags.contains(SqFlags::DONE).into());
        self.set_acked(acked);
    }

    /// Reports what has completed, in order, as long as there is room. `true` if something is left for want of room.
    pub(super) fn drain(&mut self, slots: &mut Slots<'_>, credit: &mut Credit) -> bool {
        if self.ring.flush() == Flush::Yes {
            return false;
        }
        while slots.len() != 0 {
            if !self.ready() {
                if self.ring.flush() == Flush::Told {
                    self.begin_flush();
                }
                return false;
            }
            let record = *self.record(self.ring.cons);
            credit.add(1);
            self.pop(record.flags);
            let failed = record.flags.contains(SqFlags::FAILED);
            if !failed && !record.flags.contains(SqFlags::SIGNALED) {
                continue;
            }
            let Some(slot) = slots.next() else { return false };
            let (wr_id, timestamp, qp) = (record.wr_id, record.timestamp, self.qp);
            if failed {
                let (status, vendor_err) = (Status(record.length).wc_status(), record.length);
                *slot =
                    WorkCompletion { wr_id, timestamp, vendor_err, qp, status, ..WorkCompletion::default() };
                self.begin_flush();
                return false;
            }
            let (byte_len, opcode) = (record.length, record.opcode);
            *slot = WorkCompletion { wr_id, timestamp, byte_len, qp, opcode, ..WorkCompletion::default() };
        }
        self.ring.flush() == Flush::Told || self.ready()
    }

    /// Reports the rest as flushed, as long as there is room. `false` if there was not.
    pub(super) fn flush_out(&mut self, slots: &mut Slots<'_>, credit: &mut Credit) -> bool {
        while self.ring.flush() == Flush::Yes && self.ring.cons != self.ring.prod {
            let Some(slot) = slots.next() else { return false };
            *slot = flushed(self.record(self.ring.cons).wr_id, self.qp);
            self.ring.cons = self.ring.cons.wrapping_add(1);
            // The device reports nothing for it any more.
            credit.add(1);
        }
        true
    }

    /// Begins to flush what is outstanding, and what is posted from now on.
    #[cold]
    pub(super) fn begin_flush(&mut self) {
        self.set_flush(Flush::Yes);
        self.ring.flush_seq = self.ring.flush_seq.wrapping_add(1);
    }

    /// Forgets what is outstanding, and tells how many requests that were.
    pub(super) fn abandon(&mut self) -> u32 {
        let count = self.outstanding();
        (self.ring.cons, self.done) = (self.ring.prod, 0);
        self.msn_cons = self.msn_prod();
        self.set_acked(self.ring.prod);
        count
    }
}

#[cold]
fn fail(record: &mut SqRecord, status: Status) {
    record.length = status.0;
    record.flags |= SqFlags::FAILED;
}

impl<S: Store, M: DeviceMemory> RecvQueue<'_, S, M> {
    /// A message has arrived, or the queue is flushed.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        cqe: &RecvCqe,
        error: Option<Status>,
        slots: &mut Slots<'_>,
        credit: &mut Credit,
    ) -> Result<(), FaultKind> {
        if self.ring.flush() == Flush::Yes {
            return Ok(());
        }
        if error == Some(Status::WQE_FLUSHED) {
            self.begin_flush();
            return Ok(());
        }
        let place = IdxTimestamp::from_bits(cqe.wqe_idx_timestamp.get());
        let index = place.wqe_idx();
        let inside = u32::from(index) <= self.ring.wqes.mask();
        let record = self.record_mut(index.into());
        if !inside || !record.posted {
            return Err(FaultKind::BadIndex { qp: self.qp.get(), index: index.into() });
        }
        record.posted = false;
        let wr_id = record.wr_id;
        while self.ring.cons != self.ring.prod && !self.record_mut(self.ring.cons).posted {
            self.ring.cons = self.ring.cons.wrapping_add(1);
        }
        credit.add(1);
        let Some(slot) = slots.next() else { return Ok(()) };
        let (timestamp, qp, code) = (place.timestamp(), self.qp, cqe.status_length.get());
        if let Some(status) = error {
            let status = status.wc_status();
            *slot = WorkCompletion {
                wr_id,
                timestamp,
                qp,
                vendor_err: code,
                status,
                ..WorkCompletion::default()
            };
            self.begin_flush();
            return Ok(());
        }
        let source = SrcQpnOp::from_bits(cqe.src_qpn_op.get());
        let (opcode, mut flags) = match RecvOp(source.op()) {
            RecvOp::RDMA_IMM => (WcOpcode::RecvRdmaWithImm, WcFlags::WITH_IMM),
            RecvOp::SEND_IMM => (WcOpcode::Recv, WcFlags::WITH_IMM),
            RecvOp::SEND_INV => (WcOpcode::Recv, WcFlags::WITH_INV),
            _ => (WcOpcode::Recv, WcFlags::empty()),
        };
        let imm_or_rkey = if flags.is_empty() { 0 } else { cqe.imm_data_rkey.get() };
        let mut sl = 0;
        if self.datagram {
            flags |= WcFlags::GRH;
            sl = (cqe.vlan_tag.get() >> 13) as u8;
        }
        *slot = WorkCompletion {
            wr_id,
            timestamp,
            byte_len: code,
            vendor_err: 0,
            qp,
            src_qp: QpId::truncated(source.src_qpn()),
            imm_or_rkey,
            status: WcStatus::Success,
            opcode,
            flags,
            sl,
        };
        Ok(())
    }

    /// Reports the rest as flushed, as long as there is room. `false` if there was not.
    pub(super) fn flush_out(&mut self, slots: &mut Slots<'_>, credit: &mut Credit) -> bool {
        while self.ring.flush() == Flush::Yes && self.ring.cons != self.ring.prod {
            let qp = self.qp;
            let record = self.record_mut(self.ring.cons);
            if record.posted {
                let Some(slot) = slots.next() else { return false };
                record.posted = false;
                *slot = flushed(record.wr_id, qp);
                credit.add(1);
            }
            self.ring.cons = self.ring.cons.wrapping_add(1);
        }
        true
    }

    /// Begins to flush what is outstanding, and what is posted from now on.
    #[cold]
    pub(super) fn begin_flush(&mut self) {
        self.ring.set_flush(Flush::Yes);
        self.ring.flush_seq = self.ring.flush_seq.wrapping_add(1);
    }

    /// Forgets what is outstanding, and tells how many requests that were.
    pub(super) fn abandon(&mut self) -> u32 {
        let count = self.outstanding();
        for record in self.ring.wqes.records_mut() {
            record.posted = false;
        }
        self.ring.cons = self.ring.prod;
        count
    }
}
