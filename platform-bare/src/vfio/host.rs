use core::marker::PhantomData;
use std::string::String;
use std::time::Instant;

use directverbs::verbs::shown;
use rustix::io::Errno;

use super::address::FunctionAddress;
use super::error::{Cause, VfioError, refused};
use super::function::Function;
use super::kernel;
use super::mapping::Arena;
use super::open::{self, Options, Taken};
use super::region::{FunctionConfig, MappedRegion};
use super::space::Mapped;
use crate::clock::{Clock, Timeout};
use crate::dma::DmaError;
use crate::host::{Host, ResetError};
use crate::identity::{Block, Memory};
use crate::mmio::Mmio;
use crate::pci::{Command, Config as _, command, reset};
use crate::registers::{Caching, MapError, Registers};

/// Pieces that the memory may be in: blocks, and gaps between them.
pub const PIECES: usize = 1024;

/// Blocks belong to the one function.
const OWNER: u16 = 0;

/// A function that this process has taken. Its [`Host`] is a reference to it.
///
/// No store to a BAR is combined: the kernel gives processes uncached mappings alone.
#[derive(Debug)]
pub struct Vfio {
    // Fields are dropped in this order: the function is closed, then its memory is unmapped for it and goes.
    bars: [MappedRegion; 6],
    config: FunctionConfig,
    memory: Memory<PIECES>,
    mapped: Mapped,
    group: Option<String>,
    small_pages: Option<Errno>,
    can_reset: bool,
    started: Instant,
}

impl Vfio {
    /// Takes the function at `address`.
    ///
    /// # Errors
    /// What is in the way, in which file, and what helps.
    pub fn open(address: FunctionAddress, options: &Options) -> Result<Self, VfioError> {
        let function = Function::find(address, &options.places)?;
        let taken = open::take(&function, options)?;
        Self::of(function, taken, options)
    }

    /// Takes the function at `address`, which may be of the same IOMMU group as this one. If it is, it is taken by the same
    /// interface, whatever `options` says, and the two reach each other's memory: the IOMMU does not tell them apart.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_beside(&self, address: FunctionAddress, options: &Options) -> Result<Self, VfioError> {
        let function = Function::find(address, &options.places)?;
        let taken = if function.group == self.group {
            open::take_into(&self.mapped.space, &function, &options.places)?
        } else {
            open::take(&function, options)?
        };
        Self::of(function, taken, options)
    }

    fn of(function: Function, taken: Taken, options: &Options) -> Result<Self, VfioError> {
        let no_memory = |errno| Cause::Memory { bytes: options.memory, errno }.at(&taken.path);
        let (arena, small_pages) = arena(options).map_err(no_memory)?;
        let Taken { device, path, space } = taken;
        let mapped = space.map(arena)?;
        // SAFETY: the arena is this value's alone, lives as long, and is mapped for the device at this address. The kernel
        // maps memory for processes only where DMA is coherent.
        let memory = unsafe { Memory::new(mapped.arena.base(), mapped.arena.len(), mapped.iova) };
        let can_reset = kernel::can_reset(&device).map_err(refused(&path, "VFIO_DEVICE_GET_INFO"))?;
        let bar =
            |index| MappedRegion::new(&device, index).map_err(refused(&path, "VFIO_DEVICE_GET_REGION_INFO"));
        let bars = [bar(0)?, bar(1)?, bar(2)?, bar(3)?, bar(4)?, bar(5)?];
        let config = FunctionConfig::new(device).map_err(refused(&path, "VFIO_DEVICE_GET_REGION_INFO"))?;
        // The kernel answers accesses to registers of a function that does not with a signal: from here on it always does.
        command::enable(&config, Command::MEMORY);
        let (group, started) = (function.group, Instant::now());
        Ok(Self { bars, config, memory, mapped, group, small_pages, can_reset, started })
    }

    /// Why the memory is of small pages although [`Options::huge_pages`] asked for others: there were not enough.
    pub const fn small_pages(&self) -> Option<Errno> {
        self.small_pages
    }

    /// Bytes of memory that are free, and the longest piece of them.
    pub fn free(&self) -> (usize, usize) {
        self.memory.free()
    }

    fn bar(&self, bar: u8) -> Option<&MappedRegion> {
        self.bars.get(usize::from(bar)).filter(|region| region.len > 0)
    }
}

/// Memory for DMA, and why it is not of huge pages if it should be.
fn arena(options: &Options) -> Result<(Arena, Option<Errno>), Errno> {
    let small = || Arena::new(options.memory, false);
    if !options.huge_pages {
        return Ok((small()?, None));
    }
    match Arena::new(options.memory, true) {
        Ok(arena) => Ok((arena, None)),
        Err(errno) => Ok((small()?, Some(errno))),
    }
}

impl Clock for Vfio {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Lets other threads run, if any want to: a driver that polls is as fast as its processor.
    fn relax(&self) {
        std::thread::yield_now();
    }
}

/// A part of a BAR that is mapped as long as the function is taken.
#[derive(Clone, Copy, Debug)]
pub struct MappedBar<'v> {
    mmio: Mmio,
    _function: PhantomData<&'v Vfio>,
}

impl Registers for MappedBar<'_> {
    fn len(&self) -> usize {
        self.mmio.len()
    }

    #[inline(always)]
    fn read32(&self, offset: usize) -> u32 {
        self.mmio.read32(offset)
    }

    #[inline(always)]
    fn write32(&self, offset: usize, value: u32) {
        self.mmio.write32(offset, value);
    }

    #[inline(always)]
    fn read64(&self, offset: usize) -> u64 {
        self.mmio.read64(offset)
    }

    #[inline(always)]
    fn write64(&self, offset: usize, value: u64) {
        self.mmio.write64(offset, value);
    }
}

// SAFETY: the IOMMU lets the function reach the arena, and those of other functions of its group that this process has taken,
// and nothing else; it lives until the function is closed; blocks are pieces of it that stay where they are; abandoned ones are freed only in `quiesce`, after bus mastering is gone; the kernel lets one
// process take a function once.
unsafe impl<'v> Host for &'v Vfio {
    type Config = FunctionConfig;
    type Bar = MappedBar<'v>;
    type Dma = Block<'v, PIECES>;

    fn config(&self) -> &FunctionConfig {
        &self.config
    }

    fn bar_len(&self, bar: u8) -> u64 {
        self.bar(bar).map_or(0, |region| region.len)
    }

    fn map_bar(&self, bar: u8, offset: u64, len: usize, _: Caching) -> Result<MappedBar<'v>, MapError> {
        let region = self.bar(bar).ok_or(MapError::Missing { bar })?;
        MapError::check(bar, region.len, offset, len)?;
        let mmio = region.part(offset, len).ok_or(MapError::Kept {
            bar,
            offset: shown(offset),
            len: shown(len as u64),
        })?;
        Ok(MappedBar { mmio, _function: PhantomData })
    }

    fn dma(&self, bytes: usize, align: usize) -> Result<Block<'v, PIECES>, DmaError> {
        self.memory.take(bytes, align, OWNER)
    }

    fn reset(&self) -> Result<(), ResetError> {
        if self.config.id().is_none() {
            return Err(ResetError::Gone);
        }
        if !self.can_reset {
            return Err(ResetError::Unsupported);
        }
        reset::quiesce(&self.config, *self)?;
        kernel::reset(self.config.device()).map_err(|errno| ResetError::Refused(errno.raw_os_error()))
    }

    fn quiesce(&self) -> Result<(), Timeout> {
        reset::quiesce(&self.config, *self)?;
        self.memory.reclaim(OWNER);
        Ok(())
    }
}
