//! What soft-RoCE adds to requests and replies, as in Linux `include/uapi/rdma/rdma_user_rxe.h`.

use directverbs::verbs::{
    AccessFlags, AddressVector, Mac, Mtu, Psn, QpAttributes, QpCapabilities, QpId, QpInit, QpState, QpType,
    SrqInit,
};
use directverbs_linux::error::Error;
use directverbs_linux::objects::{
    CompletionQueue, Context, CqInit, ProtectionDomain, QpBuffers, QueuePair, SharedReceiveQueue,
};
use directverbs_linux::uverbs::Uhw;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{V4, context};
use crate::checks::discovery::gid;

/// `struct mminfo`: a ring that can be mapped.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, PartialEq, Eq)]
#[repr(C)]
pub struct Ring {
    /// Cookie of the mapping.
    pub offset: u64,
    /// Bytes.
    pub size: u32,
    /// Zero.
    pub pad: u32,
}

/// `struct rxe_create_srq_resp`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct SrqReply {
    pub ring: Ring,
    pub number: u32,
    pub reserved: u32,
}

/// What a queue pair is asked to be.
pub const CAPABILITIES: QpCapabilities = QpCapabilities {
    max_send_wr: 16,
    max_recv_wr: 16,
    max_send_sge: 2,
    max_recv_sge: 1,
    max_inline_data: 32,
};

/// A completion queue of 16 entries or more, and its ring.
pub fn cq(context: &Context, init: CqInit<'_>) -> Result<(CompletionQueue, Ring), Error> {
    let mut ring = Ring::default();
    let cq = CompletionQueue::create(context, &CqInit { cqe: 16, ..init }, Uhw::reply(&mut ring))?;
    Ok((cq, ring))
}

/// A shared receive queue, and its ring.
pub fn srq(pd: &ProtectionDomain, init: SrqInit) -> Result<(SharedReceiveQueue, SrqReply), Error> {
    let mut reply = SrqReply::default();
    let srq = SharedReceiveQueue::create(pd, init, Uhw::reply(&mut reply))?;
    Ok((srq, reply))
}

/// A queue pair, and its rings: for receives and for sends.
pub fn qp(
    pd: &ProtectionDomain,
    qp_type: QpType,
    cq: &CompletionQueue,
    srq: Option<&SharedReceiveQueue>,
) -> Result<(QueuePair, [Ring; 2]), Error> {
    let mut rings = [Ring::default(); 2];
    let init =
        QpInit { qp_type, capabilities: CAPABILITIES, send_cq: cq, recv_cq: cq, srq, signal_all: false };
    let qp = QueuePair::create(pd, &init, &QpBuffers::default(), &[], Uhw::reply(&mut rings))?;
    Ok((qp, rings))
}

/// Index of the GID of our IPv4 address.
pub fn gid_index() -> u8 {
    // sysfs tells the same, file by file: that takes long here.
    let gids = context().gids().expect("GIDs");
    let entry = gids.iter().find(|entry| entry.gid == gid(V4)).expect("the GID of our address");
    entry.index as u8
}

/// The way from this device to itself. The kernel finds the Ethernet address.
pub fn to_itself() -> AddressVector {
    AddressVector { sgid_index: gid_index(), ..AddressVector::new(gid(V4), Mac::default()) }
}

/// What takes a reliable queue pair from RESET to RTS, to be connected with `peer`.
pub fn connection(peer: QpId) -> [QpAttributes; 3] {
    [
        QpAttributes {
            access: Some(AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ),
            ..QpAttributes::to(QpState::Init)
        },
        QpAttributes {
            path: Some(to_itself()),
            mtu: Some(Mtu::B1024),
            dest_qp: Some(peer),
            rq_psn: Psn::new(0xff_fffe),
            max_dest_rd_atomic: Some(4),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Psn::new(0xff_fffe),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(4),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}
