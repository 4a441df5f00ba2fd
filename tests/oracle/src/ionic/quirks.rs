//! What the provider remembers of a queue pair where that is not what it ought to be.

use directverbs::verbs::{SendOp, WcOpcode};
use std::collections::HashMap;

use crate::case::Send;

/// Records of receives in the provider: a free list, last in, first out.
#[derive(Clone, Debug)]
struct Receives {
    free: Vec<u16>,
    /// Record of each entry of the ring.
    record: Vec<u16>,
    posted: Vec<bool>,
    /// Entry of each receive, by its number.
    numbers: HashMap<u64, u16>,
}

impl Receives {
    fn new(mask: u16) -> Self {
        let depth = usize::from(mask) + 1;
        Self {
            free: (0..=mask).rev().collect(),
            record: vec![0; depth],
            posted: vec![false; depth],
            numbers: HashMap::new(),
        }
    }
}

/// The provider's own view of a queue pair.
#[derive(Clone, Debug)]
pub(super) struct Quirks {
    /// Length that it remembers for each entry of the send ring.
    lengths: Vec<u32>,
    /// Length that it will tell for an atomic, by the atomic's number.
    atomics: HashMap<u64, u32>,
    receives: Receives,
    /// Its color is not that of the pass.
    pub color_off: bool,
    /// Message numbers that it has given to requests that were given up.
    pub messages_off: u32,
    /// A local operation was posted, and since then message numbers are not ring indices.
    pub local: bool,
}

impl Quirks {
    /// Those of a new queue pair.
    pub fn new(sq_mask: u16, rq_mask: u16) -> Self {
        Self {
            lengths: vec![0; usize::from(sq_mask) + 1],
            atomics: HashMap::new(),
            receives: Receives::new(rq_mask),
            color_off: false,
            messages_off: 0,
            local: false,
        }
    }

    /// What is left after a reset. `color` is the color of the next request before it.
    pub fn reset(&mut self, color: bool) {
        let rq_mask = self.receives.record.len().wrapping_sub(1) as u16;
        let color_off = self.color_off == color;
        let lengths = std::mem::take(&mut self.lengths);
        *self = Self { lengths, color_off, ..Self::new(0, rq_mask) };
    }

    /// A request was posted at `index`.
    pub fn sent(&mut self, index: u16, request: &Send) {
        let length = &mut self.lengths[usize::from(index)];
        match request.op {
            SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => {
                self.atomics.insert(request.wr_id, *length);
            }
            SendOp::LocalInv(_) | SendOp::BindMw(_) => self.local = true,
            _ => *length = request.length() as u32,
        }
    }

    /// The request at `index` fails with the device's `code`.
    pub fn failed(&mut self, index: u16, code: u32) {
        self.lengths[usize::from(index)] = code;
    }

    /// The length told for the completion of `wr_id`, if it is one of an atomic.
    pub fn atomic_length(&self, wr_id: u64, opcode: WcOpcode) -> Option<u32> {
        matches!(opcode, WcOpcode::CompSwap | WcOpcode::FetchAdd)
            .then(|| self.atomics.get(&wr_id).copied())
            .flatten()
    }

    /// The receive `wr_id` was posted at `index`.
    pub fn posted(&mut self, index: u16, wr_id: u64) {
        let receives = &mut self.receives;
        receives.numbers.insert(wr_id, index);
        if let Some(record) = receives.free.pop() {
            receives.record[usize::from(index)] = record;
            receives.posted[usize::from(record)] = true;
        }
    }

    /// Whether `wr_id` is a receive.
    pub fn is_receive(&self, wr_id: u64) -> bool {
        self.receives.numbers.contains_key(&wr_id)
    }

    /// `wr_id` was reported; nothing happens unless it is a receive.
    pub fn received(&mut self, wr_id: u64) {
        let receives = &mut self.receives;
        let Some(index) = receives.numbers.remove(&wr_id) else { return };
        let record = receives.record[usize::from(index)];
        receives.posted[usize::from(record)] = false;
        receives.free.push(record);
    }

    /// A flush that looks up records by entries finds others than those of the receives outstanding, or none.
    pub fn flush_is_wrong(&self) -> bool {
        let receives = &self.receives;
        receives.numbers.values().any(|index| receives.record[usize::from(*index)] != *index)
    }

    /// Another CQE for `index`, which has completed, finds another receive that is outstanding.
    pub fn taken_over(&self, index: u16) -> bool {
        self.receives.posted[usize::from(self.receives.record[usize::from(index)])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_used_again_at_once() {
        let mut quirks = Quirks::new(7, 7);
        for index in 0..3 {
            quirks.posted(index, 100 + u64::from(index));
        }
        assert!(!quirks.flush_is_wrong());
        quirks.received(100);
        assert!(!quirks.taken_over(0) && !quirks.is_receive(100) && quirks.is_receive(101));
        quirks.posted(3, 103);
        assert!(quirks.flush_is_wrong(), "record 0, not 3");
        assert!(quirks.taken_over(0));
    }

    #[test]
    fn a_reset_in_an_odd_pass_leaves_the_color_off() {
        let mut quirks = Quirks::new(7, 7);
        quirks.reset(true);
        assert!(!quirks.color_off);
        quirks.reset(false);
        assert!(quirks.color_off);
        quirks.reset(true);
        assert!(quirks.color_off, "its color is 0, ours was 1");
        quirks.reset(false);
        assert!(!quirks.color_off, "its color was 1, ours 0");
    }
}
