//! The part of a NIC that both families share: engine, rings, CQE writes, faults.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use directverbs::verbs::{CqId, QpId, SrqId};

use crate::bus::{Bus, BusError};
use crate::clock::Clock;
use crate::device::{CqConfig, DeviceError, Memory, NicConfig, Notification, RingConfig};
use crate::fault::{FaultPlan, Random};
use crate::port::PortCounters;
use crate::roce::{Counters, Engine, PsnRange, RecvWork, SendWork};

/// How much later than its turn a delayed CQE is written.
const CQE_DELAY_NS: u64 = 20_000;

/// A completion queue as the device sees it.
#[derive(Debug)]
struct Cq {
    ring: RingConfig,
    vector: u16,
    /// CQEs ever written.
    position: u64,
    /// Entries that wait for their time, oldest first.
    late: VecDeque<Late>,
}

#[derive(Debug)]
struct Late {
    at_ns: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Cqe { ring: RingConfig, index: u32, bytes: Vec<u8> },
    Notify,
}

/// The engine and what a front end needs beside it.
#[derive(Debug)]
pub struct Hardware {
    config: NicConfig,
    clock: Clock,
    bus: SharedBus,
    pub(crate) engine: Engine,
    cqs: HashMap<u32, Cq>,
    memory: Vec<u8>,
    notifications: VecDeque<Notification>,
    plan: FaultPlan,
    random: Random,
    port: PortCounters,
}

struct SharedBus(Arc<dyn Bus>);

impl std::fmt::Debug for SharedBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bus")
    }
}

impl Hardware {
    /// A NIC's common part.
    pub(crate) fn new(config: NicConfig, bus: Arc<dyn Bus>, clock: Clock) -> Self {
        Self {
            engine: Engine::new(&config),
            memory: vec![0; config.device_memory],
            config,
            clock,
            bus: SharedBus(bus),
            cqs: HashMap::new(),
            notifications: VecDeque::new(),
            plan: FaultPlan::NONE,
            random: Random::new(0),
            port: PortCounters::default(),
        }
    }

    /// All is as after power-on.
    pub(crate) fn reset(&mut self) {
        self.engine = Engine::new(&self.config);
        self.cqs.clear();
        self.memory.fill(0);
        self.notifications.clear();
    }

    /// What the NIC was built with.
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The host's memory and interrupts.
    pub fn bus(&self) -> &dyn Bus {
        &*self.bus.0
    }

    /// Memory of the device that the host can map.
    pub fn device_memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// Copies bytes of a ring, from `offset` of its start, into `out`. It does not wrap.
    ///
    /// # Errors
    /// The bytes are not in the ring, or its memory is not there.
    pub fn read_ring(&self, ring: &RingConfig, offset: u64, out: &mut [u8]) -> Result<(), BusError> {
        inside(ring, offset, out.len())?;
        self.read_memory(&ring.memory, offset, out)
    }

    /// Copies `bytes` into a ring at `offset` of its start. It does not wrap.
    ///
    /// # Errors
    /// The bytes do not fit the ring, or its memory is not there.
    pub fn write_ring(&mut self, ring: &RingConfig, offset: u64, bytes: &[u8]) -> Result<(), BusError> {
        inside(ring, offset, bytes.len())?;
        self.write_memory(&ring.memory, offset, bytes)
    }

    fn read_memory(&self, memory: &Memory, offset: u64, out: &mut [u8]) -> Result<(), BusError> {
        if let Memory::Device(base) = memory {
            let error = BusError { addr: base.wrapping_add(offset), len: out.len() };
            let start = usize::try_from(base.wrapping_add(offset)).map_err(|_| error)?;
            let bytes = start.checked_add(out.len()).and_then(|end| self.memory.get(start..end));
            out.copy_from_slice(bytes.ok_or(error)?);
            return Ok(());
        }
        let mut done = 0;
        while done < out.len() {
            let (addr, len) = memory.locate(offset + done as u64, out.len() - done)?;
            self.bus.0.read(addr, out.get_mut(done..done + len).unwrap_or_default())?;
            done += len;
        }
        Ok(())
    }

    fn write_memory(&mut self, memory: &Memory, offset: u64, bytes: &[u8]) -> Result<(), BusError> {
        if let Memory::Device(base) = memory {
            let error = BusError { addr: base.wrapping_add(offset), len: bytes.len() };
            let start = usize::try_from(base.wrapping_add(offset)).map_err(|_| error)?;
            let to = start.checked_add(bytes.len()).and_then(|end| self.memory.get_mut(start..end));
            to.ok_or(error)?.copy_from_slice(bytes);
            return Ok(());
        }
        let mut done = 0;
        while done < bytes.len() {
            let (addr, len) = memory.locate(offset + done as u64, bytes.len() - done)?;
            self.bus.0.publish(addr, bytes.get(done..done + len).unwrap_or_default())?;
            done += len;
        }
        Ok(())
    }

    /// Gives the engine a send request, and says which sequence numbers it got.
    ///
    /// # Errors
    /// No such queue pair, or its state takes no send requests.
    pub fn post_send(&mut self, qp: QpId, work: SendWork) -> Result<PsnRange, DeviceError> {
        self.engine.post_send(qp, work)
    }

    /// Gives the engine a receive request of a queue pair.
    ///
    /// # Errors
    /// No such queue pair, or it takes its receive requests from elsewhere.
    pub fn post_recv(&mut self, qp: QpId, work: RecvWork) -> Result<(), DeviceError> {
        self.engine.post_recv(qp, work)
    }

    /// Gives the engine a receive request of a shared receive queue.
    ///
    /// # Errors
    /// No such queue.
    pub fn post_srq(&mut self, srq: SrqId, work: RecvWork) -> Result<(), DeviceError> {
        self.engine.post_srq(srq, work)
    }

    /// Asks for an event once the shared receive queue holds fewer than `limit` requests.
    ///
    /// # Errors
    /// No such queue.
    pub fn arm_srq(&mut self, srq: SrqId, limit: u32) -> Result<(), DeviceError> {
        self.engine.arm_srq(srq, limit)
    }

    /// The limit of a shared receive queue that an event is still wanted for.
    pub fn srq_limit(&self, srq: SrqId) -> Option<u32> {
        self.engine.srq_limit(srq)
    }

    /// A queue pair goes into error because of something that the front end found (a WQE that cannot be fetched). All
    /// its requests are flushed.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn fail_qp(
        &mut self,
        qp: QpId,
        side: crate::roce::Side,
        status: directverbs::verbs::WcStatus,
    ) -> Result<(), DeviceError> {
        self.engine.fail_qp(qp, side, status)
    }

    /// Local operations of a queue pair are reported when they are carried out, also before earlier requests of its
    /// send queue have ended. Without it, all completions of a send queue come in post order.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn set_early_local(&mut self, qp: QpId, early: bool) -> Result<(), DeviceError> {
        self.engine.set_early_local(qp, early)
    }

    /// What the engine has counted.
    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }

    /// What has passed the port since power-on: a reset of the function does not change it.
    pub fn port(&self) -> &PortCounters {
        &self.port
    }

    /// Ring of a completion queue.
    pub fn cq_ring(&self, cq: CqId) -> Option<&RingConfig> {
        self.cqs.get(&cq.get()).map(|cq| &cq.ring)
    }

    /// CQEs written to a completion queue since creation, or since the last switch plus the position given there.
    pub fn cq_position(&self, cq: CqId) -> Option<u64> {
        self.cqs.get(&cq.get()).map(|cq| cq.position)
    }

    /// Writes the next CQE. `encode` is told its position: the number of CQEs before it, whose quotient and remainder
    /// by the ring's entries are lap and index. The fault plan may call it a second time for a duplicate.
    pub fn push_cqe<const N: usize>(&mut self, cq: CqId, mut encode: impl FnMut(u64) -> [u8; N]) {
        let times = 1 + usize::from(self.random.happens(self.plan.duplicate_cqe));
        for _ in 0..times {
            let Some(queue) = self.cqs.get_mut(&cq.get()) else { return };
            let position = queue.position;
            queue.position += 1;
            let index = position.checked_rem(queue.ring.entries.into()).unwrap_or(0) as u32;
            self.write_cqe(cq, index, &encode(position));
        }
    }

    /// Writes a CQE at entry `index`. The fault plan may delay it, with all that follow in this queue, or corrupt it.
    pub fn write_cqe(&mut self, cq: CqId, index: u32, bytes: &[u8]) {
        let late = self.random.happens(self.plan.delay_cqe);
        let corrupt = self.random.happens(self.plan.corrupt_cqe);
        let now = self.clock.now_ns();
        let Some(queue) = self.cqs.get_mut(&cq.get()) else { return };
        let ring = queue.ring.clone();
        let mut bytes = bytes.to_vec();
        if corrupt {
            let bit = self.random.below(bytes.len() as u64 * 8);
            if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
        if late || !queue.late.is_empty() {
            let at_ns = now + if late { CQE_DELAY_NS } else { 0 };
            queue.late.push_back(Late { at_ns, what: What::Cqe { ring, index, bytes } });
        } else {
            self.write_cqe_now(cq, &ring, index, &bytes);
        }
    }

    fn write_cqe_now(&mut self, cq: CqId, ring: &RingConfig, index: u32, bytes: &[u8]) {
        let offset = u64::from(index) * u64::from(ring.stride);
        if self.write_ring(ring, offset, bytes).is_err() {
            self.notify(Notification::CqError(cq));
        }
    }

    /// Tells the host that an armed completion queue got a completion; not before its CQEs are written.
    pub fn notify_cq(&mut self, cq: CqId) {
        let Some(queue) = self.cqs.get_mut(&cq.get()) else { return };
        if queue.late.is_empty() {
            let vector = queue.vector;
            self.notify(Notification::Cq(cq));
            self.bus.0.interrupt(vector);
        } else {
            queue.late.push_back(Late { at_ns: 0, what: What::Notify });
        }
    }

    /// Tells the host something.
    pub fn notify(&mut self, notification: Notification) {
        self.notifications.push_back(notification);
        self.bus.0.notified();
    }

    /// Gives a completion queue another ring; the next CQE gets `position` there.
    pub fn switch_cq(&mut self, cq: CqId, ring: RingConfig, position: u64) {
        if let Some(queue) = self.cqs.get_mut(&cq.get()) {
            queue.ring = ring;
            queue.position = position;
        }
    }

    pub(crate) fn receive(&mut self, frame: &[u8]) {
        self.port.received.count(frame);
        self.engine.receive(&*self.bus.0, self.clock.now_ns(), frame);
        if self.engine.has_host_frame() {
            self.bus.0.notified();
        }
    }

    pub(crate) fn step(&mut self) -> bool {
        let now = self.clock.now_ns();
        let wrote = self.write_late(now);
        self.engine.step(&*self.bus.0, now) | wrote
    }

    pub(crate) fn has_frame(&self) -> bool {
        self.engine.has_frame()
    }

    pub(crate) fn take_frame(&mut self) -> Option<Vec<u8>> {
        let frame = self.engine.take_frame()?;
        self.port.sent.count(&frame);
        Some(frame)
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        [self.engine.next_timer(), self.next_late()].into_iter().flatten().min()
    }

    pub(crate) fn set_faults(&mut self, plan: FaultPlan, seed: u64) {
        self.plan = plan;
        self.random = Random::new(seed);
    }

    pub(crate) fn drops_doorbell(&mut self) -> bool {
        self.random.happens(self.plan.drop_doorbell)
    }

    pub(crate) fn take_notification(&mut self) -> Option<Notification> {
        self.notifications.pop_front()
    }

    pub(crate) fn add_cq(&mut self, cq: CqId, config: &CqConfig) {
        let queue =
            Cq { ring: config.ring.clone(), vector: config.vector, position: 0, late: VecDeque::new() };
        self.cqs.insert(cq.get(), queue);
    }

    pub(crate) fn remove_cq(&mut self, cq: CqId) -> bool {
        self.cqs.remove(&cq.get()).is_some()
    }

    /// The earliest time at which a delayed CQE is due.
    pub(crate) fn next_late(&self) -> Option<u64> {
        self.cqs.values().filter_map(|cq| cq.late.front()).map(|late| late.at_ns).min()
    }

    /// Writes the delayed CQEs whose time has come by `now_ns`; `true` if there were any.
    pub(crate) fn write_late(&mut self, now_ns: u64) -> bool {
        let mut due: Vec<u32> = Vec::new();
        due.extend(self.cqs.iter().filter(|(_, cq)| !cq.late.is_empty()).map(|(id, _)| *id));
        due.sort_unstable();
        let mut any = false;
        for id in due {
            let cq = CqId::truncated(id);
            while let Some(late) = self.cqs.get_mut(&id).and_then(|q| {
                q.late.front().is_some_and(|l| l.at_ns <= now_ns).then(|| q.late.pop_front())?
            }) {
                any = true;
                match late.what {
                    What::Cqe { ring, index, bytes } => self.write_cqe_now(cq, &ring, index, &bytes),
                    What::Notify => {
                        self.notify(Notification::Cq(cq));
                        let vector = self.cqs.get(&id).map_or(0, |q| q.vector);
                        self.bus.0.interrupt(vector);
                    }
                }
            }
        }
        any
    }
}

fn inside(ring: &RingConfig, offset: u64, len: usize) -> Result<(), BusError> {
    let end = offset.checked_add(len as u64);
    if end.is_some_and(|end| end <= ring.bytes()) { Ok(()) } else { Err(BusError { addr: offset, len }) }
}
