//! Shared receive queues.

use std::sync::Arc;

use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::bnxt_re::plan::SrqPlan;
use directverbs::verbs::{SrqId, SrqInit};

use super::abi::{SrqReply, SrqRequest, TOGGLE_PAGE};
use super::context::ProtectionDomain;
use super::pages::{TogglePage, Toggled};
use crate::error::{Error, Result};
use crate::objects;
use crate::uverbs::{RingPages, Uhw};

const OBJECT: &str = "shared receive queue";

/// A shared receive queue: the kernel's object, and what posting needs.
#[derive(Debug)]
pub struct SharedReceiveQueue {
    toggle: Option<TogglePage>,
    object: objects::SharedReceiveQueue,
    ring: Arc<RingPages>,
    plan: SrqPlan,
    id: SrqId,
}

impl SharedReceiveQueue {
    /// Creates one. The kernel takes no memory of the application for it.
    ///
    /// # Errors
    /// More than the device has, or the kernel refuses.
    pub fn create(pd: &ProtectionDomain, init: SrqInit) -> Result<Self> {
        let context = pd.context();
        let plan =
            SrqPlan::new(context.caps(), &init).map_err(|error| Error::Plan { object: OBJECT, error })?;
        let ring = RingPages::new(context.generic().file().kernel(), plan.bytes as usize)?;
        let request = SrqRequest { srqva: ring.address().into(), ..SrqRequest::ZERO };
        let mut reply = SrqReply::ZERO;
        let uhw = Uhw::new(&request, &mut reply);
        let object = objects::SharedReceiveQueue::create(pd.generic(), init, uhw)?;
        let number = reply.srqid.get();
        let id = SrqId::new(number).ok_or(Error::Reply {
            object: OBJECT,
            method: "SRQ_CREATE",
            what: "a number of more than 24 bits",
        })?;
        let toggle = if reply.comp_mask.get() & TOGGLE_PAGE == 0 {
            None
        } else {
            TogglePage::map(context, Toggled::SharedReceive(number, object.handle()))?
        };
        Ok(Self { toggle, object, ring, plan, id })
    }

    /// The kernel's object.
    pub fn object(&self) -> &objects::SharedReceiveQueue {
        &self.object
    }

    /// Number on the device.
    pub fn id(&self) -> SrqId {
        self.id
    }

    /// Sizes of the ring.
    pub fn plan(&self) -> &SrqPlan {
        &self.plan
    }

    /// Memory of the ring.
    pub fn ring(&self) -> &Arc<RingPages> {
        &self.ring
    }

    /// What the next arm carries: zero on devices without toggle pages.
    pub fn toggle(&self) -> Toggle {
        self.toggle.as_ref().map_or(Toggle::ZERO, TogglePage::toggle)
    }

    /// The toggle page, for the queue's user; without it, [`SharedReceiveQueue::toggle`] is zero.
    pub(super) fn take_toggle(&mut self) -> Option<TogglePage> {
        self.toggle.take()
    }

    /// Destroys it.
    ///
    /// # Errors
    /// A queue pair receives from it, or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        drop(self.toggle);
        self.object.destroy()
    }
}
