//! The device.

use std::time::Duration;

use directverbs::ionic::QueueMemory;
use directverbs::ionic::cmb::Cmb;
use directverbs::ionic::cq::{self, CqRing};
use directverbs::ionic::plan::{MAX_CQE, Placement, QpPlan};
use directverbs::ionic::qp::{self, NoSharedReceiveQueue, QpConfig};
use directverbs::ionic::recv::RqRecord;
use directverbs::ionic::send::SqRecord;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::queue::RingMemory;
use directverbs::text;
use directverbs::verbs::{
    self, AccessFlags, AddressVector, AhId, DeviceAttributes, MemoryError, MwType, PortAttributes,
    QpAttributes, QpInit, QpState, RKey, SrqInit,
};

use super::queue::{CompletionQueue, InnerQp, QueuePair, Window};
use crate::error::{Error, Result};
use crate::host::{Host, Origin, Region};
use crate::ionic::{self, Context, Placed, ProtectionDomain};
use crate::objects::{AsyncEvent, CompletionChannel, QueriedQp};
use crate::uverbs::Owned;

const CQ: &str = "completion queue";
const QP: &str = "queue pair";

/// What a device shall make use of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where the queues are of queue pairs whose protection domain says nothing else.
    pub placement: Placement,
    /// Pipelines that queues may be on; 0 for all.
    pub udma_mask: u8,
}

/// An opened device whose queues are posted to and polled here.
#[derive(Debug)]
pub struct Device {
    host: Host,
    settings: Settings,
    context: Context,
}

impl Device {
    /// Makes one of an opened context.
    ///
    /// # Errors
    /// A pipeline that there is not.
    pub fn new(context: Context, origin: Origin, settings: Settings) -> Result<Self> {
        let udma_mask = if settings.udma_mask == 0 { context.udma_mask() } else { settings.udma_mask };
        ionic::check_mask(&context, "device", udma_mask)?;
        let settings = Settings { udma_mask, ..settings };
        Ok(Self { host: Host::new(context.generic(), origin), settings, context })
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

    /// Creates a completion queue with rings on the pipelines of `udma_mask`, whose events go to `channel` by interrupt
    /// `vector`.
    ///
    /// # Errors
    /// More than the device has, pipelines that there are not, or the kernel refuses.
    pub fn create_cq_on(
        &mut self,
        cqe: u32,
        udma_mask: u8,
        channel: Option<&CompletionChannel>,
        vector: u32,
    ) -> Result<CompletionQueue> {
        self.attach_cq(ionic::CompletionQueue::create(&self.context, cqe, udma_mask, channel, vector)?)
    }

    /// Polls a completion queue that was created or imported otherwise, and that nothing has completed to yet.
    ///
    /// # Errors
    /// Memory that has a queue on it already.
    pub fn attach_cq(&mut self, control: ionic::CompletionQueue) -> Result<CompletionQueue> {
        let (plan, caps) = (*control.plan(), *self.context.caps());
        let rings = [0, 1].map(|udma| control.ring(udma));
        let ids = rings.map(|ring| ring.map(|(id, _)| id));
        let queue = Owned::build(rings.map(|ring| ring.map(|(_, pages)| pages)), |memory| {
            let mut built = [None, None];
            for ((slot, id), memory) in built.iter_mut().zip(ids).zip(memory) {
                if let (Some(id), Some(memory)) = (id, memory) {
                    *slot = Some(CqRing::new(id, caps.cq_qtype, &plan, memory)?);
                }
            }
            cq::CompletionQueue::new(caps.udma_count, built)
        });
        let queue = queue.map_err(|error| Error::Memory { object: CQ, error })?;
        Ok(CompletionQueue { queue, control, context: self.context.clone() })
    }

    /// Reads a queue pair's attributes from the device. If that has found it in error, what is outstanding is flushed.
    ///
    /// # Errors
    /// The kernel refuses, or answers with a state that there is not.
    pub fn query_qp(&mut self, qp: &mut QueuePair) -> Result<QueriedQp> {
        let queried = qp.control.query()?;
        if queried.attributes.state == Some(QpState::Err) && qp.queue.state() != QpState::Err {
            qp.queue.set_error();
        }
        Ok(queried)
    }
}

/// Memory of a queue, with its bookkeeping.
fn memory<R: Clone + Default>(
    ring: Option<RingMemory<'static>>,
    records: usize,
    placed: &Placed,
) -> std::result::Result<QueueMemory<'static, Box<[R]>, Window>, MemoryError> {
    let ring = ring.ok_or(MemoryError::Mismatch(text!("a queue needs a ring")))?;
    let cmb = placed.shared_cmb().map(|Cmb { memory, express, mapping }| Cmb {
        memory: Window(memory.clone()),
        express,
        mapping,
    });
    Ok(QueueMemory { ring, records: vec![R::default(); records].into_boxed_slice(), cmb })
}

fn forget(qp: &mut InnerQp, cqs: &mut [&mut CompletionQueue]) {
    for cq in cqs {
        cq.queue.forget(qp);
    }
}

impl verbs::Device for Device {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain;
    type MemoryRegion = Region;
    type CompletionQueue = CompletionQueue;
    type QueuePair = QueuePair;
    type SharedReceiveQueue = NoSharedReceiveQueue;

    fn attributes(&self) -> DeviceAttributes {
        let (caps, base) = (self.context.caps(), &self.context.generic().limits().base);
        let largest = QpPlan::largest(caps);
        let (wr, sge) = (base.max_qp_wr.get(), base.max_sge.get());
        DeviceAttributes {
            family: match caps.version {
                RdmaVersion::V1 => "ionic-v1",
                RdmaVersion::V2 => "ionic",
            },
            max_qp: verbs::QpCapabilities {
                max_send_wr: largest.max_send_wr.min(wr),
                max_recv_wr: largest.max_recv_wr.min(wr),
                max_send_sge: largest.max_send_sge.min(sge),
                max_recv_sge: largest.max_recv_sge.min(sge),
                ..largest
            },
            max_cqe: MAX_CQE.min(base.max_cqe.get()),
            max_srq_wr: 0,
            max_rd_atomic: self.host.max_rd_atomic(),
            atomics: base.atomic_cap.get() != 0,
            memory_windows: base.max_mw.get() != 0,
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
        let mut pd = ProtectionDomain::alloc(&self.context)?;
        pd.set_send_placement(self.settings.placement.sq)?;
        pd.set_recv_placement(self.settings.placement.rq)?;
        pd.set_udma_mask(self.settings.udma_mask)?;
        Ok(pd)
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
        self.create_cq_on(cqe, self.settings.udma_mask, None, 0)
    }

    fn destroy_cq(&mut self, cq: CompletionQueue) -> Result<()> {
        let CompletionQueue { queue, control, .. } = cq;
        drop(queue);
        control.destroy()
    }

    fn create_srq(&mut self, _: &ProtectionDomain, _: SrqInit) -> Result<NoSharedReceiveQueue> {
        Err(Error::Unsupported { object: "shared receive queue", feature: "any", needs: "another device" })
    }

    fn destroy_srq(&mut self, srq: NoSharedReceiveQueue) -> Result<()> {
        match srq {}
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, NoSharedReceiveQueue>,
    ) -> Result<QueuePair> {
        let wanted = ionic::QueuePairInit {
            qp_type: init.qp_type,
            capabilities: init.capabilities,
            send_cq: &init.send_cq.control,
            recv_cq: &init.recv_cq.control,
            signal_all: init.signal_all,
        };
        let control = ionic::QueuePair::create(pd, &wanted)?;
        let config = QpConfig {
            id: control.id(),
            qp_type: init.qp_type,
            udma: control.udma(),
            signal_all: init.signal_all,
            send_cq: &init.send_cq.queue,
            recv_cq: &init.recv_cq.queue,
        };
        let (plan, send, recv) = (control.plan(), control.send(), control.recv());
        let queue = Owned::build([Some(send.ring()), Some(recv.ring())], |[sq, rq]| {
            let sq = memory::<SqRecord>(sq, plan.sq.records(), send)?;
            let rq = memory::<RqRecord>(rq, plan.rq.records(), recv)?;
            qp::QueuePair::new(self.context.caps(), &config, plan, sq, rq)
        });
        let queue = queue.map_err(|error| Error::Memory { object: QP, error })?;
        Ok(QueuePair { queue, control, context: self.context.clone() })
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair,
        cqs: &mut [&mut CompletionQueue],
        attributes: &QpAttributes,
    ) -> Result<()> {
        let to = attributes.check(qp.queue.qp_type(), qp.queue.state())?;
        qp.control.follow(qp.queue.state());
        qp.control.modify(attributes, self.host.origin().port)?;
        if to == QpState::Reset {
            forget(&mut qp.queue, cqs);
        }
        qp.queue.set_state(to);
        Ok(())
    }

    fn destroy_qp(&mut self, qp: QueuePair, cqs: &mut [&mut CompletionQueue]) -> Result<()> {
        let QueuePair { mut queue, control, .. } = qp;
        // From now on the device writes no CQE that names it.
        let destroyed = control.destroy();
        forget(&mut queue, cqs);
        destroyed
    }

    fn create_ah(&mut self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId> {
        let created = pd.create_ah(to, self.host.origin().port)?;
        Ok(self.host.keep_ah(created))
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<()> {
        self.host.destroy_ah(ah)
    }
}
