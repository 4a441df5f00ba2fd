//! Devices and queues as data, for code that posts and polls by itself.

use directverbs::bnxt_re::cq::CqState;
use directverbs::bnxt_re::description::{
    ContextDescription, CqAddresses, CqDescription, QpAddresses, QpDescription,
};
use directverbs::bnxt_re::qp::QueuePairState;

use super::{CompletionQueue, Context, DoorbellPage, PushPage, QueuePair, Ring};
use crate::error::{Error, Result};

impl Context {
    /// Describes the device, and the push page if there shall be one.
    pub fn describe(&self, push: Option<&PushPage>) -> ContextDescription {
        let doorbell = self.doorbell();
        ContextDescription {
            doorbell: doorbell.as_ref().map_or(0, |page| page.address()),
            dpi: doorbell.as_ref().map_or(0, |page| page.dpi().get()),
            push: push.map_or(0, PushPage::address),
            push_dpi: push.map_or(0, PushPage::dpi),
            ..ContextDescription::new(self.caps())
        }
    }

    fn register(&self, object: &'static str) -> Result<u64> {
        let missing = Error::Value {
            object,
            attribute: "doorbell page",
            what: "comes with the first protection domain of the context",
        };
        self.doorbell().map(|page| page.address()).ok_or(missing)
    }
}

impl CompletionQueue {
    /// Describes a queue in `state`: [`CqState::FRESH`] if nothing was polled yet.
    ///
    /// # Errors
    /// The context has no doorbell page yet.
    pub fn describe(&self, context: &Context, state: &CqState) -> Result<CqDescription> {
        let object = "completion queue";
        let at = CqAddresses {
            ring: self.ring().address(),
            doorbell: context.register(object)?,
            toggle: self.toggle_address(),
        };
        CqDescription::new(self.id(), self.plan(), state, &at)
            .map_err(|e| Error::Memory { object, error: e.into() })
    }
}

impl QueuePair {
    /// Describes a queue pair in `state`: [`QueuePairState::fresh`] if nothing was posted yet. Its doorbells go to its own
    /// region, if it has one.
    ///
    /// # Errors
    /// The context has no doorbell page yet.
    pub fn describe(&self, context: &Context, state: &QueuePairState) -> Result<QpDescription> {
        let object = "queue pair";
        let doorbell = match self.region() {
            Some(region) => DoorbellPage::address(region.page()),
            None => context.register(object)?,
        };
        let at = QpAddresses {
            sq_ring: self.send_ring().address(),
            rq_ring: self.recv_ring().map_or(0, Ring::address),
            doorbell,
        };
        QpDescription::new(self.init(), self.plan(), state, &at)
            .map_err(|e| Error::Memory { object, error: e.into() })
    }
}
