use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{Mac, Mtu};

use crate::bnxt_re::Config;
use crate::bnxt_re::push::BUFFER_BYTES;
use crate::pci::{Bar, Identity, MsixPlace};

/// What a chip is like behind its BARs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Generation: P5 or P7.
    pub generation: Generation,
    /// Layout of WQEs that it allows: a chip of static mode allows both, one of variable mode only that.
    pub wqe_mode: WqeMode,
    /// Ethernet address of its port.
    pub mac: Mac,
    /// Largest path MTU.
    pub mtu: Mtu,
    /// Queue pairs, besides that of general services.
    pub max_qp: u32,
    /// Short requests can be pushed.
    pub push: bool,
    /// Doorbells can be paced.
    pub pacing: bool,
    /// How often a completion waits to be joined with later ones, in parts per million.
    pub coalesce: u32,
    /// Seed of what is random about it.
    pub seed: u64,
}

impl Chip {
    /// A BCM57508. It has the backing store of version 1.
    pub const fn p5(mac: Mac) -> Self {
        Self {
            generation: Generation::P5,
            wqe_mode: WqeMode::Static,
            mac,
            mtu: Mtu::B4096,
            max_qp: 1023,
            push: false,
            pacing: false,
            coalesce: 333_333,
            seed: 0,
        }
    }

    /// A BCM57608. It has the backing store of version 2, and WQEs of variable size.
    pub const fn p7(mac: Mac) -> Self {
        Self { generation: Generation::P7, wqe_mode: WqeMode::Variable, ..Self::p5(mac) }
    }

    /// Whether it is of the later generation.
    pub const fn is_p7(&self) -> bool {
        matches!(self.generation, Generation::P7)
    }

    /// Number of the chip, and id of its PCI function.
    pub const fn number(&self) -> u16 {
        if self.is_p7() { 0x1760 } else { 0x1750 }
    }

    pub(super) fn front_end(&self) -> Config {
        let config = if self.is_p7() { Config::P7 } else { Config::P5 };
        let push_page = ((USER_PAGES - self.privileged()) / PAGE) as u32;
        Config { push_page, coalesce: self.coalesce, seed: self.seed, ..config }
    }

    /// Bytes of push buffers: all of the pages that a driver can give out.
    pub(super) const fn push_bytes(&self) -> u64 {
        if self.push { DOORBELL_BYTES - USER_PAGES } else { 0 }
    }

    /// Where a store to this offset of the doorbells goes if it goes to a push buffer. The first of a page is not there:
    /// it would be where the registers are.
    pub(super) const fn push_buffer(&self, offset: u64) -> Option<u64> {
        match offset.checked_sub(USER_PAGES) {
            Some(at) if at < self.push_bytes() && at % PAGE >= BUFFER_BYTES => Some(at),
            _ => None,
        }
    }

    pub(super) fn identity(&self) -> Identity {
        Identity {
            vendor: 0x14e4,
            device: self.number(),
            subsystem_vendor: 0x14e4,
            subsystem: self.number(),
            class: 0x02_0000,
            revision: 0x11,
            bars: vec![
                Bar::wide(REGISTERS, REGISTER_BYTES),
                Bar::wide(DOORBELLS, DOORBELL_BYTES),
                Bar::wide(OTHER, OTHER_BYTES),
            ],
            msix: Some(MsixPlace { bar: OTHER, vectors: VECTORS, table: 0, pending: 0x8000 }),
        }
    }

    /// Offset of the privileged doorbell page.
    pub(super) const fn privileged(&self) -> u64 {
        if self.is_p7() { LEGACY_L2_KB as u64 * 1024 } else { 0x1_0000 }
    }

    /// Doorbell pages, the privileged one included.
    pub(super) const fn pages(&self) -> u32 {
        ((DOORBELL_BYTES - self.privileged()) / PAGE) as u32
    }
}

/// BAR of the registers.
pub(super) const REGISTERS: u8 = 0;
/// BAR of the doorbells.
pub(super) const DOORBELLS: u8 = 2;
/// BAR that drivers only expect to be there; MSI-X is in it.
const OTHER: u8 = 4;
const REGISTER_BYTES: u64 = 64 << 10;
const DOORBELL_BYTES: u64 = 1 << 20;
const OTHER_BYTES: u64 = 64 << 10;
/// MSI-X vectors.
pub(super) const VECTORS: u16 = 64;
/// Kilobytes in front of the privileged page of P7.
pub(super) const LEGACY_L2_KB: u16 = 64;
/// Kilobytes of Ethernet's part of the doorbells, behind which user pages begin.
pub(super) const L2_DOORBELL_KB: u16 = 128;
/// Where user pages begin.
const USER_PAGES: u64 = L2_DOORBELL_KB as u64 * 1024;
/// Bytes of a doorbell page.
pub(super) const PAGE: u64 = 4096;

/// READs and atomics outstanding at a queue pair, each way.
pub(super) const MAX_RD_ATOMIC: u8 = 126;
/// GIDs.
pub(super) const MAX_GID: u32 = 64;
/// Completion queues.
pub(super) const MAX_CQ: u32 = 4096;
/// Shared receive queues.
pub(super) const MAX_SRQ: u16 = 1024;
/// Regions and windows.
pub(super) const MAX_MR: u32 = 1 << 16;
/// Address handles.
pub(super) const MAX_AH: u32 = 1 << 14;
/// Statistics contexts.
pub(super) const MAX_STAT_CTX: u16 = 256;
