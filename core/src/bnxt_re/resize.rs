//! Resizing a completion queue.
//!
//! 1. [`CompletionQueue::begin_resize`] with new memory, then the device's resize command.
//! 2. The device writes the rest of the old ring and closes it with a cut-off CQE. Polling goes on as ever; at the
//!    cut-off it changes over to the new memory and acknowledges.
//! 3. [`CompletionQueue::finish_resize`] polls until that has happened, a bounded number of times.
//! 4. [`CompletionQueue::take_old_memory`] gives the old memory back.

use super::cq::{CompletionQueue, CqeRing};
use super::plan::CqPlan;
use super::qp::{AsQueuePair, AsSharedReceiveQueue};
use crate::queue::{Doorbell, RingMemory};
use crate::verbs::{Endpoints, MemoryError, Pollable, WorkCompletion};

/// Memory of a resize that is under way.
#[derive(Debug, Default)]
pub(super) struct Resize<'m> {
    new: Option<(CqeRing<'m>, CqPlan)>,
    old: Option<RingMemory<'m>>,
}

impl<'m> Resize<'m> {
    pub fn take_new(&mut self) -> Option<(CqeRing<'m>, CqPlan)> {
        self.new.take()
    }

    pub fn put_old(&mut self, memory: RingMemory<'m>) {
        self.old = Some(memory);
    }
}

/// How far [`CompletionQueue::finish_resize`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResizeProgress {
    /// Completions in `out`.
    pub completions: usize,
    /// The queue works on its new memory.
    pub done: bool,
}

/// The cut-off CQE did not come in time. The queue still works on its old memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device did not cut off the old completion queue; {completions} completions were found")]
pub struct ResizeTimeout {
    /// Completions in `out`; they are valid.
    pub completions: usize,
}

impl<'m> CompletionQueue<'m> {
    /// Makes new memory ready; call it before the device's resize command.
    ///
    /// # Errors
    /// Memory that does not fit the plan or overlaps the old, or a resize under way.
    pub fn begin_resize(&mut self, memory: RingMemory<'m>, plan: &CqPlan) -> Result<(), MemoryError> {
        if self.resize.new.is_some() {
            return Err(MemoryError::Mismatch(text!("the completion queue is being resized already")));
        }
        memory.check(text!("completion queue"), plan.bytes as usize, 4096)?;
        if memory.overlaps(self.memory()) {
            return Err(MemoryError::Overlap(text!("new completion queue"), text!("old completion queue")));
        }
        self.resize = Resize { new: Some((CqeRing::new(memory, plan.entries)?, *plan)), old: None };
        Ok(())
    }

    /// Gives up a resize that the device refused; the new memory comes back.
    pub fn cancel_resize(&mut self) -> Option<RingMemory<'m>> {
        self.resize.take_new().map(|(new, _)| new.into_memory())
    }

    /// The old memory, once the device no longer writes to it.
    pub fn take_old_memory(&mut self) -> Option<RingMemory<'m>> {
        self.resize.old.take()
    }

    /// Polls until the cut-off came, `out` is full, or `tries` polls in a row found nothing; `pause` is called after
    /// each of those. Completions found are in `out`, in order.
    ///
    /// # Errors
    /// Nothing came in time. The fault of a CQE that makes no sense is kept for the next [`CompletionQueue::poll`].
    pub fn finish_resize<'q, Q, R, E>(
        &mut self,
        endpoints: &mut E,
        doorbell: &impl Doorbell,
        out: &mut [WorkCompletion],
        tries: u32,
        mut pause: impl FnMut(),
    ) -> Result<ResizeProgress, ResizeTimeout>
    where
        Q: AsQueuePair<'q> + Pollable,
        R: AsSharedReceiveQueue<'q>,
        E: Endpoints<Q, R>,
    {
        let (mut completions, mut left, mut fault) = (0, tries, None);
        let result = loop {
            if self.resize.new.is_none() {
                break Ok(ResizeProgress { completions, done: true });
            }
            let rest = out.get_mut(completions..).unwrap_or(&mut []);
            if rest.is_empty() {
                break Ok(ResizeProgress { completions, done: false });
            }
            match self.poll(endpoints, doorbell, rest) {
                Ok(found) if found != 0 => {
                    completions += found;
                    left = tries;
                    continue;
                }
                Ok(_) => {}
                Err(found) => fault = fault.or(Some(found)),
            }
            if self.resize.new.is_some() {
                if left == 0 {
                    break Err(ResizeTimeout { completions });
                }
                left -= 1;
                pause();
            }
        };
        self.pending = self.pending.take().or(fault);
        result
    }
}
