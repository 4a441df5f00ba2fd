//! Software NICs as PCI functions.
//!
//! A [`Function`] is what a device does behind its BARs; an [`Endpoint`] gives it configuration space, the gate to its
//! host's bus, and MSI-X. Two users bring it to a driver: [`Slot`], the in-process host of `directverbs-bare`, and the
//! vfio-user server.

mod config_space;
mod copier;
mod endpoint;
mod fault;
mod function;
mod gate;
mod msix;
mod registers;
mod slot;
mod trace;

pub use config_space::ConfigSpace;
pub use copier::Copier;
pub use endpoint::Endpoint;
pub use fault::{AccessFault, AccessFaults, CommandFault, CommandFaults};
pub use function::{Bar, Function, Identity, MsixPlace, Port};
pub use gate::Gate;
pub use msix::MsixOwner;
pub use registers::ModelRegisters;
pub use slot::{Counts, Slot};
pub use trace::Trace;
