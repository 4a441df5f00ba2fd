//! Regions of a function: configuration space and BARs.

use std::os::fd::{AsFd, OwnedFd};
use std::vec::Vec;

use rustix::io::{Result, pread, pwrite};
use vfio_bindings::bindings::vfio::VFIO_PCI_CONFIG_REGION_INDEX;

use super::kernel::{self, Region};
use super::mapping::{Mapping, PAGE};
use crate::mmio::Mmio;
use crate::pci::{Config, Width};

/// Configuration space through the kernel, which does not let a process change all of it (BARs and interrupts are the
/// kernel's).
#[derive(Debug)]
pub struct FunctionConfig {
    device: OwnedFd,
    region: Region,
}

impl FunctionConfig {
    pub(super) fn new(device: OwnedFd) -> Result<Self> {
        let region = kernel::region(&device, VFIO_PCI_CONFIG_REGION_INDEX)?;
        Ok(Self { device, region })
    }

    pub(super) const fn device(&self) -> &OwnedFd {
        &self.device
    }

    fn at(&self, offset: u16, width: Width) -> Option<u64> {
        let end = u64::from(offset) + u64::from(width.bytes());
        let inside = offset.is_multiple_of(width.bytes()) && end <= self.region.len;
        inside.then(|| self.region.offset + u64::from(offset))
    }
}

impl Config for FunctionConfig {
    fn read(&self, offset: u16, width: Width) -> u32 {
        let mut bytes = [0; 4];
        let wanted = bytes.get_mut(..usize::from(width.bytes())).unwrap_or_default();
        let len = wanted.len();
        let read = self.at(offset, width).map(|at| pread(&self.device, wanted, at));
        // What the kernel does not give is what a bus without a device gives.
        if read == Some(Ok(len)) { u32::from_le_bytes(bytes) } else { width.mask() }
    }

    fn write(&self, offset: u16, width: Width, value: u32) {
        let bytes = value.to_le_bytes();
        let wanted = bytes.get(..usize::from(width.bytes())).unwrap_or_default();
        if let Some(at) = self.at(offset, width) {
            // A store that the kernel refuses does nothing, as one that no device takes.
            let _ = pwrite(&self.device, wanted, at);
        }
    }
}

/// A BAR, mapped where the kernel lets it be.
#[derive(Debug)]
pub struct MappedRegion {
    /// Length in bytes, of all of it.
    pub len: u64,
    /// Parts, by their offset.
    parts: Vec<(u64, Mapping)>,
}

impl MappedRegion {
    /// Maps BAR `index`.
    pub fn new(device: &OwnedFd, index: u32) -> Result<Self> {
        let region = kernel::region(device, index)?;
        let mut parts = Vec::new();
        for [offset, len] in region.parts {
            let end = offset.checked_add(len).filter(|end| *end <= region.len);
            // What is not whole pages cannot be mapped; what is outside makes no sense.
            let (Some(_), Ok(size)) = (end, usize::try_from(len)) else { continue };
            if size > 0 && (offset | len).is_multiple_of(PAGE as u64) {
                parts.push((offset, Mapping::registers(device.as_fd(), region.offset + offset, size)?));
            }
        }
        Ok(Self { len: region.len, parts })
    }

    /// The registers of a part that is mapped in one piece.
    pub fn part(&self, offset: u64, len: usize) -> Option<Mmio> {
        self.parts.iter().find_map(|(start, mapping)| {
            let inside = usize::try_from(offset.checked_sub(*start)?).ok()?;
            mapping.mmio().part(inside, len)
        })
    }
}
