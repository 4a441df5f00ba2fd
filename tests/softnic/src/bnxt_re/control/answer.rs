//! Answers that only tell what the chip is like.

use directverbs::bnxt_re::hwrm::error::HwrmStatus;
use directverbs::bnxt_re::hwrm::function::{FuncQcapsOutput, FuncQcfgOutput, caps, caps_ext, caps_ext2};
use directverbs::bnxt_re::hwrm::port::{LINK, PortPhyQcapsOutput, PortPhyQcfgOutput};
use directverbs::bnxt_re::hwrm::queue::QueueQportcfgOutput;
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs::bnxt_re::hwrm::resources::{FuncCfgInput, FuncResourceQcapsOutput, enables};
use directverbs::bnxt_re::hwrm::version::VerGetOutput;
use zerocopy::little_endian as le;

use super::chip::{L2_DOORBELL_KB, LEGACY_L2_KB, MAX_STAT_CTX, VECTORS};
use super::function::BnxtFunction;
use super::hwrm::{Answer, MAX_REQUEST, WINDOW, done, payload};

/// The function.
const FID: u16 = 1;
/// Rings of each kind of Ethernet.
const L2_RINGS: u16 = 64;
/// Completion rings.
const CMPL_RINGS: u16 = 256;
/// VNICs.
const VNICS: u16 = 64;
/// Largest frame.
const MRU: u16 = 9600;
/// 100 Gb/s, in units of 100 Mb/s, and its bit among the speeds.
const SPEED: u16 = 0x3e8;
const SPEED_BIT: u16 = 0x800;

const fn u16le(value: u16) -> le::U16 {
    le::U16::new(value)
}

impl BnxtFunction {
    pub(super) fn version(&self) -> Vec<u8> {
        let name = |name: &[u8]| -> [u8; 16] { std::array::from_fn(|i| name.get(i).copied().unwrap_or(0)) };
        payload(&VerGetOutput {
            hwrm_intf_maj_8b: 1,
            hwrm_intf_min_8b: 10,
            hwrm_intf_upd_8b: 3,
            hwrm_fw_maj_8b: 230,
            hwrm_fw_name: name(b"directverbs"),
            active_pkg_name: name(b"230.0.0.0"),
            roce_fw_maj_8b: 230,
            dev_caps_cfg: le::U32::new(0xc),
            chip_num: u16le(self.chip.number()),
            max_req_win_len: u16le(WINDOW),
            max_resp_len: u16le(4096),
            def_req_timeout: u16le(1000),
            always_1: 1,
            hwrm_intf_major: u16le(1),
            hwrm_intf_minor: u16le(10),
            hwrm_intf_build: u16le(3),
            hwrm_fw_major: u16le(230),
            roce_fw_major: u16le(230),
            max_ext_req_len: u16le(MAX_REQUEST),
            max_req_timeout: u16le(20),
            ..VerGetOutput::ZERO
        })
    }

    fn qcaps(&self) -> Vec<u8> {
        let ext = if self.chip.is_p7() { caps_ext::BS_V2_SUPPORTED | caps_ext::BS_V2_REQUIRED } else { 0 };
        let push = if self.chip.push { caps::WCB_PUSH_MODE } else { 0 };
        payload(&FuncQcapsOutput {
            fid: u16le(FID),
            flags: le::U32::new(caps::ROCE_V1 | caps::ROCE_V2 | push),
            mac_address: self.chip.mac.0,
            max_rsscos_ctx: u16le(L2_RINGS),
            max_cmpl_rings: u16le(CMPL_RINGS),
            max_tx_rings: u16le(L2_RINGS),
            max_rx_rings: u16le(L2_RINGS),
            max_l2_ctxs: u16le(L2_RINGS),
            max_vnics: u16le(VNICS),
            max_stat_ctx: u16le(MAX_STAT_CTX),
            max_hw_ring_grps: le::U32::new(L2_RINGS.into()),
            flags_ext: le::U32::new(ext),
            flags_ext2: le::U32::new(if self.chip.pacing { caps_ext2::DBR_PACING_EXT } else { 0 }),
            ..FuncQcapsOutput::ZERO
        })
    }

    fn qcfg(&self) -> Vec<u8> {
        let reserved = self.state.hwrm.reserved;
        // P5 has user pages of their own only if something is pushed through them.
        let apart = self.chip.is_p7() || self.chip.push;
        payload(&FuncQcfgOutput {
            fid: u16le(FID),
            mac_address: self.chip.mac.0,
            pci_id: u16le(self.chip.number()),
            alloc_rsscos_ctx: u16le(reserved.num_rsscos_ctxs),
            alloc_cmpl_rings: u16le(reserved.num_cmpl_rings),
            alloc_tx_rings: u16le(reserved.num_tx_rings),
            alloc_rx_rings: u16le(reserved.num_rx_rings),
            alloc_vnics: u16le(reserved.num_vnics),
            alloc_hw_ring_grps: le::U32::new(reserved.num_hw_ring_grps.into()),
            alloc_stat_ctx: u16le(reserved.num_stat_ctxs),
            alloc_msix: u16le(reserved.num_msix),
            mru: u16le(MRU),
            max_mtu_configured: u16le(MRU),
            always_1: 1,
            l2_doorbell_bar_size_kb: u16le(if apart { L2_DOORBELL_KB } else { 0 }),
            legacy_l2_db_size_kb: u16le(if self.chip.is_p7() { LEGACY_L2_KB } else { 0 }),
            ..FuncQcfgOutput::ZERO
        })
    }

    fn resources(&self) -> Vec<u8> {
        let one = u16le(1);
        payload(&FuncResourceQcapsOutput {
            max_msix: u16le(VECTORS),
            min_rsscos_ctx: one,
            max_rsscos_ctx: u16le(L2_RINGS),
            min_cmpl_rings: one,
            max_cmpl_rings: u16le(CMPL_RINGS),
            min_tx_rings: one,
            max_tx_rings: u16le(L2_RINGS),
            min_rx_rings: one,
            max_rx_rings: u16le(L2_RINGS),
            min_l2_ctxs: one,
            max_l2_ctxs: u16le(L2_RINGS),
            min_vnics: one,
            max_vnics: u16le(VNICS),
            min_stat_ctx: one,
            max_stat_ctx: u16le(MAX_STAT_CTX),
            min_hw_ring_grps: one,
            max_hw_ring_grps: u16le(L2_RINGS),
            min_msix: one,
            ..FuncResourceQcapsOutput::ZERO
        })
    }

    fn queues(&self) -> Vec<u8> {
        payload(&QueueQportcfgOutput {
            max_configurable_queues: 2,
            max_configurable_lossless_queues: 1,
            queue_id0: 0,
            queue_id1: 4,
            queue_id1_service_profile: 1,
            queue_id0_service_profile_type: 2,
            queue_id1_service_profile_type: 1,
            ..QueueQportcfgOutput::ZERO
        })
    }

    /// Reserves resources.
    pub(super) fn func_cfg(&mut self, input: &FuncCfgInput) -> Result<(), HwrmStatus> {
        let mut reserved = self.state.hwrm.reserved;
        let wanted = [
            (enables::NUM_MSIX, input.num_msix, &mut reserved.num_msix, VECTORS),
            (enables::NUM_CMPL_RINGS, input.num_cmpl_rings, &mut reserved.num_cmpl_rings, CMPL_RINGS),
            (enables::NUM_TX_RINGS, input.num_tx_rings, &mut reserved.num_tx_rings, L2_RINGS),
            (enables::NUM_RX_RINGS, input.num_rx_rings, &mut reserved.num_rx_rings, L2_RINGS),
            (enables::NUM_VNICS, input.num_vnics, &mut reserved.num_vnics, VNICS),
            (enables::NUM_STAT_CTXS, input.num_stat_ctxs, &mut reserved.num_stat_ctxs, MAX_STAT_CTX),
            (enables::NUM_RSSCOS_CTXS, input.num_rsscos_ctxs, &mut reserved.num_rsscos_ctxs, L2_RINGS),
            (enables::NUM_HW_RING_GRPS, input.num_hw_ring_grps, &mut reserved.num_hw_ring_grps, L2_RINGS),
        ];
        for (bit, asked, to, max) in wanted {
            if input.enables.get() & bit != 0 {
                if asked.get() > max {
                    return Err(HwrmStatus::RESOURCE_ALLOC_ERROR);
                }
                *to = asked.get();
            }
        }
        if ![FID, 0xffff].contains(&input.fid.get()) {
            self.violation(format_args!("FUNC_CFG of function {:#x}", input.fid));
            return Err(HwrmStatus::RESOURCE_ACCESS_DENIED);
        }
        self.state.hwrm.reserved = reserved;
        Ok(())
    }

    fn link(&self) -> Vec<u8> {
        payload(&PortPhyQcfgOutput {
            link: LINK,
            link_speed: u16le(SPEED),
            duplex_cfg: 1,
            duplex_state: 1,
            support_speeds: u16le(SPEED_BIT),
            force_link_speed: u16le(SPEED),
            ..PortPhyQcfgOutput::ZERO
        })
    }

    /// Requests that change nothing that the device API knows.
    pub(super) fn answer(&mut self, req_type: ReqType, request: &[u8]) -> Answer {
        Ok(match req_type {
            ReqType::FUNC_QCAPS => self.qcaps(),
            ReqType::FUNC_QCFG => self.qcfg(),
            ReqType::FUNC_RESOURCE_QCAPS => self.resources(),
            ReqType::QUEUE_QPORTCFG => self.queues(),
            ReqType::PORT_PHY_QCFG => self.link(),
            ReqType::PORT_PHY_QCAPS => payload(&PortPhyQcapsOutput {
                port_cnt: 1,
                supported_speeds_force_mode: u16le(SPEED_BIT),
                supported_speeds_auto_mode: u16le(SPEED_BIT),
                ..PortPhyQcapsOutput::ZERO
            }),
            ReqType::FUNC_DBR_PACING_QCFG => payload(&self.pacing()),
            // The time is not needed: nothing is dated.
            ReqType::FUNC_DRV_IF_CHANGE | ReqType::PORT_PHY_CFG | ReqType::FW_SET_TIME => return done(),
            _ => return self.ethernet(req_type, request),
        })
    }
}
