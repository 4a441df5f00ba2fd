//! Completion queues: a ring on each of their pipelines.

use std::sync::Arc;

use directverbs::ionic::cqe::CQE_BYTES;
use directverbs::ionic::plan::{CqPlan, RingPlan};
use directverbs::verbs::CqId;

use super::abi::{CqReply, CqRequest, QueueDescriptor};
use super::context::Context;
use super::protection_domain::check_mask;
use crate::error::{Error, Result};
use crate::objects::{self, CompletionChannel, CqFlags, CqInit, within};
use crate::uverbs::{RingPages, Uhw};

const OBJECT: &str = "completion queue";

/// A completion queue: the kernel's object, and what polling needs.
#[derive(Debug)]
pub struct CompletionQueue {
    object: objects::CompletionQueue,
    rings: [Option<(CqId, Arc<RingPages>)>; 2],
    plan: CqPlan,
    udma_mask: u8,
}

impl CompletionQueue {
    /// Creates one with room for `cqe` completions, and rings on the pipelines of `udma_mask`.
    ///
    /// # Errors
    /// More than the device has, pipelines that there are not, or the kernel refuses.
    pub fn create(
        context: &Context,
        cqe: u32,
        udma_mask: u8,
        channel: Option<&CompletionChannel>,
        vector: u32,
    ) -> Result<Self> {
        check_mask(context, OBJECT, udma_mask)?;
        let plan = CqPlan::new(context.caps(), cqe).map_err(|error| Error::Plan { object: OBJECT, error })?;
        let generic = context.generic();
        let mut request = CqRequest { udma_mask, ..CqRequest::ZERO };
        let mut pages = [None, None];
        for (udma, (ring, descriptor)) in pages.iter_mut().zip(&mut request.cq).enumerate() {
            if udma_mask >> udma & 1 != 0 {
                let memory = RingPages::new(generic.file().kernel(), plan.ring.bytes())?;
                *descriptor = describe(&memory, plan.ring);
                *ring = Some(memory);
            }
        }
        let mut reply = CqReply::ZERO;
        let init = CqInit { cqe, channel, vector, flags: CqFlags::empty(), buffer: None };
        let object = objects::CompletionQueue::create(generic, &init, Uhw::new(&request, &mut reply))?;
        let senseless = |what| Error::Reply { object: OBJECT, method: "CQ_CREATE", what };
        if reply.udma_mask != udma_mask {
            return Err(senseless("rings on other pipelines than asked for"));
        }
        let mut rings = [None, None];
        for (ring, (memory, number)) in rings.iter_mut().zip(pages.into_iter().zip(reply.cqid)) {
            if let Some(memory) = memory {
                let id = CqId::new(number.get()).ok_or_else(|| senseless("a number of more than 24 bits"))?;
                *ring = Some((id, memory));
            }
        }
        Ok(Self { object, rings, plan, udma_mask })
    }

    /// Takes one that another library has created in an imported context: its handle, and on each of its pipelines the number
    /// and the memory of its ring of 2^`depth_log2` entries. It is never destroyed here. Nothing has completed there yet, and
    /// the other library does not poll it any more.
    ///
    /// # Errors
    /// Pipelines that there are not, or a ring that is too short.
    pub fn import(
        context: &Context,
        handle: u32,
        rings: [Option<(CqId, Arc<RingPages>)>; 2],
        depth_log2: u8,
    ) -> Result<Self> {
        let udma_mask = rings.iter().zip([1, 2]).filter(|(r, _)| r.is_some()).map(|(_, bit)| bit).sum();
        check_mask(context, OBJECT, udma_mask)?;
        let ring = RingPlan { depth_log2, stride_log2: CQE_BYTES.trailing_zeros() as u8 };
        within(OBJECT, "entries of the ring, base-two logarithm", depth_log2.into(), 0, 16)?;
        for (_, memory) in rings.iter().flatten() {
            within(OBJECT, "bytes of the ring", memory.len() as u64, ring.bytes() as u64, u64::MAX)?;
        }
        let object = objects::CompletionQueue::import(context.generic(), handle, ring.depth());
        Ok(Self { object, rings, plan: CqPlan { ring }, udma_mask })
    }

    /// The kernel's object.
    pub fn object(&self) -> &objects::CompletionQueue {
        &self.object
    }

    /// Number and memory of the ring on a pipeline, if it has one there.
    pub fn ring(&self, udma: u8) -> Option<(CqId, &Arc<RingPages>)> {
        let ring = self.rings.get(usize::from(udma))?.as_ref()?;
        Some((ring.0, &ring.1))
    }

    /// Sizes of each ring.
    pub fn plan(&self) -> &CqPlan {
        &self.plan
    }

    /// Pipelines that it has rings on.
    pub fn udma_mask(&self) -> u8 {
        self.udma_mask
    }

    /// Destroys it.
    ///
    /// # Errors
    /// A queue pair completes here, or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        self.object.destroy()
    }
}

/// A ring as the driver is told it.
pub(super) fn describe(memory: &RingPages, plan: RingPlan) -> QueueDescriptor {
    QueueDescriptor {
        addr: memory.address().into(),
        size: (plan.bytes() as u32).into(),
        mask: plan.mask().into(),
        depth_log2: plan.depth_log2,
        stride_log2: plan.stride_log2,
    }
}
