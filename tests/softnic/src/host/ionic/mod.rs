//! The in-process platform of ionic.

mod placement;
mod queues;
mod window;

use directverbs::ionic::caps::{Caps, ExpressQueues, ExpressStrides};
use directverbs::ionic::cmb::{Cmb, CmbGrant, CmbPreference, Mapping};
use directverbs::ionic::cq::{self, CqRing};
use directverbs::ionic::doorbell::QueueType;
use directverbs::ionic::plan::{CqPlan, MAX_CQE, Placement, QpPlan, RingPlan};
use directverbs::ionic::qp::{self, NoSharedReceiveQueue};
use directverbs::ionic::send::SqRecord;
use directverbs::ionic::{QueueMemory, recv::RqRecord, wqe::RdmaVersion};
use directverbs::text;
use directverbs::verbs::{
    AccessFlags, AddressVector, AhId, CqId, Device, DeviceAttributes, MwType, PlanError, PortAttributes,
    QpAttributes, QpId, QpInit, QpState, RKey, SrqInit,
};

use super::error::On;
use super::memory::{Owned, ring};
use super::{Cause, Host, HostError, ProtectionDomain, Region};
use crate::bus::HostBlock;
use crate::device::{CqConfig, Memory, NicConfig, QpConfig, RingConfig};
use crate::fabric::{Fabric, NicHandle};
use crate::ionic::{self, IonicConfig, PIPELINE_SHIFT, options};
use placement::DeviceSpace;
pub use queues::{CompletionQueue, QueuePair};
pub use window::{Port, Window};

/// Longest WQE, base-two logarithm of its bytes.
const MAX_STRIDE_LOG2: u8 = 10;
/// Queue pair numbers 0 and 1 are those of management.
const FIRST_QP: u32 = 2;

/// What the NIC and its driver are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IonicOptions {
    /// The NIC.
    pub device: IonicConfig,
    /// Where queue pairs put their queues.
    pub placement: Placement,
    /// How the NIC's memory is mapped.
    pub mapping: Mapping,
}

impl IonicOptions {
    /// A NIC of `version` whose queues are in host memory.
    pub const fn new(version: RdmaVersion) -> Self {
        Self {
            device: IonicConfig::new(version),
            placement: Placement { sq: CmbPreference::HOST, rq: CmbPreference::HOST },
            mapping: Mapping::WriteCombined,
        }
    }
}

/// An ionic NIC and its driver.
#[derive(Debug)]
pub struct IonicDevice {
    host: Host<ionic::Ionic>,
    port: Port,
    options: IonicOptions,
    caps: Caps,
    space: DeviceSpace,
    /// Numbers given to queue pairs and completion queues so far.
    given: [u32; 2],
}

impl IonicDevice {
    /// Plugs a NIC into `fabric`.
    pub fn attach(fabric: &Fabric, config: NicConfig, options: IonicOptions) -> Self {
        let space = DeviceSpace::new(config.device_memory as u64);
        let host = Host::attach(fabric, ionic::Ionic::new(options.device), config);
        let port = Port::new(host.nic().clone(), 1, options.device.seed);
        Self { host, port, caps: caps(&options.device), options, space, given: [0; 2] }
    }

    /// The NIC, to look at in tests.
    pub const fn nic(&self) -> &NicHandle<ionic::Ionic> {
        self.host.nic()
    }

    /// What the driver knows of the NIC.
    pub const fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The `nth` number on pipeline `udma`.
    const fn number(nth: u32, udma: u8) -> Option<u32> {
        if nth < 1 << PIPELINE_SHIFT { Some((udma as u32) << PIPELINE_SHIFT | nth) } else { None }
    }

    /// Gives out a number; the pipelines take turns.
    fn next_qp(&mut self) -> Result<(QpId, u8), HostError> {
        let count = self.given[0];
        let udma = (count % u32::from(self.caps.udma_count)) as u8;
        let nth = count / u32::from(self.caps.udma_count) + FIRST_QP;
        let number =
            Self::number(nth, udma).ok_or(Cause::Unsupported("all numbers are given")).on("queue pair")?;
        self.given[0] += 1;
        Ok((QpId::truncated(number), udma))
    }

    /// Memory of the NIC for a ring, or what stands in for it.
    fn place(&mut self, wanted: CmbPreference, plan: RingPlan) -> Result<Place, HostError> {
        if !wanted.enable {
            return Ok(Place { grant: CmbGrant::Host, base: 0 });
        }
        let (grant, base) = match self.space.take(plan.bytes() as u64) {
            Some(base) => (CmbGrant::Cmb { express: wanted.express, mapping: self.options.mapping }, base),
            None => (CmbGrant::Host, 0),
        };
        // The device's reply counts.
        let grant = wanted.granted(grant.to_abi()).on("queue pair")?;
        Ok(Place { grant, base })
    }

    fn queue_memory<'m, R>(
        &self,
        ring: directverbs::queue::RingMemory<'m>,
        records: R,
        place: Place,
    ) -> QueueMemory<'m, R, Window> {
        let cmb = match place.grant {
            CmbGrant::Host => None,
            CmbGrant::Cmb { express, mapping } => {
                Some(Cmb { memory: self.port.window(place.base, mapping), express, mapping })
            }
        };
        QueueMemory { ring, records, cmb }
    }

    fn give_back(&mut self, places: &[Place]) {
        for place in places {
            if place.grant != CmbGrant::Host {
                self.space.give(place.base);
            }
        }
    }

    fn build_qp(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, NoSharedReceiveQueue>,
        plan: &QpPlan,
        places: [Place; 2],
    ) -> Result<QueuePair, HostError> {
        let (id, udma) = self.next_qp()?;
        let object = format!("queue pair {id}");
        let config = qp::QpConfig {
            id,
            qp_type: init.qp_type,
            udma,
            signal_all: init.signal_all,
            send_cq: &init.send_cq.queue,
            recv_cq: &init.recv_cq.queue,
        };
        let blocks = [plan.sq, plan.rq].map(|queue| self.host.alloc(queue.ring.bytes()));
        let rings = [0, 1].map(|i| {
            let plan = [plan.sq.ring, plan.rq.ring][i];
            ring_config(&blocks[i], plan, places[i])
        });
        let queue = Owned::build(blocks, |[sq, rq]| {
            let sq_records = vec![SqRecord::default(); plan.sq.records()].into_boxed_slice();
            let rq_records = vec![RqRecord::default(); plan.rq.records()].into_boxed_slice();
            let sq = self.queue_memory(sq, sq_records, places[0]);
            let rq = self.queue_memory(rq, rq_records, places[1]);
            qp::QueuePair::new(&self.caps, &config, plan, sq, rq)
        })
        .on(&object)?;
        let [sq, rq] = rings;
        let flag = |set, flag| if set { flag } else { 0 };
        let device = QpConfig {
            id: Some(id),
            qp_type: init.qp_type,
            pd: pd.0,
            send_cq: queue.send_cq(),
            recv_cq: queue.recv_cq(),
            srq: None,
            sq,
            rq: Some(rq),
            retransmit: None,
            variable_entries: false,
            signal_all: init.signal_all,
            capabilities: queue.capabilities(),
            handle: 0,
            pipeline: udma,
            options: flag(plan.sq.spec != 0, options::SQ_SPEC)
                | flag(plan.rq.spec != 0, options::RQ_SPEC)
                | flag(places[0].grant.express(), options::SQ_EXPRESS)
                | flag(places[1].grant.express(), options::RQ_EXPRESS),
        };
        self.nic().lock().create_qp(&device).on(&object)?;
        Ok(QueuePair { queue, port: self.port.clone(), places })
    }
}

/// Where a ring is.
#[derive(Clone, Copy, Debug)]
struct Place {
    grant: CmbGrant,
    /// Start in the NIC's memory.
    base: u64,
}

fn ring_config(block: &HostBlock, plan: RingPlan, place: Place) -> RingConfig {
    let host = ring(block, plan.depth(), plan.stride());
    match place.grant {
        CmbGrant::Host => host,
        CmbGrant::Cmb { .. } => RingConfig { memory: Memory::Device(place.base), ..host },
    }
}

fn caps(device: &IonicConfig) -> Caps {
    let qtype = |register| QueueType::new(register).unwrap_or_default();
    let strides = [
        (64, ExpressStrides::B64),
        (128, ExpressStrides::B128),
        (256, ExpressStrides::B256),
        (512, ExpressStrides::B512),
    ];
    let has = strides.into_iter().filter(|(bytes, _)| device.express_strides & bytes != 0);
    Caps {
        version: device.version,
        page_shift: 12,
        sq_qtype: qtype(ionic::SQ_QTYPE),
        rq_qtype: qtype(ionic::RQ_QTYPE),
        cq_qtype: qtype(ionic::CQ_QTYPE),
        max_stride: MAX_STRIDE_LOG2,
        max_spec: device.max_spec as u8,
        udma_count: device.pipelines,
        express_strides: has.map(|(_, flag)| flag).collect(),
        express_queues: ExpressQueues::all(),
    }
}

impl Device for IonicDevice {
    type Error = HostError;
    type ProtectionDomain = ProtectionDomain;
    type MemoryRegion = Region;
    type CompletionQueue = CompletionQueue;
    type QueuePair = QueuePair;
    type SharedReceiveQueue = NoSharedReceiveQueue;

    fn attributes(&self) -> DeviceAttributes {
        DeviceAttributes {
            family: match self.caps.version {
                RdmaVersion::V1 => "ionic-v1",
                RdmaVersion::V2 => "ionic",
            },
            max_qp: QpPlan::largest(&self.caps),
            max_cqe: MAX_CQE,
            max_srq_wr: 0,
            max_rd_atomic: 16,
            atomics: true,
            memory_windows: true,
        }
    }

    fn port(&self) -> PortAttributes {
        self.host.port()
    }

    fn progress(&mut self) -> bool {
        let replayed = self.port.replay();
        self.host.progress() || replayed
    }

    fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    fn alloc_pd(&mut self) -> Result<ProtectionDomain, HostError> {
        self.host.alloc_pd()
    }

    fn dealloc_pd(&mut self, pd: ProtectionDomain) -> Result<(), HostError> {
        self.host.dealloc_pd(pd)
    }

    fn alloc_mr(
        &mut self,
        pd: &ProtectionDomain,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region, HostError> {
        self.host.alloc_mr(pd, len, access)
    }

    fn dealloc_mr(&mut self, mr: Region) -> Result<(), HostError> {
        self.host.dealloc_mr(mr)
    }

    fn alloc_mw(&mut self, pd: &ProtectionDomain, mw_type: MwType) -> Result<RKey, HostError> {
        self.host.alloc_mw(pd, mw_type)
    }

    fn dealloc_mw(&mut self, mw: RKey) -> Result<(), HostError> {
        self.host.dealloc_mw(mw)
    }

    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue, HostError> {
        let plan = CqPlan::new(&self.caps, cqe).on("completion queue")?;
        let nth = self.given[1];
        let udma_count = self.caps.udma_count;
        let mut ids = [None; 2];
        for (udma, id) in ids.iter_mut().enumerate().take(udma_count.into()) {
            *id = Self::number(nth, udma as u8).map(CqId::truncated);
        }
        if ids == [None; 2] {
            return Err(Cause::Unsupported("all numbers are given")).on("completion queue");
        }
        let blocks = [(); 2].map(|()| self.host.alloc(plan.ring.bytes()));
        let configs = [0, 1].map(|i| ring(&blocks[i], plan.ring.depth(), plan.ring.stride()));
        let qtype = self.caps.cq_qtype;
        let queue = Owned::build(blocks, |[a, b]| {
            let ring =
                |id: Option<CqId>, memory| id.map(|id| CqRing::new(id, qtype, &plan, memory)).transpose();
            cq::CompletionQueue::new(udma_count, [ring(ids[0], a)?, ring(ids[1], b)?])
        })
        .on(format_args!("completion queue {nth:#x}"))?;
        let mut made = Vec::new();
        for (id, ring) in ids.into_iter().zip(configs) {
            let Some(id) = id else { continue };
            let config = CqConfig { id: Some(id), ring, handle: id.get().into(), vector: id.get() as u16 };
            let created = self.nic().lock().create_cq(&config).on(format_args!("completion queue {id}"));
            if let Err(error) = created {
                for id in made {
                    self.nic().lock().destroy_cq(id).on(format_args!("completion queue {id}"))?;
                }
                return Err(error);
            }
            made.push(id);
        }
        self.given[1] += 1;
        Ok(CompletionQueue { queue, port: self.port.clone() })
    }

    fn destroy_cq(&mut self, cq: CompletionQueue) -> Result<(), HostError> {
        for udma in 0..self.caps.udma_count {
            if let Some(ring) = cq.queue.ring(udma) {
                let id = ring.id();
                self.nic().lock().destroy_cq(id).on(format_args!("completion queue {id}"))?;
            }
        }
        Ok(())
    }

    fn create_srq(&mut self, _: &ProtectionDomain, _: SrqInit) -> Result<NoSharedReceiveQueue, HostError> {
        Err(PlanError::Unsupported(text!("the device has no shared receive queues")))
            .on("shared receive queue")
    }

    fn destroy_srq(&mut self, srq: NoSharedReceiveQueue) -> Result<(), HostError> {
        match srq {}
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, NoSharedReceiveQueue>,
    ) -> Result<QueuePair, HostError> {
        let plan = QpPlan::new(&self.caps, &init.capabilities, self.options.placement).on("queue pair")?;
        let sq = self.place(plan.sq.cmb, plan.sq.ring)?;
        let rq = self.place(plan.rq.cmb, plan.rq.ring).inspect_err(|_| self.give_back(&[sq]))?;
        self.build_qp(pd, init, &plan, [sq, rq]).inspect_err(|_| self.give_back(&[sq, rq]))
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair,
        cqs: &mut [&mut CompletionQueue],
        attributes: &QpAttributes,
    ) -> Result<(), HostError> {
        let object = format!("queue pair {}", qp.queue.id());
        let to = attributes.check(qp.queue.qp_type(), qp.queue.state()).on(&object)?;
        self.nic().lock().modify_qp(qp.queue.id(), attributes).on(&object)?;
        if to == QpState::Reset {
            forget(qp, cqs);
        }
        qp.queue.set_state(to);
        Ok(())
    }

    fn destroy_qp(&mut self, mut qp: QueuePair, cqs: &mut [&mut CompletionQueue]) -> Result<(), HostError> {
        let id = qp.queue.id();
        self.nic().lock().destroy_qp(id).on(format_args!("queue pair {id}"))?;
        forget(&mut qp, cqs);
        self.give_back(&qp.places);
        Ok(())
    }

    fn create_ah(&mut self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId, HostError> {
        self.host.create_ah(pd, to)
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<(), HostError> {
        self.host.destroy_ah(ah)
    }
}

fn forget(qp: &mut QueuePair, cqs: &mut [&mut CompletionQueue]) {
    for cq in cqs {
        cq.queue.forget(&mut qp.queue);
    }
}
