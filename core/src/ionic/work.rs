//! The ring of WQEs that a send or receive queue is.

use super::cmb::{Cmb, CmbGrant, Publish};
use super::doorbell::{QueueDoorbell, RingIdx};
use super::plan::WorkQueuePlan;
use super::wqe::{self, WQE_MIN, WqeFlags};
use crate::queue::{DeviceMemory, Doorbell, EntryRing, RecordRing, RingMemory, Store};
use crate::verbs::{MemoryError, PostError, Text};

/// Longest message: 2 GiB.
pub const MAX_MESSAGE: u64 = MAX_LENGTH as u64;

/// Longest message, as an SGE has it.
pub(super) const MAX_LENGTH: u32 = 1 << 31;

/// Words of the shortest WQE.
pub(super) const WORDS: usize = WQE_MIN / 8;

/// Memory of a send or receive queue, as its plan sizes it.
#[derive(Debug)]
pub struct QueueMemory<'m, R, M> {
    /// The ring in host memory, page-aligned; also for a queue in controller memory.
    pub ring: RingMemory<'m>,
    /// Records of bookkeeping.
    pub records: R,
    /// The ring in controller memory, if it was granted.
    pub cmb: Option<Cmb<M>>,
}

/// Two big-endian 32-bit words that follow each other, as one little-endian 64-bit word.
#[inline(always)]
pub(super) const fn be_pair(first: u32, second: u32) -> u64 {
    ((first as u64) << 32 | second as u64).swap_bytes()
}

/// First half of the second word of a WQE: all of [`wqe::BaseHeader`] but the index and the key, as a little-endian word.
#[inline(always)]
pub(super) const fn head(op: u8, num_sge_key: u8, flags: WqeFlags) -> u32 {
    let [high, low] = flags.into_bits().to_be_bytes();
    u32::from_le_bytes([op, num_sge_key, high, low])
}

/// The second word of a WQE: [`head`], and the immediate data or key.
#[inline(always)]
pub(super) const fn header(head: u32, imm_data_key: u32) -> u64 {
    head as u64 | (imm_data_key.swap_bytes() as u64) << 32
}

/// Whether a queue flushes its requests instead of waiting for them to complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flush {
    /// It does not.
    #[default]
    No,
    /// The device has told that it does. What has completed is reported first.
    Told,
    /// It does.
    Yes,
}

/// A ring of WQEs that the host produces. Positions count on without wrapping; a WQE is at its position modulo the depth.
#[derive(Debug)]
pub(super) struct WorkRing<'m, T: Copy + 'static, S: Store, M> {
    pub wqes: RecordRing<'m, T, S, WORDS>,
    pub doorbell: QueueDoorbell,
    /// The ring in controller memory. It stands alone so that there is no code for it where there can be none.
    controller: Option<M>,
    grant: CmbGrant,
    /// Words 7 are express doorbells: WQEs are 64 bytes long and have them.
    pub express_word: bool,
    /// Its requests may be of the plainest form.
    plain: bool,
    /// The queue pair's state allows posting.
    open: bool,
    /// Position up to which requests of the plainest form are posted without further question: the queue takes them, there
    /// is room, and the lap does not end. [`WorkRing::look_ahead`] sets it, and whatever makes it untrue sets it to `prod`.
    stop: u32,
    pub spec: u32,
    pub max_sge: u32,
    pub max_inline: u32,
    pub prod: u32,
    pub cons: u32,
    flush: Flush,
    /// Counts the reasons to flush.
    pub flush_seq: u32,
}

impl<'m, T: Copy + Default + 'static, S: Store, M: DeviceMemory> WorkRing<'m, T, S, M> {
    /// Checks the memory; nothing is written. Requests of the plainest form are allowed if `connected`.
    pub fn new(
        [what, what_records]: [Text; 2],
        plan: &WorkQueuePlan,
        connected: bool,
        doorbell: QueueDoorbell,
        memory: QueueMemory<'m, S::Slice<T>, M>,
    ) -> Result<Self, MemoryError> {
        let QueueMemory { ring, records, cmb } = memory;
        let wqes = EntryRing::new(what, ring, plan.ring.depth_log2, plan.ring.stride_log2)?;
        let wqes = RecordRing::new(wqes, what_records, records)?;
        let grant = cmb.as_ref().map_or(CmbGrant::Host, Cmb::grant);
        let express = grant.express();
        if express && !plan.cmb.express {
            return Err(MemoryError::Mismatch(text!("express doorbells that the plan has no room for")));
        }
        let express_word = express && plan.ring.stride() == WQE_MIN as u32;
        Ok(Self {
            wqes,
            doorbell,
            controller: cmb.map(|cmb| cmb.memory),
            grant,
            express_word,
            plain: connected && !express_word,
            open: true,
            stop: 0,
            spec: plan.spec.into(),
            max_sge: plan.max_sge(express),
            max_inline: plan.max_inline(express),
            prod: 0,
            cons: 0,
            flush: Flush::No,
            flush_seq: 0,
        })
    }

    /// What was granted to it.
    pub const fn grant(&self) -> CmbGrant {
        self.grant
    }

    /// Makes it as if new. The reasons to flush go on counting.
    pub fn clear(&mut self) {
        self.wqes.bytes().zero();
        self.wqes.records_mut().fill(T::default());
        if self.grant().express() {
            for position in 0..=self.wqes.mask() {
                let word = self.express(position);
                let end = self.wqes.offset(position) + self.wqes.stride();
                self.wqes.bytes().store_release(end.wrapping_sub(wqe::EXPRESS_BYTES), word.to_le());
            }
        }
        (self.prod, self.cons) = (0, 0);
        self.set_flush(Flush::No);
    }

    /// Sets where it is, from indices.
    pub fn set_indices(&mut self, prod: u16, cons: u16) {
        let used = u32::from(prod.wrapping_sub(cons)) & self.wqes.mask();
        self.cons = cons.into();
        self.go_to(self.cons + used);
    }
}

impl<T: Copy + 'static, S: Store, M> WorkRing<'_, T, S, M> {
    /// Tells the device of the last `count` WQEs before the producer.
    #[inline(always)]
    pub fn publish<D: Doorbell>(&self, count: u32, doorbell: &D)
    where
        M: DeviceMemory,
    {
        let (start, end) = (self.prod.wrapping_sub(count), self.prod);
        let publish = Publish { ring: &self.wqes, doorbell: self.doorbell };
        match &self.controller {
            None => publish.host(end, doorbell),
            Some(memory) => publish.controller(memory, self.grant, start, end, doorbell),
        }
    }

    /// Whether requests are flushed.
    #[inline(always)]
    pub const fn flush(&self) -> Flush {
        self.flush
    }

    pub fn set_flush(&mut self, flush: Flush) {
        self.flush = flush;
        self.stop = self.prod;
    }

    /// The queue pair's state allows posting, or does not.
    pub fn set_open(&mut self, open: bool) {
        self.open = open;
        self.stop = self.prod;
    }

    /// Moves the producer.
    pub fn go_to(&mut self, position: u32) {
        self.prod = position;
        self.stop = position;
    }

    /// Requests from the consumer up to `position`.
    #[inline(always)]
    pub const fn used(&self, position: u32) -> u32 {
        position.wrapping_sub(self.cons)
    }

    /// Whether the next request may be of the plainest form. If not, [`WorkRing::look_ahead`] may find that it may.
    #[inline(always)]
    pub const fn is_plain(&self) -> bool {
        self.prod != self.stop
    }

    /// Finds out how many of the plainest requests may follow, up to the end of the lap.
    #[cold]
    #[inline(never)]
    pub fn look_ahead(&mut self) {
        let takes = self.plain && self.open && self.flush != Flush::Yes;
        let free = if takes { self.wqes.mask().saturating_sub(self.used(self.prod)) } else { 0 };
        let lap = self.wqes.mask().wrapping_sub(self.wqes.index(self.prod)).wrapping_add(1);
        self.stop = self.prod.wrapping_add(free.min(lap));
    }

    /// Goes on behind a request of any form.
    #[inline(always)]
    pub const fn go_on(&mut self) {
        let stopped = !self.is_plain();
        self.prod = self.prod.wrapping_add(1);
        if stopped {
            self.stop = self.prod;
        }
    }

    /// Whether a request of any form may go to `position`; one that is flushed at once is a reason to look for flushes.
    pub fn room(&mut self, position: u32) -> Result<(), PostError> {
        if self.used(position) >= self.wqes.mask() {
            return Err(PostError::QueueFull { needed: 1, free: 0 });
        }
        if self.flush == Flush::Yes {
            self.flush_seq = self.flush_seq.wrapping_add(1);
        }
        Ok(())
    }

    /// The doorbell that tells the producer.
    #[inline(always)]
    pub fn index_doorbell(&self) -> u64 {
        self.doorbell.index(RingIdx(self.wqes.index(self.prod) as u16))
    }

    fn express(&self, position: u32) -> u64 {
        self.doorbell.express(RingIdx(self.wqes.index(position) as u16), self.wqes.mask() as u16)
    }

    /// Words 4 to 7 as they are stored: with the express doorbell in place, if the WQE at `position` has it there.
    #[inline(always)]
    pub fn with_express(&self, position: u32, words: [u64; 4]) -> [u64; 4] {
        let [a, b, c, d] = words;
        [a, b, c, if self.express_word { self.express(position) } else { d }]
    }

    /// Zeroes what an earlier WQE of `before` bytes has left behind the `extent` bytes of the one at `position`.
    #[inline(always)]
    pub fn zero_tail(&mut self, position: u32, extent: u32, before: u32) {
        if before > extent {
            self.zero_range(position, extent, before);
        }
    }

    #[cold]
    #[inline(never)]
    fn zero_range(&mut self, position: u32, extent: u32, before: u32) {
        let offset = self.wqes.offset(position).wrapping_add(extent as usize);
        self.wqes.bytes().store_zeros(offset, before.saturating_sub(extent) as usize);
    }
}
