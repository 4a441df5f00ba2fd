//! Message signalled interrupts with a table. Nothing here needs them: all is polled; who wants to sleep sets them up.

use super::capability::{self, CapabilityError};
use super::config::Config;
use crate::registers::Registers;

/// Message control, from the capability's start; then the table's place.
const CONTROL: u16 = 2;
const TABLE: u16 = 4;
const ENABLE: u16 = 1 << 15;
const SIZE: u16 = 0x7ff;
/// BAR number in the low bits of the table's place.
const BAR: u32 = 7;

/// Bytes of a table entry: address, data, and control.
const ENTRY: usize = 16;
const ENTRY_DATA: usize = 8;
const ENTRY_CONTROL: usize = 12;
const MASKED: u32 = 1;

/// The MSI-X capability of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msix {
    capability: u16,
    /// Number of vectors, 1 to 2048.
    pub vectors: u16,
    /// BAR that holds the table.
    pub bar: u8,
    /// Where the table begins there.
    pub offset: u64,
}

impl Msix {
    /// The capability, if the function has it.
    ///
    /// # Errors
    /// The list of capabilities makes no sense.
    pub fn find<C: Config + ?Sized>(config: &C) -> Result<Option<Self>, CapabilityError> {
        let Some(capability) = capability::find(config, capability::id::MSIX)? else { return Ok(None) };
        let place = config.read32(capability.offset + TABLE);
        Ok(Some(Self {
            capability: capability.offset,
            vectors: (config.read16(capability.offset + CONTROL) & SIZE) + 1,
            bar: (place & BAR) as u8,
            offset: (place & !BAR).into(),
        }))
    }

    /// Bytes of the table.
    pub fn table_len(&self) -> usize {
        usize::from(self.vectors) * ENTRY
    }

    /// Switches interrupts by the table on or off.
    pub fn enable<C: Config + ?Sized>(&self, config: &C, on: bool) {
        let control = config.read16(self.capability + CONTROL) & !ENABLE;
        config.write16(self.capability + CONTROL, control | if on { ENABLE } else { 0 });
    }

    /// Lets `vector` store `data` at `address`, in the mapped table.
    pub fn set(&self, table: &impl Registers, vector: u16, address: u64, data: u32) {
        let entry = usize::from(vector) * ENTRY;
        table.write32(entry + ENTRY_CONTROL, MASKED);
        table.write32(entry, address as u32);
        table.write32(entry + 4, (address >> 32) as u32);
        table.write32(entry + ENTRY_DATA, data);
        table.write32(entry + ENTRY_CONTROL, 0);
    }
}
