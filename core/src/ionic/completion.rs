//! What completions do to send and receive queues: the device tells of messages and of positions, and the requests
//! are reported in the order they were posted.

use core::slice::IterMut;

use super::cqe::{IdxTimestamp, RecvCqe, RecvOp, SrcQpnOp, Status};
use super::recv::RecvQueue;
use super::send::{MSN_MASK, SendQueue, SqFlags, SqRecord};
use super::work::WorkRing;
use crate::queue::{DeviceMemory, Store};
use crate::verbs::{FaultKind, QpId, WcFlags, WcOpcode, WcStatus, WorkCompletion};

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

impl<M> WorkRing<'_, M> {
    fn begin_flush(&mut self) {
        self.flush = true;
        self.flush_seq = self.flush_seq.wrapping_add(1);
    }
}

fn flushed(wr_id: u64, qp: QpId) -> WorkCompletion {
    WorkCompletion { wr_id, qp, status: WcStatus::WrFlush, ..WorkCompletion::default() }
}

impl<S: Store, M: DeviceMemory> SendQueue<'_, S, M> {
    /// All messages before `msn` have completed, the last one with `error` if there is one.
    #[inline(always)]
    pub(super) fn complete_message(
        &mut self,
        msn: u32,
        error: Option<Status>,
        timestamp: u64,
    ) -> Result<(), FaultKind> {
        if self.ring.flush {
            return Ok(());
        }
        let msn = msn & MSN_MASK;
        let completed = msn.wrapping_sub(self.msn_cons) & MSN_MASK;
        let outstanding = self.msn_prod.wrapping_sub(self.msn_cons) & MSN_MASK;
        if completed == 0 || completed > outstanding {
            return Err(FaultKind::BadIndex { qp: self.qp.get(), index: msn });
        }
        let mut number = self.msn_cons;
        let mut last = 0;
        while number != msn {
            last = self.records.get(number as usize & usize::from(self.ring.mask)).msn_idx;
            self.records.get_mut(last.into()).timestamp = timestamp;
            number = number.wrapping_add(1) & MSN_MASK;
        }
        self.msn_cons = msn;
        if let Some(status) = error {
            fail(self.records.get_mut(last.into()), status);
        }
        Ok(())
    }

    /// The request at `index` has completed, with `error` if there is one.
    #[inline(always)]
    pub(super) fn complete_position(
        &mut self,
        index: u16,
        error: Option<Status>,
        timestamp: u64,
    ) -> Result<(), FaultKind> {
        if self.ring.flush {
            return Ok(());
        }
        if error == Some(Status::WQE_FLUSHED) {
            // It names no request. What has completed is reported first, then the rest is flushed.
            self.flush_hint = true;
            return Ok(());
        }
        let index = index & self.ring.mask;
        if self.ring.used(index) >= self.ring.used(self.ring.prod) {
            return Err(FaultKind::BadIndex { qp: self.qp.get(), index: index.into() });
        }
        let record = self.records.get_mut(index.into());
        record.flags |= SqFlags::LOCAL_DONE;
        record.timestamp = timestamp;
        if let Some(status) = error {
            record.flags -= SqFlags::REMOTE;
            fail(record, status);
        }
        Ok(())
    }

    /// Whether the oldest request has completed.
    #[inline(always)]
    fn ready(&self) -> bool {
        if self.ring.prod == self.ring.cons {
            return false;
        }
        let record = self.records.get(self.ring.cons.into());
        if record.flags.contains(SqFlags::REMOTE) {
            record.seq != self.msn_cons as u16 & self.ring.mask
        } else {
            record.flags.contains(SqFlags::LOCAL_DONE)
        }
    }

    /// Reports what has completed, in order, as long as there is room. `true` if something is left for want of room.
    #[inline(always)]
    pub(super) fn drain(&mut self, slots: &mut Slots<'_>, credit: &mut Credit) -> bool {
        if self.ring.flush {
            return false;
        }
        while slots.len() != 0 {
            if !self.ready() {
                if self.flush_hint {
                    self.ring.begin_flush();
                }
                return false;
            }
            let record = self.records.get(self.ring.cons.into());
            credit.add(1);
            self.ring.cons = self.ring.next(self.ring.cons);
            let success = record.status == WcStatus::Success;
            if success && !record.flags.contains(SqFlags::SIGNALED) {
                continue;
            }
            let Some(slot) = slots.next() else { return false };
            *slot = WorkCompletion {
                wr_id: record.wr_id,
                timestamp: record.timestamp,
                byte_len: if success { record.length } else { 0 },
                vendor_err: if success { 0 } else { record.length },
                qp: self.qp,
                status: record.status,
                opcode: if success { record.opcode } else { WcOpcode::default() },
                ..WorkCompletion::default()
            };
            if !success {
                self.ring.begin_flush();
                return false;
            }
        }
        self.flush_hint || self.ready()
    }

    /// Reports the rest as flushed, as long as there is room. `false` if there was not.
    pub(super) fn flush_out(&mut self, slots: &mut Slots<'_>, credit: &mut Credit) -> bool {
        while self.ring.flush && self.ring.cons != self.ring.prod {
            let Some(slot) = slots.next() else { return false };
            *slot = flushed(self.records.get(self.ring.cons.into()).wr_id, self.qp);
            self.ring.cons = self.ring.next(self.ring.cons);
            // The device reports nothing for it any more.
            credit.add(1);
        }
        true
    }

    /// Begins to flush what is outstanding, and what is posted from now on.
    pub(super) fn set_error(&mut self) {
        self.ring.begin_flush();
    }

    /// Forgets what is outstanding, and tells how many requests that were.
    pub(super) fn abandon(&mut self) -> u32 {
        let count = self.outstanding();
        self.ring.cons = self.ring.prod;
        self.msn_cons = self.msn_prod;
        count
    }
}

#[cold]
fn fail(record: &mut SqRecord, status: Status) {
    record.length = status.0;
    record.status = status.wc_status();
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
        if self.ring.flush {
            return Ok(());
        }
        if error == Some(Status::WQE_FLUSHED) {
            self.ring.begin_flush();
            return Ok(());
        }
        let place = IdxTimestamp::from_bits(cqe.wqe_idx_timestamp.get());
        let index = place.wqe_idx();
        let record = self.records.get_mut(index.into());
        if index > self.ring.mask || !record.posted {
            return Err(FaultKind::BadIndex { qp: self.qp.get(), index: index.into() });
        }
        record.posted = false;
        let wr_id = record.wr_id;
        while self.ring.cons != self.ring.prod && !self.records.get(self.ring.cons.into()).posted {
            self.ring.cons = self.ring.next(self.ring.cons);
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
            self.ring.begin_flush();
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
        while self.ring.flush && self.ring.cons != self.ring.prod {
            let record = self.records.get_mut(self.ring.cons.into());
            if record.posted {
                let Some(slot) = slots.next() else { return false };
                record.posted = false;
                *slot = flushed(record.wr_id, self.qp);
                credit.add(1);
            }
            self.ring.cons = self.ring.next(self.ring.cons);
        }
        true
    }

    /// Begins to flush what is outstanding, and what is posted from now on.
    pub(super) fn set_error(&mut self) {
        self.ring.begin_flush();
    }

    /// Forgets what is outstanding, and tells how many requests that were.
    pub(super) fn abandon(&mut self) -> u32 {
        let count = self.outstanding();
        for record in self.records.records_mut() {
            record.posted = false;
        }
        self.ring.cons = self.ring.prod;
        count
    }
}
