//! What objects a NIC has, and which of them refer to which.

use core::fmt;

use directverbs::queue::RingMemory;
use directverbs::text;
use directverbs::verbs::{MemoryError, MwType};

/// Objects that one can refer to: a queue pair has a protection domain, two completion queues and a shared receive queue.
const NEEDS: usize = 4;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Protection domain.
    ProtectionDomain,
    /// Registered memory.
    Region,
    /// Memory window.
    Window(MwType),
    /// Address handle.
    AddressHandle,
    /// Completion queue.
    CompletionQueue,
    /// Shared receive queue.
    SharedReceiveQueue,
    /// Queue pair.
    QueuePair,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProtectionDomain => "protection domain",
            Self::Region => "memory region",
            Self::Window(_) => "memory window",
            Self::AddressHandle => "address handle",
            Self::CompletionQueue => "completion queue",
            Self::SharedReceiveQueue => "shared receive queue",
            Self::QueuePair => "queue pair",
        })
    }
}

/// How many objects there are of each kind: `u16::MAX` stands for all that is more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Protection domains.
    pub pds: u16,
    /// Memory regions.
    pub regions: u16,
    /// Memory windows.
    pub windows: u16,
    /// Address handles.
    pub ahs: u16,
    /// Completion queues.
    pub cqs: u16,
    /// Shared receive queues.
    pub srqs: u16,
    /// Queue pairs.
    pub qps: u16,
}

impl Objects {
    /// How many in all.
    pub fn total(&self) -> u32 {
        let Self { pds, regions, windows, ahs, cqs, srqs, qps } = *self;
        [pds, regions, windows, ahs, cqs, srqs, qps].into_iter().map(u32::from).sum()
    }

    const fn of(&mut self, kind: Kind) -> &mut u16 {
        match kind {
            Kind::ProtectionDomain => &mut self.pds,
            Kind::Region => &mut self.regions,
            Kind::Window(_) => &mut self.windows,
            Kind::AddressHandle => &mut self.ahs,
            Kind::CompletionQueue => &mut self.cqs,
            Kind::SharedReceiveQueue => &mut self.srqs,
            Kind::QueuePair => &mut self.qps,
        }
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} objects: {} protection domains, {} regions, {} windows, {} address handles, {} completion queues, {} shared \
             receive queues, {} queue pairs",
            self.total(),
            self.pds,
            self.regions,
            self.windows,
            self.ahs,
            self.cqs,
            self.srqs,
            self.qps
        )
    }
}

/// An object, as others refer to it: its kind, and its number among those of the kind.
pub(crate) type Object = (Kind, u32);

/// A place of the ledger: an object, and what it refers to.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    object: Option<Object>,
    needs: [Option<Object>; NEEDS],
}

/// The objects that there are.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: &'static mut [Entry],
}

impl Ledger {
    /// Bytes of memory that a ledger of `objects` takes.
    pub const fn bytes(objects: usize) -> usize {
        objects.saturating_mul(size_of::<Entry>())
    }

    /// An empty ledger of `objects`.
    ///
    /// # Errors
    /// The memory is too short, or not aligned.
    ///
    /// # Safety
    /// No device knows the memory.
    pub unsafe fn new(memory: RingMemory<'static>, objects: usize) -> Result<Self, MemoryError> {
        // SAFETY: as this function asks for.
        let entries = unsafe { memory.into_records(text!("ledger of objects"), objects) }?;
        Ok(Self { entries })
    }

    /// Whether another object can be added.
    pub fn has_room(&self) -> bool {
        self.entries.iter().any(|entry| entry.object.is_none())
    }

    /// Whether there is such an object.
    pub fn has(&self, object: Object) -> bool {
        self.entries.iter().any(|entry| entry.object == Some(object))
    }

    /// The kind of the window with this number.
    pub fn window(&self, id: u32) -> Option<MwType> {
        self.entries.iter().find_map(|entry| match entry.object {
            Some((Kind::Window(mw_type), known)) if known == id => Some(mw_type),
            _ => None,
        })
    }

    /// Adds an object that refers to `needs`; `false` if it is there already, or there is no room.
    pub fn add(&mut self, object: Object, needs: &[Object]) -> bool {
        if self.has(object) {
            return false;
        }
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.object.is_none()) else { return false };
        *entry = Entry { object: Some(object), ..Entry::default() };
        entry.needs.iter_mut().zip(needs).for_each(|(to, need)| *to = Some(*need));
        true
    }

    /// An object is gone.
    pub fn remove(&mut self, object: Object) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.object == Some(object)) {
            *entry = Entry::default();
        }
    }

    /// Objects that refer to this one.
    pub fn users(&self, object: Object) -> u32 {
        self.entries.iter().filter(|entry| entry.needs.contains(&Some(object))).count() as u32
    }

    /// All that there are.
    pub fn count(&self) -> Objects {
        let mut objects = Objects::default();
        for (kind, _) in self.entries.iter().filter_map(|entry| entry.object) {
            let count = objects.of(kind);
            *count = count.saturating_add(1);
        }
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::string::ToString;
    use std::vec;

    fn ledger(objects: usize) -> Ledger {
        let words = Box::leak(vec![0u64; Ledger::bytes(objects).div_ceil(8)].into_boxed_slice());
        let memory = RingMemory::new(zerocopy::IntoBytes::as_mut_bytes(words));
        // SAFETY: there is no device.
        unsafe { Ledger::new(memory, objects) }.unwrap()
    }

    #[test]
    fn an_object_is_in_use_while_others_refer_to_it() {
        let mut ledger = ledger(3);
        let (pd, cq, qp) = ((Kind::ProtectionDomain, 1), (Kind::CompletionQueue, 1), (Kind::QueuePair, 1));
        assert!(ledger.add(pd, &[]) && ledger.add(cq, &[]) && ledger.add(qp, &[pd, cq, cq]));
        assert_eq!((ledger.users(pd), ledger.users(cq), ledger.users(qp)), (1, 1, 0));
        assert!(!ledger.has_room() && !ledger.add((Kind::Region, 1), &[pd]), "it is full");
        assert_eq!(ledger.count(), Objects { pds: 1, cqs: 1, qps: 1, ..Objects::default() });
        ledger.remove(qp);
        assert!(ledger.has_room() && !ledger.has(qp));
        assert_eq!((ledger.users(pd), ledger.users(cq)), (0, 0));
        assert!(!ledger.add(cq, &[]), "it is there already");
    }

    #[test]
    fn a_window_is_found_by_its_number() {
        let mut ledger = ledger(2);
        assert!(ledger.add((Kind::Window(MwType::Type1), 0x100), &[]));
        assert_eq!((ledger.window(0x100), ledger.window(0x200)), (Some(MwType::Type1), None));
    }

    #[test]
    fn how_many_there_are_is_told_in_words() {
        let objects = Objects { cqs: 2, qps: 1, ..Objects::default() };
        assert_eq!(objects.total(), 3);
        let words = objects.to_string();
        assert!(words.starts_with("3 objects") && words.ends_with("1 queue pairs"), "{words}");
    }
}
