//! HWRM: the firmware's control channel, for everything but RoCE objects.
//!
//! A request goes into a window of the register BAR, or into host memory that a short one in the window points to; the
//! response is written to host memory, and its last byte tells that it is complete. One request at a time.

pub mod backing_store;
pub mod backing_store_v2;
pub mod context;
pub mod driver;
pub mod error;
pub mod event;
pub mod filter;
pub mod function;
pub mod mailbox;
pub mod message;
pub mod pacing;
pub mod port;
pub mod port_stats;
pub mod port_stats_ext;
pub mod queue;
pub mod req_type;
pub mod resources;
pub mod ring;
pub mod stat;
pub mod version;
pub mod vnic;

use crate::layout::Layout;

/// Every layout of the channel.
pub const LAYOUTS: &[Layout] = &[
    message::HwrmCmdHdr::LAYOUT,
    message::HwrmRespHdr::LAYOUT,
    message::HwrmShortInput::LAYOUT,
    message::HwrmDone::LAYOUT,
    event::HwrmCmpl::LAYOUT,
    event::HwrmAsyncEventCmpl::LAYOUT,
    version::VerGetInput::LAYOUT,
    version::VerGetOutput::LAYOUT,
    function::FuncResetInput::LAYOUT,
    function::FuncQcapsInput::LAYOUT,
    function::FuncQcapsOutput::LAYOUT,
    function::FuncQcfgInput::LAYOUT,
    function::FuncQcfgOutput::LAYOUT,
    resources::FuncResourceQcapsInput::LAYOUT,
    resources::FuncResourceQcapsOutput::LAYOUT,
    resources::FuncCfgInput::LAYOUT,
    driver::FuncDrvRgtrInput::LAYOUT,
    driver::FuncDrvRgtrOutput::LAYOUT,
    driver::FuncDrvUnrgtrInput::LAYOUT,
    driver::FuncDrvIfChangeInput::LAYOUT,
    driver::FuncDrvIfChangeOutput::LAYOUT,
    queue::QueueQportcfgInput::LAYOUT,
    queue::QueueQportcfgOutput::LAYOUT,
    backing_store::FuncBackingStoreQcapsInput::LAYOUT,
    backing_store::FuncBackingStoreQcapsOutput::LAYOUT,
    backing_store::FuncBackingStoreCfgInput::LAYOUT,
    backing_store_v2::FuncBackingStoreQcapsV2Input::LAYOUT,
    backing_store_v2::FuncBackingStoreQcapsV2Output::LAYOUT,
    backing_store_v2::FuncBackingStoreCfgV2Input::LAYOUT,
    ring::RingAllocInput::LAYOUT,
    ring::RingAllocOutput::LAYOUT,
    ring::RingFreeInput::LAYOUT,
    ring::RingCmplRingCfgAggintParamsInput::LAYOUT,
    stat::CtxHwStats::LAYOUT,
    stat::StatCtxAllocInput::LAYOUT,
    stat::StatCtxAllocOutput::LAYOUT,
    stat::StatCtxFreeInput::LAYOUT,
    stat::PortQstatsInput::LAYOUT,
    stat::PortQstatsOutput::LAYOUT,
    stat::PortQstatsExtInput::LAYOUT,
    stat::PortQstatsExtOutput::LAYOUT,
    port_stats::TxPortStats::LAYOUT,
    port_stats::RxPortStats::LAYOUT,
    port_stats_ext::TxPortStatsExt::LAYOUT,
    port_stats_ext::RxPortStatsExt::LAYOUT,
    port::PortPhyQcapsInput::LAYOUT,
    port::PortPhyQcapsOutput::LAYOUT,
    port::PortPhyQcfgInput::LAYOUT,
    port::PortPhyQcfgOutput::LAYOUT,
    port::PortPhyCfgInput::LAYOUT,
    vnic::VnicAllocInput::LAYOUT,
    vnic::VnicAllocOutput::LAYOUT,
    vnic::VnicFreeInput::LAYOUT,
    vnic::VnicCfgInput::LAYOUT,
    vnic::VnicQcapsOutput::LAYOUT,
    vnic::VnicRssCosLbCtxAllocOutput::LAYOUT,
    filter::CfaL2FilterAllocInput::LAYOUT,
    filter::CfaL2FilterAllocOutput::LAYOUT,
    filter::CfaL2FilterFreeInput::LAYOUT,
    filter::CfaL2SetRxMaskInput::LAYOUT,
    pacing::FuncDbrPacingQcfgInput::LAYOUT,
    pacing::FuncDbrPacingQcfgOutput::LAYOUT,
];
