//! A driver of the simplest device that does DMA (`Copier` of the software NICs): the smallest example of a driver, which shows
//! that registers and memory are where they should be.

use core::time::Duration;

use directverbs_bare::dma::DmaError;
use directverbs_bare::pci::{Command, command};
use directverbs_bare::registers::MapError;
use directverbs_bare::{Caching, Deadline, DmaMemory, Host, Registers, Timeout};

/// Vendor and device.
pub const ID: (u16, u16) = (0x1234, 0xd1ab);

const SOURCE: usize = 0;
const DESTINATION: usize = 8;
const LENGTH: usize = 16;
const DOORBELL: usize = 24;
const REGISTERS: usize = 64;

const BYTES: usize = 1000;
const NUMBER: u64 = 0x0123_4567_89ab_cdef;
const LIMIT: Duration = Duration::from_secs(5);

/// Why a copy failed.
#[derive(Debug)]
pub enum Error {
    /// The registers.
    Map(MapError),
    /// The memory.
    Dma(DmaError),
    /// The device.
    Timeout(Timeout),
    /// What was copied.
    Different {
        /// The first byte that is not what it was.
        at: usize,
    },
}

impl From<MapError> for Error {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

impl From<DmaError> for Error {
    fn from(error: DmaError) -> Self {
        Self::Dma(error)
    }
}

impl From<Timeout> for Error {
    fn from(error: Timeout) -> Self {
        Self::Timeout(error)
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Map(error) => error.fmt(f),
            Self::Dma(error) => error.fmt(f),
            Self::Timeout(error) => error.fmt(f),
            Self::Different { at } => write!(f, "byte {at} of the copy is not what it was"),
        }
    }
}

/// Lets the device copy some bytes, and compares them.
pub fn copy<H: Host>(host: &H) -> Result<(), Error> {
    command::enable(host.config(), Command::MEMORY | Command::BUS_MASTER);
    let registers = host.map_bar(0, 0, REGISTERS, Caching::Uncached)?;
    let (mut from, to) = (host.dma(BYTES, 64)?, host.dma(BYTES + 8, 64)?);
    let byte = |at: usize| (at * 7) as u8;
    let filled = (0..BYTES).all(|at| from.store(at, &byte(at)));
    debug_assert!(filled, "the block is long enough");
    registers.write64(SOURCE, from.device_address());
    registers.write64(DESTINATION, to.device_address());
    registers.write64(LENGTH, BYTES as u64);
    directverbs_bare::barrier::to_device();
    registers.write64(DOORBELL, NUMBER);
    let done = Deadline::after(host, LIMIT)
        .wait(host, || Ok::<_, Timeout>((to.load::<u64>(BYTES) == Some(NUMBER.to_le())).then_some(())));
    if done.is_err() {
        // The device may still write.
        from.abandon();
        to.abandon();
    } else if let Some(at) = (0..BYTES).find(|at| to.load::<u8>(*at) != Some(byte(*at))) {
        return Err(Error::Different { at });
    }
    host.quiesce()?;
    Ok(done?)
}
