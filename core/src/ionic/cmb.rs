//! Queues in controller memory (CMB): what is asked for, what is granted, and the copy from the host's ring.

use super::doorbell::{QueueDoorbell, RingIdx};
use super::work::WORDS;
use crate::queue::{DeviceMemory, Doorbell, EntryRing};
use crate::verbs::PlanError;

/// Whether a queue shall be in controller memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CmbPreference {
    /// Use controller memory.
    pub enable: bool,
    /// Use express doorbells. Means nothing without `enable`.
    pub express: bool,
    /// Fail rather than fall back. Means nothing without `enable`.
    pub require: bool,
}

/// Bits of the preference and of the reply in the user ABI. Source: kernel `rdma/ionic-abi.h`.
mod abi {
    pub const ENABLE: u8 = 1;
    pub const REQUIRE: u8 = 1 << 1;
    pub const EXPRESS: u8 = 1 << 2;
    pub const WRITE_COMBINED: u8 = 1 << 3;
    pub const UNCACHED: u8 = 1 << 4;
}

impl CmbPreference {
    /// In host memory.
    pub const HOST: Self = Self { enable: false, express: false, require: false };

    /// With express doorbells taken off if the kind of queue has none, or not allowed.
    ///
    /// # Errors
    /// They are required and there are none.
    pub const fn supported(self, express_queue: bool) -> Result<Self, PlanError> {
        if !self.enable {
            return Ok(Self::HOST);
        }
        if self.express && self.require && !express_queue {
            return Err(PlanError::Unsupported(text!("no express doorbells for this kind of queue")));
        }
        Ok(Self { express: self.express && express_queue, ..self })
    }

    /// The request's byte in the user ABI.
    pub const fn to_abi(self) -> u8 {
        if !self.enable {
            return 0;
        }
        let express = if self.express { abi::EXPRESS } else { 0 };
        let require = if self.require { abi::REQUIRE } else { 0 };
        abi::ENABLE | express | require
    }

    /// What the reply's byte in the user ABI grants. The reply counts, not the request.
    ///
    /// # Errors
    /// Something required was not granted, or something granted that was not asked for.
    pub const fn granted(self, reply: u8) -> Result<CmbGrant, PlanError> {
        let enabled = reply & abi::ENABLE != 0;
        let express = enabled && reply & abi::EXPRESS != 0;
        if enabled && !self.enable || express && !self.express {
            return Err(PlanError::Unsupported(text!(
                "the device granted controller memory that was not asked for"
            )));
        }
        if self.enable && self.require && (!enabled || self.express && !express) {
            return Err(PlanError::Unsupported(text!(
                "the device did not grant the controller memory required"
            )));
        }
        if !enabled {
            return Ok(CmbGrant::Host);
        }
        let mapping = if reply & abi::UNCACHED != 0 { Mapping::Uncached } else { Mapping::WriteCombined };
        Ok(CmbGrant::Cmb { express, mapping })
    }
}

/// How controller memory is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Stores may be held back and combined: they are flushed.
    WriteCombined,
    /// Stores go out at once and in order.
    Uncached,
}

/// What was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmbGrant {
    /// The queue is in host memory.
    Host,
    /// The queue is in controller memory.
    Cmb {
        /// With express doorbells.
        express: bool,
        /// How to map it.
        mapping: Mapping,
    },
}

impl CmbGrant {
    /// Whether express doorbells were granted.
    pub const fn express(self) -> bool {
        matches!(self, Self::Cmb { express: true, .. })
    }

    /// Whether stores are combined: they are flushed.
    const fn combined(self) -> bool {
        matches!(self, Self::Cmb { mapping: Mapping::WriteCombined, .. })
    }

    /// The reply's byte in the user ABI: what [`CmbPreference::granted`] reads.
    pub const fn to_abi(self) -> u8 {
        match self {
            Self::Host => 0,
            Self::Cmb { express, mapping } => {
                let mapping = match mapping {
                    Mapping::WriteCombined => abi::WRITE_COMBINED,
                    Mapping::Uncached => abi::UNCACHED,
                };
                abi::ENABLE | mapping | if express { abi::EXPRESS } else { 0 }
            }
        }
    }
}

/// Device memory for queues that have none: there is no value of it, so the code for it is not compiled.
#[derive(Clone, Copy, Debug)]
pub enum NoDeviceMemory {}

impl DeviceMemory for NoDeviceMemory {
    fn store_16(&self, _: usize, _: &[u8; 16]) {
        match *self {}
    }

    fn store_64(&self, _: usize, _: &[u8; 64]) {
        match *self {}
    }
}

/// A queue's ring in controller memory. The host's ring is written first and copied: controller memory is slow to
/// read and is written in blocks of 64 bytes.
#[derive(Debug)]
pub struct Cmb<M> {
    /// The ring's start in controller memory.
    pub memory: M,
    /// With express doorbells.
    pub express: bool,
    /// How it is mapped.
    pub mapping: Mapping,
}

impl<M> Cmb<M> {
    /// What was granted.
    pub const fn grant(&self) -> CmbGrant {
        CmbGrant::Cmb { express: self.express, mapping: self.mapping }
    }
}

/// A ring, and how the device learns of new WQEs.
pub(super) struct Publish<'q, 'm> {
    pub ring: &'q EntryRing<'m, WORDS>,
    pub doorbell: QueueDoorbell,
}

const BLOCK: usize = 64;

impl Publish<'_, '_> {
    /// Tells the device of the WQEs up to position `end`: barrier and doorbell.
    #[inline(always)]
    pub fn host<D: Doorbell>(&self, end: u32, doorbell: &D) {
        doorbell.to_device();
        doorbell.store(self.doorbell.register(), self.doorbell.index(RingIdx(self.ring.index(end) as u16)));
    }

    /// Copies the WQEs from position `start` up to `end`, and tells the device of them.
    #[inline(never)]
    pub fn controller<M: DeviceMemory, D: Doorbell>(
        &self,
        memory: &M,
        grant: CmbGrant,
        start: u32,
        end: u32,
        doorbell: &D,
    ) {
        let combined = grant.combined();
        if grant.express() {
            let mut position = start;
            while position != end {
                let first = self.ring.offset(position);
                let last = first + self.ring.stride() - BLOCK;
                self.copy(memory, first, last);
                // The express doorbell is in the last block: all others must be there before it.
                doorbell.to_device();
                if combined {
                    doorbell.wc_flush();
                }
                self.copy(memory, last, last + BLOCK);
                position = position.wrapping_add(1);
            }
            if combined {
                doorbell.wc_flush();
            }
            return;
        }
        let (from, to) = (self.ring.offset(start), self.ring.offset(end));
        if from > to {
            self.copy(memory, from, self.ring.offset(self.ring.mask()) + self.ring.stride());
            self.copy(memory, 0, to);
        } else {
            self.copy(memory, from, to);
        }
        if combined {
            doorbell.wc_flush();
        }
        self.host(end, doorbell);
    }

    /// Copies whole blocks.
    fn copy<M: DeviceMemory>(&self, memory: &M, from: usize, to: usize) {
        for offset in (from..to).step_by(BLOCK) {
            if let Some(block) = self.ring.memory().load::<[u8; BLOCK]>(offset) {
                memory.store_64(offset, &block);
            }
        }
    }
}
