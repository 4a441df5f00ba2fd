//! The collapsed completion queue: the device writes one CQE over and over, and its message number tells how far the
//! send queue has come. For queues that are polled for progress rather than for completions. Such a queue serves one
//! send queue, and is created as what it is: a device that writes a ring into it stalls.

use super::cqe::{CQE_BYTES, CqeType, QTF_OFFSET, QidTypeFlags, SendCqe, Status};
use crate::queue::{Doorbell, RingMemory, is_before};
use crate::verbs::{CqFault, CqId, FaultKind, MemoryError, QpId};

const MSN_OFFSET: usize = 4;
const MSN_BITS: u32 = 24;
const MSN_MASK: u32 = (1 << MSN_BITS) - 1;

/// Whether the message before `wanted` is still outstanding when the device has acknowledged those before `msn`. Both
/// have 24 bits and wrap.
#[inline]
pub const fn is_pending(msn: u32, wanted: u32) -> bool {
    is_before::<MSN_BITS>(msn, wanted)
}

/// How far a send queue has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// All messages before this one have completed; 24 bits.
    pub completed: u32,
    /// The last of them failed.
    pub error: Option<Status>,
}

/// A collapsed completion queue.
#[derive(Debug)]
pub struct CollapsedQueue<'m> {
    memory: RingMemory<'m>,
    id: CqId,
    qp: QpId,
    progress: Progress,
}

impl<'m> CollapsedQueue<'m> {
    /// A queue for the send queue of `qp`. Its memory is zeroed.
    ///
    /// # Errors
    /// Memory shorter than a CQE or not page-aligned.
    pub fn new(id: CqId, qp: QpId, mut memory: RingMemory<'m>) -> Result<Self, MemoryError> {
        memory.check(text!("collapsed completion queue"), CQE_BYTES, 4096)?;
        memory.zero();
        Ok(Self { memory, id, qp, progress: Progress::default() })
    }

    /// Looks at the CQE. Progress never goes back.
    ///
    /// # Errors
    /// A CQE that makes no sense; progress stays.
    pub fn poll<D: Doorbell>(&mut self, doorbell: &D) -> Result<Progress, CqFault> {
        // The device may write meanwhile: number and status count only if the number was the same before and after.
        for _ in 0..4 {
            let Some(before) = self.memory.load_valid(MSN_OFFSET) else { break };
            doorbell.from_device();
            let Some(bytes) = self.memory.load::<[u8; CQE_BYTES]>(0) else { break };
            doorbell.from_device();
            let Some(qtf) = self.memory.load_valid(QTF_OFFSET) else { break };
            let Some(after) = self.memory.load_valid(MSN_OFFSET) else { break };
            let cqe: SendCqe = zerocopy::transmute!(bytes);
            let same = before == after && cqe.msg_msn.get() == u32::from_be(before);
            if same && cqe.qid_type_flags.get() == u32::from_be(qtf) {
                return self.take(&cqe).map_err(|kind| CqFault { cq: self.id, entry: 0, kind, cqe: bytes });
            }
        }
        Ok(self.progress)
    }

    fn take(&mut self, cqe: &SendCqe) -> Result<Progress, FaultKind> {
        if *cqe == SendCqe::ZERO {
            return Ok(self.progress);
        }
        let qtf = QidTypeFlags::from_bits(cqe.qid_type_flags.get());
        match CqeType(qtf.cqe_type()) {
            CqeType::SEND_MSN => {}
            CqeType(known @ 0..=4) => return Err(FaultKind::Unexpected(known)),
            CqeType(other) => return Err(FaultKind::UnknownType(other)),
        }
        if qtf.qid() != self.qp.get() {
            return Err(FaultKind::UnknownQp(qtf.qid().into()));
        }
        let msn = cqe.msg_msn.get() & MSN_MASK;
        if is_pending(self.progress.completed, msn) {
            let error = qtf.error().then(|| Status(cqe.status_length.get()));
            self.progress = Progress { completed: msn, error: self.progress.error.or(error) };
        }
        Ok(self.progress)
    }
}
