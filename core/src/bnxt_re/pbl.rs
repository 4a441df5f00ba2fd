//! Page lists: how rings, regions and context memory that take several pages are handed to the device.

use crate::queue::RingMemory;
use crate::verbs::{MemoryError, PlanError, Text};

use crate::layout::bits;

/// Bytes of a page of a list, and of the pages that rings are made of.
pub const PAGE: u64 = 4096;
/// Base-two logarithm of [`PAGE`].
pub const PAGE_SHIFT: u8 = 12;
/// Entries of a page of a list.
pub const ENTRIES: u32 = (PAGE / 8) as u32;

/// Bit of an entry: it is there.
pub const VALID: u64 = 1;
/// Bit of an entry: it is the last page of a ring.
pub const LAST: u64 = 2;
/// Bit of an entry: it is the page before the last one of a ring.
pub const NEXT_TO_LAST: u64 = 4;

bits! {
    /// How a table is made of pages.
    pub struct PageAttribute(u8) {
        /// Level, see [`Level`].
        level: u8 = 4,
        /// Page size, see [`page_size_code`].
        page_size: u8 = 4,
    }
}

/// How far the pages are from the address that the device is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// It is the address of the only page.
    Page = 0,
    /// It is the address of a page of page addresses.
    List = 1,
    /// It is the address of one or more pages of addresses of such pages.
    Directory = 2,
}

/// What is made of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// A ring: the last two pages are marked.
    Ring,
    /// Memory without order: a region, or context memory.
    Memory,
}

/// The device's code for a page size, given as base-two logarithm, in attributes of rings and context memory.
pub const fn page_size_code(shift: u8) -> Option<u8> {
    match shift {
        12 => Some(0),
        13 => Some(1),
        16 => Some(2),
        21 => Some(3),
        23 => Some(4),
        30 => Some(5),
        _ => None,
    }
}

/// The page size, as base-two logarithm, of a code.
pub const fn page_shift(code: u8) -> Option<u8> {
    match code {
        0 => Some(12),
        1 => Some(13),
        2 => Some(16),
        3 => Some(21),
        4 => Some(23),
        5 => Some(30),
        _ => None,
    }
}

/// A page list that was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PblPlan {
    /// Level.
    pub level: Level,
    /// Pages that are listed.
    pub pages: u32,
    /// Base-two logarithm of their size.
    pub shift: u8,
    /// Pages of page addresses.
    pub lists: u32,
    /// Pages of addresses of those. They come behind them, in a row.
    pub directories: u32,
}

impl PblPlan {
    /// Plans the list of the pages of `1 << shift` bytes that `bytes` bytes take.
    ///
    /// # Errors
    /// There are no bytes, pages of this size do not exist, or there are too many.
    pub const fn new(bytes: u64, shift: u8) -> Result<Self, PlanError> {
        if shift < PAGE_SHIFT || shift > 30 {
            return Err(PlanError::Unsupported(text!("pages have 2^12 to 2^30 bytes")));
        }
        if bytes == 0 {
            return Err(PlanError::Unsupported(text!("a page list needs bytes")));
        }
        let pages = bytes.div_ceil(1 << shift);
        if pages > 1 << 31 {
            return Err(PlanError::over_device(text!("pages of a list"), pages, 1 << 31));
        }
        let pages = pages as u32;
        Ok(match pages {
            1 => Self { level: Level::Page, pages, shift, lists: 0, directories: 0 },
            2..=ENTRIES => Self { level: Level::List, pages, shift, lists: 1, directories: 0 },
            _ => {
                let lists = pages.div_ceil(ENTRIES);
                Self { level: Level::Directory, pages, shift, lists, directories: lists.div_ceil(ENTRIES) }
            }
        })
    }

    /// Bytes of the list itself: none if the only page needs no list.
    pub const fn bytes(&self) -> u64 {
        (self.lists as u64 + self.directories as u64) * PAGE
    }

    /// Level and page size, as attributes of queue pairs and context memory have them: `None` if rings cannot have pages of
    /// this size.
    pub const fn attribute(&self) -> Option<PageAttribute> {
        match page_size_code(self.shift) {
            Some(code) => Some(PageAttribute::new().with_level(self.level as u8).with_page_size(code)),
            None => None,
        }
    }

    /// Level in bits 0 and 1 and page size in bits 2 to 4, as completion queues and shared receive queues have them.
    pub const fn queue_attribute(&self) -> Option<u8> {
        match page_size_code(self.shift) {
            Some(code) => Some(self.level as u8 | code << 2),
            None => None,
        }
    }

    /// Level in bits 0 and 1 and base-two logarithm of the page size in bits 2 to 6, as regions have them.
    pub const fn region_attribute(&self) -> u8 {
        self.level as u8 | self.shift << 2
    }

    /// Writes the list into `memory`, from its byte `at` on, which the device has at `address`, and gives the address for the
    /// device. `page` tells where a page is.
    ///
    /// # Errors
    /// The memory is too short, or an address is none of a page. Then the list may be partly written.
    pub fn write(
        &self,
        memory: &mut RingMemory<'_>,
        at: usize,
        address: u64,
        kind: Use,
        page: impl Fn(u32) -> u64,
    ) -> Result<u64, MemoryError> {
        if self.level == Level::Page {
            return aligned(text!("page"), page(0), 1 << self.shift);
        }
        memory.check(text!("page list"), at.saturating_add(self.bytes() as usize), 8)?;
        aligned(text!("place of a page list"), at as u64, 8)?;
        aligned(text!("page list"), address, PAGE)?;
        for i in 0..self.pages {
            let page = aligned(text!("page"), page(i), 1 << self.shift)?;
            memory.store_release(at + 8 * i as usize, page | VALID | marks(kind, i, self.pages));
        }
        let first_directory = address + u64::from(self.lists) * PAGE;
        for i in (0..self.lists).filter(|_| self.level == Level::Directory) {
            let list = address + u64::from(i) * PAGE;
            memory.store_release(at + self.lists as usize * PAGE as usize + 8 * i as usize, list | VALID);
        }
        Ok(if self.level == Level::Directory { first_directory } else { address })
    }
}

/// Marks of page `i` of `pages`.
const fn marks(kind: Use, i: u32, pages: u32) -> u64 {
    match kind {
        Use::Ring if i + 1 == pages => LAST,
        Use::Ring if i + 2 == pages => NEXT_TO_LAST,
        _ => 0,
    }
}

fn aligned(what: Text, address: u64, align: u64) -> Result<u64, MemoryError> {
    if address.is_multiple_of(align) {
        Ok(address)
    } else {
        Err(MemoryError::misaligned(what, address, align))
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    const BASE: u64 = 0x10_0000;

    fn written(plan: &PblPlan, kind: Use) -> (u64, std::vec::Vec<u64>) {
        let mut words = vec![0u64; plan.bytes() as usize / 8];
        let bytes = zerocopy::IntoBytes::as_mut_bytes(words.as_mut_slice());
        let mut memory = RingMemory::new(bytes);
        let root = plan.write(&mut memory, 0, BASE, kind, |i| 0x4000_0000 + u64::from(i) * PAGE).unwrap();
        (root, words)
    }

    #[test]
    fn the_level_follows_the_number_of_pages() {
        let cases = [
            (1, Level::Page, 0, 0),
            (PAGE, Level::Page, 0, 0),
            (PAGE + 1, Level::List, 1, 0),
            (512 * PAGE, Level::List, 1, 0),
            (512 * PAGE + 1, Level::Directory, 2, 1),
            (512 * 512 * PAGE, Level::Directory, 512, 1),
            (512 * 512 * PAGE + 1, Level::Directory, 513, 2),
        ];
        for (bytes, level, lists, directories) in cases {
            let plan = PblPlan::new(bytes, 12).unwrap();
            assert_eq!((plan.level, plan.lists, plan.directories), (level, lists, directories), "{bytes}");
        }
        for (bytes, shift) in [(0, 12), (1, 11), (1, 31), (u64::MAX, 12)] {
            assert!(PblPlan::new(bytes, shift).is_err(), "{bytes} {shift}");
        }
    }

    #[test]
    fn the_only_page_is_its_own_root() {
        assert_eq!(written(&PblPlan::new(1, 12).unwrap(), Use::Ring), (0x4000_0000, vec![]));
    }

    #[test]
    fn a_ring_marks_its_last_two_pages() {
        let plan = PblPlan::new(3 * PAGE, 12).unwrap();
        let (root, words) = written(&plan, Use::Ring);
        assert_eq!((root, &words[..4]), (BASE, &[0x4000_0001, 0x4000_1005, 0x4000_2003, 0][..]));
        let (_, words) = written(&plan, Use::Memory);
        assert_eq!(words[..4], [0x4000_0001, 0x4000_1001, 0x4000_2001, 0]);
        assert_eq!(plan.attribute().unwrap().into_bits(), 1);
        assert_eq!((plan.queue_attribute(), plan.region_attribute()), (Some(1), 1 | 12 << 2));
    }

    #[test]
    fn a_directory_lists_the_lists() {
        let plan = PblPlan::new(513 * PAGE, 12).unwrap();
        let (root, words) = written(&plan, Use::Ring);
        assert_eq!(root, BASE + 2 * PAGE);
        assert_eq!(words[511..514], [0x401f_f005, 0x4020_0003, 0]);
        assert_eq!(words[1024..1027], [BASE | VALID, (BASE + PAGE) | VALID, 0]);
    }

    #[test]
    fn memory_that_is_too_short_or_not_aligned_is_refused() {
        let plan = PblPlan::new(2 * PAGE, 12).unwrap();
        let mut short = [0u64; 4];
        let mut memory = RingMemory::new(zerocopy::IntoBytes::as_mut_bytes(short.as_mut_slice()));
        assert!(plan.write(&mut memory, 0, BASE, Use::Ring, |_| 0).is_err());
        let mut page = vec![0u64; 512];
        let mut memory = RingMemory::new(zerocopy::IntoBytes::as_mut_bytes(page.as_mut_slice()));
        assert!(plan.write(&mut memory, 0, BASE + 8, Use::Ring, |_| 0).is_err());
        assert!(plan.write(&mut memory, 0, BASE, Use::Ring, |_| 1).is_err());
        assert_eq!(PblPlan::new(1, 14).unwrap().attribute(), None);
        assert_eq!(page_shift(6), None);
    }
}
