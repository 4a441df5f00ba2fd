//! The doorbell page.

use directverbs::queue::Doorbell;

use crate::uverbs::Mapping;

/// Registers of a doorbell page, one for each queue type.
const REGISTERS: usize = 8;

/// The mapped doorbell page of a context.
#[derive(Debug)]
pub struct DoorbellPage {
    mapping: Mapping,
    /// Where in the mapped page the registers begin: other than 0 where pages are larger than the device's.
    offset: usize,
}

impl DoorbellPage {
    /// None if the registers do not lie in the mapping.
    pub(super) fn new(mapping: Mapping, offset: usize) -> Option<Self> {
        let end = offset.checked_add(REGISTERS * size_of::<u64>())?;
        let fits = offset.is_multiple_of(size_of::<u64>()) && end <= mapping.len();
        fits.then_some(Self { mapping, offset })
    }

    /// Its address, for code on a device that rings by itself.
    pub fn address(&self) -> u64 {
        self.mapping.address().as_ptr() as u64 + self.offset as u64
    }
}

impl Doorbell for DoorbellPage {
    #[inline]
    fn store(&self, register: usize, value: u64) {
        // A queue type has 3 bits: there is no other register.
        if register < REGISTERS {
            self.mapping.store_u64(self.offset + register * size_of::<u64>(), value);
        }
    }
}
