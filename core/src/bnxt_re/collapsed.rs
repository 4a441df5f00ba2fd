//! A collapsed completion queue: the device overwrites one CQE again and again, and its consumer index tells how far
//! the send queue has come. Each queue needs one of its own.

use super::complete::Cqe;
use super::cqe::{CQE_BYTES, CqeType, ReqStatus};
use crate::queue::{Doorbell, RingMemory};
use crate::verbs::{MemoryError, WcStatus};

/// Reads of a CQE that changes meanwhile, until the next poll tries again.
const TRIES: u32 = 8;

/// The one CQE of a send queue.
#[derive(Debug)]
pub struct CollapsedCq<'m> {
    memory: RingMemory<'m>,
    index: u16,
}

/// What the CQE says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests that completed since the last look.
    pub completed: u16,
    /// Status of the last one.
    pub status: WcStatus,
    /// The device's own code.
    pub vendor_err: u8,
}

impl<'m> CollapsedCq<'m> {
    /// Takes the memory of one CQE and fills it with zeros.
    ///
    /// # Errors
    /// Too short, or not aligned.
    pub fn new(memory: RingMemory<'m>) -> Result<Self, MemoryError> {
        let mut memory = memory;
        memory.check(text!("collapsed CQE"), CQE_BYTES as usize, CQE_BYTES as usize)?;
        memory.zero();
        Ok(Self { memory, index: 0 })
    }

    /// Consumer index seen last, modulo 2^16.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// Looks at the CQE. Index and status come from one state of it: if it changes during the look, the look begins
    /// again. An index behind the one seen last is an old state, and no progress.
    pub fn poll(&mut self, doorbell: &impl Doorbell) -> Option<Progress> {
        for _ in 0..TRIES {
            let entry = self.memory.entry::<4>(0)?;
            let before = entry.load();
            doorbell.from_device();
            let after = entry.load();
            if before == after {
                return self.advance(&Cqe(after));
            }
            doorbell.from_device();
        }
        None
    }

    fn advance(&mut self, cqe: &Cqe) -> Option<Progress> {
        // The first phase is 1; memory without a CQE holds 0.
        if !cqe.phase() || cqe.cqe_type() != CqeType::REQ {
            return None;
        }
        let index = cqe.word(1) as u16;
        let completed = index.wrapping_sub(self.index);
        let status = ReqStatus(cqe.status());
        if completed >= 1 << 15 || completed == 0 && status == ReqStatus::OK {
            return None;
        }
        self.index = index;
        Some(Progress { completed, status: status.status(), vendor_err: status.0 })
    }
}
