//! What a made-up device is like.

use super::{bnxt_re, ionic};

/// Vendor's family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Broadcom.
    BnxtRe,
    /// AMD Pensando.
    Ionic,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::BnxtRe, Self::Ionic];

    /// Name of the character device, and of the InfiniBand device. No real device has such a name.
    pub const fn device_name(self) -> &'static str {
        match self {
            Self::BnxtRe => "dv_bnxt_re",
            Self::Ionic => "dv_ionic",
        }
    }

    /// `enum rdma_driver_id`.
    pub const fn driver_id(self) -> u32 {
        match self {
            Self::BnxtRe => 6,
            Self::Ionic => 21,
        }
    }
}

/// How objects are created and destroyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// All over ioctl, as kernels since 5.0.
    #[default]
    Ioctl,
    /// Core objects by write(), as older kernels; only the driver's own methods by ioctl.
    Write,
}

/// Pages on which each store is trapped and logged. What is not trapped is plain memory, which can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traps {
    /// Doorbell page.
    pub doorbell: bool,
    /// bnxt_re's write-combining push page.
    pub push: bool,
    /// ionic's queues in controller memory.
    pub cmb: bool,
}

impl Traps {
    /// All pages.
    pub const ALL: Self = Self { doorbell: true, push: true, cmb: true };
    /// No page: for measurements, and under tools that do not like traps.
    pub const NONE: Self = Self { doorbell: false, push: false, cmb: false };
}

/// First ids of objects; each next one is one higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Queue pair.
    pub qp: u32,
    /// Completion queue; ionic takes one a pipeline.
    pub cq: u32,
    /// Shared receive queue.
    pub srq: u32,
    /// Address handle.
    pub ah: u32,
    /// Local and remote key of a memory region; its low byte stays.
    pub mr: u32,
    /// Key of a memory window.
    pub mw: u32,
}

impl Default for Ids {
    fn default() -> Self {
        Self { qp: 9, cq: 7, srq: 5, ah: 3, mr: 0x1100, mw: 0x2200 }
    }
}

/// Limits that QUERY_DEVICE tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs.
    pub max_qp: u32,
    /// Requests of a queue.
    pub max_qp_wr: u32,
    /// SGEs of a request.
    pub max_sge: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Requests of a shared receive queue.
    pub max_srq_wr: u32,
    /// SGEs of a request of a shared receive queue.
    pub max_srq_sge: u32,
    /// `enum ib_atomic_cap`: 0 none, 1 within the device.
    pub atomic_cap: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_qp: 1024,
            max_qp_wr: 32768,
            max_sge: 13,
            max_cq: 1024,
            max_cqe: 65535,
            max_srq_wr: 32768,
            max_srq_sge: 6,
            atomic_cap: 1,
        }
    }
}

/// What is the family's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// Broadcom.
    BnxtRe(bnxt_re::Config),
    /// AMD Pensando.
    Ionic(ionic::Config),
}

/// What a made-up device is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The family's own.
    pub model: Model,
    /// Limits that it tells.
    pub limits: Limits,
    /// First ids.
    pub ids: Ids,
    /// How objects are created.
    pub transport: Transport,
    /// Where stores are trapped.
    pub traps: Traps,
}

impl Config {
    /// A device with default limits and ids, over ioctl, with all traps.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            limits: Limits::default(),
            ids: Ids::default(),
            transport: Transport::Ioctl,
            traps: Traps::ALL,
        }
    }

    /// Its family.
    pub const fn family(&self) -> Family {
        match self.model {
            Model::BnxtRe(_) => Family::BnxtRe,
            Model::Ionic(_) => Family::Ionic,
        }
    }
}

impl From<bnxt_re::Config> for Config {
    fn from(config: bnxt_re::Config) -> Self {
        Self::new(Model::BnxtRe(config))
    }
}

impl From<ionic::Config> for Config {
    fn from(config: ionic::Config) -> Self {
        Self::new(Model::Ionic(config))
    }
}
