use std::sync::Arc;

use super::fault::CommandFaults;
use super::trace::Trace;
use crate::bus::Bus;

/// A memory BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Number, 0 to 5. A 64-bit BAR takes the next one too.
    pub index: u8,
    /// Length in bytes: a power of two, at least 4096.
    pub len: u64,
    /// It has 64-bit addresses.
    pub wide: bool,
    /// Loads have no effect, and stores may be combined.
    pub prefetchable: bool,
}

impl Bar {
    /// A 64-bit BAR, prefetchable as those of NICs are.
    pub const fn wide(index: u8, len: u64) -> Self {
        Self { index, len, wide: true, prefetchable: true }
    }
}

/// Where the MSI-X table and the pending bits are. The endpoint answers accesses there, not the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsixPlace {
    /// BAR of both.
    pub bar: u8,
    /// Number of vectors, 1 to 2048.
    pub vectors: u16,
    /// Offset of the table, 16 bytes a vector.
    pub table: u32,
    /// Offset of the pending bits.
    pub pending: u32,
}

/// What configuration space tells about a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Vendor id of the subsystem.
    pub subsystem_vendor: u16,
    /// Device id of the subsystem.
    pub subsystem: u16,
    /// Class, subclass and programming interface, 24 bits. Ethernet: 0x020000.
    pub class: u32,
    /// Revision.
    pub revision: u8,
    /// Memory BARs.
    pub bars: Vec<Bar>,
    /// MSI-X, if there is any.
    pub msix: Option<MsixPlace>,
}

/// What a function is given when it is built.
#[derive(Clone)]
pub struct Port {
    /// The host's memory and interrupts. Accesses fail while the host has not given bus mastering.
    pub bus: Arc<dyn Bus>,
    /// Which of the commands fail, and how.
    pub faults: CommandFaults,
    /// Takes a line for each command.
    pub trace: Trace,
}

/// What a device does behind its BARs. It is called by one thread at a time.
pub trait Function: Send {
    /// What configuration space tells. Always the same.
    fn identity(&self) -> Identity;

    /// The host loads from `offset` of BAR `bar`; the bytes are inside. What is not there reads as zeros.
    fn bar_read(&mut self, bar: u8, offset: u64, bytes: &mut [u8]);

    /// The host stores `bytes` to `offset` of BAR `bar`; they are inside. A store comes in one piece as the host made it, or
    /// in several in order.
    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]);

    /// All is as after power-on: no objects, no rings, no addresses of the host.
    fn reset(&mut self);

    /// Does what is to be done apart from accesses: hands events of the NIC ([`crate::nic::Nic::take_notification`]) to the
    /// host. `true` if there was any. Called after [`Bus::notified`], and from time to time.
    fn service(&mut self) -> bool {
        false
    }
}
