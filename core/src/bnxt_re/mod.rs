//! Broadcom bnxt_re: BCM575xx (P5) and BCM5760x (P7), static and variable WQE mode.
//!
//! A queue pair's rings are counted in 16-byte slots. A WQE begins with a header of two slots; SGEs or inline data
//! follow. In static mode every WQE takes eight slots, in variable mode as many as it has. Source of all layouts: the
//! kernel driver's `roce_hsi.h` and `bnxt_hsi.h`, and rdma-core's `bnxt_re-abi.h`.

pub mod attached;
pub mod batch;
#[cfg(feature = "alloc")]
mod boxed;
pub mod caps;
pub mod collapsed;
mod complete;
pub mod cq;
pub mod cqe;
#[cfg(feature = "capi")]
pub mod description;
pub mod doorbell;
mod flags;
pub mod hwrm;
mod inline;
pub mod nq;
pub mod pacing;
mod payload;
pub mod pbl;
pub mod plan;
mod poll;
pub mod psn;
pub mod push;
pub mod qp;
pub mod rcfw;
pub mod recv;
mod request;
pub mod resize;
pub mod send;
pub mod srq;
mod straight;
pub mod wqe;

use crate::layout::Layout;

/// Every layout of the datapath.
pub const LAYOUTS: &[Layout] = &[
    doorbell::DbcDbc::LAYOUT,
    doorbell::DbcPush::LAYOUT,
    wqe::SqBase::LAYOUT,
    wqe::SqSge::LAYOUT,
    wqe::SqSendHdr::LAYOUT,
    wqe::SqRawHdr::LAYOUT,
    wqe::SqRdmaHdr::LAYOUT,
    wqe::SqAtomicHdr::LAYOUT,
    wqe::SqLocalInvalidate::LAYOUT,
    wqe::SqFrPmr::LAYOUT,
    wqe::SqBind::LAYOUT,
    wqe::RqWqeHdr::LAYOUT,
    psn::SqPsnSearch::LAYOUT,
    psn::SqPsnSearchExt::LAYOUT,
    psn::SqMsnSearch::LAYOUT,
    cqe::CqBase::LAYOUT,
    cqe::CqReq::LAYOUT,
    cqe::CqResRc::LAYOUT,
    cqe::CqResUd::LAYOUT,
    cqe::CqResRawEthQp1::LAYOUT,
    cqe::CqTerminal::LAYOUT,
    cqe::CqCutoff::LAYOUT,
    cqe::NqBase::LAYOUT,
    cqe::NqCn::LAYOUT,
    cqe::NqSrqEvent::LAYOUT,
    cqe::NqDbqEvent::LAYOUT,
];
