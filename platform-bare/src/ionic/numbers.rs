//! Numbers of objects: the host gives them, and the device does not keep count of what refers to what.

use core::ops::Range;
use directverbs::text;

use super::error::Cause;
use super::nic::Nic;
use super::session::ADMIN_CQ;
use crate::host::Host;
use crate::ledger::{Kind, Object};

/// Protection domains: the device takes any number, and keeps nothing of it.
const PDS: u32 = 1 << 16;
/// Queue pairs 0 and 1 are those of management.
const FIRST_QP: u32 = 2;
/// Key 0 is reserved: it stands for all memory.
const FIRST_KEY: u32 = 1;
const FIRST_AH: u32 = 1;

/// Where the search for a free number goes on, so that a number is not given again at once.
#[derive(Debug, Default)]
pub(super) struct Next {
    pd: u32,
    cq: u32,
    qp: [u32; 2],
    key: u32,
    ah: u32,
    /// Low byte of the next key, so that an old key does not open a new region.
    tag: u8,
    /// Pipeline of the next queue pair.
    turn: u8,
}

/// The number of the `nth` queue on pipeline `udma`: groups of 2^`udma_shift` numbers take turns.
pub(super) const fn number(udma_shift: u8, nth: u32, udma: u8) -> u32 {
    let low = nth & ((1 << udma_shift) - 1);
    (nth >> udma_shift) << (udma_shift + 1) | (udma as u32) << udma_shift | low
}

/// The first of `numbers` that is free, from `next` on and round; `next` goes on behind it.
fn first_free(numbers: Range<u32>, next: &mut u32, free: impl Fn(u32) -> bool) -> Result<u32, Cause> {
    let from = (*next).clamp(numbers.start, numbers.end);
    let found = (from..numbers.end).chain(numbers.start..from).find(|id| free(*id));
    let found = found.ok_or(Cause::Exhausted(numbers.len() as u32))?;
    *next = found + 1;
    Ok(found)
}

impl<H: Host> Nic<H> {
    /// The number of the `nth` queue on pipeline `udma`.
    pub(super) const fn number(&self, nth: u32, udma: u8) -> u32 {
        number(self.identity.udma_shift, nth, udma)
    }

    /// Whether an object has the number, or a queue pair keeps it for itself.
    fn is_taken(&self, kind: Kind, id: u32) -> bool {
        let Some(books) = &self.books else { return true };
        match kind {
            Kind::Region | Kind::Window(_) => {
                books.ledger.has((Kind::Region, id)) || books.ledger.window(id).is_some()
            }
            kind => books.ledger.has((kind, id)) || books.ledger.users((kind, id)) > 0,
        }
    }

    /// Whether one more object can be kept track of.
    ///
    /// # Errors
    /// No.
    pub(super) fn check_room(&self) -> Result<(), Cause> {
        let room = self.books.as_ref().is_some_and(|books| books.ledger.has_room());
        if room { Ok(()) } else { Err(Cause::Exhausted(self.session.link.config.objects as u32)) }
    }

    /// Whether nothing refers to an object, which is there.
    ///
    /// # Errors
    /// It is not there, or others refer to it.
    pub(super) fn check_unused(&self, object: Object) -> Result<(), Cause> {
        let ledger = &self.books.as_ref().ok_or(Cause::Failed)?.ledger;
        match ledger.users(object) {
            0 if ledger.has(object) => Ok(()),
            0 => Err(Cause::NoSuch),
            users => Err(Cause::InUse(users)),
        }
    }

    /// The device has a new object, which refers to `needs`. There is room for it, as was checked before.
    pub(super) fn created(&mut self, object: Object, needs: &[Object]) {
        let added = self.books.as_mut().is_some_and(|books| books.ledger.add(object, needs));
        debug_assert!(added, "there is room, and the number was free");
    }

    /// The device has forgotten an object.
    pub(super) fn destroyed(&mut self, object: Object) {
        if let Some(books) = &mut self.books {
            books.ledger.remove(object);
        }
    }

    pub(super) fn free_pd(&mut self) -> Result<u32, Cause> {
        let mut next = self.next.pd;
        let id = first_free(0..PDS, &mut next, |id| !self.is_taken(Kind::ProtectionDomain, id))?;
        self.next.pd = next;
        Ok(id)
    }

    /// Which one of each pipeline's completion queues is free.
    pub(super) fn free_cq(&mut self) -> Result<u32, Cause> {
        let mut next = self.next.cq;
        // Each pipeline has half of the numbers, also where only one is used.
        let numbers = ADMIN_CQ + 1..self.identity.completion.count / 2;
        let free = |nth| !self.is_taken(Kind::CompletionQueue, self.number(nth, 0));
        let nth = first_free(numbers, &mut next, free)?;
        self.next.cq = next;
        Ok(nth)
    }

    /// A queue pair's pipeline, which `allowed` has a bit for, and its number. The pipelines take turns.
    pub(super) fn free_qp(&mut self, allowed: u8) -> Result<(u8, u32), Cause> {
        let pipelines = self.caps.udma_count.max(1);
        let numbers = FIRST_QP..self.identity.send.count.min(self.identity.recv.count) / 2;
        let mut why = Cause::Unsupported(text!("the protection domain allows none of the pipelines in use"));
        for step in 0..pipelines {
            let udma = (self.next.turn + step) % pipelines;
            let Some(next) = self.next.qp.get(usize::from(udma)) else { continue };
            if allowed >> udma & 1 == 0 {
                continue;
            }
            let mut next = *next;
            let free = |nth| !self.is_taken(Kind::QueuePair, self.number(nth, udma));
            match first_free(numbers.clone(), &mut next, free) {
                Ok(nth) => {
                    if let Some(slot) = self.next.qp.get_mut(usize::from(udma)) {
                        *slot = next;
                    }
                    self.next.turn = (udma + 1) % pipelines;
                    return Ok((udma, self.number(nth, udma)));
                }
                Err(cause) => why = cause,
            }
        }
        Err(why)
    }

    /// A key for a region or window: its number, and a low byte that old keys do not have.
    pub(super) fn free_key(&mut self) -> Result<u32, Cause> {
        let mut next = self.next.key;
        let numbers = FIRST_KEY..self.identity.regions;
        let index = first_free(numbers, &mut next, |id| !self.is_taken(Kind::Region, id))?;
        self.next.key = next;
        self.next.tag = self.next.tag.wrapping_add(1);
        Ok(index << 8 | u32::from(self.next.tag))
    }

    pub(super) fn free_ah(&mut self) -> Result<u32, Cause> {
        let mut next = self.next.ah;
        let numbers = FIRST_AH..self.identity.address_handles;
        let id = first_free(numbers, &mut next, |id| !self.is_taken(Kind::AddressHandle, id))?;
        self.next.ah = next;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_numbers_take_turns_between_pipelines() {
        let numbers = |udma| [0, 1, 2, 3, 4, 5].map(|nth| number(1, nth, udma));
        assert_eq!((numbers(0), numbers(1)), ([0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]));
    }

    #[test]
    fn numbers_are_given_once_and_not_again_at_once() {
        let mut next = 0;
        let mut given: std::vec::Vec<u32> = std::vec![];
        for _ in 0..3 {
            given.push(first_free(2..5, &mut next, |id| !given.contains(&id)).unwrap());
        }
        assert_eq!(given, [2, 3, 4]);
        assert_eq!(first_free(2..5, &mut next, |_| false), Err(Cause::Exhausted(3)));
        assert_eq!(first_free(2..5, &mut next, |id| id != 2), Ok(3));
        assert_eq!(first_free(5..5, &mut next, |_| true), Err(Cause::Exhausted(0)));
    }
}
