//! The address space of a function: where the IOMMU finds the process's memory.

use core::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::vec;
use std::vec::Vec;

use super::error::{Cause, VfioError, locked, refused};
use super::kernel;
use super::mapping::{Arena, HUGE_PAGE};

/// What IOMMUs reach at least (39 bits), for a kernel that does not tell.
const UNTOLD: RangeInclusive<u64> = 0..=(1 << 39) - 1;
/// Below this are addresses that something else may mean: interrupts, and what a lost half of a longer address leaves.
const HIGH: u64 = 1 << 32;

/// What stands for the address space; all that is mapped there goes with it.
#[derive(Debug)]
pub enum Space {
    /// A container, its path, and the group in it, which must stay open.
    Container(OwnedFd, PathBuf, #[expect(dead_code, reason = "held open")] OwnedFd),
    /// An iommufd, its path, and the number of an address space.
    Iommufd(OwnedFd, PathBuf, u32),
}

impl Space {
    fn path(&self) -> &Path {
        match self {
            Self::Container(_, path, _) | Self::Iommufd(_, path, _) => path,
        }
    }

    fn ranges(&self) -> Result<Vec<RangeInclusive<u64>>, VfioError> {
        match self {
            Self::Container(container, path, _) => {
                let told = kernel::ranges_of_container(container);
                Ok(told.map_err(refused(path, "VFIO_IOMMU_GET_INFO"))?.unwrap_or_else(|| vec![UNTOLD]))
            }
            Self::Iommufd(iommufd, path, space) => {
                kernel::ranges_of_space(iommufd, *space).map_err(refused(path, "IOMMU_IOAS_IOVA_RANGES"))
            }
        }
    }

    /// Maps all of `arena`; gives the device's address.
    ///
    /// # Safety
    /// The arena outlives the space.
    ///
    /// # Errors
    /// The IOMMU has no room, or the kernel refuses.
    pub unsafe fn map(&self, arena: &Arena) -> Result<u64, VfioError> {
        let bytes = arena.len();
        let iova = place(&self.ranges()?, bytes as u64);
        let iova = iova.ok_or_else(|| Cause::NoRange { bytes }.at(self.path()))?;
        let vaddr = arena.base().as_ptr().expose_provenance() as u64;
        match self {
            Self::Container(container, path, _) => {
                // SAFETY: an arena is for devices; the rest by this function's contract.
                unsafe { kernel::map_in_container(container, vaddr, iova, bytes) }.map_err(locked(
                    path,
                    "VFIO_IOMMU_MAP_DMA",
                    bytes,
                ))?;
            }
            Self::Iommufd(iommufd, path, space) => {
                // SAFETY: as above.
                unsafe { kernel::map_in_space(iommufd, *space, vaddr, iova, bytes) }.map_err(locked(
                    path,
                    "IOMMU_IOAS_MAP",
                    bytes,
                ))?;
            }
        }
        Ok(iova)
    }
}

/// Where `len` bytes can be, at a multiple of a huge page: from 4 GiB on if that is possible, and never at 0.
fn place(ranges: &[RangeInclusive<u64>], len: u64) -> Option<u64> {
    let from = |least: u64| {
        ranges.iter().find_map(|range| {
            let start = least.max(*range.start()).checked_next_multiple_of(HUGE_PAGE as u64)?;
            let last = start.checked_add(len.checked_sub(1)?)?;
            (last <= *range.end()).then_some(start)
        })
    };
    from(HIGH).or_else(|| from(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: u64 = HUGE_PAGE as u64;

    #[test]
    fn memory_is_placed_where_the_iommu_allows_it() {
        let intel = [0..=0xfedf_ffff, 0xfef0_0000..=(1 << 39) - 1];
        assert_eq!(place(&intel, 32 << 20), Some(HIGH));
        assert_eq!(place(&[0x1_0000_1000..=u64::MAX], 1), Some(HIGH + HUGE));
        assert_eq!(place(&[UNTOLD], (1 << 39) - HIGH), Some(HIGH), "it just fits");
    }

    #[test]
    fn a_narrow_iommu_gives_low_addresses_but_not_0() {
        let narrow = [0..=0x9f_ffff, 0xa0_0000..=0xffff_ffff];
        assert_eq!(place(&narrow, 4 << 20), Some(HUGE));
        assert_eq!(place(&narrow, 16 << 20), Some(0xa0_0000));
        assert_eq!(place(&narrow, 1 << 32), None);
        assert_eq!(place(&[0..=u64::MAX], u64::MAX), None);
        assert_eq!(place(&[], 1), None);
    }
}
