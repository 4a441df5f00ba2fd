use core::ptr::NonNull;

use directverbs::bnxt_re::attached::Page;
use directverbs::queue::{DeviceMemory, Doorbell};

/// A mapped page of a device.
#[derive(Clone, Copy, Debug)]
pub struct Mapped(NonNull<u64>);

impl Doorbell for Mapped {
    #[inline(always)]
    fn store(&self, register: usize, value: u64) {
        // SAFETY: nothing here runs; a platform maps a page that has all registers.
        unsafe { self.0.add(register).write_volatile(value.to_le()) };
    }
}

impl Page for Mapped {}

impl DeviceMemory for Mapped {
    #[inline(always)]
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        // SAFETY: as above.
        unsafe { self.0.byte_add(offset).cast().write_volatile(*block) };
    }

    #[inline(always)]
    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        // SAFETY: as above.
        unsafe { self.0.byte_add(offset).cast().write_volatile(*block) };
    }
}
