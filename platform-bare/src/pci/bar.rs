//! Base address registers: kind, size and address.

use super::command::{self, Command};
use super::config::{Config, register};

const IO: u32 = 1;
const WIDE: u32 = 2 << 1;
const KIND: u32 = 3 << 1;
const PREFETCHABLE: u32 = 1 << 3;
/// Bits of a memory BAR that are not of the address.
const FLAGS: u64 = 0xf;

/// A memory BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Number, 0 to 5. A 64-bit BAR takes the next one too.
    pub index: u8,
    /// It has 64-bit addresses.
    pub wide: bool,
    /// Loads have no effect, and stores may be combined.
    pub prefetchable: bool,
    /// Length in bytes, a power of two.
    pub len: u64,
    /// Where it is on the bus; 0 if nobody has given it an address.
    pub address: u64,
}

/// A BAR that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BarError {
    /// A kind that is reserved.
    #[error("BAR {index} is of kind {kind}")]
    Kind {
        /// Number.
        index: u8,
        /// Bits 2:1.
        kind: u8,
    },
    /// A 64-bit BAR without a second half.
    #[error("the last BAR is one of 64 bits")]
    Cut,
    /// The bits that take an address are not all from one on.
    #[error("BAR {index} takes the address bits {bits:#x}")]
    Size {
        /// Number.
        index: u8,
        /// The bits.
        bits: u64,
    },
    /// The function is gone: all reads give ones.
    #[error("the function is gone")]
    Gone,
}

/// Offset of BAR `index`.
const fn offset(index: u8) -> u16 {
    register::BAR0 + index as u16 * 4
}

/// The memory BARs of a function with a header of `count` BARs (6, or 2 for a bridge), by number; `None` for those that are
/// not there, are for I/O, or are a second half. Memory accesses are off while sizes are found out.
///
/// # Errors
/// The first BAR that makes no sense.
pub fn all<C: Config + ?Sized>(config: &C, count: u8) -> Result<[Option<Bar>; 6], BarError> {
    let before = command::get(config);
    command::disable(config, Command::MEMORY | Command::IO);
    let found = size_all(config, count);
    command::enable(config, before & (Command::MEMORY | Command::IO));
    found
}

fn size_all<C: Config + ?Sized>(config: &C, count: u8) -> Result<[Option<Bar>; 6], BarError> {
    let mut bars = [None; 6];
    let mut index = 0;
    while index < count.min(6) {
        let bar = size(config, index, count)?;
        if let Some(slot) = bars.get_mut(usize::from(index)) {
            *slot = bar;
        }
        index += if bar.is_some_and(|bar| bar.wide) { 2 } else { 1 };
    }
    Ok(bars)
}

/// What is stored to a register that then tells which bits it takes.
fn bits<C: Config + ?Sized>(config: &C, at: u16) -> (u32, u32) {
    let before = config.read32(at);
    config.write32(at, u32::MAX);
    let taken = config.read32(at);
    config.write32(at, before);
    (before, taken)
}

fn size<C: Config + ?Sized>(config: &C, index: u8, count: u8) -> Result<Option<Bar>, BarError> {
    let (low, low_taken) = bits(config, offset(index));
    if low == u32::MAX && config.id().is_none() {
        return Err(BarError::Gone);
    }
    if low & IO != 0 || low_taken == 0 {
        return Ok(None);
    }
    let wide = match low & KIND {
        0 => false,
        WIDE => true,
        other => return Err(BarError::Kind { index, kind: (other >> 1) as u8 }),
    };
    let (mut address, mut taken) = (u64::from(low), u64::from(low_taken));
    if wide {
        if index + 1 >= count {
            return Err(BarError::Cut);
        }
        let (high, high_taken) = bits(config, offset(index + 1));
        address |= u64::from(high) << 32;
        taken |= u64::from(high_taken) << 32;
    }
    taken &= !FLAGS;
    if taken == 0 {
        return Ok(None);
    }
    let len = 1 << taken.trailing_zeros();
    // All bits from the lowest one on take an address. Some devices leave out the highest, whose BARs cannot be there.
    let ordered = (taken | len - 1).trailing_ones();
    if taken.checked_shr(ordered).is_some_and(|rest| rest != 0) {
        return Err(BarError::Size { index, bits: taken });
    }
    let prefetchable = low & PREFETCHABLE != 0;
    Ok(Some(Bar { index, wide, prefetchable, len, address: address & !FLAGS }))
}

/// Gives a BAR an address.
pub fn place<C: Config + ?Sized>(config: &C, bar: &Bar, address: u64) {
    config.write32(offset(bar.index), address as u32);
    if bar.wide {
        config.write32(offset(bar.index + 1), (address >> 32) as u32);
    }
}
