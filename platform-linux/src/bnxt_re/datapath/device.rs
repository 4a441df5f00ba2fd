//! The device.

use std::sync::Arc;
use std::time::Duration;

use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq};
use directverbs::bnxt_re::cq;
use directverbs::bnxt_re::plan::{CqPlan, DirectParameters, QpPlan, SendPlan};
use directverbs::bnxt_re::qp::{self, QueuePairInit};
use directverbs::bnxt_re::send::SendInit;
use directverbs::bnxt_re::srq;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::text;
use directverbs::verbs::{
    self, AccessFlags, AddressVector, AhId, DeviceAttributes, MemoryError, MwType, Pollable, PortAttributes,
    QpAttributes, QpInit, QpState, RKey, SrqInit,
};

use super::page::{QueuePage, Registers};
use super::queue::{CompletionQueue, QueuePair, SharedReceiveQueue};
use crate::bnxt_re::{self, Context, CqOptions, DoorbellPage, DoorbellRegion, PacingPages, ProtectionDomain};
use crate::error::{Error, Result};
use crate::host::{Host, Origin, Region};
use crate::objects::{AsyncEvent, Buffer, CompletionChannel, CoreSupport, QueriedQp};
use crate::uverbs::{Owned, RingPages};

const CQ: &str = "completion queue";
const QP: &str = "queue pair";
const SRQ: &str = "shared receive queue";

/// What a device shall make use of, if it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Give rings to the kernel as buffers of exact size (Linux 7.2), not by their addresses.
    pub direct: bool,
    /// Push short inline requests to the device with their doorbell.
    pub push: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { direct: true, push: true }
    }
}

/// An opened device whose queues are posted to and polled here.
#[derive(Debug)]
pub struct Device {
    host: Host,
    settings: Settings,
    pacing: Option<Arc<PacingPages>>,
    /// A domain that was allocated only because the doorbell page comes with the first one.
    spare: Option<ProtectionDomain>,
    context: Context,
}

impl Device {
    /// Makes one of an opened context.
    ///
    /// # Errors
    /// The kernel refuses the pages by which doorbells are paced.
    pub fn new(context: Context, origin: Origin, settings: Settings) -> Result<Self> {
        let robust = context.generic().core_support().contains(CoreSupport::ROBUST_UDATA);
        Ok(Self {
            host: Host::new(context.generic(), origin),
            settings: Settings {
                direct: settings.direct && robust,
                push: settings.push && context.caps().push,
            },
            pacing: PacingPages::map(&context)?.map(Arc::new),
            spare: None,
            context,
        })
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Our end of the wire.
    pub fn origin(&self) -> &Origin {
        self.host.origin()
    }

    /// What of the settings is in force.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The next asynchronous event, waiting at most for `timeout`.
    ///
    /// # Errors
    /// The device is gone.
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<AsyncEvent>> {
        self.context.generic().next_event(timeout)
    }

    /// Creates a completion queue whose events go to `channel`, by interrupt `vector`.
    ///
    /// # Errors
    /// More than the device has, or the kernel refuses.
    pub fn create_cq_on(
        &mut self,
        cqe: u32,
        channel: Option<&CompletionChannel>,
        vector: u32,
    ) -> Result<CompletionQueue> {
        let control = self.cq_control(cqe, channel, vector)?;
        self.attach_cq(control)
    }

    /// Polls a completion queue that was created or imported otherwise, and that nothing has completed to yet.
    ///
    /// # Errors
    /// Memory that this process does not reach, or that has a queue on it already.
    pub fn attach_cq(&mut self, mut control: bnxt_re::CompletionQueue) -> Result<CompletionQueue> {
        let registers = Registers::Shared(self.doorbell()?);
        let (plan, id) = (*control.plan(), control.id());
        let page = QueuePage::new(registers, control.take_toggle(), self.pacing.as_ref(), id.get());
        let queue = Owned::build([control.ring().pages()], |[ring]| {
            let cq = cq::CompletionQueue::new(ring.ok_or(NO_RING)?, &plan, id)?;
            Ok(AttachedCq::new(cq, page))
        });
        Ok(CompletionQueue { queue: queue.map_err(on(CQ))?, control })
    }

    /// The kernel's side of a completion queue.
    fn cq_control(
        &mut self,
        cqe: u32,
        channel: Option<&CompletionChannel>,
        vector: u32,
    ) -> Result<bnxt_re::CompletionQueue> {
        let caps = self.context.caps();
        let plan = CqPlan::new(caps, cqe).map_err(|error| Error::Plan { object: CQ, error })?;
        // The largest queue has one entry more than the kernel takes as an exact number.
        if self.settings.direct && plan.entries <= caps.max_cqe {
            let ring = RingPages::new(self.context.generic().file().kernel(), plan.bytes as usize)?;
            let options = CqOptions { channel, vector, buffer: Some(Buffer::Ring(ring)) };
            match bnxt_re::CompletionQueue::create(&self.context, cqe, &options) {
                Err(error) if error.is_absent() => self.settings.direct = false,
                created => return created,
            }
        }
        bnxt_re::CompletionQueue::create(&self.context, cqe, &CqOptions { channel, vector, buffer: None })
    }

    /// Resizes a completion queue for `cqe` completions. Completions in the old ring come out first.
    ///
    /// # Errors
    /// More than the device has, the same size, a resize under way, or the kernel refuses: then it is as it was.
    pub fn resize_cq(&mut self, cq: &mut CompletionQueue, cqe: u32) -> Result<()> {
        let plan = cq.control.plan_resize(&self.context, cqe)?;
        let ring = RingPages::new(self.context.generic().file().kernel(), plan.bytes as usize)?;
        let taken = cq.queue.extend(&ring, |queue, memory| queue.cq.begin_resize(memory, &plan));
        taken.map_err(on(CQ))?;
        let resized = cq.control.resize_to(&plan, ring);
        if resized.is_err() {
            cq.queue.cq.cancel_resize();
        }
        resized.map(|_| ())
    }

    /// Creates a queue pair whose doorbells go to a region of its own, if one is given.
    ///
    /// # Errors
    /// More than the device has, a kernel without regions, objects of another context, or the kernel refuses.
    pub fn create_qp_in(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, SharedReceiveQueue>,
        region: Option<&Arc<DoorbellRegion>>,
    ) -> Result<QueuePair> {
        let registers = match region {
            Some(region) => Registers::Own(Arc::clone(region)),
            None => Registers::Shared(self.doorbell()?),
        };
        let control = self.qp_control(pd, init, region)?;
        let plan = match control.direct() {
            Some(direct) => exact(control.plan(), direct),
            None => *control.plan(),
        };
        let id = control.id();
        let send = SendInit {
            plan: plan.send,
            qp: id,
            qp_type: init.qp_type,
            signal_all: init.signal_all,
            atomics: self.context.caps().limits.atomics,
        };
        let core = QueuePairInit { capabilities: plan.granted(), ..*control.init() };
        let page = QueuePage::new(registers, None, self.pacing.as_ref(), id.get());
        let rings = [control.send_ring().pages(), control.recv_ring().and_then(bnxt_re::Ring::pages)];
        let queue = Owned::build(rings, |[sq, rq]| {
            let qp = qp::QueuePair::boxed(&plan, &send, &core, sq.ok_or(NO_RING)?, rq)?;
            Ok(AttachedQp { qp, page })
        });
        let queue = queue.map_err(on(QP))?;
        // The push page rings in the page that all share.
        let push = match (self.settings.push, region) {
            (true, None) => self.context.push_page()?.claim(),
            _ => None,
        };
        Ok(QueuePair { queue, push, control })
    }

    /// The kernel's side of a queue pair.
    fn qp_control(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, SharedReceiveQueue>,
        region: Option<&Arc<DoorbellRegion>>,
    ) -> Result<bnxt_re::QueuePair> {
        let caps = *self.context.caps();
        let mut wanted = bnxt_re::QueuePairInit {
            qp_type: init.qp_type,
            capabilities: init.capabilities,
            send_cq: &init.send_cq.control,
            recv_cq: &init.recv_cq.control,
            srq: init.srq.map(|srq| &srq.control),
            signal_all: init.signal_all,
            send_buffer: None,
            recv_buffer: None,
            region,
        };
        if self.settings.direct && caps.wqe_mode == WqeMode::Variable && caps.msn_table {
            let planned = |error| Error::Plan { object: QP, error };
            let plan = QpPlan::new(&caps, &init.capabilities, init.srq.is_some()).map_err(planned)?;
            let direct = DirectParameters::new(&caps, &plan).map_err(planned)?;
            let kernel = self.context.generic().file().kernel();
            wanted.send_buffer = Some(Buffer::Ring(RingPages::new(kernel, direct.sq_len as usize)?));
            if direct.rq_len != 0 {
                wanted.recv_buffer = Some(Buffer::Ring(RingPages::new(kernel, direct.rq_len as usize)?));
            }
            match bnxt_re::QueuePair::create(pd, &wanted) {
                // A region that is not there will not be there the second time, either.
                Err(error) if error.is_absent() && region.is_none() => self.settings.direct = false,
                created => return created,
            }
            (wanted.send_buffer, wanted.recv_buffer) = (None, None);
        }
        bnxt_re::QueuePair::create(pd, &wanted)
    }

    /// Limits the rate of a queue pair's send queue to `kbps` kbit/s; 0 takes the limit off.
    ///
    /// # Errors
    /// The device has no limits, the queue pair is not ready to send, or the kernel refuses.
    pub fn set_rate_limit(&mut self, qp: &mut QueuePair, kbps: u32) -> Result<()> {
        qp.control.set_rate_limit(&self.context, kbps)
    }

    /// Reads a queue pair's attributes from the device. If that has found it in error, what is outstanding is flushed.
    ///
    /// # Errors
    /// The kernel refuses, or answers with a state that there is not.
    pub fn query_qp(&mut self, qp: &mut QueuePair) -> Result<QueriedQp> {
        let queried = qp.control.query()?;
        if queried.attributes.state == Some(QpState::Err) && qp.queue.qp.state() != QpState::Err {
            qp.queue.qp.set_error();
        }
        Ok(queried)
    }

    /// The page that all queues share: it is there from the first protection domain on.
    fn doorbell(&mut self) -> Result<Arc<DoorbellPage>> {
        if let Some(page) = self.context.doorbell() {
            return Ok(page);
        }
        self.spare = Some(ProtectionDomain::alloc(&self.context)?);
        self.context.doorbell().ok_or(Error::Value {
            object: "doorbell page",
            attribute: "protection domain",
            what: "has come without it",
        })
    }
}

const NO_RING: MemoryError = MemoryError::Mismatch(text!("a queue needs a ring"));

fn on(object: &'static str) -> impl FnOnce(MemoryError) -> Error {
    move |error| Error::Memory { object, error }
}

/// The plan of rings that the kernel takes as they are.
fn exact(plan: &QpPlan, direct: &DirectParameters) -> QpPlan {
    let send = SendPlan {
        npsn: direct.sq_npsn,
        msn_modulus: direct.msn_modulus,
        table_offset: direct.msn_table_offset,
        bytes: direct.sq_len,
        ..plan.send
    };
    QpPlan { send, ..*plan }
}

fn forget(key: u32, cqs: &mut [&mut CompletionQueue]) {
    for cq in cqs {
        cq.queue.cq.forget(key);
    }
}

impl verbs::Device for Device {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain;
    type MemoryRegion = Region;
    type CompletionQueue = CompletionQueue;
    type QueuePair = QueuePair;
    type SharedReceiveQueue = SharedReceiveQueue;

    fn attributes(&self) -> DeviceAttributes {
        let (caps, base) = (self.context.caps(), &self.context.generic().limits().base);
        DeviceAttributes {
            family: caps.generation.name(),
            max_qp: QpPlan::largest(caps),
            max_cqe: caps.max_cqe.min(base.max_cqe.get()),
            max_srq_wr: if base.max_srq.get() == 0 { 0 } else { caps.limits.max_srq_wr },
            max_rd_atomic: self.host.max_rd_atomic(),
            atomics: caps.limits.atomics,
            // The driver allocates none for processes.
            memory_windows: false,
        }
    }

    fn port(&self) -> PortAttributes {
        self.host.port()
    }

    fn progress(&mut self) -> bool {
        self.host.progress()
    }

    fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    fn alloc_pd(&mut self) -> Result<ProtectionDomain> {
        ProtectionDomain::alloc(&self.context)
    }

    fn dealloc_pd(&mut self, pd: ProtectionDomain) -> Result<()> {
        pd.destroy()
    }

    fn alloc_mr(&mut self, pd: &ProtectionDomain, len: usize, access: AccessFlags) -> Result<Region> {
        self.host.alloc_mr(pd.generic(), len, access)
    }

    fn dealloc_mr(&mut self, mr: Region) -> Result<()> {
        mr.destroy()
    }

    fn alloc_mw(&mut self, pd: &ProtectionDomain, mw_type: MwType) -> Result<RKey> {
        self.host.alloc_mw(pd.generic(), mw_type)
    }

    fn dealloc_mw(&mut self, mw: RKey) -> Result<()> {
        self.host.dealloc_mw(mw)
    }

    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue> {
        self.create_cq_on(cqe, None, 0)
    }

    fn destroy_cq(&mut self, cq: CompletionQueue) -> Result<()> {
        let CompletionQueue { queue, control } = cq;
        drop(queue);
        control.destroy()
    }

    fn create_srq(&mut self, pd: &ProtectionDomain, init: SrqInit) -> Result<SharedReceiveQueue> {
        let registers = Registers::Shared(self.doorbell()?);
        let mut control = bnxt_re::SharedReceiveQueue::create(pd, init)?;
        let (plan, id) = (*control.plan(), control.id());
        let page = QueuePage::new(registers, control.take_toggle(), self.pacing.as_ref(), id.get());
        let queue = Owned::build([Some(control.ring())], |[ring]| {
            let srq = srq::SharedReceiveQueue::boxed(ring.ok_or(NO_RING)?, &plan, id)?;
            Ok(AttachedSrq { srq, page })
        });
        Ok(SharedReceiveQueue { queue: queue.map_err(on(SRQ))?, control })
    }

    fn destroy_srq(&mut self, srq: SharedReceiveQueue) -> Result<()> {
        let SharedReceiveQueue { queue, control } = srq;
        drop(queue);
        control.destroy()
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, SharedReceiveQueue>,
    ) -> Result<QueuePair> {
        self.create_qp_in(pd, init, None)
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair,
        cqs: &mut [&mut CompletionQueue],
        attributes: &QpAttributes,
    ) -> Result<()> {
        let to = attributes.check(qp.queue.qp.qp_type(), qp.queue.qp.state())?;
        qp.control.follow(qp.queue.qp.state());
        qp.control.modify(attributes, self.host.origin().port)?;
        if to == QpState::Reset {
            forget(qp.key(), cqs);
        }
        qp.queue.qp.modify(attributes)?;
        Ok(())
    }

    fn destroy_qp(&mut self, qp: QueuePair, cqs: &mut [&mut CompletionQueue]) -> Result<()> {
        let QueuePair { queue, push, control } = qp;
        // From now on the device writes no CQE that names it.
        let destroyed = control.destroy();
        forget(queue.key(), cqs);
        drop((queue, push));
        destroyed
    }

    fn create_ah(&mut self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId> {
        let created = self.context.create_ah(pd, to, self.host.origin().port)?;
        Ok(self.host.keep_ah(created))
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<()> {
        self.host.destroy_ah(ah)
    }
}
