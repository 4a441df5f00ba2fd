//! Page lists of the host, as the device follows them.

use directverbs::bnxt_re::pbl::{ENTRIES, LAST, NEXT_TO_LAST, PAGE, VALID};

use crate::bus::{Bus, BusError};
use crate::device::{Memory, RingConfig};

/// What is wrong with a page list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// A level that cannot list so many pages.
    #[error("level {level} for {pages} pages")]
    Level {
        /// Level.
        level: u8,
        /// Pages.
        pages: u64,
    },
    /// An entry that is not valid, or has bits that it must not have.
    #[error("entry {index} of {pages} is {entry:#x}")]
    Entry {
        /// Index of the entry.
        index: u64,
        /// Entries there are.
        pages: u64,
        /// The entry.
        entry: u64,
    },
    /// A page that is not aligned.
    #[error("page at {0:#x}")]
    Misaligned(u64),
    /// The list, or a page, is not memory of the host.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Pages of a size that there is not.
    #[error("page size code {0}")]
    PageSize(u8),
}

/// Where a list is, and of what.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// What the host gave.
    pub root: u64,
    /// Level.
    pub level: u8,
    /// Base-two logarithm of the page size.
    pub shift: u8,
    /// It is of a ring: its last two pages are marked.
    pub ring: bool,
}

impl List {
    /// The pages that `bytes` bytes take. Each of them must be memory of the host.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn pages(&self, bus: &dyn Bus, bytes: u64) -> Result<Box<[u64]>, ListError> {
        let count = bytes.div_ceil(1 << self.shift).max(1);
        let listed = match self.level {
            0 if count == 1 => vec![self.root],
            1 if count <= ENTRIES.into() => self.entries(bus, &[self.root], count, self.ring)?,
            2 => {
                let lists = count.div_ceil(ENTRIES.into());
                // Pages of the directory lie in a row.
                let directories = lists.div_ceil(ENTRIES.into());
                let rows: Vec<u64> = (0..directories).map(|i| self.root.wrapping_add(i * PAGE)).collect();
                let lists = self.entries(bus, &rows, lists, false)?;
                self.entries(bus, &lists, count, self.ring)?
            }
            level => return Err(ListError::Level { level, pages: count }),
        };
        for page in &listed {
            if !page.is_multiple_of(1 << self.shift) {
                return Err(ListError::Misaligned(*page));
            }
        }
        for (i, page) in listed.iter().enumerate() {
            let used = (bytes - ((i as u64) << self.shift)).min(1 << self.shift);
            for at in [*page, page + used.saturating_sub(1)] {
                bus.read(at, &mut [0])?;
            }
        }
        Ok(listed.into())
    }

    /// The same as memory of a ring, or of a region whose first byte is at `first` in the first page.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn memory(&self, bus: &dyn Bus, first: u64, bytes: u64) -> Result<Memory, ListError> {
        let pages = self.pages(bus, first + bytes)?;
        Ok(Memory::Pages { shift: self.shift, first, pages })
    }

    /// A ring of `entries` of `stride` bytes; memory is also to hold `behind` bytes more.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn ring(
        &self,
        bus: &dyn Bus,
        entries: u32,
        stride: u32,
        behind: u64,
    ) -> Result<RingConfig, ListError> {
        let bytes = u64::from(entries) * u64::from(stride);
        let memory = self.memory(bus, 0, bytes + behind)?;
        Ok(RingConfig { memory, entries, stride })
    }

    fn entries(&self, bus: &dyn Bus, lists: &[u64], count: u64, ring: bool) -> Result<Vec<u64>, ListError> {
        let mut pages = Vec::new();
        for index in 0..count {
            let list = lists[(index / u64::from(ENTRIES)) as usize];
            if !list.is_multiple_of(PAGE) {
                return Err(ListError::Misaligned(list));
            }
            let mut word = [0; 8];
            bus.read(list + index % u64::from(ENTRIES) * 8, &mut word)?;
            let entry = u64::from_le_bytes(word);
            let marks = match count - index {
                1 if ring => LAST,
                2 if ring => NEXT_TO_LAST,
                _ => 0,
            };
            if entry & (PAGE - 1) != VALID | marks {
                return Err(ListError::Entry { index, pages: count, entry });
            }
            pages.push(entry & !(PAGE - 1));
        }
        Ok(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::HostMemory;

    fn list(root: u64, level: u8) -> List {
        List { root, level, shift: 12, ring: true }
    }

    #[test]
    fn pages_are_found_at_every_level() {
        let memory = HostMemory::new();
        let pages = memory.alloc(3 * 4096);
        let page = |i: u64| pages.addr() + i * 4096;
        assert_eq!(*list(page(1), 0).pages(&*memory, 4096).unwrap(), [page(1)]);
        let lists = memory.alloc(4096);
        let words = [page(2) | 1, page(0) | 5, page(1) | 3].map(u64::to_le_bytes).concat();
        assert!(lists.write(0, &words));
        let expected = [page(2), page(0), page(1)];
        assert_eq!(*list(lists.addr(), 1).pages(&*memory, 3 * 4096).unwrap(), expected);
        let directory = memory.alloc(4096);
        assert!(directory.write(0, &(lists.addr() | 1).to_le_bytes()));
        assert_eq!(*list(directory.addr(), 2).pages(&*memory, 2 * 4096 + 1).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_told() {
        let memory = HostMemory::new();
        let page = memory.alloc(4096);
        let lists = memory.alloc(4096);
        assert_eq!(list(page.addr(), 0).pages(&*memory, 4097), Err(ListError::Level { level: 0, pages: 2 }));
        assert!(matches!(list(lists.addr(), 3).pages(&*memory, 1), Err(ListError::Level { .. })));
        assert!(lists.write(0, &[page.addr() | 1, page.addr() | 1].map(u64::to_le_bytes).concat()));
        let entry = page.addr() | 1;
        assert_eq!(
            list(lists.addr(), 1).pages(&*memory, 8192),
            Err(ListError::Entry { index: 0, pages: 2, entry }),
            "the page before the last is not marked"
        );
        assert!(matches!(list(page.addr() + 8, 0).pages(&*memory, 1), Err(ListError::Misaligned(_))));
        assert!(matches!(list(0x5000, 0).pages(&*memory, 1), Err(ListError::Bus(_))));
    }
}
