#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(test)]
extern crate std;

pub mod clock;
pub mod dma;
pub mod host;
pub mod identity;
pub mod mmio;
pub mod pci;
pub mod registers;

pub use clock::{Clock, Deadline, Timeout};
pub use dma::{DmaError, DmaMemory, Owned};
pub use host::Host;
pub use registers::{Caching, DoorbellPage, MapError, Registers};
