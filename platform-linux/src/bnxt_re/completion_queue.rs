//! Completion queues.

use std::sync::Arc;

use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::bnxt_re::plan::CqPlan;
use directverbs::verbs::CqId;
use zerocopy::IntoBytes;

use super::abi::{CqReply, CqRequest, FIXED_NUM_CQE, OLD_CQ_REQUEST, ResizeCqRequest, TOGGLE_PAGE};
use super::context::Context;
use super::pages::{TogglePage, Toggled};
use super::ring::Ring;
use crate::error::{Error, Result};
use crate::objects::{self, Buffer, CompletionChannel, CoreSupport, CqFlags, CqInit};
use crate::uverbs::{Pages, Uhw};

const OBJECT: &str = "completion queue";
/// Bits of a number in a doorbell.
const ID_BITS: u32 = 20;

/// What a completion queue may have besides entries.
#[derive(Clone, Debug, Default)]
pub struct CqOptions<'a> {
    /// Where its events go.
    pub channel: Option<&'a CompletionChannel>,
    /// Interrupt.
    pub vector: u32,
    /// Memory of the application for its ring. It takes Linux 7.2.
    pub buffer: Option<Buffer>,
}

/// A completion queue: the kernel's object, and what polling needs.
#[derive(Debug)]
pub struct CompletionQueue {
    toggle: Option<TogglePage>,
    object: objects::CompletionQueue,
    ring: Ring,
    plan: CqPlan,
    id: CqId,
}

impl CompletionQueue {
    /// Creates one with room for `cqe` completions.
    ///
    /// # Errors
    /// More than the device has, a buffer that is too short or not whole pages, a kernel that takes none, or the kernel
    /// refuses.
    pub fn create(context: &Context, cqe: u32, options: &CqOptions<'_>) -> Result<Self> {
        let plan = CqPlan::new(context.caps(), cqe).map_err(|error| Error::Plan { object: OBJECT, error })?;
        let generic = context.generic();
        let ring = Ring::new(generic, OBJECT, options.buffer.as_ref(), plan.bytes)?;
        let buffer = ring.buffer();
        // The application's ring has the entries that the plan says, no more and no less.
        let (comp_mask, cqe) = if buffer.is_some() { (FIXED_NUM_CQE, plan.entries) } else { (0, plan.cqe) };
        let request = CqRequest { cq_va: ring.va().into(), comp_mask: comp_mask.into(), ..CqRequest::ZERO };
        let mut reply = CqReply::ZERO;
        // A kernel that does not promise to look at all of a request is sent what it knows.
        let robust = generic.core_support().contains(CoreSupport::ROBUST_UDATA);
        let known = if robust { size_of::<CqRequest>() } else { OLD_CQ_REQUEST };
        let uhw = Uhw { input: &request.as_bytes()[..known], output: reply.as_mut_bytes() };
        let (channel, vector) = (options.channel, options.vector);
        let init = CqInit { cqe, channel, vector, flags: CqFlags::empty(), buffer };
        let object = objects::CompletionQueue::create(generic, &init, uhw)?;
        let senseless = |what| Error::Reply { object: OBJECT, method: "CQ_CREATE", what };
        let number = reply.cqid.get();
        if number >> ID_BITS != 0 {
            return Err(senseless("a number of more than 20 bits"));
        }
        if reply.tail.get() != 0 || reply.phase.get() != 1 {
            return Err(senseless("a ring that does not begin at its beginning"));
        }
        let toggle = if reply.comp_mask.get() & TOGGLE_PAGE == 0 {
            None
        } else {
            TogglePage::map(context, Toggled::Completion(number, object.handle()))?
        };
        Ok(Self { toggle, object, ring, plan, id: CqId::truncated(number) })
    }

    /// Asks the kernel to move to a ring for `cqe` completions. The device goes on with the old one until it has written
    /// its last CQE there, which `directverbs::bnxt_re::cq` waits for: keep what is returned, the old ring.
    ///
    /// # Errors
    /// More than the device has, the same size, the application's memory, or the kernel refuses: then the old ring stays.
    pub fn resize(&mut self, context: &Context, cqe: u32) -> Result<Arc<Pages>> {
        let Ring::Own(old) = &self.ring else {
            return Err(Error::Unsupported {
                object: OBJECT,
                feature: "resize in memory of the application",
                needs: "a new queue",
            });
        };
        let plan = CqPlan::resized(context.caps(), cqe, &self.plan)
            .map_err(|error| Error::Plan { object: OBJECT, error })?;
        let new = Arc::new(Pages::new(context.generic().file().kernel(), plan.bytes as usize)?);
        let request = ResizeCqRequest { cq_va: new.address().into() };
        self.object.resize(plan.cqe, Uhw { input: request.as_bytes(), output: &mut [] })?;
        let old = Arc::clone(old);
        self.ring = Ring::Own(new);
        self.plan = plan;
        Ok(old)
    }

    /// The kernel's object.
    pub fn object(&self) -> &objects::CompletionQueue {
        &self.object
    }

    /// Number on the device.
    pub fn id(&self) -> CqId {
        self.id
    }

    /// Sizes of the ring.
    pub fn plan(&self) -> &CqPlan {
        &self.plan
    }

    /// Memory of the ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// What the next arm carries: zero on devices without toggle pages.
    pub fn toggle(&self) -> Toggle {
        self.toggle.as_ref().map_or(Toggle::ZERO, TogglePage::toggle)
    }

    /// Whether there is a toggle page.
    pub fn has_toggle_page(&self) -> bool {
        self.toggle.is_some()
    }

    /// Destroys it.
    ///
    /// # Errors
    /// A queue pair completes here, or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        drop(self.toggle);
        self.object.destroy()
    }
}
