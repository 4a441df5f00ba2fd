//! Completion queues: a ring on each pipeline in use.

use core::marker::PhantomData;

use directverbs::ionic::admin::{ANY_TABLE, CreateCqCmd, DestroyCqCmd, PagePlan};
use directverbs::ionic::cq::{self, CqRing};
use directverbs::ionic::plan::CqPlan;
use directverbs::queue::RingMemory;
use directverbs::verbs::{CqId, MemoryError};

use super::device::Device;
use super::error::Cause;
use super::queues::{CompletionQueue, Rings};
use super::session::{DBID, EQ};
use crate::dma::Owned;
use crate::host::Host;
use crate::ledger::Kind;

impl<'n, H: Host> Device<'n, H> {
    /// Builds a completion queue with a ring on each of `N` pipelines.
    fn build_cq<const N: usize>(
        &self,
        nth: u32,
        plan: &CqPlan,
    ) -> Result<Owned<cq::CompletionQueue<'static>, H::Dma, N>, Cause> {
        let mut blocks = heapless::Vec::<H::Dma, N>::new();
        for _ in 0..N {
            // There is room for N of them.
            let _full = blocks.push(self.host().dma(plan.ring.bytes(), 4096)?);
        }
        let blocks: [H::Dma; N] = blocks.into_array().map_err(|_| Cause::Failed)?;
        let build = |memories: [RingMemory<'static>; N]| -> Result<_, MemoryError> {
            let mut rings = [None, None];
            for ((udma, slot), memory) in (0u8..).zip(&mut rings).zip(memories) {
                let id = CqId::truncated(self.number(nth, udma));
                *slot = Some(CqRing::new(id, self.caps.cq_qtype, plan, memory)?);
            }
            cq::CompletionQueue::new(N as u8, rings)
        };
        Ok(Owned::build(blocks, build)?)
    }

    /// Has the device create the rings at `addresses`.
    fn tell_cq(&mut self, nth: u32, plan: &CqPlan, addresses: &[u64]) -> Result<(), Cause> {
        let pages = PagePlan::ring(plan.ring.depth_log2 + plan.ring.stride_log2);
        for (udma, addr) in (0u8..).zip(addresses) {
            let cmd = CreateCqCmd {
                eq_id: (self.identity.event.base + EQ).into(),
                depth_log2: plan.ring.depth_log2,
                stride_log2: plan.ring.stride_log2,
                page_size_log2: pages.page_size_log2,
                id_ver: self.number(nth, udma).into(),
                tbl_index: ANY_TABLE.into(),
                map_count: pages.count.into(),
                dma_addr: pages.dma_addr(*addr, 0).into(),
                dbid_flags: DBID.into(),
                ..CreateCqCmd::ZERO
            };
            if let Err(cause) = self.nic.session.rdma(&cmd) {
                // What was created is destroyed again; if that fails, the device has failed.
                for udma in 0..udma {
                    self.forget_cq(nth, udma)?;
                }
                return Err(cause);
            }
        }
        Ok(())
    }

    fn forget_cq(&mut self, nth: u32, udma: u8) -> Result<(), Cause> {
        let cmd = DestroyCqCmd { cq_id: self.number(nth, udma).into() };
        self.nic.session.rdma(&cmd).map(drop).inspect_err(|_| self.nic.session.fail())
    }

    pub(super) fn make_cq(&mut self, cqe: u32) -> Result<CompletionQueue<'n, H>, Cause> {
        let plan = CqPlan::new(&self.caps, cqe)?;
        self.check_room()?;
        let nth = self.nic.free_cq()?;
        let (queue, told) = if self.caps.udma_count == 1 {
            let queue = self.build_cq::<1>(nth, &plan)?;
            let told = self.tell_cq(nth, &plan, &queue.device_addresses());
            (Rings::One(queue), told)
        } else {
            let queue = self.build_cq::<2>(nth, &plan)?;
            let told = self.tell_cq(nth, &plan, &queue.device_addresses());
            (Rings::Two(queue), told)
        };
        if let Err(cause) = told {
            if !self.has_failed() {
                queue.release();
            }
            return Err(cause);
        }
        let cq = CompletionQueue {
            queue,
            doorbell: self.doorbell.clone(),
            nth,
            lease: self.lease,
            host: PhantomData,
        };
        let object = (Kind::CompletionQueue, self.number(nth, 0));
        self.nic.created(object, &[]);
        Ok(cq)
    }

    pub(super) fn unmake_cq(&mut self, cq: CompletionQueue<'n, H>) -> Result<(), Cause> {
        self.check_own(cq.lease)?;
        let object = (Kind::CompletionQueue, self.number(cq.nth, 0));
        self.check_unused(object)?;
        for udma in 0..self.caps.udma_count {
            if cq.queue.queue().ring(udma).is_some() {
                self.forget_cq(cq.nth, udma)?;
            }
        }
        self.nic.destroyed(object);
        cq.queue.release();
        Ok(())
    }
}
