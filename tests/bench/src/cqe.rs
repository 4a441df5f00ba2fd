//! Writes CQEs in the device's place, into the ring of either side.

use std::ptr::NonNull;

use directverbs::bnxt_re::cqe::{CqReq, CqResRc, CqeType as BnxtReType, CqeTypeToggle};
use directverbs::ionic::cqe::{CqeType, IdxTimestamp, QidTypeFlags, RecvCqe, RecvOp, SendCqe, SrcQpnOp};
use zerocopy::IntoBytes;

use crate::work::{Family, SGE_BYTES, Sends};

const CQE_BYTES: usize = 32;

/// Where the device writes next.
#[derive(Clone, Copy, Debug)]
pub struct Producer {
    ring: NonNull<u8>,
    entries: usize,
    position: usize,
    /// Phase (bnxt_re) or color (ionic) of this pass over the ring.
    pass: bool,
}

impl Producer {
    /// At the beginning of a ring of `entries` CQEs, all zero.
    ///
    /// # Safety
    /// `ring` is valid for reads and writes of `entries` CQEs as long as the value is used, and 8-aligned.
    pub const unsafe fn new(ring: NonNull<u8>, entries: usize) -> Self {
        Self { ring, entries, position: 0, pass: true }
    }

    /// Completes a batch of sends of the queue pair with `key`, a CQE for each request that asked for one. `sent` counts
    /// the requests of before, `wqes` is the modulus of bnxt_re's WQE indices.
    pub fn sends(&mut self, family: Family, key: u64, sent: &mut u32, wqes: u32, sends: Sends) {
        for i in 0..sends.count {
            *sent = sent.wrapping_add(1);
            match family {
                Family::BnxtRe => {
                    *sent %= wqes;
                    if sends.signals(i) {
                        self.bnxt_re_send(key, *sent);
                    }
                }
                Family::Ionic if sends.signals(i) => self.ionic_send(key as u32, *sent),
                Family::Ionic => {}
            }
        }
    }

    /// Completes `count` receive requests of the queue pair with `key`. `received` counts those of before, modulo `wqes`.
    pub fn recvs(&mut self, family: Family, key: u64, received: &mut u32, wqes: u32, count: usize) {
        for _ in 0..count {
            match family {
                Family::BnxtRe => self.bnxt_re_recv(key, *received),
                Family::Ionic => self.ionic_recv(key as u32, *received),
            }
            *received = (*received + 1) % wqes;
        }
    }

    fn put(&mut self, cqe: &[u8]) {
        assert_eq!(cqe.len(), CQE_BYTES);
        // SAFETY: `position` is below the number of entries, which `new` was promised to be there.
        unsafe { self.ring.add(self.position * CQE_BYTES).copy_from(NonNull::from(cqe).cast(), CQE_BYTES) };
        self.position += 1;
        if self.position == self.entries {
            self.position = 0;
            self.pass = !self.pass;
        }
    }

    /// bnxt_re: all send requests before WQE index `behind` of the queue pair with `handle` have completed.
    fn bnxt_re_send(&mut self, handle: u64, behind: u32) {
        let toggle = CqeTypeToggle::new().with_toggle(self.pass).with_cqe_type(BnxtReType::REQ.0);
        let cqe = CqReq {
            qp_handle: handle.into(),
            sq_cons_idx: (behind as u16).into(),
            cqe_type_toggle: toggle.into_bits(),
            ..CqReq::ZERO
        };
        self.put(cqe.as_bytes());
    }

    /// bnxt_re: receive request `index` of the queue pair with `handle` has completed.
    fn bnxt_re_recv(&mut self, handle: u64, index: u32) {
        let toggle = CqeTypeToggle::new().with_toggle(self.pass).with_cqe_type(BnxtReType::RES_RC.0);
        let cqe = CqResRc {
            length: SGE_BYTES.into(),
            qp_handle: handle.into(),
            cqe_type_toggle: toggle.into_bits(),
            srq_or_rq_wr_id: index.into(),
            ..CqResRc::ZERO
        };
        self.put(cqe.as_bytes());
    }

    /// ionic: the first `messages` messages of queue pair `qid` have completed.
    fn ionic_send(&mut self, qid: u32, messages: u32) {
        let word = self.word(qid, CqeType::SEND_MSN);
        let cqe =
            SendCqe { msg_msn: (messages & 0xff_ffff).into(), qid_type_flags: word.into(), ..SendCqe::ZERO };
        self.put(cqe.as_bytes());
    }

    /// ionic: receive request `index` of queue pair `qid` has completed.
    fn ionic_recv(&mut self, qid: u32, index: u32) {
        let word = self.word(qid, CqeType::RECV);
        let cqe = RecvCqe {
            wqe_idx_timestamp: IdxTimestamp::new().with_wqe_idx(index as u16).into_bits().into(),
            src_qpn_op: SrcQpnOp::new().with_op(RecvOp::SEND.0).into_bits().into(),
            status_length: SGE_BYTES.into(),
            qid_type_flags: word.into(),
            ..RecvCqe::ZERO
        };
        self.put(cqe.as_bytes());
    }

    fn word(&self, qid: u32, kind: CqeType) -> u32 {
        QidTypeFlags::new().with_color(self.pass).with_cqe_type(kind.0).with_qid(qid).into_bits()
    }
}
