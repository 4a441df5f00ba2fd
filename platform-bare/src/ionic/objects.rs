//! Numbers of objects, and what refers to what: the device does not keep count.

use directverbs::ionic::devcmd::RdmaIdentity;

use super::error::Cause;
use super::session::ADMIN_CQ;
use crate::ids::IdPool;

/// Words of a pool of queues, and of memory keys and address handles.
const QUEUE_WORDS: usize = 8;
const KEY_WORDS: usize = 32;
const PD_WORDS: usize = 4;
/// Numbers of each kind, at most.
const QUEUES: usize = 64 * QUEUE_WORDS;
const KEYS: usize = 64 * KEY_WORDS;
const PDS: usize = 64 * PD_WORDS;
/// Queue pairs 0 and 1 are those of management.
const FIRST_QP: u32 = 2;
/// Key 0 is reserved: it stands for all memory.
const FIRST_KEY: u32 = 1;
const FIRST_AH: u32 = 1;

/// Numbers of one kind, and how often others refer to each object.
#[derive(Debug)]
pub(super) struct Pool<const WORDS: usize, const OBJECTS: usize> {
    ids: IdPool<WORDS>,
    users: [u16; OBJECTS],
    count: u32,
}

impl<const WORDS: usize, const OBJECTS: usize> Pool<WORDS, OBJECTS> {
    fn new(first: u32, count: u32) -> Self {
        Self { ids: IdPool::new(first, count), users: [0; OBJECTS], count }
    }

    /// A number for a new object.
    pub fn take(&mut self) -> Result<u32, Cause> {
        self.ids.take().ok_or(Cause::Exhausted(self.count.min(OBJECTS as u32)))
    }

    /// The object is gone.
    pub fn give(&mut self, id: u32) {
        self.ids.give(id);
    }

    /// Another object refers to it.
    pub fn refer(&mut self, id: u32) {
        if let Some(users) = self.users.get_mut(id as usize) {
            *users = users.saturating_add(1);
        }
    }

    /// Another object does not refer to it any more.
    pub fn unrefer(&mut self, id: u32) {
        if let Some(users) = self.users.get_mut(id as usize) {
            *users = users.saturating_sub(1);
        }
    }

    /// The object is there, and nothing refers to it.
    pub fn check_unused(&self, id: u32) -> Result<(), Cause> {
        self.check(id)?;
        match self.users.get(id as usize) {
            Some(0) => Ok(()),
            Some(users) => Err(Cause::InUse((*users).into())),
            None => Err(Cause::NoSuch),
        }
    }

    /// The object is there.
    pub fn check(&self, id: u32) -> Result<(), Cause> {
        if self.ids.is_given(id) { Ok(()) } else { Err(Cause::NoSuch) }
    }
}

/// All numbers.
#[derive(Debug)]
pub(super) struct Objects {
    pub pds: Pool<PD_WORDS, PDS>,
    pub cqs: Pool<QUEUE_WORDS, QUEUES>,
    qps: [IdPool<QUEUE_WORDS>; 2],
    pub keys: Pool<KEY_WORDS, KEYS>,
    pub ahs: Pool<KEY_WORDS, KEYS>,
    /// Protection domain of each key and address handle.
    key_pds: [u16; KEYS],
    ah_pds: [u16; KEYS],
    /// Low byte of the next key, so that an old key does not open a new region.
    tag: u8,
    udma_shift: u8,
    pipelines: u8,
    /// Pipeline of the next queue pair.
    next: u8,
}

impl Objects {
    pub fn new(identity: &RdmaIdentity, pipelines: u8) -> Self {
        // Each pipeline has half of the numbers, also where only one is used.
        let half = |count: u32| count / 2;
        let qps = identity.send.count.min(identity.recv.count);
        Self {
            pds: Pool::new(0, PDS as u32),
            cqs: Pool::new(ADMIN_CQ + 1, half(identity.completion.count)),
            qps: [(); 2].map(|()| IdPool::new(FIRST_QP, half(qps))),
            keys: Pool::new(FIRST_KEY, identity.regions),
            ahs: Pool::new(FIRST_AH, identity.address_handles),
            key_pds: [0; KEYS],
            ah_pds: [0; KEYS],
            tag: 0,
            udma_shift: identity.udma_shift,
            pipelines,
            next: 0,
        }
    }

    /// The number of the `nth` queue on pipeline `udma`: groups of 2^`udma_shift` numbers take turns.
    pub const fn number(&self, nth: u32, udma: u8) -> u32 {
        let low = nth & ((1 << self.udma_shift) - 1);
        (nth >> self.udma_shift) << (self.udma_shift + 1) | (udma as u32) << self.udma_shift | low
    }

    /// A number for a queue pair: its pipeline, and which one it is there. The pipelines take turns.
    pub fn take_qp(&mut self) -> Result<(u8, u32), Cause> {
        for turn in 0..self.pipelines {
            let udma = (self.next + turn) % self.pipelines.max(1);
            if let Some(nth) = self.qps.get_mut(usize::from(udma)).and_then(IdPool::take) {
                self.next = (udma + 1) % self.pipelines.max(1);
                return Ok((udma, nth));
            }
        }
        Err(Cause::Exhausted(QUEUES as u32))
    }

    pub fn give_qp(&mut self, udma: u8, nth: u32) {
        if let Some(pool) = self.qps.get_mut(usize::from(udma)) {
            pool.give(nth);
        }
    }

    /// A key for a region or window of protection domain `pd`.
    pub fn take_key(&mut self, pd: u32) -> Result<u32, Cause> {
        let index = self.keys.take()?;
        if let Some(of) = self.key_pds.get_mut(index as usize) {
            *of = pd as u16;
        }
        self.pds.refer(pd);
        self.tag = self.tag.wrapping_add(1);
        Ok(index << 8 | u32::from(self.tag))
    }

    /// A region or window is gone.
    pub fn give_key(&mut self, key: u32) {
        let index = key >> 8;
        self.keys.give(index);
        self.pds.unrefer(self.key_pds.get(index as usize).copied().unwrap_or_default().into());
    }

    /// A number for an address handle of protection domain `pd`.
    pub fn take_ah(&mut self, pd: u32) -> Result<u32, Cause> {
        let id = self.ahs.take()?;
        if let Some(of) = self.ah_pds.get_mut(id as usize) {
            *of = pd as u16;
        }
        self.pds.refer(pd);
        Ok(id)
    }

    /// An address handle is gone.
    pub fn give_ah(&mut self, id: u32) {
        self.ahs.give(id);
        self.pds.unrefer(self.ah_pds.get(id as usize).copied().unwrap_or_default().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use directverbs::ionic::devcmd::{LifIdentity, LogicalQtype};

    fn objects() -> Objects {
        let queues =
            |qtype, count: u32| LogicalQtype { qtype, qid_count: count.into(), ..LogicalQtype::ZERO };
        let lif = LifIdentity {
            capabilities: 3.into(),
            rdma_version: 2,
            admin_opcodes: 19,
            npts_per_lif: 64.into(),
            nmrs_per_lif: 8.into(),
            nahs_per_lif: 8.into(),
            max_stride: 9,
            udma_shift: 1,
            aq_qtype: queues(2, 1),
            sq_qtype: queues(3, 12),
            rq_qtype: queues(4, 12),
            cq_qtype: queues(5, 12),
            eq_qtype: queues(6, 1),
            page_size_cap: 0x1000.into(),
            ..LifIdentity::ZERO
        };
        Objects::new(&RdmaIdentity::new(&lif).unwrap(), 2)
    }

    #[test]
    fn groups_of_numbers_take_turns_between_pipelines() {
        let objects = objects();
        let numbers = |udma| [0, 1, 2, 3, 4, 5].map(|nth| objects.number(nth, udma));
        assert_eq!((numbers(0), numbers(1)), ([0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]));
    }

    #[test]
    fn queue_pairs_take_turns_until_all_numbers_are_given() {
        let mut objects = objects();
        let taken: std::vec::Vec<_> = (0..8).map(|_| objects.take_qp().unwrap()).collect();
        assert_eq!(taken[..4], [(0, 2), (1, 2), (0, 3), (1, 3)]);
        assert!(matches!(objects.take_qp(), Err(Cause::Exhausted(_))));
        objects.give_qp(1, 4);
        assert_eq!(objects.take_qp(), Ok((1, 4)));
    }

    #[test]
    fn an_object_that_others_refer_to_is_in_use() {
        let mut objects = objects();
        let pd = objects.pds.take().unwrap();
        let key = objects.take_key(pd).unwrap();
        let ah = objects.take_ah(pd).unwrap();
        assert_eq!(objects.pds.check_unused(pd), Err(Cause::InUse(2)));
        objects.give_key(key);
        objects.give_ah(ah);
        assert_eq!(objects.pds.check_unused(pd), Ok(()));
        assert_eq!(objects.pds.check_unused(pd + 1), Err(Cause::NoSuch));
        assert_ne!(objects.take_key(pd).map(|key| key & 0xff), Ok(key & 0xff));
    }
}
