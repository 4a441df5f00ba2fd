//! Queue pairs.

use std::sync::Arc;

use directverbs::bnxt_re::plan::{DirectParameters, QpPlan};
use directverbs::bnxt_re::qp;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{QpAttributes, QpCapabilities, QpId, QpInit, QpState, QpType};

use super::abi::{FIXED_QUE_ATTR, QP_DBR_HANDLE, QpReply, QpRequest};
use super::completion_queue::CompletionQueue;
use super::context::{Context, ProtectionDomain};
use super::doorbell::DoorbellRegion;
use super::ring::Ring;
use super::shared_receive_queue::SharedReceiveQueue;
use crate::error::{Error, Result};
use crate::objects::{self, Buffer, QpBuffers, QueriedQp};
use crate::uverbs::Uhw;

const OBJECT: &str = "queue pair";

/// What a queue pair is created from.
#[derive(Clone, Debug)]
pub struct QueuePairInit<'a> {
    /// Kind.
    pub qp_type: QpType,
    /// Capabilities asked for.
    pub capabilities: QpCapabilities,
    /// Where send requests complete.
    pub send_cq: &'a CompletionQueue,
    /// Where receive requests complete.
    pub recv_cq: &'a CompletionQueue,
    /// Where receive requests come from, if not from a ring of its own.
    pub srq: Option<&'a SharedReceiveQueue>,
    /// Every send request produces a completion.
    pub signal_all: bool,
    /// Memory of the application for the send ring and its retransmit table, of the length that
    /// [`DirectParameters::sq_len`] says. It takes Linux 7.2.
    pub send_buffer: Option<Buffer>,
    /// Memory of the application for the receive ring; only together with `send_buffer`. Not used with `srq`.
    pub recv_buffer: Option<Buffer>,
    /// Where its doorbells go, if not to the page that all share.
    pub region: Option<&'a Arc<DoorbellRegion>>,
}

/// A queue pair: the kernel's object, and what posting needs.
#[derive(Debug)]
pub struct QueuePair {
    // Dropped in this order: the kernel frees no region that a queue pair rings in.
    object: objects::QueuePair,
    region: Option<Arc<DoorbellRegion>>,
    send_ring: Ring,
    recv_ring: Option<Ring>,
    plan: QpPlan,
    direct: Option<DirectParameters>,
    init: qp::QueuePairInit,
}

impl QueuePair {
    /// Creates one.
    ///
    /// # Errors
    /// More than the device has, a buffer that is too short or not whole pages, a kernel that takes none or has no regions,
    /// objects of another context, or the kernel refuses.
    pub fn create(pd: &ProtectionDomain, init: &QueuePairInit<'_>) -> Result<Self> {
        let context = pd.context();
        let (caps, generic) = (context.caps(), context.generic());
        let planned = |error| Error::Plan { object: OBJECT, error };
        let plan = QpPlan::new(caps, &init.capabilities, init.srq.is_some()).map_err(planned)?;
        if init.recv_buffer.is_some() && init.send_buffer.is_none() {
            return Err(Error::Value {
                object: OBJECT,
                attribute: "receive buffer",
                what: "goes only together with a send buffer",
            });
        }
        let direct = match &init.send_buffer {
            Some(_) => Some(DirectParameters::new(caps, &plan).map_err(planned)?),
            None => None,
        };
        let send_bytes = direct.map_or(plan.send.bytes, |d| d.sq_len);
        let send_ring = Ring::new(generic, OBJECT, init.send_buffer.as_ref(), send_bytes)?;
        let recv_ring = plan
            .recv
            .map(|recv| Ring::new(generic, OBJECT, init.recv_buffer.as_ref(), recv.bytes))
            .transpose()?;
        let handle = context.next_handle();
        let request = QpRequest {
            qpsva: send_ring.va().into(),
            qprva: recv_ring.as_ref().map_or(0, Ring::va).into(),
            qp_handle: u64::from(handle).into(),
            comp_mask: if direct.is_some() { FIXED_QUE_ATTR } else { 0 }.into(),
            sq_slots: if caps.wqe_mode == WqeMode::Variable { plan.send.slots } else { 0 }.into(),
            sq_npsn: direct.map_or(0, |d| d.sq_npsn).into(),
        };
        // Numbers taken as they are name the whole rings; others are rounded up by the kernel as by the plan.
        let capabilities = match direct {
            Some(_) => QpCapabilities {
                max_send_wr: plan.send.wqes,
                max_recv_wr: plan.recv.map_or(0, |r| r.wqes),
                ..init.capabilities
            },
            None => init.capabilities,
        };
        let kernel_init = QpInit {
            qp_type: init.qp_type,
            capabilities,
            send_cq: init.send_cq.object(),
            recv_cq: init.recv_cq.object(),
            srq: init.srq.map(SharedReceiveQueue::object),
            signal_all: init.signal_all,
        };
        let buffers =
            QpBuffers { send: send_ring.buffer(), receive: recv_ring.as_ref().and_then(Ring::buffer) };
        let region: Vec<_> = init.region.iter().map(|r| (QP_DBR_HANDLE, r.handle().number())).collect();
        let mut reply = QpReply::ZERO;
        let uhw = Uhw::new(&request, &mut reply);
        let object =
            objects::QueuePair::create(pd.generic(), &kernel_init, &buffers, &region, uhw).map_err(|e| {
                if region.is_empty() {
                    e
                } else {
                    e.or_needs(OBJECT, "a doorbell region of its own", "Linux 7.2 or newer")
                }
            })?;
        if reply.qpid.get() != object.id().get() {
            let what = "a number that is not the kernel's";
            return Err(Error::Reply { object: OBJECT, method: "QP_CREATE", what });
        }
        let region = init.region.cloned();
        let init = qp::QueuePairInit {
            id: object.id(),
            handle,
            qp_type: init.qp_type,
            send_cq: init.send_cq.id(),
            recv_cq: init.recv_cq.id(),
            srq: init.srq.map(SharedReceiveQueue::id),
            capabilities: plan.granted(),
        };
        Ok(Self { object, region, send_ring, recv_ring, plan, direct, init })
    }

    /// The kernel's object.
    pub fn object(&self) -> &objects::QueuePair {
        &self.object
    }

    /// Number on the wire.
    pub fn id(&self) -> QpId {
        self.object.id()
    }

    /// What CQEs name it by.
    pub fn handle(&self) -> u32 {
        self.init.handle
    }

    /// What `directverbs::bnxt_re::qp::QueuePair` is put together from.
    pub fn init(&self) -> &qp::QueuePairInit {
        &self.init
    }

    /// Sizes of the rings.
    pub fn plan(&self) -> &QpPlan {
        &self.plan
    }

    /// Parameters of the application's rings.
    pub fn direct(&self) -> Option<&DirectParameters> {
        self.direct.as_ref()
    }

    /// Memory of the send ring.
    pub fn send_ring(&self) -> &Ring {
        &self.send_ring
    }

    /// Memory of the receive ring, if there is one.
    pub fn recv_ring(&self) -> Option<&Ring> {
        self.recv_ring.as_ref()
    }

    /// Its doorbell region, if it has one of its own.
    pub fn region(&self) -> Option<&Arc<DoorbellRegion>> {
        self.region.as_ref()
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

    /// Limits the rate of the send queue to `kbps` kbit/s; 0 takes the limit off.
    ///
    /// # Errors
    /// The device has no limits, the queue pair is not ready to send, or the kernel refuses.
    pub fn set_rate_limit(&mut self, context: &Context, kbps: u32) -> Result<()> {
        if !context.caps().rate_limit {
            return Err(Error::Unsupported {
                object: OBJECT,
                feature: "a rate limit",
                needs: "Linux 7.2 and firmware with it",
            });
        }
        self.object.set_rate_limit(kbps)
    }

    /// Destroys it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn destroy(self) -> Result<()> {
        self.object.destroy()
    }
}
