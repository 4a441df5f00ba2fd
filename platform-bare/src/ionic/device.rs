use directverbs::ionic::admin::*;
use directverbs::ionic::caps::Caps;
use directverbs::ionic::cq::{self, CqRing};
use directverbs::ionic::devcmd::{LifStats, PortOper, RdmaIdentity};
use directverbs::ionic::plan::{CqPlan, MAX_CQE, QpPlan};
use directverbs::ionic::qp::NoSharedReceiveQueue;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::queue::RingMemory;
use directverbs::verbs::{
    self, AccessFlags, AddressVector, AhId, CqId, DeviceAttributes, Gid, MemoryError, MwType, PortAttributes,
    QpAttributes, QpInit, RKey, SrqInit,
};

use super::config::Config;
use super::error::{Cause, Error, On};
use super::events::Event;
use super::objects::Objects;
use super::queues::{CompletionQueue, QueuePair, Rings};
use super::session::{self, DBID, EQ, Session};
use crate::dma::Owned;
use crate::host::Host;
use crate::region::Region;
use crate::registers::DoorbellPage;

/// Entries of the GID table.
const GIDS: usize = 16;
/// Events that wait for the caller.
const EVENTS: usize = 32;
/// READs and atomics outstanding at a queue pair.
const MAX_RD_ATOMIC: u8 = 16;

pub(super) const CQ: &str = "completion queue";
pub(super) const PD: &str = "protection domain";

/// Protection domain.
#[derive(Debug)]
pub struct ProtectionDomain {
    pub(super) id: u32,
}

/// An ionic NIC that is up.
///
/// Dropping it resets the device and takes it off the bus. Objects that were not destroyed before keep their memory until
/// they are dropped, and the host keeps that until the next device is opened there.
#[derive(Debug)]
pub struct Device<H: Host> {
    pub(super) session: Session<H>,
    pub(super) doorbell: DoorbellPage<H::Bar>,
    pub(super) identity: RdmaIdentity,
    pub(super) caps: Caps,
    pub(super) objects: Objects,
    gids: heapless::Vec<Gid, GIDS>,
    events: heapless::Deque<Event, EVENTS>,
    lost_events: u32,
}

impl<H: Host> Device<H> {
    /// Brings the function of `host` up.
    ///
    /// # Errors
    /// What does not work. Nothing of the host's is left to the device then, and it can be opened again.
    pub fn open(host: H, config: Config) -> Result<Self, Error> {
        if !(1..=2).contains(&config.pipelines) {
            return Err(Cause::Unsupported("the device has one or two pipelines")).on("device", None);
        }
        let session = session::open(host, config)?;
        let identity = session.identity().on("device", None)?;
        let doorbell = session.doorbell.clone().ok_or(Cause::Failed).on("device", None)?;
        let caps = identity.caps(config.pipelines);
        let objects = Objects::new(&identity, caps.udma_count);
        Ok(Self {
            session,
            doorbell,
            identity,
            caps,
            objects,
            gids: heapless::Vec::new(),
            events: heapless::Deque::new(),
            lost_events: 0,
        })
    }

    /// Resets the device and takes it off the bus.
    ///
    /// # Errors
    /// It does not answer, or does not come to rest. It was taken off the bus all the same if that was possible.
    pub fn close(mut self) -> Result<(), Error> {
        self.session.take_down().on("device", None)
    }

    /// What the RDMA part of the device can do.
    pub const fn identity(&self) -> &RdmaIdentity {
        &self.identity
    }

    /// Whether the device has failed: it must be opened again.
    pub const fn has_failed(&self) -> bool {
        self.session.has_failed()
    }

    /// Adds a GID to the table and returns its index, or that of the same GID that is there already.
    ///
    /// # Errors
    /// The table is full.
    pub fn add_gid(&mut self, gid: Gid) -> Result<u8, Error> {
        let known = self.gids.iter().position(|known| *known == gid);
        let index = known.unwrap_or(self.gids.len()) as u8;
        if known.is_none() {
            self.gids.push(gid).map_err(|_| Cause::Exhausted(GIDS as u32)).on("GID", None)?;
        }
        Ok(index)
    }

    /// The GID table.
    pub fn gids(&self) -> &[Gid] {
        &self.gids
    }

    /// What the device has counted, as it has last told.
    pub fn statistics(&self) -> Option<LifStats> {
        self.session.lif_info().map(|info| info.stats)
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.collect_events();
        self.events.pop_front()
    }

    /// Events that came while too many waited for the caller.
    pub const fn lost_events(&self) -> u32 {
        self.lost_events
    }

    fn collect_events(&mut self) {
        // No more than fit: a device that never stops telling does not stop the caller.
        for _ in 0..EVENTS {
            let session = &mut self.session;
            let told = session.next_event().map(Event::from);
            let Some(event) = told.or_else(|| session.next_notification().map(Event::from)) else { return };
            if event == Event::Reset {
                session.fail();
            }
            if self.events.push_back(event).is_err() {
                self.lost_events = self.lost_events.saturating_add(1);
            }
        }
    }

    /// The headers for `path`, written where the device finds them.
    pub(super) fn headers(&mut self, path: &AddressVector) -> Result<(HeaderTemplate, u64), Cause> {
        let gid = self.gids.get(usize::from(path.sgid_index)).copied();
        let gid = gid.ok_or(Cause::Unsupported("no GID with the path's sgid_index"))?;
        let headers = HeaderTemplate::new(path, self.session.mac, gid)?;
        let (scratch, at) = self.session.scratch()?;
        if scratch.store_bytes(0, headers.bytes()) { Ok((headers, at)) } else { Err(Cause::Failed) }
    }

    /// Builds a completion queue with a ring on each of `N` pipelines.
    fn build_cq<const N: usize>(
        &self,
        nth: u32,
        plan: &CqPlan,
    ) -> Result<Owned<cq::CompletionQueue<'static>, H::Dma, N>, Cause> {
        let host = &self.session.link.host;
        let mut blocks = heapless::Vec::<H::Dma, N>::new();
        for _ in 0..N {
            // There is room for N of them.
            let _full = blocks.push(host.dma(plan.ring.bytes(), 4096)?);
        }
        let blocks: [H::Dma; N] = blocks.into_array().map_err(|_| Cause::Failed)?;
        let build = |memories: [RingMemory<'static>; N]| -> Result<_, MemoryError> {
            let mut rings = [None, None];
            for ((udma, slot), memory) in (0u8..).zip(&mut rings).zip(memories) {
                let id = CqId::truncated(self.objects.number(nth, udma));
                *slot = Some(CqRing::new(id, self.caps.cq_qtype, plan, memory)?);
            }
            cq::CompletionQueue::new(N as u8, rings)
        };
        Ok(Owned::build(blocks, build)?)
    }

    /// Has the device create the rings at `addresses`.
    fn tell_cq(&mut self, nth: u32, plan: &CqPlan, addresses: &[u64]) -> Result<(), Cause> {
        let pages = PagePlan::ring(plan.ring.depth_log2 + plan.ring.stride_log2);
        for (udma, addr) in (0u8..).zip(addresses) {
            let cmd = CreateCqCmd {
                eq_id: (self.identity.event.base + EQ).into(),
                depth_log2: plan.ring.depth_log2,
                stride_log2: plan.ring.stride_log2,
                page_size_log2: pages.page_size_log2,
                id_ver: self.objects.number(nth, udma).into(),
                tbl_index: ANY_TABLE.into(),
                map_count: pages.count.into(),
                dma_addr: pages.dma_addr(*addr, 0).into(),
                dbid_flags: DBID.into(),
                ..CreateCqCmd::ZERO
            };
            if let Err(cause) = self.session.rdma(&cmd) {
                // What was created is destroyed again; if that fails, the device has failed.
                for udma in 0..udma {
                    self.forget_cq(nth, udma)?;
                }
                return Err(cause);
            }
        }
        Ok(())
    }

    fn forget_cq(&mut self, nth: u32, udma: u8) -> Result<(), Cause> {
        let cmd = DestroyCqCmd { cq_id: self.objects.number(nth, udma).into() };
        self.session.rdma(&cmd).map(drop).inspect_err(|_| self.session.fail())
    }

    fn make_cq(&mut self, cqe: u32) -> Result<CompletionQueue<H>, Cause> {
        let plan = CqPlan::new(&self.caps, cqe)?;
        let nth = self.objects.cqs.take()?;
        let (queue, told) = match self.caps.udma_count {
            1 => match self.build_cq::<1>(nth, &plan) {
                Ok(queue) => {
                    let told = self.tell_cq(nth, &plan, &queue.device_addresses());
                    (Rings::One(queue), told)
                }
                Err(cause) => return Err(self.without_cq(nth, cause)),
            },
            _ => match self.build_cq::<2>(nth, &plan) {
                Ok(queue) => {
                    let told = self.tell_cq(nth, &plan, &queue.device_addresses());
                    (Rings::Two(queue), told)
                }
                Err(cause) => return Err(self.without_cq(nth, cause)),
            },
        };
        match told {
            Ok(()) => Ok(CompletionQueue { queue, doorbell: self.doorbell.clone(), nth }),
            Err(cause) => {
                if !self.has_failed() {
                    queue.release();
                }
                Err(self.without_cq(nth, cause))
            }
        }
    }

    fn without_cq(&mut self, nth: u32, cause: Cause) -> Cause {
        if !self.has_failed() {
            self.objects.cqs.give(nth);
        }
        cause
    }

    fn unmake_cq(&mut self, cq: CompletionQueue<H>) -> Result<(), Cause> {
        self.objects.cqs.check_unused(cq.nth)?;
        for udma in 0..self.caps.udma_count {
            if cq.queue.queue().ring(udma).is_some() {
                self.forget_cq(cq.nth, udma)?;
            }
        }
        self.objects.cqs.give(cq.nth);
        cq.queue.release();
        Ok(())
    }

    fn make_ah(&mut self, pd: u32, to: &AddressVector) -> Result<AhId, Cause> {
        self.objects.pds.check(pd)?;
        let (headers, at) = self.headers(to)?;
        let id = self.objects.take_ah(pd)?;
        let cmd = CreateAhCmd {
            dma_addr: at.into(),
            length: u32::from(headers.len()).into(),
            pd_id: pd.into(),
            id_ver: id.into(),
            dbid_flags: DBID.into(),
            csum_profile: headers.profile() as u8,
            ..CreateAhCmd::ZERO
        };
        match self.session.rdma(&cmd) {
            Ok(_) => Ok(AhId::truncated(id)),
            Err(cause) => {
                if cause.is_harmless() {
                    self.objects.give_ah(id);
                }
                Err(cause)
            }
        }
    }
}

impl<H: Host> verbs::Device for Device<H> {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain;
    type MemoryRegion = Region<'static, H::Dma>;
    type CompletionQueue = CompletionQueue<H>;
    type QueuePair = QueuePair<H>;
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
            max_rd_atomic: MAX_RD_ATOMIC,
            atomics: true,
            memory_windows: true,
        }
    }

    fn port(&self) -> PortAttributes {
        let status = self.session.lif_info().map(|info| info.status.link_status.get());
        PortAttributes {
            active: status.map(PortOper) == Some(PortOper::UP),
            mtu: self.session.link.config.mtu,
            mac: self.session.mac,
            gid: self.gids.first().copied().unwrap_or_default(),
            gid_index: 0,
        }
    }

    fn progress(&mut self) -> bool {
        self.session.link.host.relax();
        self.collect_events();
        true
    }

    fn now_ns(&self) -> u64 {
        self.session.link.host.now_ns()
    }

    fn alloc_pd(&mut self) -> Result<ProtectionDomain, Error> {
        self.objects.pds.take().map(|id| ProtectionDomain { id }).on(PD, None)
    }

    fn dealloc_pd(&mut self, pd: ProtectionDomain) -> Result<(), Error> {
        self.objects.pds.check_unused(pd.id).on(PD, pd.id)?;
        self.objects.pds.give(pd.id);
        Ok(())
    }

    fn alloc_mr(
        &mut self,
        pd: &ProtectionDomain,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region<'static, H::Dma>, Error> {
        self.make_region(pd.id, len, access).on("memory region", None)
    }

    fn dealloc_mr(&mut self, mr: Region<'static, H::Dma>) -> Result<(), Error> {
        let key = verbs::MemoryRegion::rkey(&mr).get();
        self.forget_key(key).on("memory region", key)?;
        mr.release();
        Ok(())
    }

    fn alloc_mw(&mut self, pd: &ProtectionDomain, mw_type: MwType) -> Result<RKey, Error> {
        self.make_window(pd.id, mw_type).on("memory window", None)
    }

    fn dealloc_mw(&mut self, mw: RKey) -> Result<(), Error> {
        self.forget_key(mw.get()).on("memory window", mw.get())
    }

    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue<H>, Error> {
        self.make_cq(cqe).on(CQ, None)
    }

    fn destroy_cq(&mut self, cq: CompletionQueue<H>) -> Result<(), Error> {
        let id = verbs::CompletionQueue::id(&cq).get();
        self.unmake_cq(cq).on(CQ, id)
    }

    fn create_srq(&mut self, _: &ProtectionDomain, _: SrqInit) -> Result<NoSharedReceiveQueue, Error> {
        Err(Cause::Unsupported("the device has no shared receive queues")).on("shared receive queue", None)
    }

    fn destroy_srq(&mut self, srq: NoSharedReceiveQueue) -> Result<(), Error> {
        match srq {}
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue<H>, NoSharedReceiveQueue>,
    ) -> Result<QueuePair<H>, Error> {
        self.make_qp(pd.id, init).on("queue pair", None)
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair<H>,
        cqs: &mut [&mut CompletionQueue<H>],
        attributes: &QpAttributes,
    ) -> Result<(), Error> {
        self.change_qp(qp, cqs, attributes).on("queue pair", qp.queue.id().get())
    }

    fn destroy_qp(&mut self, qp: QueuePair<H>, cqs: &mut [&mut CompletionQueue<H>]) -> Result<(), Error> {
        let id = qp.queue.id().get();
        self.unmake_qp(qp, cqs).on("queue pair", id)
    }

    fn create_ah(&mut self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId, Error> {
        self.make_ah(pd.id, to).on("address handle", None)
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<(), Error> {
        self.objects.ahs.check(ah.get()).on("address handle", ah.get())?;
        self.session.rdma(&DestroyAhCmd { ah_id: ah.get().into() }).on("address handle", ah.get())?;
        self.objects.give_ah(ah.get());
        Ok(())
    }
}
