//! ionic: what its driver adds to the commands. Source: kernel `rdma/ionic-abi.h`.

use super::Errno;
use super::abi::structures;
use super::device::State;
use super::memory::Page;
use super::objects::{Ah, Cq, Qp};
use zerocopy::IntoBytes;

const PAGE_SHIFT: u32 = 12;

/// Bits of `sq_cmb` and `rq_cmb`.
pub mod cmb {
    /// In controller memory.
    pub const ENABLE: u8 = 1;
    /// Fail rather than go without.
    pub const REQUIRE: u8 = 2;
    /// With express doorbells.
    pub const EXPDB: u8 = 4;
    /// Mapped write-combining.
    pub const WC: u8 = 8;
    /// Mapped uncached.
    pub const UC: u8 = 16;
}

structures! {
    /// `ionic_ctx_resp`.
    CtxResp: 40 {
        rsvd: u32, page_shift: u32, dbell_offset: u64, version: u16, qp_opcodes: u8, admin_opcodes: u8, sq_qtype: u8,
        rq_qtype: u8, cq_qtype: u8, admin_qtype: u8, max_stride: u8, max_spec: u8, udma_count: u8, expdb_mask: u8,
        expdb_qtypes: u8, rsvd2: [u8; 3], phc_offset: u64,
    }
    /// `ionic_qdesc`.
    Qdesc: 16 { addr: u64, size: u32, mask: u16, depth_log2: u8, stride_log2: u8, }
    /// `ionic_ah_resp`.
    AhResp: 8 { ahid: u32, pad: u32, }
    /// `ionic_cq_req`.
    CqReq: 40 { cq: [Qdesc; 2], udma_mask: u8, rsvd: [u8; 7], }
    /// `ionic_cq_resp`.
    CqResp: 16 { cqid: [u32; 2], udma_mask: u8, rsvd: [u8; 7], }
    /// `ionic_qp_req`.
    QpReq: 40 {
        sq: Qdesc, rq: Qdesc, sq_spec: u8, rq_spec: u8, sq_cmb: u8, rq_cmb: u8, udma_mask: u8, rsvd: [u8; 3],
    }
    /// `ionic_qp_resp`.
    QpResp: 24 {
        qpid: u32, sq_cmb: u8, rq_cmb: u8, udma_idx: u8, rsvd: u8, sq_cmb_offset: u64, rq_cmb_offset: u64,
    }
    /// `ib_uverbs_clock_info`, at the beginning of [`Page::Clock`].
    ClockInfo: 56 {
        sign: u32, resv: u32, nsec: u64, cycles: u64, frac: u64, mult: u32, shift: u32, mask: u64,
        overflow_period: u64,
    }
}

/// What the device is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// rdma version, 1 or 2.
    pub version: u16,
    /// Number of opcodes of queue pairs; version 1 needs more than 11.
    pub qp_opcodes: u8,
    /// Doorbell registers of send, receive and completion queues.
    pub qtypes: [u8; 3],
    /// Longest WQE, base-two logarithm of its bytes.
    pub max_stride: u8,
    /// Most SGEs with a list of lengths; 0 takes no lists.
    pub max_spec: u8,
    /// Pipelines, 1 or 2.
    pub udma_count: u8,
    /// Pipeline that queue pairs come to, if their mask allows it; else to the lowest that it allows.
    pub udma: u8,
    /// Strides that express doorbells exist for: 64 bytes 1, 128 2, 256 4, 512 8.
    pub express_strides: u8,
    /// Queues that express doorbells exist for: send 1, receive 2.
    pub express_queues: u8,
    /// What is granted to send and receive queues of what they ask for ([`cmb::ENABLE`], [`cmb::EXPDB`]), and how their
    /// memory is mapped ([`cmb::WC`], [`cmb::UC`]).
    pub cmb: [u8; 2],
    /// There is a clock page, with this in it.
    pub clock: Option<ClockInfo>,
}

impl Default for Config {
    /// Version 2, one pipeline, spec of 8, no controller memory, no clock.
    fn default() -> Self {
        Self {
            version: 2,
            qp_opcodes: 16,
            qtypes: [3, 4, 5],
            max_stride: 9,
            max_spec: 8,
            udma_count: 1,
            udma: 0,
            express_strides: 0,
            express_queues: 0,
            cmb: [0, 0],
            clock: None,
        }
    }
}

impl Config {
    /// What the kernel tells about the context.
    pub fn reply(&self) -> CtxResp {
        CtxResp {
            page_shift: PAGE_SHIFT,
            version: self.version,
            qp_opcodes: self.qp_opcodes,
            admin_opcodes: 16,
            sq_qtype: self.qtypes[0],
            rq_qtype: self.qtypes[1],
            cq_qtype: self.qtypes[2],
            admin_qtype: 2,
            max_stride: self.max_stride,
            max_spec: self.max_spec,
            udma_count: self.udma_count,
            expdb_mask: self.express_strides,
            expdb_qtypes: self.express_queues,
            ..CtxResp::default()
        }
    }
}

pub(super) fn get_context(state: &mut State, config: &Config) -> Result<Vec<u8>, Errno> {
    let page = 1 << PAGE_SHIFT;
    let dbell_offset = state.add_page(Page::Doorbell, page)?;
    let mut reply = CtxResp { dbell_offset, ..config.reply() };
    if let Some(clock) = &config.clock {
        reply.phc_offset = state.add_page(Page::Clock, page)?;
        state.page(Page::Clock).write(0, clock.as_bytes());
    }
    Ok(reply.as_bytes().to_vec())
}

pub(super) fn create_cq(state: &mut State, config: &Config, cq: &mut Cq) -> Result<Vec<u8>, Errno> {
    let request: CqReq = cq.udata.get();
    let mask = request.udma_mask & ((1 << config.udma_count) - 1);
    for (udma, ring) in request.cq.iter().enumerate().filter(|(udma, _)| mask >> udma & 1 != 0) {
        valid(ring)?;
        cq.ids[udma] = state.next_cq();
    }
    let reply = CqResp { cqid: cq.ids, udma_mask: mask, rsvd: [0; 7] };
    Ok(reply.as_bytes().to_vec())
}

/// The kernel driver's check of a ring.
fn valid(ring: &Qdesc) -> Result<(), Errno> {
    let entries = 1u64 << ring.depth_log2.min(31);
    let good = ring.addr != 0
        && ring.addr.is_multiple_of(1 << PAGE_SHIFT)
        && ring.depth_log2 != 0
        && u64::from(ring.mask) == entries - 1
        && ring.stride_log2 != 0
        && u64::from(ring.size) >= entries << ring.stride_log2.min(31);
    if good { Ok(()) } else { Err(libc::EINVAL) }
}

pub(super) fn create_qp(state: &mut State, config: &Config, qp: &Qp) -> Result<Vec<u8>, Errno> {
    let request: QpReq = qp.udata.get();
    valid(&request.sq)?;
    valid(&request.rq)?;
    let mask = request.udma_mask & ((1 << config.udma_count) - 1);
    let udma_idx = if mask >> config.udma & 1 != 0 { config.udma } else { mask.trailing_zeros() as u8 };
    if mask == 0 {
        return Err(libc::EINVAL);
    }
    let mut reply = QpResp { qpid: qp.id, udma_idx, ..QpResp::default() };
    let queues = [
        (request.sq_cmb, config.cmb[0], Page::SendCmb(qp.id), request.sq.size),
        (request.rq_cmb, config.cmb[1], Page::RecvCmb(qp.id), request.rq.size),
    ];
    let mut granted = [(0, 0); 2];
    for ((asked, grant, page, bytes), granted) in queues.into_iter().zip(&mut granted) {
        let bits = asked & grant & (cmb::ENABLE | cmb::EXPDB);
        if bits & cmb::ENABLE != 0 {
            *granted = (bits | grant & (cmb::WC | cmb::UC), state.add_page(page, bytes as usize)?);
        }
        if asked & cmb::REQUIRE != 0 && bits | cmb::REQUIRE != asked {
            return Err(libc::ENOMEM);
        }
    }
    [(reply.sq_cmb, reply.sq_cmb_offset), (reply.rq_cmb, reply.rq_cmb_offset)] = granted;
    Ok(reply.as_bytes().to_vec())
}

pub(super) fn create_ah(ah: &Ah) -> Vec<u8> {
    AhResp { ahid: ah.id, pad: 0 }.as_bytes().to_vec()
}
