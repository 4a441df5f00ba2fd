//! The provider's side.

use directverbs::bnxt_re::doorbell::PushPage;
use directverbs::bnxt_re::pacing::PacingParameters;
use directverbs::verbs::{
    AccessFlags, AddressVector, AhId, Gid, Mac, Mtu, Psn, QKey, QpAttributes, QpCapabilities, QpId, QpInit,
    QpState, QpType, SrqInit,
};

use super::bell::{DOORBELL, NOTIFY, PUSH};
use super::ours::QpSpec;
use crate::case::observed::Fields;
use crate::case::{Access, Outcome, Recv, Send, with_all};
use crate::ibv::sys::ibv_wc;
use crate::ibv::{Ah, Context, Cq, CqInit, Pd, Pieces, PostError, Qp, RecvList, Result, SendList, Srq};
use crate::uverbs::bnxt_re::{self, PUSH_DPI};
use crate::uverbs::{Page, Store};

/// All operations of the builder functions that the provider has.
const BUILDER_OPERATIONS: u64 = 0x7f;

/// The provider's queues. Fields are dropped in this order.
#[derive(Debug)]
pub struct Theirs {
    qps: Vec<TheirQp>,
    srq: Option<Srq>,
    cqs: Vec<Cq>,
    cq_memory: Vec<u64>,
    srq_memory: u64,
    ahs: Vec<Ah>,
    pd: Pd,
    /// The context.
    pub context: Context,
    notified: u32,
}

#[derive(Debug)]
struct TheirQp {
    qp: Qp,
    handle: u64,
    send_memory: u64,
    recv_memory: u64,
}

/// The pacing parameters in the core's words.
pub const fn pacing(p: &bnxt_re::PacingParameters) -> PacingParameters {
    PacingParameters {
        do_pacing: p.do_pacing,
        pacing_th: p.pacing_th,
        alarm_th: p.alarm_th,
        fifo_max_depth: p.fifo_max_depth,
        fifo_room_mask: p.fifo_room_mask,
        fifo_room_shift: p.fifo_room_shift,
        grc_reg_offset: p.grc_reg_offset,
    }
}

/// A transition to `state` that needs nothing else.
pub fn to_state(state: QpState) -> QpAttributes {
    QpAttributes::to(state)
}

/// The transitions from RESET to RTS.
pub fn transitions(qp_type: QpType, mtu: Mtu, sq_psn: Psn) -> [QpAttributes; 3] {
    let connected = qp_type == QpType::Rc;
    let path = AddressVector::new(Gid([0xfe; 16]), Mac([2; 6]));
    [
        QpAttributes {
            access: connected.then_some(AccessFlags::REMOTE_WRITE),
            qkey: (!connected).then_some(QKey::truncated(0x1111)),
            ..QpAttributes::to(QpState::Init)
        },
        QpAttributes {
            path: connected.then_some(path),
            mtu: connected.then_some(mtu),
            dest_qp: connected.then_some(QpId::truncated(0x77)),
            rq_psn: connected.then_some(Psn::truncated(0x55)),
            max_dest_rd_atomic: connected.then_some(1),
            min_rnr_timer: connected.then_some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(sq_psn),
            timeout: connected.then_some(14),
            retry_count: connected.then_some(7),
            rnr_retry: connected.then_some(7),
            max_rd_atomic: connected.then_some(1),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}

impl Theirs {
    /// A protection domain, and address handles for datagrams.
    pub fn new(context: &Context, handles: usize) -> Result<Self> {
        let pd = Pd::new(context)?;
        let path = AddressVector::new(Gid([0xfe; 16]), Mac([2; 6]));
        let ahs = (0..handles).map(|_| Ah::new(&pd, &path)).collect::<Result<_>>()?;
        let notified = context.device().notified();
        context.device().take_stores();
        Ok(Self {
            qps: Vec::new(),
            srq: None,
            cqs: Vec::new(),
            cq_memory: Vec::new(),
            srq_memory: 0,
            ahs,
            pd,
            context: context.clone(),
            notified,
        })
    }

    /// Ids of the address handles.
    pub fn handles(&self) -> Vec<AhId> {
        self.ahs.iter().map(Ah::id).collect()
    }

    /// Creates a completion queue and gives its number, and the entries asked of the kernel.
    pub fn create_cq(&mut self, cqe: u32) -> Result<(u32, u32)> {
        let cq = Cq::new(&self.context, &CqInit::entries(cqe))?;
        let made = self.context.device().cq(cq.handle());
        self.cq_memory.push(made.udata.get::<bnxt_re::CqReq>().cq_va);
        self.cqs.push(cq);
        Ok((made.ids[0], made.cqe))
    }

    /// Creates the shared receive queue and gives its number.
    pub fn create_srq(&mut self, asked: &SrqInit) -> Result<u32> {
        let srq = Srq::new(&self.pd, asked, 0)?;
        let made = self.context.device().srq(srq.handle());
        self.srq_memory = made.udata.get::<bnxt_re::SrqReq>().srqva;
        self.srq = Some(srq);
        Ok(made.id)
    }

    /// Creates a queue pair. Gives its number, what was asked of the kernel, and the capabilities granted.
    pub fn create_qp(
        &mut self,
        spec: &QpSpec,
        builder: bool,
    ) -> Result<(QpId, bnxt_re::QpReq, QpCapabilities)> {
        let init = QpInit {
            qp_type: spec.qp_type,
            capabilities: spec.capabilities,
            send_cq: &self.cqs[spec.send_cq],
            recv_cq: &self.cqs[spec.recv_cq],
            srq: self.srq.as_ref().filter(|_| spec.shared),
            signal_all: spec.signal_all,
        };
        let qp = match builder {
            true => Qp::new_extended(&self.pd, &init, BUILDER_OPERATIONS)?,
            false => Qp::new(&self.pd, &init)?,
        };
        let asked: bnxt_re::QpReq = self.context.device().qp(qp.handle()).udata.get();
        let (id, granted) = (qp.id(), qp.capabilities());
        self.qps.push(TheirQp {
            qp,
            handle: asked.qp_handle,
            send_memory: asked.qpsva,
            recv_memory: asked.qprva,
        });
        Ok((id, asked, granted))
    }

    /// Push page and buffer that the provider gives to the first queue pair of a context.
    pub fn push() -> (PushPage, usize) {
        (PushPage::new(PUSH_DPI).expect("12 bits"), 1)
    }

    /// Changes attributes.
    pub fn modify(&self, qp: usize, attributes: &QpAttributes) -> Result<()> {
        self.qps[qp].qp.modify(attributes)
    }

    /// Handle that the device's CQEs name a queue pair by.
    pub fn handle(&self, qp: usize) -> u64 {
        self.qps[qp].handle
    }

    /// Posts with `ibv_post_send`.
    pub fn post_send(&self, qp: usize, requests: &[Send]) -> Outcome {
        with_all(requests, |requests| {
            let mut list = SendList::new(requests, &self.ahs).expect("what the library can express");
            outcome(self.qps[qp].qp.post_send(&mut list))
        })
    }

    /// Posts with the builder functions, and completes or aborts.
    pub fn build(&self, qp: usize, requests: &[Send], abort: bool) -> Outcome {
        // Atomics go with the function for one SGE only; the others with either.
        let lists = requests.iter().all(|r| r.wr_id % 2 == 0 && !atomic(r));
        let pieces = if lists { Pieces::Lists } else { Pieces::Single };
        let done = with_all(requests, |requests| match abort {
            true => self.qps[qp].qp.abort_wr(requests, &self.ahs, pieces),
            false => self.qps[qp].qp.post_wr(requests, &self.ahs, pieces),
        });
        if done.is_ok() { Outcome::Done } else { Outcome::Failed }
    }

    /// Posts receive requests.
    pub fn post_recv(&self, qp: usize, requests: &[Recv]) -> Outcome {
        let requests: Vec<_> = requests.iter().map(Recv::request).collect();
        outcome(self.qps[qp].qp.post_recv(&mut RecvList::new(&requests)))
    }

    /// Posts shared receive requests.
    pub fn post_shared(&self, requests: &[Recv]) -> Outcome {
        let requests: Vec<_> = requests.iter().map(Recv::request).collect();
        let srq = self.srq.as_ref().expect("a shared receive queue");
        outcome(srq.post_recv(&mut RecvList::new(&requests)))
    }

    /// Polls.
    pub fn poll(&self, cq: usize, budget: u32) -> Vec<Fields> {
        let mut out = vec![ibv_wc::default(); budget as usize];
        let found = self.cqs[cq].poll_raw(&mut out).max(0) as usize;
        out[..found].iter().map(fields).collect()
    }

    /// Arms a completion queue.
    pub fn arm(&self, cq: usize, solicited: bool) -> Result<()> {
        self.cqs[cq].req_notify(solicited)
    }

    /// Sets the limit of the shared receive queue.
    pub fn arm_shared(&self, limit: u32) -> Result<()> {
        self.srq.as_ref().expect("a shared receive queue").set_limit(limit)
    }

    /// Resizes a completion queue. The cut-off is in its memory already.
    pub fn resize(&mut self, cq: usize, cqe: u32) -> Outcome {
        if self.cqs[cq].resize(cqe).is_err() {
            return Outcome::Failed;
        }
        let made = self.context.device().cq(self.cqs[cq].handle());
        if let Some(resize) = made.resize {
            self.cq_memory[cq] = resize.get::<bnxt_re::ResizeCqReq>().cq_va;
        }
        Outcome::Done
    }

    /// Turns the toggle of a completion queue.
    pub fn set_cq_toggle(&self, cq: usize, toggle: u32) {
        let device = self.context.device();
        let id = device.cq(self.cqs[cq].handle()).ids[0];
        device.write_page(Page::CqToggle(id), 0, &toggle.to_ne_bytes());
    }

    /// Turns the toggle of the shared receive queue.
    pub fn set_srq_toggle(&self, toggle: u32) {
        let device = self.context.device();
        let id = device.srq(self.srq.as_ref().expect("a shared receive queue").handle()).id;
        device.write_page(Page::SrqToggle(id), 0, &toggle.to_ne_bytes());
    }

    /// Fills the doorbell FIFO until the driver was told so often.
    pub fn fill_fifo(&self, parameters: &PacingParameters, full: u32, notifications: u32, empty: u32) {
        let offset = parameters.grc_reg_offset as usize % 4096;
        let device = self.context.device();
        device.write_page(Page::PacingRegisters, offset, &full.to_ne_bytes());
        device.drain_after(notifications, offset, empty);
    }

    /// What the provider did to the device since the last call.
    pub fn take(&mut self) -> Vec<Access> {
        let device = self.context.device();
        let mut accesses: Vec<Access> = device.take_stores().iter().map(access).collect();
        let notified = device.notified();
        accesses.extend((self.notified..notified).map(|_| Access::Call(NOTIFY)));
        self.notified = notified;
        accesses
    }

    /// Bytes of a send queue's memory.
    pub fn send_memory(&self, qp: usize, offset: usize, len: usize) -> Vec<u8> {
        // SAFETY: the queue pair's ring and retransmit table are at least that long.
        unsafe { read(self.qps[qp].send_memory as usize + offset, len) }
    }

    /// Bytes of a receive queue's memory.
    pub fn recv_memory(&self, qp: usize, len: usize) -> Vec<u8> {
        // SAFETY: the queue pair's receive ring is at least that long.
        unsafe { read(self.qps[qp].recv_memory as usize, len) }
    }

    /// Bytes of the shared receive queue's memory.
    pub fn shared_memory(&self, len: usize) -> Vec<u8> {
        // SAFETY: the queue's ring is at least that long.
        unsafe { read(self.srq_memory as usize, len) }
    }

    /// Writes into a completion queue's memory.
    pub fn write_cq(&self, cq: usize, offset: usize, bytes: &[u8]) {
        let at = (self.cq_memory[cq] as usize + offset) as *mut u8;
        // SAFETY: within the ring; the provider is not running.
        unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// # Safety
/// `len` bytes at `at` are memory.
unsafe fn read(at: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the caller's.
    unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(at as *const u8, len) };
    bytes
}

fn atomic(request: &Send) -> bool {
    use directverbs::verbs::SendOp;
    matches!(request.op, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. })
}

fn outcome(result: std::result::Result<(), PostError>) -> Outcome {
    result.map_or_else(|error| Outcome::Refused(error.index), |()| Outcome::Done)
}

fn access(store: &Store) -> Access {
    let page = match store.page {
        Page::Doorbell => DOORBELL,
        Page::Push => PUSH,
        _ => "another page",
    };
    Access::Store { page, offset: store.offset, value: store.value() }
}

fn fields(wc: &ibv_wc) -> Fields {
    Fields {
        wr_id: wc.wr_id,
        status: wc.status,
        opcode: wc.opcode,
        vendor_err: wc.vendor_err,
        byte_len: wc.byte_len,
        imm_or_rkey: wc.imm_or_rkey,
        qp: wc.qp_num,
        src_qp: wc.src_qp,
        flags: wc.wc_flags,
        sl: wc.sl.into(),
    }
}
