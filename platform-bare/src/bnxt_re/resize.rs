//! Resizing a completion queue.

use directverbs::bnxt_re::pbl::{PAGE, Use};
use directverbs::bnxt_re::plan::CqPlan;
use directverbs::bnxt_re::rcfw::cq::CmdqResizeCq;
use directverbs::verbs::CompletionQueue as _;

use super::area::Areas;
use super::device::Device;
use super::error::Error;
use super::queue::CompletionQueue;
use crate::dma::DmaMemory;
use crate::host::Host;
use crate::ledger::Kind;

impl<H: Host> CompletionQueue<'_, H> {
    /// Frees the ring from before a resize, if the device has left it: polling has come to its end. `false` if it has not.
    pub fn reclaim(&mut self) -> bool {
        if let Some(ring) = self.queue.cq.take_old_memory() {
            drop(self.queue.reduce(&ring));
        }
        !self.queue.is_extended()
    }
}

impl<'n, H: Host> Device<'n, H> {
    /// Gives a completion queue room for `cqe` completions. Polling goes on as ever: it finds what is in the old ring first.
    /// [`CompletionQueue::reclaim`] frees that when it is empty.
    ///
    /// # Errors
    /// The same size, more than the device has, a resize that is under way, or the device refuses: then the queue is as
    /// before.
    pub fn resize_cq(&mut self, cq: &mut CompletionQueue<'n, H>, cqe: u32) -> Result<(), Error> {
        self.check_own(Kind::CompletionQueue, cq.lease)?;
        if !cq.reclaim() {
            return Err(Error::Resizing);
        }
        let plan = CqPlan::resized(self.caps(), cqe, &cq.plan)?;
        let mut areas = Areas::default();
        let at = areas.pages(plan.bytes.into());
        let area = areas.list(at, plan.bytes.into(), Use::Ring)?;
        let (id, mut listed) = (cq.id(), None);
        let block = self.nic.host.dma(areas.bytes() as usize, PAGE as usize)?;
        let base = block.device_address();
        cq.queue.extend(block, |queue, mut memory| {
            listed = Some(area.write(&mut memory, base)?);
            let (ring, _) = memory.split_at(plan.bytes as usize);
            queue.cq.begin_resize(ring, &plan).map_err(Error::from)
        })?;
        let listed = listed.ok_or(Error::Resizing)?;
        let (brought, host) = self.nic.brought()?;
        let sent = CmdqResizeCq::new(id, plan.entries, listed)
            .map_err(Error::from)
            .and_then(|command| brought.command(host, &command));
        match sent {
            Ok(_) => {
                cq.plan = plan;
                Ok(())
            }
            Err(error) => {
                if error.is_refusal()
                    && let Some(ring) = cq.queue.cq.cancel_resize()
                {
                    drop(cq.queue.reduce(&ring));
                }
                Err(error)
            }
        }
    }
}
