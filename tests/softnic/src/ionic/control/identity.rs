//! What the device tells of itself.

use directverbs::ionic::devcmd::registers::{AsicType, DevInfoRegs, FwStatus, SIGNATURE};
use directverbs::ionic::devcmd::{
    CmbIdentity, CmbKind, CmbRegion, DevCapabilities, DevIdentity, LifCapabilities, LifConfig, LifIdentity,
    LifInfo, LifStatus, LogicalQtype, PortConfig, PortIdentity, PortOper, PortState, PortStatus, QIdentity,
    QueueKind, SG_ELEMENTS, SG_LIST_BYTES, put_text,
};
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::Mac;

use super::ethernet::ETH_QUEUES;
use super::{AQ_QTYPE, DOORBELL_PAGES, EQ_QTYPE, INTERRUPTS};
use crate::device::NicConfig;
use crate::ionic::{CQ_QTYPE, IonicConfig, PIPELINE_SHIFT, RQ_QTYPE, SQ_QTYPE};

/// Speed of the port in Mb/s.
const SPEED: u32 = 200_000;
/// Frame without its payload: Ethernet header and VLAN tag.
const FRAME_OVERHEAD: u32 = 18;
/// Longest frame.
pub(super) const MAX_FRAME: u32 = 9194 + FRAME_OVERHEAD;
const MIN_FRAME: u32 = 64;
/// Longest WQE, base-two logarithm of its bytes.
const MAX_STRIDE_LOG2: u8 = 10;
/// Admin commands: all that there are.
const ADMIN_OPCODES: u8 = 19;
/// Features of a kind of queue: it has a ring of completions, and one of scatter/gather lists.
const Q_COMPLETIONS: u64 = 1;
const Q_LISTS: u64 = 1 << 1;
/// Queue pair opcodes: all that there are.
const QP_OPCODES: u8 = 11;

/// What a control front end is built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlConfig {
    /// The datapath.
    pub ionic: IonicConfig,
    /// The NIC. GIDs are learnt: there are no commands for them.
    pub nic: NicConfig,
    /// Event queues.
    pub event_queues: u32,
    /// Admin queues.
    pub admin_queues: u32,
    /// Memory regions and windows.
    pub regions: u32,
    /// Address handles.
    pub address_handles: u32,
    /// Page table entries: a region has at most as many pages.
    pub page_table_entries: u32,
    /// Bytes of identities that are told wrong.
    pub lies: Vec<Lie>,
    /// BARs of another length than they should have; without one if it is 0.
    pub short_bars: Vec<(u8, u64)>,
    /// When the heart of the firmware stops.
    pub heart_stops_ns: Option<u64>,
    /// When the firmware stops, and says so.
    pub firmware_stops_ns: Option<u64>,
}

/// An identity that the device tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// That of the device.
    Device,
    /// That of the port.
    Port,
    /// That of the LIF.
    Lif,
    /// That of a kind of queue.
    Queue,
    /// Where controller memory is.
    Memory,
}

/// A byte of an identity that is told wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lie {
    /// Of which.
    pub of: Told,
    /// Which byte.
    pub offset: usize,
    /// What it is said to be.
    pub value: u8,
}

/// Units in which controller memory is told.
const CMB_UNIT: u64 = 1 << 16;

impl ControlConfig {
    /// A device of `version` whose port has the address `mac`.
    pub fn new(version: RdmaVersion, nic: NicConfig) -> Self {
        Self {
            ionic: IonicConfig::new(version),
            nic,
            event_queues: 16,
            admin_queues: 4,
            regions: 1 << 16,
            address_handles: 1 << 16,
            page_table_entries: 1 << 20,
            lies: Vec::new(),
            short_bars: Vec::new(),
            heart_stops_ns: None,
            firmware_stops_ns: None,
        }
    }

    /// Queue pairs and completion queues: as many on each pipeline as the bit below the pipeline's tells.
    pub const fn queues(&self) -> u32 {
        2 << PIPELINE_SHIFT
    }

    pub(super) fn dev_info(&self, generation: u8, heartbeat: u32) -> DevInfoRegs {
        let status = FwStatus::new().with_running(true).with_generation(generation & 0xf);
        let mut info = DevInfoRegs {
            signature: SIGNATURE.into(),
            version: 1,
            asic_type: AsicType::SALINA.0,
            asic_rev: 1,
            fw_status: status.into_bits(),
            fw_heartbeat: heartbeat.into(),
            ..DevInfoRegs::ZERO
        };
        put_text(&mut info.fw_version, "1.0.0-directverbs");
        put_text(&mut info.serial_num, "SOFTNIC0");
        info
    }

    pub(super) fn device(&self) -> DevIdentity {
        let cmb =
            if self.nic.device_memory > 0 { DevCapabilities::DISC_CMB } else { DevCapabilities::empty() };
        DevIdentity {
            version: 1,
            nports: 1,
            nlifs: 1.into(),
            nintrs: u32::from(INTERRUPTS).into(),
            ndbpgs_per_lif: DOORBELL_PAGES.into(),
            intr_coal_mult: 1.into(),
            intr_coal_div: 1.into(),
            capabilities: cmb.bits().into(),
            ..DevIdentity::ZERO
        }
    }

    pub(super) fn port_config(&self, up: bool) -> PortConfig {
        let state = if up { PortState::UP } else { PortState::DOWN };
        PortConfig {
            speed: SPEED.into(),
            mtu: (MAX_FRAME - FRAME_OVERHEAD).into(),
            state: state.0,
            ..PortConfig::ZERO
        }
    }

    pub(super) fn port(&self, up: bool) -> PortIdentity {
        let mut speeds = [0.into(); 16];
        speeds[0] = SPEED.into();
        PortIdentity {
            version: 1,
            num_lanes: 4,
            min_frame_size: MIN_FRAME.into(),
            max_frame_size: MAX_FRAME.into(),
            speeds,
            config: self.port_config(up),
            ..PortIdentity::ZERO
        }
    }

    pub(super) fn port_status(&self, up: bool) -> PortStatus {
        let (status, speed) = link(up);
        PortStatus { speed: speed.into(), status: status.0 as u8, ..PortStatus::ZERO }
    }

    fn lif_config(&self, mac: Mac, mtu: u32) -> LifConfig {
        let mut queue_count = [0.into(); 16];
        for (kind, count) in [
            (QueueKind::ADMINQ, 1),
            (QueueKind::NOTIFYQ, 1),
            (QueueKind::TXQ, ETH_QUEUES),
            (QueueKind::RXQ, ETH_QUEUES),
        ] {
            queue_count[usize::from(kind.0)] = count.into();
        }
        LifConfig { state: 1, mtu: mtu.into(), mac: mac.0, queue_count, ..LifConfig::ZERO }
    }

    pub(super) fn lif(&self) -> LifIdentity {
        let queues =
            |qtype, count: u32| LogicalQtype { qtype, qid_count: count.into(), ..LogicalQtype::ZERO };
        let pages: u64 = 1 << 12 | 1 << 21 | 1 << 30;
        LifIdentity {
            capabilities: (LifCapabilities::ETH | LifCapabilities::RDMA).bits().into(),
            eth_version: 1,
            max_ucast_filters: 16.into(),
            max_mcast_filters: 16.into(),
            rss_ind_tbl_sz: 128.into(),
            min_frame_size: MIN_FRAME.into(),
            max_frame_size: MAX_FRAME.into(),
            config: self.lif_config(self.nic.mac, MAX_FRAME - FRAME_OVERHEAD),
            rdma_version: self.ionic.version as u8,
            minor_version: 1,
            qp_opcodes: QP_OPCODES,
            admin_opcodes: ADMIN_OPCODES,
            npts_per_lif: self.page_table_entries.into(),
            nmrs_per_lif: self.regions.into(),
            nahs_per_lif: self.address_handles.into(),
            max_stride: MAX_STRIDE_LOG2,
            cl_stride: 6,
            pte_stride: 3,
            rrq_stride: 6,
            rsq_stride: 6,
            udma_shift: PIPELINE_SHIFT as u8,
            page_size_cap: pages.into(),
            aq_qtype: queues(AQ_QTYPE, self.admin_queues),
            sq_qtype: queues(SQ_QTYPE, self.queues()),
            rq_qtype: queues(RQ_QTYPE, self.queues()),
            cq_qtype: queues(CQ_QTYPE, self.queues()),
            eq_qtype: queues(EQ_QTYPE, self.event_queues),
            ..LifIdentity::ZERO
        }
    }

    pub(super) fn lif_info(&self, mac: Mac, mtu: u32, up: bool, eid: u64) -> LifInfo {
        let (status, speed) = link(up);
        LifInfo {
            config: self.lif_config(mac, mtu),
            status: LifStatus {
                eid: eid.into(),
                link_status: status.0.into(),
                link_speed: speed.into(),
                ..LifStatus::ZERO
            },
            ..LifInfo::ZERO
        }
    }

    pub(super) fn queue(kind: QueueKind) -> Option<QIdentity> {
        let (desc, comp, lists): (u16, u16, bool) = match kind {
            QueueKind::ADMINQ => (64, 16, false),
            QueueKind::NOTIFYQ => (64, 64, false),
            QueueKind::RXQ | QueueKind::TXQ => (16, 16, true),
            _ => return None,
        };
        let mut identity =
            QIdentity { supported: 1, desc_sz: desc.into(), comp_sz: comp.into(), ..QIdentity::ZERO };
        if lists {
            identity.features = (Q_COMPLETIONS | Q_LISTS).into();
            identity.sg_desc_sz = (SG_LIST_BYTES as u16).into();
            identity.max_sg_elems = (SG_ELEMENTS as u16).into();
            identity.sg_desc_stride = (SG_ELEMENTS as u16).into();
        }
        Some(identity)
    }

    /// The areas of controller memory: kind, first byte and length. One half is plain; of the rest, each stride that express
    /// doorbells exist for has a quarter, if there is so much.
    pub(super) fn areas(&self) -> Vec<(CmbKind, u64, u64)> {
        let units = self.nic.device_memory as u64 / CMB_UNIT;
        let strides = self.ionic.express_strides;
        if units < 8 || strides == 0 {
            return if units == 0 { Vec::new() } else { vec![(CmbKind::MEMORY, 0, units * CMB_UNIT)] };
        }
        let quarter = units / 8 * CMB_UNIT;
        let mut areas = vec![(CmbKind::MEMORY, 0, units / 2 * CMB_UNIT)];
        for (nth, stride_log2) in (6..=9u8).enumerate() {
            let kind = CmbKind::express(stride_log2).filter(|_| strides >> stride_log2 & 1 != 0);
            areas.extend(kind.map(|kind| (kind, units / 2 * CMB_UNIT + nth as u64 * quarter, quarter)));
        }
        areas
    }

    pub(super) fn memory(&self) -> CmbIdentity {
        let areas = self.areas();
        let express = areas.len() > 1;
        let mut identity = CmbIdentity {
            num_regions: (areas.len() as u32).into(),
            flags: u32::from(express).into(),
            ..CmbIdentity::ZERO
        };
        for (region, (kind, offset, len)) in identity.region.iter_mut().zip(areas) {
            *region = CmbRegion {
                cmb_type: kind.0,
                offset: ((offset / CMB_UNIT) as u32).into(),
                length: ((len / CMB_UNIT) as u32).into(),
                ..CmbRegion::ZERO
            };
        }
        identity
    }
}

pub(super) const fn link(up: bool) -> (PortOper, u32) {
    if up { (PortOper::UP, SPEED) } else { (PortOper::DOWN, 0) }
}
