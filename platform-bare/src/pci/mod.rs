//! PCI: configuration space, and what is done through it.
//!
//! Source: PCI Local Bus Specification 3.0; PCI Express Base Specification; register names as in Linux's public
//! `uapi/linux/pci_regs.h` and `lspci`.

pub mod capability;
pub mod command;
mod config;
pub mod reset;

pub use capability::{Capability, CapabilityError};
pub use command::Command;
pub use config::{Config, Width};
