//! Types of requests. Source: `hsi.h`.

/// Type of a request. Open: any value is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReqType(pub u16);

impl ReqType {
    /// `HWRM_VER_GET`.
    pub const VER_GET: Self = Self(0x0);
    /// `HWRM_ERROR_RECOVERY_QCFG`.
    pub const ERROR_RECOVERY_QCFG: Self = Self(0xc);
    /// `HWRM_FUNC_DRV_IF_CHANGE`.
    pub const FUNC_DRV_IF_CHANGE: Self = Self(0xd);
    /// `HWRM_FUNC_RESET`.
    pub const FUNC_RESET: Self = Self(0x11);
    /// `HWRM_FUNC_QCAPS`.
    pub const FUNC_QCAPS: Self = Self(0x15);
    /// `HWRM_FUNC_QCFG`.
    pub const FUNC_QCFG: Self = Self(0x16);
    /// `HWRM_FUNC_CFG`.
    pub const FUNC_CFG: Self = Self(0x17);
    /// `HWRM_FUNC_DRV_UNRGTR`.
    pub const FUNC_DRV_UNRGTR: Self = Self(0x1a);
    /// `HWRM_FUNC_DRV_RGTR`.
    pub const FUNC_DRV_RGTR: Self = Self(0x1d);
    /// `HWRM_PORT_PHY_CFG`.
    pub const PORT_PHY_CFG: Self = Self(0x20);
    /// `HWRM_PORT_MAC_CFG`.
    pub const PORT_MAC_CFG: Self = Self(0x21);
    /// `HWRM_PORT_QSTATS`.
    pub const PORT_QSTATS: Self = Self(0x23);
    /// `HWRM_PORT_PHY_QCFG`.
    pub const PORT_PHY_QCFG: Self = Self(0x27);
    /// `HWRM_PORT_MAC_PTP_QCFG`.
    pub const PORT_MAC_PTP_QCFG: Self = Self(0x29);
    /// `HWRM_PORT_PHY_QCAPS`.
    pub const PORT_PHY_QCAPS: Self = Self(0x2a);
    /// `HWRM_PORT_LED_QCAPS`.
    pub const PORT_LED_QCAPS: Self = Self(0x2f);
    /// `HWRM_QUEUE_QPORTCFG`.
    pub const QUEUE_QPORTCFG: Self = Self(0x30);
    /// `HWRM_QUEUE_DSCP_QCAPS`.
    pub const QUEUE_DSCP_QCAPS: Self = Self(0x3b);
    /// `HWRM_VNIC_ALLOC`.
    pub const VNIC_ALLOC: Self = Self(0x40);
    /// `HWRM_VNIC_FREE`.
    pub const VNIC_FREE: Self = Self(0x41);
    /// `HWRM_VNIC_CFG`.
    pub const VNIC_CFG: Self = Self(0x42);
    /// `HWRM_VNIC_TPA_CFG`.
    pub const VNIC_TPA_CFG: Self = Self(0x44);
    /// `HWRM_VNIC_RSS_CFG`.
    pub const VNIC_RSS_CFG: Self = Self(0x46);
    /// `HWRM_VNIC_RSS_QCFG`.
    pub const VNIC_RSS_QCFG: Self = Self(0x47);
    /// `HWRM_VNIC_PLCMODES_CFG`.
    pub const VNIC_PLCMODES_CFG: Self = Self(0x48);
    /// `HWRM_VNIC_QCAPS`.
    pub const VNIC_QCAPS: Self = Self(0x4a);
    /// `HWRM_RING_ALLOC`.
    pub const RING_ALLOC: Self = Self(0x50);
    /// `HWRM_RING_FREE`.
    pub const RING_FREE: Self = Self(0x51);
    /// `HWRM_RING_CMPL_RING_CFG_AGGINT_PARAMS`.
    pub const RING_CMPL_RING_CFG_AGGINT_PARAMS: Self = Self(0x53);
    /// `HWRM_RING_AGGINT_QCAPS`.
    pub const RING_AGGINT_QCAPS: Self = Self(0x54);
    /// `HWRM_VNIC_RSS_COS_LB_CTX_ALLOC`.
    pub const VNIC_RSS_COS_LB_CTX_ALLOC: Self = Self(0x70);
    /// `HWRM_VNIC_RSS_COS_LB_CTX_FREE`.
    pub const VNIC_RSS_COS_LB_CTX_FREE: Self = Self(0x71);
    /// `HWRM_CFA_L2_FILTER_ALLOC`.
    pub const CFA_L2_FILTER_ALLOC: Self = Self(0x90);
    /// `HWRM_CFA_L2_FILTER_FREE`.
    pub const CFA_L2_FILTER_FREE: Self = Self(0x91);
    /// `HWRM_CFA_L2_SET_RX_MASK`.
    pub const CFA_L2_SET_RX_MASK: Self = Self(0x93);
    /// `HWRM_STAT_CTX_ALLOC`.
    pub const STAT_CTX_ALLOC: Self = Self(0xb0);
    /// `HWRM_STAT_CTX_FREE`.
    pub const STAT_CTX_FREE: Self = Self(0xb1);
    /// `HWRM_PORT_QSTATS_EXT`.
    pub const PORT_QSTATS_EXT: Self = Self(0xb4);
    /// `HWRM_FW_SET_TIME`.
    pub const FW_SET_TIME: Self = Self(0xc8);
    /// `HWRM_PORT_MAC_QCAPS`.
    pub const PORT_MAC_QCAPS: Self = Self(0xdf);
    /// `HWRM_TEMP_MONITOR_QUERY`.
    pub const TEMP_MONITOR_QUERY: Self = Self(0xe0);
    /// `HWRM_CFA_ADV_FLOW_MGNT_QCAPS`.
    pub const CFA_ADV_FLOW_MGNT_QCAPS: Self = Self(0x124);
    /// `HWRM_FUNC_RESOURCE_QCAPS`.
    pub const FUNC_RESOURCE_QCAPS: Self = Self(0x190);
    /// `HWRM_FUNC_BACKING_STORE_QCAPS`.
    pub const FUNC_BACKING_STORE_QCAPS: Self = Self(0x192);
    /// `HWRM_FUNC_BACKING_STORE_CFG`.
    pub const FUNC_BACKING_STORE_CFG: Self = Self(0x193);
    /// `HWRM_FUNC_BACKING_STORE_CFG_V2`.
    pub const FUNC_BACKING_STORE_CFG_V2: Self = Self(0x1a3);
    /// `HWRM_FUNC_DBR_PACING_QCFG`.
    pub const FUNC_DBR_PACING_QCFG: Self = Self(0x1a6);
    /// `HWRM_FUNC_BACKING_STORE_QCAPS_V2`.
    pub const FUNC_BACKING_STORE_QCAPS_V2: Self = Self(0x1a8);
    /// `HWRM_SELFTEST_QLIST`.
    pub const SELFTEST_QLIST: Self = Self(0x200);
    /// `HWRM_PCIE_QSTATS`.
    pub const PCIE_QSTATS: Self = Self(0x204);
    /// `HWRM_QUEUE_PFCWD_TIMEOUT_QCAPS`.
    pub const QUEUE_PFCWD_TIMEOUT_QCAPS: Self = Self(0x261);
    /// `HWRM_DBG_QCAPS`.
    pub const DBG_QCAPS: Self = Self(0xff20);
    /// `HWRM_NVM_GET_DEV_INFO`.
    pub const NVM_GET_DEV_INFO: Self = Self(0xfff6);
    /// `HWRM_NVM_FIND_DIR_ENTRY`.
    pub const NVM_FIND_DIR_ENTRY: Self = Self(0xfff9);

    /// Those with a name, by number.
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::VER_GET, "VER_GET"),
        (Self::ERROR_RECOVERY_QCFG, "ERROR_RECOVERY_QCFG"),
        (Self::FUNC_DRV_IF_CHANGE, "FUNC_DRV_IF_CHANGE"),
        (Self::FUNC_RESET, "FUNC_RESET"),
        (Self::FUNC_QCAPS, "FUNC_QCAPS"),
        (Self::FUNC_QCFG, "FUNC_QCFG"),
        (Self::FUNC_CFG, "FUNC_CFG"),
        (Self::FUNC_DRV_UNRGTR, "FUNC_DRV_UNRGTR"),
        (Self::FUNC_DRV_RGTR, "FUNC_DRV_RGTR"),
        (Self::PORT_PHY_CFG, "PORT_PHY_CFG"),
        (Self::PORT_MAC_CFG, "PORT_MAC_CFG"),
        (Self::PORT_QSTATS, "PORT_QSTATS"),
        (Self::PORT_PHY_QCFG, "PORT_PHY_QCFG"),
        (Self::PORT_MAC_PTP_QCFG, "PORT_MAC_PTP_QCFG"),
        (Self::PORT_PHY_QCAPS, "PORT_PHY_QCAPS"),
        (Self::PORT_LED_QCAPS, "PORT_LED_QCAPS"),
        (Self::QUEUE_QPORTCFG, "QUEUE_QPORTCFG"),
        (Self::QUEUE_DSCP_QCAPS, "QUEUE_DSCP_QCAPS"),
        (Self::VNIC_ALLOC, "VNIC_ALLOC"),
        (Self::VNIC_FREE, "VNIC_FREE"),
        (Self::VNIC_CFG, "VNIC_CFG"),
        (Self::VNIC_TPA_CFG, "VNIC_TPA_CFG"),
        (Self::VNIC_RSS_CFG, "VNIC_RSS_CFG"),
        (Self::VNIC_RSS_QCFG, "VNIC_RSS_QCFG"),
        (Self::VNIC_PLCMODES_CFG, "VNIC_PLCMODES_CFG"),
        (Self::VNIC_QCAPS, "VNIC_QCAPS"),
        (Self::RING_ALLOC, "RING_ALLOC"),
        (Self::RING_FREE, "RING_FREE"),
        (Self::RING_CMPL_RING_CFG_AGGINT_PARAMS, "RING_CMPL_RING_CFG_AGGINT_PARAMS"),
        (Self::RING_AGGINT_QCAPS, "RING_AGGINT_QCAPS"),
        (Self::VNIC_RSS_COS_LB_CTX_ALLOC, "VNIC_RSS_COS_LB_CTX_ALLOC"),
        (Self::VNIC_RSS_COS_LB_CTX_FREE, "VNIC_RSS_COS_LB_CTX_FREE"),
        (Self::CFA_L2_FILTER_ALLOC, "CFA_L2_FILTER_ALLOC"),
        (Self::CFA_L2_FILTER_FREE, "CFA_L2_FILTER_FREE"),
        (Self::CFA_L2_SET_RX_MASK, "CFA_L2_SET_RX_MASK"),
        (Self::STAT_CTX_ALLOC, "STAT_CTX_ALLOC"),
        (Self::STAT_CTX_FREE, "STAT_CTX_FREE"),
        (Self::PORT_QSTATS_EXT, "PORT_QSTATS_EXT"),
        (Self::FW_SET_TIME, "FW_SET_TIME"),
        (Self::PORT_MAC_QCAPS, "PORT_MAC_QCAPS"),
        (Self::TEMP_MONITOR_QUERY, "TEMP_MONITOR_QUERY"),
        (Self::CFA_ADV_FLOW_MGNT_QCAPS, "CFA_ADV_FLOW_MGNT_QCAPS"),
        (Self::FUNC_RESOURCE_QCAPS, "FUNC_RESOURCE_QCAPS"),
        (Self::FUNC_BACKING_STORE_QCAPS, "FUNC_BACKING_STORE_QCAPS"),
        (Self::FUNC_BACKING_STORE_CFG, "FUNC_BACKING_STORE_CFG"),
        (Self::FUNC_BACKING_STORE_CFG_V2, "FUNC_BACKING_STORE_CFG_V2"),
        (Self::FUNC_DBR_PACING_QCFG, "FUNC_DBR_PACING_QCFG"),
        (Self::FUNC_BACKING_STORE_QCAPS_V2, "FUNC_BACKING_STORE_QCAPS_V2"),
        (Self::SELFTEST_QLIST, "SELFTEST_QLIST"),
        (Self::PCIE_QSTATS, "PCIE_QSTATS"),
        (Self::QUEUE_PFCWD_TIMEOUT_QCAPS, "QUEUE_PFCWD_TIMEOUT_QCAPS"),
        (Self::DBG_QCAPS, "DBG_QCAPS"),
        (Self::NVM_GET_DEV_INFO, "NVM_GET_DEV_INFO"),
        (Self::NVM_FIND_DIR_ENTRY, "NVM_FIND_DIR_ENTRY"),
    ];

    /// Its name, as the kernel driver spells it.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }
}

impl core::fmt::Display for ReqType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "request {:#x}", self.0),
        }
    }
}
