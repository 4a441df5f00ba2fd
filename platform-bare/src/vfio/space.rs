//! Address spaces: where the IOMMU finds the process's memory for the functions of a group.

use core::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

use super::error::{Cause, VfioError, locked, refused};
use super::kernel;
use super::mapping::{Arena, HUGE_PAGE};

/// What IOMMUs reach at least (39 bits), for a kernel that does not tell.
const UNTOLD: RangeInclusive<u64> = 0..=(1 << 39) - 1;
/// Below this are addresses that something else may mean: interrupts, and what a lost half of a longer address leaves.
const HIGH: u64 = 1 << 32;

/// What stands for an address space; all that is mapped there goes with it.
#[derive(Debug)]
pub enum Keeper {
    /// A container, its path, and the group in it, which must stay open.
    Container { container: OwnedFd, path: PathBuf, group: OwnedFd },
    /// An iommufd, its path, and the number of an address space of it.
    Iommufd { iommufd: OwnedFd, path: PathBuf, number: u32 },
}

/// An address space, which all functions of a group share that the process has taken.
#[derive(Debug)]
pub struct Space {
    pub keeper: Keeper,
    /// Device addresses that are mapped.
    mapped: Mutex<Vec<RangeInclusive<u64>>>,
}

impl Space {
    /// One in which nothing is mapped.
    pub const fn new(keeper: Keeper) -> Self {
        Self { keeper, mapped: Mutex::new(Vec::new()) }
    }

    fn path(&self) -> &Path {
        match &self.keeper {
            Keeper::Container { path, .. } | Keeper::Iommufd { path, .. } => path,
        }
    }

    fn ranges(&self) -> Result<Vec<RangeInclusive<u64>>, VfioError> {
        match &self.keeper {
            Keeper::Container { container, path, .. } => {
                let told = kernel::ranges_of_container(container);
                Ok(told.map_err(refused(path, "VFIO_IOMMU_GET_INFO"))?.unwrap_or_else(|| vec![UNTOLD]))
            }
            Keeper::Iommufd { iommufd, path, number } => {
                kernel::ranges_of_space(iommufd, *number).map_err(refused(path, "IOMMU_IOAS_IOVA_RANGES"))
            }
        }
    }

    /// What is mapped, also after a panic: the list is right between any two of its changes.
    fn mapped(&self) -> MutexGuard<'_, Vec<RangeInclusive<u64>>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps all of `arena` where nothing is.
    ///
    /// # Errors
    /// The IOMMU has no room, or the kernel refuses.
    pub fn map(self: Arc<Self>, arena: Arena) -> Result<Mapped, VfioError> {
        let bytes = arena.len();
        let mut mapped = self.mapped();
        let iova = place(&self.ranges()?, &mapped, bytes as u64);
        let iova = iova.ok_or_else(|| Cause::NoRange { bytes }.at(self.path()))?;
        let vaddr = arena.base().as_ptr().expose_provenance() as u64;
        let (done, call) = match &self.keeper {
            Keeper::Container { container, .. } => {
                // SAFETY: an arena is for devices, and is there until `Mapped` has unmapped it.
                (unsafe { kernel::map_in_container(container, vaddr, iova, bytes) }, "VFIO_IOMMU_MAP_DMA")
            }
            Keeper::Iommufd { iommufd, number, .. } => {
                // SAFETY: as above.
                (unsafe { kernel::map_in_space(iommufd, *number, vaddr, iova, bytes) }, "IOMMU_IOAS_MAP")
            }
        };
        done.map_err(locked(self.path(), call, bytes))?;
        mapped.push(iova..=iova + (bytes as u64 - 1));
        drop(mapped);
        Ok(Mapped { space: self, iova, arena })
    }
}

/// Memory that the functions of a space reach, until it is dropped.
#[derive(Debug)]
pub struct Mapped {
    pub space: Arc<Space>,
    /// Its device address.
    pub iova: u64,
    // Dropped after it is unmapped.
    pub arena: Arena,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let len = self.arena.len();
        let unmapped = match &self.space.keeper {
            Keeper::Container { container, .. } => kernel::unmap_from_container(container, self.iova, len),
            Keeper::Iommufd { iommufd, number, .. } => {
                kernel::unmap_from_space(iommufd, *number, self.iova, len)
            }
        };
        // What the kernel does not unmap is pages of its own: it goes on holding them, and the addresses stay in use.
        if unmapped.is_ok() {
            self.space.mapped().retain(|range| *range.start() != self.iova);
        }
    }
}

/// Where `len` bytes can be beside those that are `mapped`, at a multiple of a huge page: from 4 GiB on if that is possible,
/// and never at 0.
fn place(ranges: &[RangeInclusive<u64>], mapped: &[RangeInclusive<u64>], len: u64) -> Option<u64> {
    let in_range = |mut least: u64, last: u64| loop {
        let start = least.checked_next_multiple_of(HUGE_PAGE as u64)?;
        let end = start.checked_add(len.checked_sub(1)?).filter(|end| *end <= last)?;
        match mapped.iter().find(|other| *other.start() <= end && *other.end() >= start) {
            None => return Some(start),
            Some(other) => least = other.end().checked_add(1)?,
        }
    };
    let from = |least: u64| ranges.iter().find_map(|range| in_range(least.max(*range.start()), *range.end()));
    from(HIGH).or_else(|| from(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: u64 = HUGE_PAGE as u64;

    #[test]
    fn memory_is_placed_where_the_iommu_allows_it() {
        let intel = [0..=0xfedf_ffff, 0xfef0_0000..=(1 << 39) - 1];
        assert_eq!(place(&intel, &[], 32 << 20), Some(HIGH));
        assert_eq!(place(&[0x1_0000_1000..=u64::MAX], &[], 1), Some(HIGH + HUGE));
        assert_eq!(place(&[UNTOLD], &[], (1 << 39) - HIGH), Some(HIGH), "it just fits");
    }

    #[test]
    fn a_narrow_iommu_gives_low_addresses_but_not_0() {
        let narrow = [0..=0x9f_ffff, 0xa0_0000..=0xffff_ffff];
        assert_eq!(place(&narrow, &[], 4 << 20), Some(HUGE));
        assert_eq!(place(&narrow, &[], 16 << 20), Some(0xa0_0000));
        assert_eq!(place(&narrow, &[], 1 << 32), None);
        assert_eq!(place(&[0..=u64::MAX], &[], u64::MAX), None);
        assert_eq!(place(&[], &[], 1), None);
    }

    #[test]
    fn memory_is_placed_beside_what_is_mapped() {
        let range = [0..=HIGH + 8 * HUGE - 1];
        let first = HIGH..=HIGH + HUGE - 1;
        let third = HIGH + 2 * HUGE..=HIGH + 3 * HUGE - 1;
        let mapped = [third.clone(), first.clone()];
        assert_eq!(place(&range, &mapped, HUGE), Some(HIGH + HUGE), "between them");
        assert_eq!(place(&range, &mapped, HUGE + 1), Some(HIGH + 3 * HUGE), "behind them");
        assert_eq!(place(&range, &mapped, 6 * HUGE), Some(HUGE), "below them");
        assert_eq!(place(&[HIGH..=HIGH + HUGE - 1], &[first], 1), None);
        assert_eq!(place(&[0..=u64::MAX], &[HUGE..=u64::MAX], 1), None);
    }
}
