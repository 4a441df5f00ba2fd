//! Virtual machines: guests that try the library on kernels and devices that this machine does not have.

mod apart;
pub mod daemon;
pub mod image;
mod initramfs;
pub mod linux;
mod machine;
mod modules;
mod outcome;
mod programs;
pub mod unikernel;
pub mod vfio;

use clap::Subcommand;

use crate::error::Result;
use crate::lab::Lab;

/// What guests there are.
#[derive(Debug, Subcommand)]
pub enum Guest {
    /// Debian's kernel with soft-RoCE: the library against the real uverbs
    Linux,
    /// Debian's kernel, or another, with an IOMMU: `dv` brings NICs up through VFIO
    Vfio(vfio::Options),
    /// No operating system: our image brings up what it finds on the PCI bus
    Unikernel(unikernel::Options),
}

/// Runs a guest in the foreground. `Ok(false)` says that something failed and was told.
///
/// # Errors
/// Something that is needed is missing, or the guest could not be built or started.
pub fn run(lab: &Lab, guest: &Guest) -> Result<bool> {
    match guest {
        Guest::Linux => linux::foreground(lab),
        Guest::Vfio(options) => vfio::foreground(lab, options),
        Guest::Unikernel(options) => unikernel::foreground(lab, options),
    }
}
