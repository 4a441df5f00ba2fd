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
use crate::objects::{self, Buffer, CompletionChannel, CoreSupport, CqFlags, CqInit, within};
use crate::uverbs::{RingPages, Uhw};

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
    /// Address of the toggle, or 0. The page is mapped as long as the queue, or its user, holds it.
    toggle_address: u64,
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
        let uhw = Uhw::vouched(&request.as_bytes()[..known], reply.as_mut_bytes());
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
        let toggle_address = toggle.as_ref().map_or(0, TogglePage::address);
        Ok(Self { toggle, object, ring, plan, id: CqId::truncated(number), toggle_address })
    }

    /// Takes one that another library has created in an imported context: its handle, its number on the device, and its
    /// ring of `entries` entries. It is never destroyed here. Nothing has completed there yet, and the other library does not
    /// poll it any more.
    ///
    /// # Errors
    /// A number that does not fit a doorbell, a ring that is too short, or the kernel refuses the toggle page.
    pub fn import(
        context: &Context,
        handle: u32,
        id: CqId,
        ring: &Arc<RingPages>,
        entries: u32,
    ) -> Result<Self> {
        let caps = context.caps();
        let bytes = u64::from(entries) * u64::from(caps.cqe_bytes);
        within(OBJECT, "number", id.get().into(), 0, (1 << ID_BITS) - 1)?;
        within(OBJECT, "entries", entries.into(), 1, u64::from(caps.max_cqe) + 1)?;
        within(OBJECT, "bytes of the ring", ring.len() as u64, bytes, u64::MAX)?;
        // Whatever the other library has planned, ringing after each poll is right.
        let plan = CqPlan { cqe: entries.saturating_sub(1), entries, bytes: bytes as u32, deferred: false };
        let object = objects::CompletionQueue::import(context.generic(), handle, plan.cqe);
        let toggle = TogglePage::map(context, Toggled::Completion(id.get(), handle))?;
        let toggle_address = toggle.as_ref().map_or(0, TogglePage::address);
        Ok(Self { toggle, object, ring: Ring::Own(Arc::clone(ring)), plan, id, toggle_address })
    }

    /// Asks the kernel to move to a ring for `cqe` completions. The device goes on with the old one until it has written
    /// its last CQE there, which `directverbs::bnxt_re::cq` waits for: keep what is returned, the old ring.
    ///
    /// # Errors
    /// More than the device has, the same size, the application's memory, or the kernel refuses: then the old ring stays.
    pub fn resize(&mut self, context: &Context, cqe: u32) -> Result<Arc<RingPages>> {
        let plan = self.plan_resize(context, cqe)?;
        let new = RingPages::new(context.generic().file().kernel(), plan.bytes as usize)?;
        self.resize_to(&plan, new)
    }

    /// Plans a resize for `cqe` completions.
    pub(super) fn plan_resize(&self, context: &Context, cqe: u32) -> Result<CqPlan> {
        if self.ring.pages().is_none() {
            return Err(Error::Unsupported {
                object: OBJECT,
                feature: "resize in memory of the application",
                needs: "a new queue",
            });
        }
        CqPlan::resized(context.caps(), cqe, &self.plan)
            .map_err(|error| Error::Plan { object: OBJECT, error })
    }

    /// Asks the kernel to move to `new`, and returns the old ring.
    pub(super) fn resize_to(&mut self, plan: &CqPlan, new: Arc<RingPages>) -> Result<Arc<RingPages>> {
        let old = self.ring.pages().cloned().ok_or(Error::Value {
            object: OBJECT,
            attribute: "buffer",
            what: "is the application's",
        })?;
        let request = ResizeCqRequest { cq_va: new.address().into() };
        self.object.resize(plan.cqe, Uhw::vouched(request.as_bytes(), &mut []))?;
        self.ring = Ring::Own(new);
        self.plan = *plan;
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

    /// The toggle page, for the queue's user; without it, [`CompletionQueue::toggle`] is zero.
    pub(super) fn take_toggle(&mut self) -> Option<TogglePage> {
        self.toggle.take()
    }

    /// Address of the toggle, or 0, for code on a device that arms by itself.
    pub fn toggle_address(&self) -> u64 {
        self.toggle_address
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
