use directverbs_bare::{Caching, Registers};

use super::slot::Slot;

/// A mapped part of a BAR of a software NIC: each access is a call of the model.
#[derive(Clone, Debug)]
pub struct ModelRegisters {
    pub(super) slot: Slot,
    pub(super) bar: u8,
    pub(super) base: u64,
    pub(super) len: usize,
    pub(super) caching: Caching,
}

impl ModelRegisters {
    /// Where in the BAR an access of `N` bytes goes; `None` if it is outside.
    ///
    /// # Panics
    /// It is not aligned: real registers would fault, or do what nobody expects.
    fn at<const N: usize>(&self, offset: usize) -> Option<u64> {
        assert!(offset.is_multiple_of(N), "an access of {N} bytes at {offset:#x} of BAR {}", self.bar);
        let inside = offset < self.len && N <= self.len - offset;
        inside.then(|| self.base + offset as u64)
    }

    fn load<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut bytes = [0xff; N];
        if let Some(at) = self.at::<N>(offset) {
            self.slot.bar_read(self.bar, at, &mut bytes);
        }
        bytes
    }

    fn store<const N: usize>(&self, offset: usize, bytes: &[u8; N]) {
        let Some(at) = self.at::<N>(offset) else { return };
        match self.caching {
            Caching::Uncached => self.slot.bar_write(self.bar, at, bytes),
            Caching::WriteCombining => self.slot.combine(self.bar, at, bytes),
        }
    }
}

impl Registers for ModelRegisters {
    fn len(&self) -> usize {
        self.len
    }

    fn read32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.load(offset))
    }

    fn write32(&self, offset: usize, value: u32) {
        self.store(offset, &value.to_le_bytes());
    }

    fn read64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.load(offset))
    }

    fn write64(&self, offset: usize, value: u64) {
        self.store(offset, &value.to_le_bytes());
    }

    fn write_64(&self, offset: usize, block: &[u8; 64]) {
        self.store(offset, block);
    }

    fn wc_start(&self) {
        self.slot.flush();
    }

    fn wc_flush(&self) {
        self.slot.flush();
    }
}
