use super::barrier;

/// A mapped doorbell page, and the barriers that belong to its stores.
///
/// A queue calls [`Doorbell::store`] with the value it computed, after the barrier that its family needs; the value is
/// already in the device's byte order when stored as a native little-endian 64-bit word. Tests give a recorder.
pub trait Doorbell {
    /// One 64-bit little-endian store to the page's register `register`, counted in 8 bytes from its start.
    /// bnxt_re uses register 0 (and 1 to 16 for push), ionic one register for each queue type.
    fn store(&self, register: usize, value: u64);

    /// Orders ring stores before the doorbell.
    #[inline(always)]
    fn to_device(&self) {
        barrier::to_device();
    }

    /// Orders the load of a valid bit before the loads of the rest of the entry.
    #[inline(always)]
    fn from_device(&self) {
        barrier::from_device();
    }

    /// Begins write-combined stores.
    #[inline(always)]
    fn wc_start(&self) {
        barrier::wc_start();
    }

    /// Ends write-combined stores: they leave the processor.
    #[inline(always)]
    fn wc_flush(&self) {
        barrier::wc_flush();
    }
}

impl<D: Doorbell + ?Sized> Doorbell for &D {
    #[inline(always)]
    fn store(&self, register: usize, value: u64) {
        (**self).store(register, value);
    }

    #[inline(always)]
    fn to_device(&self) {
        (**self).to_device();
    }

    #[inline(always)]
    fn from_device(&self) {
        (**self).from_device();
    }

    #[inline(always)]
    fn wc_start(&self) {
        (**self).wc_start();
    }

    #[inline(always)]
    fn wc_flush(&self) {
        (**self).wc_flush();
    }
}

/// Memory of the device that is mapped into the process: a push page (bnxt_re) or a queue in the controller memory bar
/// (ionic).
pub trait DeviceMemory {
    /// Stores one aligned block of 16 bytes (two 64-bit stores in order).
    fn store_16(&self, offset: usize, block: &[u8; 16]);

    /// Stores one aligned block of 64 bytes, as one transaction where the processor can.
    fn store_64(&self, offset: usize, block: &[u8; 64]);
}

impl<M: DeviceMemory + ?Sized> DeviceMemory for &M {
    #[inline(always)]
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        (**self).store_16(offset, block);
    }

    #[inline(always)]
    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        (**self).store_64(offset, block);
    }
}
