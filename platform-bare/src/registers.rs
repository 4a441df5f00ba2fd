//! Registers of a device, as a processor reaches them through a mapped part of a BAR.

use directverbs::queue::{DeviceMemory, Doorbell, barrier};
use directverbs::verbs::shown;

/// How the processor treats accesses to a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Each access goes to the device, once and in order.
    Uncached,
    /// Stores may be held back, combined and reordered until [`Registers::wc_flush`]; loads are not for use.
    WriteCombining,
}

/// Why a part of a BAR cannot be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The function has no memory BAR of this number, or nobody has given it an address.
    #[error("BAR {bar} is not there")]
    Missing {
        /// Number of the BAR.
        bar: u8,
    },
    /// The part is not in the BAR.
    #[error("BAR {bar} has {has:#x} bytes: none at {offset:#x}, {len:#x} long")]
    Outside {
        /// Number of the BAR.
        bar: u8,
        /// Length of the BAR in bytes, as [`shown`].
        has: u32,
        /// First byte asked for, as [`shown`].
        offset: u32,
        /// Bytes asked for, as [`shown`].
        len: u32,
    },
    /// The host keeps this part, or some of it, to itself.
    #[error("BAR {bar}: the host does not map the {len:#x} bytes at {offset:#x}")]
    Kept {
        /// Number of the BAR.
        bar: u8,
        /// First byte asked for, as [`shown`].
        offset: u32,
        /// Bytes asked for, as [`shown`].
        len: u32,
    },
    /// The host does not map it, for this reason of its own (an error number on Linux).
    #[error("BAR {bar} cannot be mapped: error {code}")]
    Refused {
        /// Number of the BAR.
        bar: u8,
        /// The host's error number.
        code: i32,
    },
}

impl MapError {
    /// Checks that a part lies in a BAR of `has` bytes.
    ///
    /// # Errors
    /// [`Self::Missing`] for an empty BAR, [`Self::Outside`].
    pub const fn check(bar: u8, has: u64, offset: u64, len: usize) -> Result<(), Self> {
        if has == 0 {
            return Err(Self::Missing { bar });
        }
        match offset.checked_add(len as u64) {
            Some(end) if end <= has => Ok(()),
            _ => Err(Self::outside(bar, has, offset, len)),
        }
    }

    /// A part that is not in a BAR of `has` bytes.
    pub const fn outside(bar: u8, has: u64, offset: u64, len: usize) -> Self {
        Self::Outside { bar, has: shown(has), offset: shown(offset), len: shown(len as u64) }
    }
}

/// A mapped part of a BAR. Clones are the same mapping, which stays as long as one of them.
///
/// Values are numbers: the device's little-endian byte order is the implementation's business. Offsets count in bytes from
/// the start of the mapping and are multiples of the access's size. An access outside of the mapping does what one that no
/// device answers does: loads give all ones, stores do nothing.
pub trait Registers: Clone + core::fmt::Debug {
    /// Length in bytes.
    fn len(&self) -> usize;

    /// One 32-bit load.
    fn read32(&self, offset: usize) -> u32;

    /// One 32-bit store.
    fn write32(&self, offset: usize, value: u32);

    /// One 64-bit load.
    fn read64(&self, offset: usize) -> u64;

    /// One 64-bit store.
    fn write64(&self, offset: usize, value: u64);

    /// Stores a block of 16 bytes, two 64-bit stores in order.
    #[inline(always)]
    fn write_16(&self, offset: usize, block: &[u8; 16]) {
        let (words, _) = block.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            self.write64(offset + i * 8, u64::from_le_bytes(*word));
        }
    }

    /// Stores a block of 64 bytes, in order; as one transaction where the mapping is write-combining and the processor can.
    #[inline(always)]
    fn write_64(&self, offset: usize, block: &[u8; 64]) {
        let (words, _) = block.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            self.write64(offset + i * 8, u64::from_le_bytes(*word));
        }
    }

    /// Stores `bytes` as 32-bit words in order; a last word that is not whole is filled with zero bytes.
    fn write_words(&self, offset: usize, bytes: &[u8]) {
        for (i, word) in bytes.chunks(4).enumerate() {
            let mut whole = [0; 4];
            whole.iter_mut().zip(word).for_each(|(to, from)| *to = *from);
            self.write32(offset + i * 4, u32::from_le_bytes(whole));
        }
    }

    /// Fills `out` by 32-bit loads in order.
    fn read_words(&self, offset: usize, out: &mut [u8]) {
        for (i, word) in out.chunks_mut(4).enumerate() {
            let whole = self.read32(offset + i * 4).to_le_bytes();
            word.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        }
    }

    /// Begins write-combined stores: what was stored before, also to DMA memory, is visible before them.
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

/// A mapping as the queues of the core use it: a doorbell page, a push page or a queue's place in controller memory. It
/// begins where the mapping does.
#[derive(Clone, Debug)]
pub struct DoorbellPage<B>(pub B);

impl<B: Registers> Doorbell for DoorbellPage<B> {
    #[inline(always)]
    fn store(&self, register: usize, value: u64) {
        self.0.write64(register * 8, value);
    }

    #[inline(always)]
    fn wc_start(&self) {
        self.0.wc_start();
    }

    #[inline(always)]
    fn wc_flush(&self) {
        self.0.wc_flush();
    }
}

impl<B: Registers> DeviceMemory for DoorbellPage<B> {
    #[inline(always)]
    fn store_16(&self, offset: usize, block: &[u8; 16]) {
        self.0.write_16(offset, block);
    }

    #[inline(always)]
    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.0.write_64(offset, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::vec::Vec;

    /// Records 32-bit accesses; what is read is the offset.
    #[derive(Clone, Debug, Default)]
    struct Recorder(Rc<RefCell<Vec<(usize, u64)>>>);

    impl Registers for Recorder {
        fn len(&self) -> usize {
            4096
        }

        fn read32(&self, offset: usize) -> u32 {
            offset as u32
        }

        fn write32(&self, offset: usize, value: u32) {
            self.0.borrow_mut().push((offset, value.into()));
        }

        fn read64(&self, offset: usize) -> u64 {
            offset as u64
        }

        fn write64(&self, offset: usize, value: u64) {
            self.0.borrow_mut().push((offset, value));
        }
    }

    #[test]
    fn bytes_are_stored_and_loaded_as_little_endian_words() {
        let registers = Recorder::default();
        registers.write_words(8, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(*registers.0.borrow(), [(8, 0x0403_0201), (12, 0x0605)]);
        let mut bytes = [0; 6];
        registers.read_words(0x0102_0304, &mut bytes);
        assert_eq!(bytes, [4, 3, 2, 1, 8, 3]);
    }

    #[test]
    fn a_page_counts_registers_in_8_bytes_and_stores_blocks_in_order() {
        let page = DoorbellPage(Recorder::default());
        page.store(3, 7);
        page.store_16(32, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(*page.0.0.borrow(), [(24, 7), (32, 1), (40, 2)]);
    }

    #[test]
    fn a_part_must_lie_in_the_bar() {
        assert_eq!(MapError::check(2, 0, 0, 8), Err(MapError::Missing { bar: 2 }));
        assert_eq!(MapError::check(2, 16, 8, 8), Ok(()));
        let outside = |offset, len| Err(MapError::Outside { bar: 2, has: 16, offset, len });
        assert_eq!(MapError::check(2, 16, 9, 8), outside(9, 8));
        assert_eq!(MapError::check(2, 16, u64::MAX, 8), outside(u32::MAX, 8));
    }
}
