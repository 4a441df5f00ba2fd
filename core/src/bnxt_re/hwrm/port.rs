//! The link. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{HwrmDone, request, response};

/// Value of [`PortPhyQcfgOutput::link`]: up.
pub const LINK: u8 = 2;

request! {
    /// Asks what the link can do.
    pub struct PortPhyQcapsInput: "hwrm_port_phy_qcaps_input", 24, PORT_PHY_QCAPS => PortPhyQcapsOutput {
        /// Port.
        port_id: le::U16 = 16,
        /// Zero.
        unused_0: [u8; 6] = 18,
    }
}
response! {
    /// What the link can do.
    pub struct PortPhyQcapsOutput: "hwrm_port_phy_qcaps_output", 48 {
        /// Flags.
        flags: u8 = 8,
        /// Port cnt.
        port_cnt: u8 = 9,
        /// Supported speeds force mode.
        supported_speeds_force_mode: le::U16 = 10,
        /// Supported speeds auto mode.
        supported_speeds_auto_mode: le::U16 = 12,
        /// Supported speeds EEE mode.
        supported_speeds_eee_mode: le::U16 = 14,
        /// Transmit LPI timer low.
        tx_lpi_timer_low: le::U32 = 16,
        /// Valid transmit LPI timer high.
        valid_tx_lpi_timer_high: le::U32 = 20,
        /// Supported PAM4 speeds auto mode.
        supported_pam4_speeds_auto_mode: le::U16 = 24,
        /// Supported PAM4 speeds force mode.
        supported_pam4_speeds_force_mode: le::U16 = 26,
        /// More flags.
        flags2: le::U16 = 28,
        /// Internal port cnt.
        internal_port_cnt: u8 = 30,
        /// Zero.
        unused_0: u8 = 31,
        /// Supported speeds2 force mode.
        supported_speeds2_force_mode: le::U16 = 32,
        /// Supported speeds2 auto mode.
        supported_speeds2_auto_mode: le::U16 = 34,
        /// Supported speeds2 ext force mode.
        supported_speeds2_ext_force_mode: le::U16 = 36,
        /// Supported speeds2 ext auto mode.
        supported_speeds2_ext_auto_mode: le::U16 = 38,
        /// Zero.
        unused_1: [u8; 7] = 40,
        /// 1 when the response is complete; written last.
        valid: u8 = 47,
    }
}
request! {
    /// Asks for the state of the link.
    pub struct PortPhyQcfgInput: "hwrm_port_phy_qcfg_input", 24, PORT_PHY_QCFG => PortPhyQcfgOutput {
        /// Port.
        port_id: le::U16 = 16,
        /// Zero.
        unused_0: [u8; 6] = 18,
    }
}
response! {
    /// State of the link.
    pub struct PortPhyQcfgOutput: "hwrm_port_phy_qcfg_output", 112 {
        /// 0 none, 1 signal, 2 link.
        link: u8 = 8,
        /// Active fec signal mode.
        active_fec_signal_mode: u8 = 9,
        /// Speed in units of 100 Mb/s.
        link_speed: le::U16 = 10,
        /// 1: full duplex.
        duplex_cfg: u8 = 12,
        /// 1 transmit, 2 receive.
        pause: u8 = 13,
        /// Support speeds.
        support_speeds: le::U16 = 14,
        /// Force link speed.
        force_link_speed: le::U16 = 16,
        /// 0: no autonegotiation.
        auto_mode: u8 = 18,
        /// Auto pause.
        auto_pause: u8 = 19,
        /// Auto link speed.
        auto_link_speed: le::U16 = 20,
        /// Auto link speed mask.
        auto_link_speed_mask: le::U16 = 22,
        /// Wirespeed.
        wirespeed: u8 = 24,
        /// Lpbk.
        lpbk: u8 = 25,
        /// Force pause.
        force_pause: u8 = 26,
        /// State of the module; 0 is good.
        module_status: u8 = 27,
        /// Preemphasis.
        preemphasis: le::U32 = 28,
        /// Version of PHY, major number.
        phy_maj: u8 = 32,
        /// Version of PHY, minor number.
        phy_min: u8 = 33,
        /// Version of PHY, build number.
        phy_bld: u8 = 34,
        /// PHY type.
        phy_type: u8 = 35,
        /// Media type.
        media_type: u8 = 36,
        /// Xcvr pkg type.
        xcvr_pkg_type: u8 = 37,
        /// EEE configuration PHY address.
        eee_config_phy_addr: u8 = 38,
        /// Parallel detect.
        parallel_detect: u8 = 39,
        /// Link partner adv speeds.
        link_partner_adv_speeds: le::U16 = 40,
        /// Link partner adv auto mode.
        link_partner_adv_auto_mode: u8 = 42,
        /// Link partner adv pause.
        link_partner_adv_pause: u8 = 43,
        /// Adv EEE link speed mask.
        adv_eee_link_speed_mask: le::U16 = 44,
        /// Link partner adv EEE link speed mask.
        link_partner_adv_eee_link_speed_mask: le::U16 = 46,
        /// Xcvr identifier type transmit LPI timer.
        xcvr_identifier_type_tx_lpi_timer: le::U32 = 48,
        /// Fec configuration.
        fec_cfg: le::U16 = 52,
        /// 1: full duplex.
        duplex_state: u8 = 54,
        /// Option flags.
        option_flags: u8 = 55,
        /// PHY vendor name.
        phy_vendor_name: [u8; 16] = 56,
        /// PHY vendor partnumber.
        phy_vendor_partnumber: [u8; 16] = 72,
        /// Support PAM4 speeds.
        support_pam4_speeds: le::U16 = 88,
        /// Force PAM4 link speed.
        force_pam4_link_speed: le::U16 = 90,
        /// Auto PAM4 link speed mask.
        auto_pam4_link_speed_mask: le::U16 = 92,
        /// Link partner PAM4 adv speeds.
        link_partner_pam4_adv_speeds: u8 = 94,
        /// Link down reason.
        link_down_reason: u8 = 95,
        /// Support speeds2.
        support_speeds2: le::U16 = 96,
        /// Force link speeds2.
        force_link_speeds2: le::U16 = 98,
        /// Auto link speeds2.
        auto_link_speeds2: le::U16 = 100,
        /// Active lanes.
        active_lanes: u8 = 102,
        /// Zero.
        rsvd1: u8 = 103,
        /// Support speeds2 ext.
        support_speeds2_ext: le::U16 = 104,
        /// Auto link speeds2 ext.
        auto_link_speeds2_ext: le::U16 = 106,
        /// Zero.
        rsvd2: [u8; 3] = 108,
        /// 1 when the response is complete; written last.
        valid: u8 = 111,
    }
}
request! {
    /// Configures the link.
    pub struct PortPhyCfgInput: "hwrm_port_phy_cfg_input", 64, PORT_PHY_CFG => HwrmDone {
        /// Flags.
        flags: le::U32 = 16,
        /// Which of the fields below count, a bit each.
        enables: le::U32 = 20,
        /// Port.
        port_id: le::U16 = 24,
        /// Force link speed.
        force_link_speed: le::U16 = 26,
        /// 0: no autonegotiation.
        auto_mode: u8 = 28,
        /// Auto duplex.
        auto_duplex: u8 = 29,
        /// Auto pause.
        auto_pause: u8 = 30,
        /// Management flag.
        mgmt_flag: u8 = 31,
        /// Auto link speed.
        auto_link_speed: le::U16 = 32,
        /// Auto link speed mask.
        auto_link_speed_mask: le::U16 = 34,
        /// Wirespeed.
        wirespeed: u8 = 36,
        /// Lpbk.
        lpbk: u8 = 37,
        /// Force pause.
        force_pause: u8 = 38,
        /// Zero.
        unused_1: u8 = 39,
        /// Preemphasis.
        preemphasis: le::U32 = 40,
        /// EEE link speed mask.
        eee_link_speed_mask: le::U16 = 44,
        /// Force PAM4 link speed.
        force_pam4_link_speed: le::U16 = 46,
        /// Transmit LPI timer.
        tx_lpi_timer: le::U32 = 48,
        /// Auto link PAM4 speed mask.
        auto_link_pam4_speed_mask: le::U16 = 52,
        /// Force link speeds2.
        force_link_speeds2: le::U16 = 54,
        /// Auto link speeds2 mask.
        auto_link_speeds2_mask: le::U16 = 56,
        /// Auto link speeds2 ext mask.
        auto_link_speeds2_ext_mask: le::U16 = 58,
        /// Zero.
        unused_2: [u8; 4] = 60,
    }
}
