//! What a driver needs of the machine it runs on.

use crate::clock::{Clock, Timeout};
use crate::dma::{DmaError, DmaMemory};
use crate::pci::Config;
use crate::registers::{Caching, MapError, Registers};

/// A PCI function, the memory it may reach, and a clock: what one driver needs, and all that it needs.
///
/// A reference to a host is a host: a driver that borrows it leaves it when bring-up fails, to try again.
///
/// Methods take `&self`, so that a device, its queues and its memory can live side by side. Everything that a driver waits
/// for it waits for with the host's [`Clock`]; between two looks it calls [`Clock::relax`].
///
/// # Safety
/// The driver hands addresses of [`Host::Dma`] memory to a device that writes there. It is sound only if, beside the
/// contracts of [`Registers`] and [`DmaMemory`]:
/// - the device reaches no memory through this host but blocks that [`Host::dma`] has given and that are neither freed nor
///   reclaimed (or reaches more only by its own fault, where there is no IOMMU);
/// - a block is at [`DmaMemory::device_address`] from the moment it is given until it is freed, wherever its value is moved;
/// - [`Host::quiesce`] frees abandoned blocks only after the device cannot reach them any more;
/// - the function is this host's alone: nobody else changes its configuration, resets it or maps its BARs.
pub unsafe trait Host: Clock {
    /// Configuration space.
    type Config: Config;
    /// A mapped part of a BAR.
    type Bar: Registers;
    /// DMA memory.
    type Dma: DmaMemory;

    /// Configuration space of the function. The driver does not change BARs there: they are assigned.
    fn config(&self) -> &Self::Config;

    /// Length of memory BAR `bar` (0 to 5) in bytes; 0 if there is none. The upper half of a 64-bit BAR is none.
    fn bar_len(&self, bar: u8) -> u64;

    /// Maps `len` bytes from `offset` of memory BAR `bar`. Parts may overlap others that are mapped with the same `caching`.
    /// A host that cannot combine stores maps them uncached, which is slower and no different otherwise. The function's
    /// memory accesses must be enabled before the first register access, see [`crate::pci::command`].
    ///
    /// # Errors
    /// What is missing, or why the host refuses.
    fn map_bar(&self, bar: u8, offset: u64, len: usize, caching: Caching) -> Result<Self::Bar, MapError>;

    /// At least `bytes` zeroed bytes of DMA memory, contiguous for the device. The processor's and the device's address are
    /// multiples of `align`, a power of two. 0 bytes are taken for 1.
    ///
    /// # Errors
    /// There are not so many, or the host refuses.
    fn dma(&self, bytes: usize, align: usize) -> Result<Self::Dma, DmaError>;

    /// Resets the function (FLR or what the host has instead) and waits until it answers. Registers, queues and all that
    /// was configured are gone; bus mastering is off, BARs are assigned as before. Memory accesses may be off, too.
    ///
    /// # Errors
    /// The function cannot be reset, or does not come back.
    fn reset(&self) -> Result<(), ResetError>;

    /// Takes bus mastering from the function, waits until no transaction is under way, and frees the memory that was
    /// [abandoned](DmaMemory::abandon). A function that is not there any more has none under way.
    ///
    /// # Errors
    /// Transactions stay under way: nothing was freed.
    fn quiesce(&self) -> Result<(), Timeout>;
}

// SAFETY: it is the same host; what borrows it ends before it does.
unsafe impl<H: Host> Host for &H {
    type Config = H::Config;
    type Bar = H::Bar;
    type Dma = H::Dma;

    fn config(&self) -> &H::Config {
        (**self).config()
    }

    fn bar_len(&self, bar: u8) -> u64 {
        (**self).bar_len(bar)
    }

    fn map_bar(&self, bar: u8, offset: u64, len: usize, caching: Caching) -> Result<H::Bar, MapError> {
        (**self).map_bar(bar, offset, len, caching)
    }

    fn dma(&self, bytes: usize, align: usize) -> Result<H::Dma, DmaError> {
        (**self).dma(bytes, align)
    }

    fn reset(&self) -> Result<(), ResetError> {
        (**self).reset()
    }

    fn quiesce(&self) -> Result<(), Timeout> {
        (**self).quiesce()
    }
}

/// Why a function could not be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetError {
    /// It has no function level reset.
    #[error("the function cannot be reset")]
    Unsupported,
    /// It is not there: its configuration space reads all ones.
    #[error("the function is gone")]
    Gone,
    /// It does not come back after the reset, or transactions stay under way before it.
    #[error("the function does not come to rest or does not come back: {0}")]
    Silent(#[from] Timeout),
    /// The host refuses for this reason of its own (an error number on Linux).
    #[error("the function cannot be reset: error {0}")]
    Refused(i32),
}
