//! In-process platforms: the drivers of `directverbs` over software NICs. Commands are calls of the device API, a
//! doorbell is a call into the NIC, and rings are memory of the process.

pub mod bnxt_re;
mod error;
pub mod ionic;
mod memory;
mod queue;

use std::sync::Arc;

use directverbs::verbs::{AccessFlags, AddressVector, AhId, MwType, PdId, PortAttributes, RKey};

use crate::bus::{HostBlock, HostMemory};
use crate::device::{AhConfig, Memory, MrConfig, MrKind, NicConfig};
use crate::fabric::{Fabric, NicHandle};
use crate::nic::FrontEnd;
use error::On;
pub use error::{Cause, HostError};
pub use memory::Region;
pub use queue::Queue;

/// Protection domain.
#[derive(Debug)]
pub struct ProtectionDomain(PdId);

impl ProtectionDomain {
    /// The NIC's number of it, for what is created past the driver.
    pub const fn id(&self) -> PdId {
        self.0
    }
}

/// What the platforms of both families have: a NIC on a wire, and the memory of its host.
#[derive(Debug)]
pub struct Host<F> {
    nic: NicHandle<F>,
    fabric: Fabric,
    memory: Arc<HostMemory>,
    config: NicConfig,
}

impl<F: FrontEnd> Host<F> {
    /// Plugs a NIC into `fabric`.
    pub fn attach(fabric: &Fabric, front_end: F, config: NicConfig) -> Self {
        let memory = HostMemory::new();
        let nic = fabric.attach(front_end, config.clone(), memory.clone());
        Self { nic, fabric: fabric.clone(), memory, config }
    }

    /// The NIC.
    pub const fn nic(&self) -> &NicHandle<F> {
        &self.nic
    }

    /// The host's memory.
    pub const fn memory(&self) -> &Arc<HostMemory> {
        &self.memory
    }

    /// Allocates ring memory of at least `bytes` bytes.
    fn alloc(&self, bytes: usize) -> HostBlock {
        self.memory.alloc(bytes)
    }

    /// State of the port.
    fn port(&self) -> PortAttributes {
        PortAttributes {
            active: true,
            mtu: self.config.mtu,
            mac: self.config.mac,
            gid: self.config.gids.first().copied().unwrap_or_default(),
            gid_index: 0,
        }
    }

    /// Advances the fabric by an event.
    fn progress(&self) -> bool {
        self.fabric.step()
    }

    fn now_ns(&self) -> u64 {
        self.fabric.now_ns()
    }

    fn alloc_pd(&self) -> Result<ProtectionDomain, HostError> {
        self.nic.lock().create_pd().on("protection domain").map(ProtectionDomain)
    }

    fn dealloc_pd(&self, pd: ProtectionDomain) -> Result<(), HostError> {
        self.nic.lock().destroy_pd(pd.0).on(format_args!("protection domain {}", pd.0))
    }

    fn alloc_mr(&self, pd: &ProtectionDomain, len: usize, access: AccessFlags) -> Result<Region, HostError> {
        let block = self.memory.alloc(len);
        let config = MrConfig {
            key: None,
            pd: pd.0,
            kind: MrKind::Region(Memory::Host(block.addr())),
            addr: block.addr(),
            length: len as u64,
            access,
        };
        let key = self.nic.lock().create_mr(&config).on("memory region")?;
        Ok(Region { block, len, key })
    }

    fn dealloc_mr(&self, mr: Region) -> Result<(), HostError> {
        self.nic.lock().destroy_mr(mr.key).on(format_args!("memory region {:#x}", mr.key))
    }

    fn alloc_mw(&self, pd: &ProtectionDomain, mw_type: MwType) -> Result<RKey, HostError> {
        let kind = match mw_type {
            MwType::Type1 => MrKind::WindowType1,
            MwType::Type2 => MrKind::WindowType2,
        };
        let config = MrConfig { key: None, pd: pd.0, kind, addr: 0, length: 0, access: AccessFlags::empty() };
        self.nic.lock().create_mr(&config).on("memory window").map(RKey::truncated)
    }

    fn dealloc_mw(&self, mw: RKey) -> Result<(), HostError> {
        self.nic.lock().destroy_mr(mw.get()).on(format_args!("memory window {mw}"))
    }

    fn create_ah(&self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId, HostError> {
        let config = AhConfig { id: None, pd: pd.0, path: *to };
        self.nic.lock().create_ah(&config).on("address handle")
    }

    fn destroy_ah(&self, ah: AhId) -> Result<(), HostError> {
        self.nic.lock().destroy_ah(ah).on(format_args!("address handle {ah}"))
    }
}
