//! The in-process platform of bnxt_re.

mod caps;
mod page;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq};
use directverbs::bnxt_re::caps::{DeviceCaps, Generation};
use directverbs::bnxt_re::cq::CompletionQueue;
use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, PushPage, Xid};
use directverbs::bnxt_re::plan::{CqPlan, QpPlan, SRQ_ENTRY_BYTES, SrqPlan};
use directverbs::bnxt_re::push::PushBuffer;
use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
use directverbs::bnxt_re::send::SendInit;
use directverbs::bnxt_re::srq::SharedReceiveQueue;
use directverbs::bnxt_re::wqe::{SLOT_BYTES, STATIC_SLOTS, WqeMode};
use directverbs::queue::{Boxed, Doorbell};
use directverbs::verbs::{
    AccessFlags, AddressVector, AhId, CqId, Device, DeviceAttributes, MemoryError, MwType, PortAttributes,
    PostError, QpAttributes, QpId, QpInit, QpState, QpType, RKey, SendRequest, SrqId, SrqInit,
};

use super::error::On;
use super::memory::{Owned, ring};
use super::queue::Queue;
use super::{Cause, Host, HostError, ProtectionDomain, Region};
use crate::bnxt_re::{BnxtRe, Config};
use crate::bus::{HostBlock, HostMemory};
use crate::device::{
    CqConfig, DeviceError, Memory, NicConfig, Notification, QpConfig, RingConfig, SrqConfig,
};
use crate::fabric::{Fabric, NicHandle};
use crate::nic::Nic;
use page::TogglePage;
pub use page::{Page, Pages, PushMemory};

/// A completion queue.
pub type Cq = Queue<AttachedCq<'static, Boxed, Pages>>;
/// A queue pair.
pub type Qp = Queue<AttachedQp<'static, Boxed, Pages>>;
/// A shared receive queue.
pub type Srq = Queue<AttachedSrq<'static, Boxed, Pages>>;

/// The doorbell page of the process.
const PAGE: u32 = 1;
/// Events kept for whoever asks.
const EVENTS: usize = 256;

/// What the NIC and its driver are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BnxtReOptions {
    /// Generation of the chip: P5 or P7.
    pub generation: Generation,
    /// Layout of WQEs.
    pub wqe_mode: WqeMode,
    /// How often a completion waits to be joined with later ones, in parts per million.
    pub coalesce: u32,
    /// Seed of what is random about the chip.
    pub seed: u64,
}

impl BnxtReOptions {
    /// A chip of `generation` that joins a third of its completions.
    pub const fn new(generation: Generation, wqe_mode: WqeMode) -> Self {
        Self { generation, wqe_mode, coalesce: 333_333, seed: 0 }
    }
}

/// A bnxt_re NIC and its driver.
#[derive(Debug)]
pub struct BnxtReDevice {
    host: Host<BnxtRe>,
    page: Page,
    caps: DeviceCaps,
    next_handle: u32,
    cq_toggles: BTreeMap<CqId, TogglePage>,
    srq_toggles: BTreeMap<SrqId, TogglePage>,
    events: VecDeque<Notification>,
}

impl BnxtReDevice {
    /// Plugs a NIC into `fabric`.
    pub fn attach(fabric: &Fabric, config: NicConfig, options: BnxtReOptions) -> Self {
        let chip = match options.generation {
            Generation::P7 => Config::P7,
            Generation::Legacy | Generation::P5 => Config::P5,
        };
        let front_end = BnxtRe::new(Config { coalesce: options.coalesce, seed: options.seed, ..chip });
        let host = Host::attach(fabric, front_end, config);
        let page = Page::new(host.nic().clone(), PAGE);
        Self {
            host,
            page,
            caps: caps::caps(options.generation, options.wqe_mode),
            next_handle: 1,
            cq_toggles: BTreeMap::new(),
            srq_toggles: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    /// The NIC, to look at in tests.
    pub const fn nic(&self) -> &NicHandle<BnxtRe> {
        self.host.nic()
    }

    /// The host memory that the NIC reaches, to look at in tests.
    pub const fn memory(&self) -> &Arc<HostMemory> {
        self.host.memory()
    }

    /// What the driver knows of the NIC.
    pub const fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    /// The next event that the NIC has raised.
    pub fn take_event(&mut self) -> Option<Notification> {
        self.handle_events();
        self.events.pop_front()
    }

    /// What a kernel driver does when the NIC interrupts: it hands the toggle of the event on, lets the queue be armed
    /// again, and tells the process.
    fn handle_events(&mut self) {
        loop {
            let mut nic = self.host.nic().lock();
            let Some(event) = nic.take_notification() else { return };
            let (page, kind, xid, toggle) = match event {
                Notification::Cq(id) => {
                    let toggle = nic.front_end().cq_toggle(id);
                    (self.cq_toggles.get(&id), DbType::CQ_ARMENA, Xid::cq(id), toggle)
                }
                Notification::SrqLimit(id) => {
                    let toggle = nic.front_end().srq_toggle(id);
                    (self.srq_toggles.get(&id), DbType::SRQ_ARMENA, Xid::srq(id), toggle)
                }
                _ => (None, DbType::NULL, Ok(Xid::ring(0)), None),
            };
            drop(nic);
            if let (Some(page), Ok(xid), Some(toggle)) = (page, xid, toggle) {
                page.set(toggle);
                let word = DbWord::ring(kind, xid, DbIndex::ZERO, Epoch(false), page.get());
                self.page.store(0, word.to_u64());
            }
            if self.events.len() == EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }

    /// Posts one send request by push, through buffer `index` of the first push page.
    ///
    /// # Errors
    /// As for a post, or a WQE that is too long for the buffer.
    ///
    /// # Panics
    /// There is no such buffer.
    pub fn push_send(&self, qp: &mut Qp, request: &SendRequest<'_>, index: usize) -> Result<(), PostError> {
        let page = PushPage::new(Config::P5.push_page).expect("a small number");
        let memory = PushMemory::new(self.nic().clone(), 0);
        let buffer = PushBuffer::new(memory, page, index).expect("a buffer of the page");
        qp.0.qp.push(request, &buffer, &self.page)
    }

    fn pages(&self) -> Pages {
        Pages { doorbell: self.page.clone(), toggle: TogglePage::default() }
    }

    /// A handle for a new queue pair: not 0, and not given before.
    fn handle(&mut self) -> u32 {
        let handle = self.next_handle;
        self.next_handle = handle.checked_add(1).unwrap_or(1);
        handle
    }

    /// Resizes a completion queue for `cqe` completions. Completions that were in the old ring come out first.
    ///
    /// # Errors
    /// No such size, or the NIC refuses.
    pub fn resize_cq(&mut self, cq: &mut Cq, cqe: u32) -> Result<(), HostError> {
        let object = format!("completion queue {}", cq.0.cq.id());
        let now = CqPlan { entries: cq.0.cq.entries(), ..CqPlan::new(&self.caps, cqe).on(&object)? };
        let plan = CqPlan::resized(&self.caps, cqe, &now).on(&object)?;
        let block = self.host.alloc(plan.bytes as usize);
        let config = ring(&block, plan.entries, self.caps.cqe_bytes);
        cq.0.extend(block, |queue, memory| queue.cq.begin_resize(memory, &plan)).on(&object)?;
        let resized = self.nic().lock().resize_cq(cq.0.cq.id(), &config).on(&object);
        if resized.is_err() {
            cq.0.cq.cancel_resize();
        }
        resized
    }

    /// Takes back what the NIC has created if the driver could not build its side.
    fn or_destroy<T>(
        &self,
        built: Result<T, MemoryError>,
        destroy: impl FnOnce(&mut Nic<BnxtRe>) -> Result<(), DeviceError>,
    ) -> Result<T, Cause> {
        match built {
            Ok(built) => Ok(built),
            Err(error) => {
                destroy(&mut self.nic().lock())?;
                Err(error.into())
            }
        }
    }

    fn qp_config(
        &self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, Cq, Srq>,
        plan: &QpPlan,
        blocks: &[HostBlock; 2],
        handle: u32,
    ) -> QpConfig {
        let [sq_block, rq_block] = blocks;
        let (entries, stride) = match plan.send.mode {
            WqeMode::Static => (plan.send.wqes, STATIC_SLOTS * SLOT_BYTES),
            WqeMode::Variable => (plan.send.slots, SLOT_BYTES),
        };
        let table = RingConfig {
            memory: Memory::Host(sq_block.addr() + u64::from(plan.send.table_offset)),
            entries: if plan.send.msn_modulus == 0 { plan.send.npsn } else { plan.send.msn_modulus },
            stride: plan.send.retransmit.entry_bytes(),
        };
        QpConfig {
            id: None,
            qp_type: init.qp_type,
            pd: pd.0,
            send_cq: init.send_cq.0.cq.id(),
            recv_cq: init.recv_cq.0.cq.id(),
            srq: init.srq.map(|srq| srq.0.srq.id()),
            sq: ring(sq_block, entries, stride),
            rq: plan.recv.as_ref().map(|recv| ring(rq_block, recv.wqes, recv.wqe_slots * SLOT_BYTES)),
            retransmit: (init.qp_type == QpType::Rc).then_some(table),
            variable_entries: plan.send.mode == WqeMode::Variable,
            signal_all: init.signal_all,
            capabilities: plan.granted(),
            handle: handle.into(),
            pipeline: 0,
            options: 0,
        }
    }
}

fn forget(qp: &Qp, cqs: &mut [&mut Cq]) {
    for cq in cqs {
        cq.0.cq.forget(directverbs::verbs::Pollable::key(qp));
    }
}

impl Device for BnxtReDevice {
    type Error = HostError;
    type ProtectionDomain = ProtectionDomain;
    type MemoryRegion = Region;
    type CompletionQueue = Cq;
    type QueuePair = Qp;
    type SharedReceiveQueue = Srq;

    fn attributes(&self) -> DeviceAttributes {
        caps::attributes(&self.caps)
    }

    fn port(&self) -> PortAttributes {
        self.host.port()
    }

    fn progress(&mut self) -> bool {
        self.handle_events();
        let replayed = self.page.replay();
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

    fn create_cq(&mut self, cqe: u32) -> Result<Cq, HostError> {
        let object = "completion queue";
        let plan = CqPlan::new(&self.caps, cqe).on(object)?;
        let block = self.host.alloc(plan.bytes as usize);
        let ring = ring(&block, plan.entries, self.caps.cqe_bytes);
        let config = CqConfig { id: None, ring, handle: 0, vector: 0 };
        let id = self.nic().lock().create_cq(&config).on(object)?;
        let pages = self.pages();
        let built = Owned::build([block], |[memory]| {
            CompletionQueue::new(memory, &plan, id).map(|cq| AttachedCq::new(cq, pages.clone()))
        });
        let queue = self.or_destroy(built, |nic| nic.destroy_cq(id)).on(format_args!("{object} {id}"))?;
        queue.cq.enable(pages.toggle.get(), &self.page);
        self.cq_toggles.insert(id, pages.toggle);
        Ok(Queue(queue))
    }

    fn destroy_cq(&mut self, cq: Cq) -> Result<(), HostError> {
        let id = cq.0.cq.id();
        self.nic().lock().destroy_cq(id).on(format_args!("completion queue {id}"))?;
        self.cq_toggles.remove(&id);
        Ok(())
    }

    fn create_srq(&mut self, pd: &ProtectionDomain, init: SrqInit) -> Result<Srq, HostError> {
        let object = "shared receive queue";
        let plan = SrqPlan::new(&self.caps, &init).on(object)?;
        let block = self.host.alloc(plan.bytes as usize);
        let ring = ring(&block, plan.entries, SRQ_ENTRY_BYTES);
        let config = SrqConfig { id: None, pd: pd.0, ring, max_sge: plan.max_sge, handle: 0 };
        let id = self.nic().lock().create_srq(&config).on(object)?;
        let pages = self.pages();
        let built = Owned::build([block], |[memory]| {
            let srq = SharedReceiveQueue::boxed(memory, &plan, id)?;
            Ok(AttachedSrq { srq, page: pages.clone() })
        });
        let queue = self.or_destroy(built, |nic| nic.destroy_srq(id)).on(format_args!("{object} {id}"))?;
        queue.srq.enable(&self.page, pages.toggle.get());
        self.srq_toggles.insert(id, pages.toggle);
        Ok(Queue(queue))
    }

    fn destroy_srq(&mut self, srq: Srq) -> Result<(), HostError> {
        let id = srq.0.srq.id();
        self.nic().lock().destroy_srq(id).on(format_args!("shared receive queue {id}"))?;
        self.srq_toggles.remove(&id);
        Ok(())
    }

    fn create_qp(&mut self, pd: &ProtectionDomain, init: &QpInit<'_, Cq, Srq>) -> Result<Qp, HostError> {
        let plan = QpPlan::new(&self.caps, &init.capabilities, init.srq.is_some()).on("queue pair")?;
        let handle = self.handle();
        let recv_bytes = plan.recv.map_or(0, |recv| recv.bytes);
        let blocks = [plan.send.bytes, recv_bytes].map(|bytes| self.host.alloc(bytes as usize));
        let config = self.qp_config(pd, init, &plan, &blocks, handle);
        let id: QpId = self.nic().lock().create_qp(&config).on("queue pair")?;
        let send = SendInit {
            plan: plan.send,
            qp: id,
            qp_type: init.qp_type,
            signal_all: init.signal_all,
            atomics: self.caps.limits.atomics,
        };
        let init = QueuePairInit {
            id,
            handle,
            qp_type: init.qp_type,
            send_cq: config.send_cq,
            recv_cq: config.recv_cq,
            srq: config.srq,
            capabilities: config.capabilities,
        };
        let page = self.pages();
        let built = Owned::build(blocks, |[sq, rq]| {
            QueuePair::boxed(&plan, &send, &init, sq, Some(rq)).map(|qp| AttachedQp { qp, page })
        });
        let queue = self.or_destroy(built, |nic| nic.destroy_qp(id)).on(format_args!("queue pair {id}"))?;
        Ok(Queue(queue))
    }

    fn modify_qp(
        &mut self,
        qp: &mut Qp,
        cqs: &mut [&mut Cq],
        attributes: &QpAttributes,
    ) -> Result<(), HostError> {
        let id = qp.0.qp.id();
        let object = format_args!("queue pair {id}");
        let to = attributes.check(qp.0.qp.qp_type(), qp.0.qp.state()).on(object)?;
        self.nic().lock().modify_qp(id, attributes).on(object)?;
        if to == QpState::Reset {
            forget(qp, cqs);
        }
        qp.0.qp.modify(attributes).on(object)?;
        Ok(())
    }

    fn destroy_qp(&mut self, qp: Qp, cqs: &mut [&mut Cq]) -> Result<(), HostError> {
        let id = qp.0.qp.id();
        self.nic().lock().destroy_qp(id).on(format_args!("queue pair {id}"))?;
        forget(&qp, cqs);
        Ok(())
    }

    fn create_ah(&mut self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId, HostError> {
        self.host.create_ah(pd, to)
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<(), HostError> {
        self.host.destroy_ah(ah)
    }
}
