//! Which pages a region has: the device takes one page as it is, and of more a list of their addresses.
//!
//! The list has 64-bit little-endian addresses without flags, and the device has read it when the command is done. The
//! offset of the first byte in the first page is that of the address that requests name. Source: Linux `ionic_pgtbl.c`.

/// Bytes of an address in a list of pages.
pub const LIST_ENTRY: usize = 8;

/// A region that the device has no pages for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// Nothing, or more than the address space.
    #[error("{len} bytes at {addr:#x}")]
    Length {
        /// First address.
        addr: u64,
        /// Bytes.
        len: u64,
    },
    /// No page size in which both addresses have the same offset.
    #[error("no page size in which {va:#x} and {addr:#x} have the same offset")]
    Offset {
        /// Address that requests name.
        va: u64,
        /// Address that the device uses.
        addr: u64,
    },
    /// Not a page size of the device.
    #[error("no pages of 2^{0} bytes")]
    Size(u8),
    /// The pages given are too few, or more than needed.
    #[error("{given} pages, {needed} needed")]
    Count {
        /// Pages given.
        given: u64,
        /// Pages that the region has.
        needed: u64,
    },
    /// More pages than a command can name.
    #[error("{0} pages")]
    TooMany(u64),
}

/// The pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlan {
    /// Bytes of a page, base-two logarithm.
    pub page_size_log2: u8,
    /// Number of pages.
    pub count: u32,
    /// Offset of the first byte in the first page.
    pub offset: u64,
}

/// Pages of 2^`shift` bytes that `len` bytes at `va` lie in.
const fn spanned(va: u64, len: u64, shift: u8) -> u64 {
    (va + (len - 1) >> shift) - (va >> shift) + 1
}

impl PagePlan {
    /// A power-of-two ring that is contiguous on the bus: it is one page of its own size.
    pub const fn ring(bytes_log2: u8) -> Self {
        Self { page_size_log2: bytes_log2, count: 1, offset: 0 }
    }

    /// `len` bytes at `addr` that are contiguous on the bus and that requests name by `va`: in the smallest pages of which
    /// one is enough, or else in the largest.
    ///
    /// # Errors
    /// There are no such pages.
    pub fn contiguous(page_sizes: u64, va: u64, addr: u64, len: u64) -> Result<Self, PageError> {
        if len == 0 || va.checked_add(len - 1).is_none() || addr.checked_add(len - 1).is_none() {
            return Err(PageError::Length { addr, len });
        }
        let mut best = None;
        for shift in (0..u64::BITS as u8).filter(|shift| page_sizes >> shift & 1 != 0) {
            if (va ^ addr) & ((1 << shift) - 1) != 0 {
                break;
            }
            best = Some(shift);
            if spanned(va, len, shift) == 1 {
                break;
            }
        }
        let page_size_log2 = best.ok_or(PageError::Offset { va, addr })?;
        Self::of(page_size_log2, va, len)
    }

    /// `len` bytes that requests name by `va`, in `pages` pages of 2^`page_size_log2` bytes anywhere on the bus.
    ///
    /// # Errors
    /// The device has no such pages, or the region has not so many.
    pub fn listed(
        page_sizes: u64,
        va: u64,
        len: u64,
        page_size_log2: u8,
        pages: u64,
    ) -> Result<Self, PageError> {
        if len == 0 || va.checked_add(len - 1).is_none() {
            return Err(PageError::Length { addr: va, len });
        }
        if page_size_log2 >= 64 || page_sizes >> page_size_log2 & 1 == 0 {
            return Err(PageError::Size(page_size_log2));
        }
        let plan = Self::of(page_size_log2, va, len)?;
        if u64::from(plan.count) != pages {
            return Err(PageError::Count { given: pages, needed: plan.count.into() });
        }
        Ok(plan)
    }

    fn of(page_size_log2: u8, va: u64, len: u64) -> Result<Self, PageError> {
        let count = spanned(va, len, page_size_log2);
        let count = u32::try_from(count).map_err(|_| PageError::TooMany(count))?;
        Ok(Self { page_size_log2, count, offset: va & ((1 << page_size_log2) - 1) })
    }

    /// Bytes of the list; 0 if one page needs none.
    pub const fn list_bytes(&self) -> usize {
        if self.count < 2 { 0 } else { self.count as usize * LIST_ENTRY }
    }

    /// Addresses of the pages of a region that begins at `addr` and is contiguous on the bus.
    pub fn addresses(&self, addr: u64) -> impl Iterator<Item = u64> {
        let (first, shift) = (addr.wrapping_sub(self.offset), self.page_size_log2);
        (0..u64::from(self.count)).map(move |page| first.wrapping_add(page << shift))
    }

    /// What the command names: the first byte of a region whose first page is at `first`, or the list at `list`.
    pub const fn dma_addr(&self, first: u64, list: u64) -> u64 {
        if self.count < 2 { first.wrapping_add(self.offset) } else { list }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: u64 = 1 << 12 | 1 << 21 | 1 << 30;
    const MIB: u64 = 1 << 20;

    #[test]
    fn the_smallest_single_page_is_taken() {
        let plan = |va, len| PagePlan::contiguous(SIZES, va, va, len).unwrap();
        assert_eq!(plan(0x1010, 0xff0), PagePlan { page_size_log2: 12, count: 1, offset: 0x10 });
        assert_eq!(plan(0x1010, 0xff1), PagePlan { page_size_log2: 21, count: 1, offset: 0x1010 });
        assert_eq!(plan(2 * MIB - 1, 2), PagePlan { page_size_log2: 30, count: 1, offset: 2 * MIB - 1 });
        assert_eq!(plan((1 << 30) - 1, 2), PagePlan { page_size_log2: 30, count: 2, offset: (1 << 30) - 1 });
    }

    #[test]
    fn only_pages_with_the_same_offset_are_taken() {
        let plan = PagePlan::contiguous(SIZES, 0x7000_0000, 0x1_2345_6000, 3 * 4096).unwrap();
        assert_eq!(plan, PagePlan { page_size_log2: 12, count: 3, offset: 0 });
        let pages: std::vec::Vec<u64> = plan.addresses(0x1_2345_6000).collect();
        assert_eq!(pages, [0x1_2345_6000, 0x1_2345_7000, 0x1_2345_8000]);
        assert_eq!((plan.list_bytes(), plan.dma_addr(0x1_2345_6000, 0x9000)), (24, 0x9000));
        assert!(matches!(PagePlan::contiguous(SIZES, 1, 0, 1), Err(PageError::Offset { .. })));
    }

    #[test]
    fn the_first_byte_of_a_list_may_be_inside_its_page() {
        let plan = PagePlan::listed(SIZES, 0x1ff8, 16, 12, 2).unwrap();
        assert_eq!(plan, PagePlan { page_size_log2: 12, count: 2, offset: 0xff8 });
        let one = PagePlan::listed(SIZES, 0x1ff8, 8, 12, 1).unwrap();
        assert_eq!((one.dma_addr(0xabc_d000, 0), one.list_bytes()), (0xabc_dff8, 0));
        let wrong = PagePlan::listed(SIZES, 0x1ff8, 16, 12, 3);
        assert_eq!(wrong, Err(PageError::Count { given: 3, needed: 2 }));
        assert_eq!(PagePlan::listed(SIZES, 0, 1, 13, 1), Err(PageError::Size(13)));
        assert_eq!(PagePlan::listed(SIZES, 0, 1, 64, 1), Err(PageError::Size(64)));
    }

    #[test]
    fn no_range_leaves_the_address_space() {
        for (va, len) in [(0, 0), (u64::MAX, 2), (2, u64::MAX)] {
            assert!(PagePlan::contiguous(SIZES, va, va, len).is_err());
            assert!(PagePlan::listed(SIZES, va, len, 12, 1).is_err());
        }
        let all = PagePlan::contiguous(1 << 12, 0, 0, u64::MAX);
        assert!(matches!(all, Err(PageError::TooMany(_))));
        assert_eq!(PagePlan::contiguous(SIZES, u64::MAX, u64::MAX, 1).map(|p| p.count), Ok(1));
    }
}
