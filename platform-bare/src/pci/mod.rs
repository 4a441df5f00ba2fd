//! PCI: configuration space, and what is done through it.
//!
//! Source: PCI Local Bus Specification 3.0; PCI-to-PCI Bridge Architecture Specification 1.2; PCI Express Base
//! Specification; register names as in Linux's public `uapi/linux/pci_regs.h` and `lspci`.

mod access;
mod address;
pub mod assign;
pub mod bar;
pub mod bridge;
pub mod capability;
pub mod command;
mod config;
mod ecam;
mod msix;
mod ports;
pub mod reset;
#[cfg(test)]
pub(crate) mod tests;
pub mod walk;

pub use access::{Access, Function};
pub use address::{Address, NoAddress};
pub use assign::{Windows, configure, find};
pub use bar::Bar;
pub use capability::{Capability, CapabilityError};
pub use command::Command;
pub use config::{Config, Width};
pub use ecam::Ecam;
pub use msix::Msix;
#[cfg(target_arch = "x86_64")]
pub use ports::Instructions;
pub use ports::{PortIo, Ports};
pub use walk::{Header, Step, WalkError, walk};
