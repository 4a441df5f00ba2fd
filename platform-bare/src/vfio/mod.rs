//! A Linux process as the host: PCI functions that are bound to `vfio-pci`, mapped into the process, behind an IOMMU.
//!
//! [`Vfio::open`] takes a function by either interface: its character device and iommufd, or its group and a container.
//! BARs are mapped as far as the kernel lets them be. Memory for DMA is one arena, mapped once through the IOMMU, at device
//! addresses of its own among those that the IOMMU allows, so that an address of the process is never a device's by accident.
//! The function reaches nothing else. When the value is dropped, or the process ends, the function is closed, which resets it,
//! and all is unmapped.
//!
//! Functions that the IOMMU does not tell apart are one group, which one process takes as a whole: all of them must be bound
//! to `vfio-pci` or to nothing. [`Vfio::open_beside`] takes a second one; the two share an address space.
//!
//! It needs the right to open the function's files, and a limit on locked memory (`ulimit -l`) of at least the arena.
//! [`Function::obstacle`] says what is in the way without taking the function.

mod address;
mod error;
mod function;
mod host;
mod kernel;
mod mapping;
mod open;
mod region;
mod space;
#[cfg(test)]
mod tests;

pub use address::FunctionAddress;
pub use error::{Cause, VfioError};
pub use function::{Function, Interface, Places};
pub use host::{MappedBar, PIECES, Vfio};
pub use open::Options;
pub use region::FunctionConfig;
