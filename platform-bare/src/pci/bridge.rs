//! Registers of a bridge.

use core::ops::Range;

use super::capability;
use super::config::Config;

/// Bus above it, bus behind it, last bus behind it: a byte each.
const BUSES: u16 = 0x18;
/// Memory window: first and last MiB, 16 bits each, the address's bits 31:20 in bits 15:4.
const MEMORY: u16 = 0x20;
/// Prefetchable window, in the same way; bit 0 says that the upper halves are there.
const PREFETCHABLE: u16 = 0x24;
const PREFETCHABLE_FIRST_HIGH: u16 = 0x28;
const PREFETCHABLE_LAST_HIGH: u16 = 0x2c;

/// Windows begin and end at multiples of it.
pub const GRANULE: u64 = 1 << 20;

/// PCI Express: kind of port in bits 7:4 of the capability's register 2.
const EXPRESS_FLAGS: u16 = 2;
const ROOT_PORT: u16 = 4;
const DOWNSTREAM_PORT: u16 = 6;

/// The buses of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buses {
    /// The one that it is on.
    pub primary: u8,
    /// The one behind it.
    pub secondary: u8,
    /// The last one behind it.
    pub subordinate: u8,
}

/// The buses that a bridge passes on accesses to.
pub fn buses<C: Config + ?Sized>(config: &C) -> Buses {
    let [primary, secondary, subordinate, _] = config.read32(BUSES).to_le_bytes();
    Buses { primary, secondary, subordinate }
}

/// Gives a bridge its buses.
pub fn set_buses<C: Config + ?Sized>(config: &C, buses: Buses) {
    let [.., latency] = config.read32(BUSES).to_le_bytes();
    config.write32(BUSES, u32::from_le_bytes([buses.primary, buses.secondary, buses.subordinate, latency]));
}

/// Whether only device 0 can be behind it: others are the same one again.
pub fn has_one_device<C: Config + ?Sized>(config: &C) -> bool {
    let Ok(Some(express)) = capability::find(config, capability::id::EXPRESS) else { return false };
    let port = config.read16(express.offset + EXPRESS_FLAGS) >> 4 & 0xf;
    port == ROOT_PORT || port == DOWNSTREAM_PORT
}

/// Whether its prefetchable window can be above 4 GiB.
pub fn has_wide_window<C: Config + ?Sized>(config: &C) -> bool {
    config.read16(PREFETCHABLE) & 0xf == 1
}

/// The register of a window below 4 GiB; an empty one ends before it begins.
fn window(addresses: &Range<u64>) -> u32 {
    if addresses.is_empty() {
        return 0x0000_fff0;
    }
    let bits = |address: u64| (address >> 16) as u32 & 0xfff0;
    bits(addresses.start) | bits(addresses.end - 1) << 16
}

/// Lets a bridge pass on accesses to these addresses, whose bounds are multiples of [`GRANULE`]; `memory` lies below 4 GiB.
pub fn set_windows<C: Config + ?Sized>(config: &C, memory: &Range<u64>, prefetchable: &Range<u64>) {
    config.write32(MEMORY, window(memory));
    config.write32(PREFETCHABLE, window(prefetchable));
    if has_wide_window(config) {
        let last = prefetchable.end.saturating_sub(1);
        config.write32(PREFETCHABLE_FIRST_HIGH, (prefetchable.start >> 32) as u32);
        config.write32(PREFETCHABLE_LAST_HIGH, (last >> 32) as u32);
    }
}
