//! RCFW: the control channel for RoCE objects.
//!
//! Commands go into a ring in host memory, whose producer is told in a register; completions and events come back in
//! another ring ([`super::nq::EventRing`]), and match their commands by a cookie. What a query tells goes to a side buffer.

pub mod ah;
pub mod cmdq;
pub mod congestion;
pub mod context;
pub mod cq;
pub mod create;
pub mod event;
pub mod function;
pub mod gid;
pub mod message;
pub mod mr;
pub mod opcode;
pub mod parameter;
pub mod path;
pub mod qp;
pub mod srq;
pub mod stats;
pub mod transition;

use crate::layout::Layout;

/// Every layout of the channel.
pub const LAYOUTS: &[Layout] = &[
    message::CmdqInit::LAYOUT,
    message::CmdqBase::LAYOUT,
    message::CreqBase::LAYOUT,
    message::CreqFuncEvent::LAYOUT,
    message::CreqQpErrorNotification::LAYOUT,
    message::CreqCqErrorNotification::LAYOUT,
    message::CreqDone::LAYOUT,
    message::CreqXid::LAYOUT,
    message::CreqSize::LAYOUT,
    function::CmdqQueryFunc::LAYOUT,
    function::CreqQueryFuncRespSb::LAYOUT,
    function::CmdqQueryVersion::LAYOUT,
    function::CreqQueryVersionResp::LAYOUT,
    function::CmdqInitializeFw::LAYOUT,
    function::CmdqDeinitializeFw::LAYOUT,
    function::CmdqSetFuncResources::LAYOUT,
    qp::CmdqCreateQp::LAYOUT,
    qp::CreqCreateQpResp::LAYOUT,
    qp::CmdqDestroyQp::LAYOUT,
    qp::CmdqModifyQp::LAYOUT,
    qp::CreqModifyQpResp::LAYOUT,
    qp::CmdqQueryQp::LAYOUT,
    qp::CreqQueryQpRespSb::LAYOUT,
    qp::CmdqCreateQp1::LAYOUT,
    qp::CmdqDestroyQp1::LAYOUT,
    cq::CmdqCreateCq::LAYOUT,
    cq::CmdqDestroyCq::LAYOUT,
    cq::CreqDestroyCqResp::LAYOUT,
    cq::CmdqResizeCq::LAYOUT,
    srq::CmdqCreateSrq::LAYOUT,
    srq::CmdqDestroySrq::LAYOUT,
    srq::CreqDestroySrqResp::LAYOUT,
    srq::CmdqQuerySrq::LAYOUT,
    srq::CreqQuerySrqRespSb::LAYOUT,
    mr::CmdqAllocateMrw::LAYOUT,
    mr::CmdqDeallocateKey::LAYOUT,
    mr::CreqDeallocateKeyResp::LAYOUT,
    mr::CmdqRegisterMr::LAYOUT,
    mr::CmdqDeregisterMr::LAYOUT,
    mr::CreqDeregisterMrResp::LAYOUT,
    gid::CmdqAddGid::LAYOUT,
    gid::CmdqDeleteGid::LAYOUT,
    gid::CmdqModifyGid::LAYOUT,
    gid::CmdqQueryGid::LAYOUT,
    gid::CreqQueryGidRespSb::LAYOUT,
    ah::CmdqCreateAh::LAYOUT,
    ah::CmdqDestroyAh::LAYOUT,
    stats::CmdqQueryRoceStats::LAYOUT,
    stats::CreqQueryRoceStatsRespSb::LAYOUT,
    stats::CmdqQueryRoceStatsExt::LAYOUT,
    stats::CreqQueryRoceStatsExtRespSb::LAYOUT,
    congestion::CmdqQueryRoceCc::LAYOUT,
    congestion::CreqQueryRoceCcRespSb::LAYOUT,
    congestion::CmdqModifyRoceCc::LAYOUT,
    congestion::CmdqModifyRoceCcGen1Tlv::LAYOUT,
    congestion::CreqQueryRoceCcGen1RespSbTlv::LAYOUT,
    context::CmdqReadContext::LAYOUT,
    context::CmdqMapTcToCos::LAYOUT,
    context::CmdqRoceMirrorCfg::LAYOUT,
];
