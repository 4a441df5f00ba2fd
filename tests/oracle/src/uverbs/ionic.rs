//! ionic: what its driver adds to the commands. Source: kernel `rdma/ionic-abi.h`.

use super::Errno;
pub use super::abi::ionic::*;
use super::device::State;
use super::memory::Page;
use super::objects::{Ah, Cq, Qp};
use zerocopy::IntoBytes;

const PAGE_SHIFT: u32 = 12;

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
