//! What the driver keeps track of, in memory of the host that no device knows.

use directverbs::ionic::devcmd::CmbArea;
use directverbs::text;
use directverbs::verbs::Gid;

use super::config::Config;
use super::error::Cause;
use crate::dma::Owned;
use crate::host::Host;
use crate::ledger::Ledger;

/// Most GIDs: their numbers in paths have 8 bits.
const MAX_GIDS: usize = 256;
/// Controller memory is given in pages.
const PAGE: u64 = 4096;

/// An entry of the GID table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LocalGid {
    pub gid: Gid,
    /// VLAN tag of paths from it that have none of their own.
    pub vlan: Option<u16>,
}

/// Objects, GIDs, and places of controller memory that are taken.
#[derive(Debug)]
pub(super) struct Books {
    pub ledger: Ledger,
    pub gids: &'static mut [Option<LocalGid>],
    places: &'static mut [Option<CmbArea>],
}

/// The books and their memory.
pub(super) type OwnedBooks<H> = Owned<Books, <H as Host>::Dma, 3>;

impl Books {
    /// Empty books.
    pub fn open<H: Host>(host: &H, config: &Config) -> Result<OwnedBooks<H>, Cause> {
        let (objects, gids) = (config.objects, config.gids.min(MAX_GIDS));
        // A queue pair has two queues.
        let places = objects.saturating_mul(2);
        let blocks = [
            host.dma(Ledger::bytes(objects), 64)?,
            host.dma(gids * size_of::<Option<LocalGid>>(), 64)?,
            host.dma(places.saturating_mul(size_of::<Option<CmbArea>>()), 64)?,
        ];
        Ok(Owned::build(blocks, |[of_ledger, of_gids, of_places]| {
            // SAFETY: no device is told of the memory.
            let ledger = unsafe { Ledger::new(of_ledger, objects) }?;
            // SAFETY: as above.
            let gids = unsafe { of_gids.into_records(text!("GID table"), gids) }?;
            // SAFETY: as above.
            let places = unsafe { of_places.into_records(text!("places of controller memory"), places) }?;
            Ok::<_, directverbs::verbs::MemoryError>(Self { ledger, gids, places })
        })?)
    }

    /// Takes a place of `len` bytes in `area`; `None` if there is none.
    pub fn place(&mut self, area: CmbArea, len: u64) -> Option<CmbArea> {
        let end = area.offset + area.len;
        let mut place = CmbArea { offset: area.offset.next_multiple_of(PAGE), len };
        loop {
            if place.len > end.checked_sub(place.offset)? {
                return None;
            }
            let overlaps = |taken: &&CmbArea| {
                taken.offset < place.offset + place.len && place.offset < taken.offset + taken.len
            };
            let Some(taken) = self.places.iter().flatten().find(overlaps) else { break };
            place.offset = (taken.offset + taken.len).next_multiple_of(PAGE);
        }
        *self.places.iter_mut().find(|slot| slot.is_none())? = Some(place);
        Some(place)
    }

    /// Gives a place back.
    pub fn vacate(&mut self, place: CmbArea) {
        if let Some(slot) = self.places.iter_mut().find(|slot| **slot == Some(place)) {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use directverbs::queue::RingMemory;
    use std::boxed::Box;
    use std::vec;

    fn books(places: usize) -> Books {
        let memory = || RingMemory::new(zerocopy::IntoBytes::as_mut_bytes(Box::leak(Box::new([0u64; 512]))));
        Books {
            // SAFETY: there is no device.
            ledger: unsafe { Ledger::new(memory(), 0) }.unwrap(),
            gids: &mut [],
            places: vec![None; places].leak(),
        }
    }

    #[test]
    fn places_do_not_overlap_and_are_given_again() {
        let mut books = books(8);
        let area = CmbArea { offset: 1 << 16, len: 4 * PAGE };
        let take = |books: &mut Books, len| books.place(area, len).map(|place| place.offset - (1 << 16));
        assert_eq!(take(&mut books, PAGE), Some(0));
        assert_eq!(take(&mut books, 2 * PAGE), Some(PAGE));
        assert_eq!(take(&mut books, 2 * PAGE), None);
        assert_eq!(take(&mut books, PAGE), Some(3 * PAGE));
        books.vacate(CmbArea { offset: area.offset + PAGE, len: 2 * PAGE });
        assert_eq!([take(&mut books, PAGE), take(&mut books, PAGE)], [Some(PAGE), Some(2 * PAGE)]);
        assert_eq!(take(&mut books, 1), None);
        assert_eq!(books.place(area, u64::MAX), None);
    }

    #[test]
    fn a_full_list_of_places_gives_none() {
        let mut books = books(1);
        let area = CmbArea { offset: 0, len: 1 << 20 };
        assert!(books.place(area, 1).is_some() && books.place(area, 1).is_none());
    }
}
