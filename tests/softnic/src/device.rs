//! The device API: what the host creates in a NIC, in terms that no vendor owns. The command channels of the families
//! end in these calls.

use directverbs::verbs::{
    AccessFlags, AddressVector, AhId, CqId, Gid, Mac, Mtu, PdId, QpAttributes, QpCapabilities, QpId, QpState,
    QpType, RKey, SrqId, StateError,
};

use crate::bus::BusError;

/// Why the device refuses a command. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no such object.
    #[error("no {object} {id:#x}")]
    NoSuch {
        /// Kind of object.
        object: &'static str,
        /// Its id.
        id: u32,
    },
    /// The id asked for is taken, or all are.
    #[error("{object} {id:#x} exists")]
    Exists {
        /// Kind of object.
        object: &'static str,
        /// The id.
        id: u32,
    },
    /// Another object needs it.
    #[error("{object} {id:#x} is in use")]
    InUse {
        /// Kind of object.
        object: &'static str,
        /// Its id.
        id: u32,
    },
    /// A parameter that makes no sense.
    #[error("{0}")]
    Invalid(&'static str),
    /// A queue pair transition that cannot be made.
    #[error(transparent)]
    State(#[from] StateError),
    /// Ring memory that the bus does not reach.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Where memory is, as the device addresses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Host memory, contiguous on the bus from this address.
    Host(u64),
    /// Host memory in pages of `1 << shift` bytes at these bus addresses; the first byte lies at `first` in the first
    /// page.
    Pages {
        /// Base-two logarithm of the page size.
        shift: u8,
        /// Offset of the first byte in the first page.
        first: u64,
        /// Bus addresses of the pages.
        pages: Box<[u64]>,
    },
    /// Memory of the device, from this offset.
    Device(u64),
}

impl Memory {
    /// Bus address of the byte at `offset` of host memory, and how many of `len` bytes follow it there.
    ///
    /// # Errors
    /// There is no such byte; device memory has no bus address.
    pub fn locate(&self, offset: u64, len: usize) -> Result<(u64, usize), BusError> {
        let error = BusError { addr: offset, len };
        match self {
            Self::Host(base) => Ok((base.checked_add(offset).ok_or(error)?, len)),
            Self::Pages { shift, first, pages } => {
                let at = offset.checked_add(*first).ok_or(error)?;
                let size = 1u64.checked_shl(u32::from(*shift)).ok_or(error)?;
                let page = usize::try_from(at >> *shift).map_err(|_| error)?;
                let within = at & (size - 1);
                let base = pages.get(page).ok_or(error)?;
                let left = usize::try_from(size - within).unwrap_or(usize::MAX);
                Ok((base.checked_add(within).ok_or(error)?, len.min(left)))
            }
            Self::Device(_) => Err(error),
        }
    }
}

/// A ring, or another table of equal entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingConfig {
    /// Where it is.
    pub memory: Memory,
    /// Number of entries.
    pub entries: u32,
    /// Distance of entries in bytes.
    pub stride: u32,
}

impl RingConfig {
    /// Length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.entries as u64 * self.stride as u64
    }
}

/// A completion queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CqConfig {
    /// Number to give it, where the host chooses.
    pub id: Option<CqId>,
    /// The ring.
    pub ring: RingConfig,
    /// Comes back in events.
    pub handle: u64,
    /// Interrupt vector of its events.
    pub vector: u16,
}

/// A shared receive queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrqConfig {
    /// Number to give it, where the host chooses.
    pub id: Option<SrqId>,
    /// Protection domain.
    pub pd: PdId,
    /// The ring.
    pub ring: RingConfig,
    /// SGEs of an entry.
    pub max_sge: u32,
    /// Comes back in events.
    pub handle: u64,
}

/// A queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QpConfig {
    /// Number to give it, where the host chooses.
    pub id: Option<QpId>,
    /// Kind.
    pub qp_type: QpType,
    /// Protection domain.
    pub pd: PdId,
    /// Where send requests complete.
    pub send_cq: CqId,
    /// Where receive requests complete.
    pub recv_cq: CqId,
    /// Receives come from here.
    pub srq: Option<SrqId>,
    /// Send queue.
    pub sq: RingConfig,
    /// Receive queue, if there is one.
    pub rq: Option<RingConfig>,
    /// Table that the host fills for retransmission, if the device wants one.
    pub retransmit: Option<RingConfig>,
    /// Send queue entries take several slots of [`RingConfig::stride`] bytes, as many as they need.
    pub variable_entries: bool,
    /// Every send request produces a completion.
    pub signal_all: bool,
    /// What was granted to the host.
    pub capabilities: QpCapabilities,
    /// Comes back in completions, where the family has such a field.
    pub handle: u64,
    /// Pipeline of the device that carries it.
    pub pipeline: u8,
    /// Options that only the family's front end knows.
    pub options: u32,
}

/// What a memory key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MrKind {
    /// Registered memory.
    Region(Memory),
    /// A region that a posted fast-register fills; until then the key is invalid.
    FastRegister {
        /// Largest number of pages.
        max_pages: u32,
    },
    /// A memory window of type 1 (bound with a verb).
    WindowType1,
    /// A memory window of type 2 (bound with a posted request).
    WindowType2,
}

/// A memory region or window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MrConfig {
    /// Key to give it, where the host chooses. The upper 24 bits are the index, the lower 8 change freely.
    pub key: Option<u32>,
    /// Protection domain.
    pub pd: PdId,
    /// What it is.
    pub kind: MrKind,
    /// Address of the first byte as work requests name it; 0 for a zero-based region.
    pub addr: u64,
    /// Length in bytes.
    pub length: u64,
    /// What is allowed.
    pub access: AccessFlags,
}

/// An address handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AhConfig {
    /// Number to give it, where the host chooses.
    pub id: Option<AhId>,
    /// Protection domain.
    pub pd: PdId,
    /// Where it leads.
    pub path: AddressVector,
}

/// Attributes of a queue pair to change.
pub type ModifyQp = QpAttributes;

/// What a queue pair is like now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QpStatus {
    /// State.
    pub state: QpState,
    /// Next sequence number to send.
    pub sq_psn: u32,
    /// Next sequence number expected.
    pub rq_psn: u32,
}

/// What a NIC is built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Ethernet address of the port.
    pub mac: Mac,
    /// GID table, index 0 first. An unspecified GID is none.
    pub gids: Vec<Gid>,
    /// Largest path MTU.
    pub mtu: Mtu,
    /// Bytes of device memory that the host can map.
    pub device_memory: usize,
    /// A key that stands for all host memory under its bus addresses, if the family has one.
    pub all_memory_key: Option<RKey>,
}

impl NicConfig {
    /// Entry `index` of the GID table, if there is one.
    pub fn gid(&self, index: usize) -> Option<Gid> {
        self.gids.get(index).copied().filter(|gid| *gid != Gid::default())
    }
}

/// Something that the host is told apart from completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// An armed completion queue got a completion.
    Cq(CqId),
    /// An entry of a completion queue could not be written, or the front end found it overrun.
    CqError(CqId),
    /// A shared receive queue fell below its limit.
    SrqLimit(SrqId),
    /// A queue pair went into error by itself.
    QpError(QpId),
    /// A peer's request violated the queue pair's access rights.
    QpAccess(QpId),
    /// A send queue is drained.
    SqDrained(QpId),
}
