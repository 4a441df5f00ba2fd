#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(any(test, feature = "vfio"))]
extern crate std;

#[cfg(feature = "bnxt-re")]
pub mod bnxt_re;
pub mod clock;
pub mod dma;
pub mod family;
pub mod host;
pub mod identity;
#[cfg(feature = "ionic")]
pub mod ionic;
pub mod lease;
#[cfg(any(feature = "bnxt-re", feature = "ionic"))]
pub mod ledger;
pub mod mmio;
pub mod pci;
pub mod region;
pub mod registers;
#[cfg(feature = "vfio")]
pub mod vfio;

/// Orders what the processor and a device see of each other.
pub use directverbs::queue::barrier;

pub use clock::{Clock, Deadline, Timeout};
pub use dma::{DmaError, DmaMemory};
pub use family::Family;
pub use host::Host;
pub use lease::Lease;
#[cfg(any(feature = "bnxt-re", feature = "ionic"))]
pub use ledger::{Kind, Objects};
pub use registers::{Caching, DoorbellPage, MapError, Registers};
