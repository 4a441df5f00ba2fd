//! Queue pairs.

use std::sync::Arc;

use directverbs::ionic::cmb::{Cmb, CmbGrant};
use directverbs::ionic::plan::{QpPlan, WorkQueuePlan};
use directverbs::verbs::{QpAttributes, QpCapabilities, QpId, QpInit, QpState, QpType};

use super::abi::{QpReply, QpRequest};
use super::completion_queue::{CompletionQueue, describe};
use super::context::Context;
use super::protection_domain::ProtectionDomain;
use crate::error::{Error, Result};
use crate::objects::{self, QpBuffers, QueriedQp};
use crate::uverbs::{Mapping, Protection, RingPages, Uhw};

const OBJECT: &str = "queue pair";

/// What a queue pair is created from.
#[derive(Clone, Copy, Debug)]
pub struct QueuePairInit<'a> {
    /// Kind: RC or UD.
    pub qp_type: QpType,
    /// Capabilities asked for.
    pub capabilities: QpCapabilities,
    /// Where send requests complete.
    pub send_cq: &'a CompletionQueue,
    /// Where receive requests complete.
    pub recv_cq: &'a CompletionQueue,
    /// Every send request produces a completion.
    pub signal_all: bool,
}

/// Where a queue is: always in host memory, and besides in controller memory if the device has granted that.
#[derive(Debug)]
pub struct Placed {
    ring: Arc<RingPages>,
    grant: CmbGrant,
    mapping: Option<Arc<Mapping>>,
}

impl Placed {
    /// Takes what the device has granted, and maps it.
    fn new(
        context: &Context,
        ring: Arc<RingPages>,
        plan: &WorkQueuePlan,
        (reply, offset): (u8, u64),
    ) -> Result<Self> {
        let grant = plan.cmb.granted(reply).map_err(|error| Error::Plan { object: OBJECT, error })?;
        let mapping = match grant {
            CmbGrant::Host => None,
            CmbGrant::Cmb { .. } => {
                let file = context.generic().file();
                Some(Arc::new(file.map(offset, plan.ring.bytes(), Protection::Write, "controller memory")?))
            }
        };
        Ok(Self { ring, grant, mapping })
    }

    /// The ring in host memory.
    pub fn ring(&self) -> &Arc<RingPages> {
        &self.ring
    }

    /// What was granted.
    pub fn grant(&self) -> CmbGrant {
        self.grant
    }

    /// The ring in controller memory, as posting wants it.
    pub fn cmb(&self) -> Option<Cmb<&Mapping>> {
        let Cmb { memory, express, mapping } = self.shared_cmb()?;
        Some(Cmb { memory: &**memory, express, mapping })
    }

    /// [`Placed::cmb`], for a queue that holds the mapping.
    pub(super) fn shared_cmb(&self) -> Option<Cmb<&Arc<Mapping>>> {
        match (self.grant, &self.mapping) {
            (CmbGrant::Cmb { express, mapping }, Some(memory)) => Some(Cmb { memory, express, mapping }),
            _ => None,
        }
    }
}

/// A queue pair: the kernel's object, and what posting needs.
#[derive(Debug)]
pub struct QueuePair {
    // Dropped in this order: the device lets go of the rings before they are unmapped.
    object: objects::QueuePair,
    send: Placed,
    recv: Placed,
    plan: QpPlan,
    udma: u8,
}

impl QueuePair {
    /// Creates one, on a pipeline and with queues where the protection domain says.
    ///
    /// # Errors
    /// A kind that the device does not have, more than it has, completion queues without a common pipeline, controller
    /// memory that is required and was not granted, or the kernel refuses.
    pub fn create(pd: &ProtectionDomain, init: &QueuePairInit<'_>) -> Result<Self> {
        let context = pd.context();
        if init.qp_type == QpType::RawPacket {
            return Err(Error::Unsupported {
                object: OBJECT,
                feature: "the kind for raw packets",
                needs: "another device",
            });
        }
        let plan = QpPlan::new(context.caps(), &init.capabilities, pd.placement())
            .map_err(|error| Error::Plan { object: OBJECT, error })?;
        let common = init.send_cq.udma_mask() & init.recv_cq.udma_mask();
        if pd.udma_mask() & common == 0 {
            return Err(Error::Value {
                object: OBJECT,
                attribute: "pipeline mask",
                what: "has no pipeline that both completion queues have a ring on",
            });
        }
        let kernel = context.generic().file().kernel();
        let ring = |plan: &WorkQueuePlan| RingPages::new(kernel, plan.ring.bytes());
        let (sq, rq) = (ring(&plan.sq)?, ring(&plan.rq)?);
        let request = QpRequest {
            sq: describe(&sq, plan.sq.ring),
            rq: describe(&rq, plan.rq.ring),
            sq_spec: plan.sq.spec,
            rq_spec: plan.rq.spec,
            sq_cmb: plan.sq.cmb.to_abi(),
            rq_cmb: plan.rq.cmb.to_abi(),
            udma_mask: pd.udma_mask() & common,
            ..QpRequest::ZERO
        };
        let mut reply = QpReply::ZERO;
        let kernel_init = QpInit {
            qp_type: init.qp_type,
            capabilities: init.capabilities,
            send_cq: init.send_cq.object(),
            recv_cq: init.recv_cq.object(),
            srq: None,
            signal_all: init.signal_all,
        };
        let uhw = Uhw::new(&request, &mut reply);
        let object = objects::QueuePair::create(pd.generic(), &kernel_init, &QpBuffers::default(), &[], uhw)?;
        let senseless = |what| Err(Error::Reply { object: OBJECT, method: "QP_CREATE", what });
        if reply.qpid.get() != object.id().get() {
            return senseless("a number that is not the kernel's");
        }
        let udma = reply.udma_idx;
        if request.udma_mask.checked_shr(udma.into()).unwrap_or(0) & 1 == 0 {
            return senseless("a pipeline that was not asked for");
        }
        // Clones: a queue pair that cannot be mapped is destroyed before its rings go.
        let send =
            Placed::new(context, Arc::clone(&sq), &plan.sq, (reply.sq_cmb, reply.sq_cmb_offset.get()))?;
        let recv =
            Placed::new(context, Arc::clone(&rq), &plan.rq, (reply.rq_cmb, reply.rq_cmb_offset.get()))?;
        Ok(Self { object, send, recv, plan, udma })
    }

    /// The kernel's object.
    pub fn object(&self) -> &objects::QueuePair {
        &self.object
    }

    /// Number.
    pub fn id(&self) -> QpId {
        self.object.id()
    }

    /// Pipeline that the device has put it on.
    pub fn udma(&self) -> u8 {
        self.udma
    }

    /// Sizes of the rings.
    pub fn plan(&self) -> &QpPlan {
        &self.plan
    }

    /// Capabilities, as the placement leaves them.
    pub fn granted(&self) -> QpCapabilities {
        self.plan.granted(self.send.grant.express(), self.recv.grant.express())
    }

    /// Where the send queue is.
    pub fn send(&self) -> &Placed {
        &self.send
    }

    /// Where the receive queue is.
    pub fn recv(&self) -> &Placed {
        &self.recv
    }

    /// Changes attributes.
    ///
    /// # Errors
    /// As [`objects::QueuePair::modify`].
    pub fn modify(&mut self, attributes: &QpAttributes, port: u8) -> Result<()> {
        self.object.modify(attributes, port)
    }

    /// Takes over the state that a completion has told.
    pub(super) fn follow(&mut self, state: QpState) {
        self.object.follow(state);
    }

    /// Reads attributes, and the state as the device has it.
    ///
    /// # Errors
    /// As [`objects::QueuePair::query`].
    pub fn query(&mut self) -> Result<QueriedQp> {
        self.object.query()
    }

    /// Destroys it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn destroy(self) -> Result<()> {
        self.object.destroy()
    }
}
