use std::collections::{BTreeSet, VecDeque};

use directverbs::verbs::{AhId, CqId, Gid, PdId, QpId, QpState, QpType, SrqId, WcStatus};

use super::context::{AddressHandle, Context, Counters, Parts, Srq};
use super::event::{Event, Side};
use super::frame::{FrameError, Packet};
use super::ids::{Table, Users};
use super::memory::MemoryTable;
use super::opcode::Service;
use super::qp::Qp;
use super::work::{PsnRange, RecvWork, SendWork};
use crate::bus::Bus;
use crate::device::{AhConfig, DeviceError, ModifyQp, MrConfig, NicConfig, QpConfig, QpStatus, SrqConfig};

/// Packets that a queue pair sends before the next has its turn.
const BUDGET: usize = 16;
/// Frames that wait for the wire, over which queue pairs have no turns.
const FULL: usize = 32;
/// Frames that wait for the host, over which more are lost.
const HOST_FULL: usize = 256;
/// First number given to a queue pair: 0 and 1 are special on the wire.
const FIRST_QP: u32 = 2;
/// The largest 24-bit number is the multicast queue pair.
const LAST_QP: u32 = 0xff_fffe;
const LAST_ID: u32 = 0xff_ffff;

/// The engine of one NIC.
#[derive(Debug)]
pub struct Engine {
    parts: Parts,
    pds: Table<Users>,
    cqs: Table<Users>,
    qps: Table<Qp>,
    /// Raw queue pairs: each gets a copy of every frame that is no RoCEv2 packet.
    raw: BTreeSet<u32>,
    /// Queue pairs that have something to send, in the order of their turns.
    ready: VecDeque<u32>,
    /// Queue pairs that wait for time, by time.
    timers: BTreeSet<(u64, u32)>,
}

impl Engine {
    pub(crate) fn new(config: &NicConfig) -> Self {
        let parts = Parts {
            config: config.clone(),
            memory: MemoryTable::new(config.all_memory_key.map(|key| key.get())),
            srqs: Table::new("shared receive queue", 1, LAST_ID),
            ahs: Table::new("address handle", 1, LAST_ID),
            events: VecDeque::new(),
            out: VecDeque::new(),
            for_host: None,
            counters: Counters::default(),
        };
        Self {
            parts,
            pds: Table::new("protection domain", 1, LAST_ID),
            cqs: Table::new("completion queue", 1, LAST_ID),
            qps: Table::new("queue pair", FIRST_QP, LAST_QP),
            raw: BTreeSet::new(),
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.parts.counters
    }

    /// Index of `gid` in the table, to which it is added if it is not there.
    pub(crate) fn learn_gid(&mut self, gid: Gid) -> Option<u8> {
        let gids = &mut self.parts.config.gids;
        let known = gids.iter().position(|known| *known == gid);
        let index = u8::try_from(known.unwrap_or(gids.len())).ok()?;
        if known.is_none() {
            gids.push(gid);
        }
        Some(index)
    }

    /// Sets entry `index` of the table.
    pub(crate) fn set_gid(&mut self, index: usize, gid: Gid) {
        let gids = &mut self.parts.config.gids;
        if gids.len() <= index {
            gids.resize(index + 1, Gid::default());
        }
        gids[index] = gid;
    }

    pub(crate) fn create_pd(&mut self) -> Result<PdId, DeviceError> {
        self.pds.insert(None, Users::default()).map(PdId::truncated)
    }

    pub(crate) fn destroy_pd(&mut self, pd: PdId) -> Result<(), DeviceError> {
        remove_unused(&mut self.pds, pd.get())
    }

    pub(crate) fn create_mr(&mut self, config: &MrConfig) -> Result<u32, DeviceError> {
        self.pds.get(config.pd.get())?;
        let key = self.parts.memory.create(config)?;
        self.pds.get_mut(config.pd.get())?.0 += 1;
        Ok(key)
    }

    pub(crate) fn destroy_mr(&mut self, key: u32) -> Result<(), DeviceError> {
        let pd = self.parts.memory.destroy(key)?;
        self.pds.get_mut(pd.get())?.0 -= 1;
        Ok(())
    }

    pub(crate) fn create_ah(&mut self, config: &AhConfig) -> Result<AhId, DeviceError> {
        self.pds.get(config.pd.get())?;
        if self.parts.config.gid(usize::from(config.path.sgid_index)).is_none() {
            return Err(DeviceError::Invalid("no GID with the path's sgid_index"));
        }
        let handle = AddressHandle { pd: config.pd, path: config.path };
        let ah = self.parts.ahs.insert(config.id.map(AhId::get), handle)?;
        self.pds.get_mut(config.pd.get())?.0 += 1;
        Ok(AhId::truncated(ah))
    }

    pub(crate) fn destroy_ah(&mut self, ah: AhId) -> Result<(), DeviceError> {
        let handle = self.parts.ahs.remove(ah.get())?;
        self.pds.get_mut(handle.pd.get())?.0 -= 1;
        Ok(())
    }

    pub(crate) fn create_cq(&mut self, id: Option<CqId>) -> Result<CqId, DeviceError> {
        self.cqs.insert(id.map(CqId::get), Users::default()).map(CqId::truncated)
    }

    pub(crate) fn destroy_cq(&mut self, cq: CqId) -> Result<(), DeviceError> {
        remove_unused(&mut self.cqs, cq.get())
    }

    pub(crate) fn create_srq(&mut self, config: &SrqConfig) -> Result<SrqId, DeviceError> {
        self.pds.get(config.pd.get())?;
        let srq = Srq { pd: config.pd, recvs: VecDeque::new(), limit: None, users: Users::default() };
        let id = self.parts.srqs.insert(config.id.map(SrqId::get), srq)?;
        self.pds.get_mut(config.pd.get())?.0 += 1;
        Ok(SrqId::truncated(id))
    }

    pub(crate) fn destroy_srq(&mut self, srq: SrqId) -> Result<(), DeviceError> {
        if self.parts.srqs.get(srq.get())?.users.0 > 0 {
            return Err(self.parts.srqs.in_use(srq.get()));
        }
        let gone = self.parts.srqs.remove(srq.get())?;
        self.pds.get_mut(gone.pd.get())?.0 -= 1;
        Ok(())
    }

    pub(crate) fn create_qp(&mut self, config: &QpConfig) -> Result<QpId, DeviceError> {
        self.pds.get(config.pd.get())?;
        self.cqs.get(config.send_cq.get())?;
        self.cqs.get(config.recv_cq.get())?;
        if let Some(srq) = config.srq
            && self.parts.srqs.get(srq.get())?.pd != config.pd
        {
            return Err(DeviceError::Invalid("the shared receive queue is of another protection domain"));
        }
        let id = self.qps.insert(config.id.map(QpId::get), Qp::new(QpId::default(), config.clone()))?;
        let qp = QpId::truncated(id);
        self.qps.get_mut(id)?.id = qp;
        if config.qp_type == QpType::RawPacket {
            self.raw.insert(id);
        }
        self.count_users(config, |users| users.0 += 1)?;
        Ok(qp)
    }

    /// Calls `count` for everything that a queue pair refers to, each time it does.
    fn count_users(&mut self, config: &QpConfig, count: impl Fn(&mut Users)) -> Result<(), DeviceError> {
        count(self.pds.get_mut(config.pd.get())?);
        count(self.cqs.get_mut(config.send_cq.get())?);
        count(self.cqs.get_mut(config.recv_cq.get())?);
        if let Some(srq) = config.srq {
            count(&mut self.parts.srqs.get_mut(srq.get())?.users);
        }
        Ok(())
    }

    pub(crate) fn modify_qp(
        &mut self,
        qp: QpId,
        attributes: &ModifyQp,
    ) -> Result<(QpState, QpState), DeviceError> {
        let changed = self.qps.get_mut(qp.get())?.modify(&mut self.parts, attributes)?;
        self.touched(qp.get());
        Ok(changed)
    }

    pub(crate) fn query_qp(&self, qp: QpId) -> Result<QpStatus, DeviceError> {
        let qp = self.qps.get(qp.get())?;
        Ok(QpStatus {
            state: qp.state,
            sq_psn: qp.requester.post_psn().get(),
            rq_psn: qp.responder.expected().get(),
        })
    }

    pub(crate) fn destroy_qp(&mut self, qp: QpId) -> Result<(), DeviceError> {
        let gone = self.qps.remove(qp.get())?;
        self.raw.remove(&qp.get());
        if let Some(at) = gone.armed {
            self.timers.remove(&(at, qp.get()));
        }
        self.count_users(&gone.config, |users| users.0 -= 1)
    }

    /// Local operations of a queue pair are reported when they are carried out, also before earlier requests.
    pub(crate) fn set_early_local(&mut self, qp: QpId, early: bool) -> Result<(), DeviceError> {
        self.qps.get_mut(qp.get())?.early_local = early;
        Ok(())
    }

    pub(crate) fn post_send(&mut self, qp: QpId, work: SendWork) -> Result<PsnRange, DeviceError> {
        let queue = self.qps.get_mut(qp.get())?;
        if matches!(queue.state, QpState::Reset | QpState::Init | QpState::Rtr) {
            return Err(DeviceError::Invalid("the queue pair is not ready to send"));
        }
        let psns = queue.post_send(&mut self.parts, work);
        self.touched(qp.get());
        Ok(psns)
    }

    pub(crate) fn post_recv(&mut self, qp: QpId, work: RecvWork) -> Result<(), DeviceError> {
        let queue = self.qps.get_mut(qp.get())?;
        if queue.config.srq.is_some() {
            return Err(DeviceError::Invalid("the queue pair receives from a shared queue"));
        }
        match queue.state {
            QpState::Reset => return Err(DeviceError::Invalid("the queue pair is in RESET")),
            QpState::Err => queue.flush_recv(&mut self.parts, work),
            _ => queue.recvs.push_back(work),
        }
        Ok(())
    }

    pub(crate) fn post_srq(&mut self, srq: SrqId, work: RecvWork) -> Result<(), DeviceError> {
        self.parts.srqs.get_mut(srq.get())?.recvs.push_back(work);
        Ok(())
    }

    pub(crate) fn arm_srq(&mut self, srq: SrqId, limit: u32) -> Result<(), DeviceError> {
        let queue = self.parts.srqs.get_mut(srq.get())?;
        queue.limit = (limit > 0).then_some(limit);
        if queue.take_limit() {
            self.parts.events.push_back(Event::SrqLimit { srq });
        }
        Ok(())
    }

    pub(crate) fn srq_limit(&self, srq: SrqId) -> Option<u32> {
        self.parts.srqs.get(srq.get()).ok().and_then(|queue| queue.limit)
    }

    pub(crate) fn fail_qp(&mut self, qp: QpId, side: Side, status: WcStatus) -> Result<(), DeviceError> {
        self.qps.get_mut(qp.get())?.fail(&mut self.parts, side, status);
        self.touched(qp.get());
        Ok(())
    }

    pub(crate) fn take_event(&mut self) -> Option<Event> {
        self.parts.events.pop_front()
    }

    pub(crate) fn has_frame(&self) -> bool {
        !self.parts.out.is_empty()
    }

    pub(crate) fn take_frame(&mut self) -> Option<Vec<u8>> {
        self.parts.out.pop_front()
    }

    /// Takes a frame from the wire.
    pub(crate) fn receive(&mut self, bus: &dyn Bus, now: u64, frame: &[u8]) {
        let to = frame.first_chunk::<6>();
        if to.is_none_or(|to| *to != self.parts.config.mac.0 && to[0] & 1 == 0) {
            self.parts.counters.not_ours += 1;
            return;
        }
        match Packet::parse(frame) {
            Ok(packet) => {
                let before = self.parts.counters.received;
                self.receive_packet(bus, now, &packet);
                if self.parts.counters.received != before {
                    self.parts.counters.received_bytes += frame.len() as u64;
                }
            }
            Err(FrameError::NotRoce) => self.receive_raw(bus, now, frame),
            Err(FrameError::Malformed) => self.parts.counters.malformed += 1,
            Err(FrameError::BadIcrc) => self.parts.counters.bad_icrc += 1,
        }
    }

    fn receive_packet(&mut self, bus: &dyn Bus, now: u64, packet: &Packet<'_>) {
        if !self.parts.config.gids.contains(&packet.dgid) {
            self.parts.counters.not_ours += 1;
            return;
        }
        let is_datagram = packet.opcode.service == Service::Datagram;
        let is_meant = |qp: &&mut Qp| match qp.config.qp_type {
            QpType::Rc => !is_datagram && qp.route.is_some_and(|route| route.dgid == packet.sgid),
            QpType::Ud => is_datagram,
            QpType::RawPacket => false,
        };
        let id = packet.bth.dest_qp.get();
        let found = self.qps.find_mut(id).filter(is_meant).filter(|qp| qp.receives());
        let Some(qp) = found else {
            self.parts.counters.no_qp += 1;
            return;
        };
        self.parts.counters.received += 1;
        let mut context = Context { parts: &mut self.parts, bus, now };
        match packet.opcode.service {
            Service::Datagram => qp.on_datagram(&mut context, packet),
            Service::Acknowledge | Service::AtomicAcknowledge | Service::ReadResponse => {
                qp.on_response(&mut context, packet);
            }
            _ => qp.on_request(&mut context, packet),
        }
        self.touched(id);
    }

    fn receive_raw(&mut self, bus: &dyn Bus, now: u64, frame: &[u8]) {
        let mut taken = false;
        for id in &self.raw {
            if let Some(qp) = self.qps.find_mut(*id).filter(|qp| qp.receives()) {
                qp.on_raw(&mut Context { parts: &mut self.parts, bus, now }, frame);
                taken = true;
            }
        }
        match &mut self.parts.for_host {
            Some(waiting) if waiting.len() < HOST_FULL => waiting.push_back(frame.to_vec()),
            _ if !taken => self.parts.counters.not_ours += 1,
            _ => {}
        }
    }

    /// Whether the host wants the frames that are no RoCEv2 packets.
    pub(crate) fn want_host_frames(&mut self, wanted: bool) {
        self.parts.for_host = wanted.then(VecDeque::new);
    }

    /// Whether a frame waits for the host.
    pub(crate) fn has_host_frame(&self) -> bool {
        self.parts.for_host.as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    /// The oldest frame that waits for the host.
    pub(crate) fn take_host_frame(&mut self) -> Option<Vec<u8>> {
        self.parts.for_host.as_mut()?.pop_front()
    }

    /// Puts a frame of the host's own on the wire.
    pub(crate) fn send_host_frame(&mut self, frame: Vec<u8>) {
        self.parts.out.push_back(frame);
    }

    /// Something about a queue pair has changed: it gets a turn, and its timer is set anew.
    fn touched(&mut self, id: u32) {
        let Some(qp) = self.qps.find_mut(id) else { return };
        if !std::mem::replace(&mut qp.queued, true) {
            self.ready.push_back(id);
        }
        Self::set_timer(&mut self.timers, qp);
    }

    fn set_timer(timers: &mut BTreeSet<(u64, u32)>, qp: &mut Qp) {
        let timer = qp.timer();
        if timer != qp.armed {
            let id = qp.id.get();
            if let Some(at) = qp.armed {
                timers.remove(&(at, id));
            }
            timers.extend(timer.map(|at| (at, id)));
            qp.armed = timer;
        }
    }

    /// Does some work: a timer that has run out, or the turn of a queue pair. `false` if there was none.
    pub(crate) fn step(&mut self, bus: &dyn Bus, now: u64) -> bool {
        if let Some((_, id)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            if let Some(qp) = self.qps.find_mut(id) {
                qp.armed = None;
                qp.on_timer(&mut Context { parts: &mut self.parts, bus, now });
            }
            self.touched(id);
            return true;
        }
        if self.parts.out.len() >= FULL {
            return false;
        }
        let Some(id) = self.ready.pop_front() else { return false };
        if let Some(qp) = self.qps.find_mut(id) {
            qp.queued = qp.turn(&mut Context { parts: &mut self.parts, bus, now }, BUDGET);
            if qp.queued {
                self.ready.push_back(id);
            }
            Self::set_timer(&mut self.timers, qp);
        }
        true
    }

    /// When time alone gives it something to do; 0 if there is work now.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        let waits = self.ready.is_empty() || self.parts.out.len() >= FULL;
        if waits { self.timers.first().map(|(at, _)| *at) } else { Some(0) }
    }
}

/// Removes an object that nothing refers to.
fn remove_unused(table: &mut Table<Users>, id: u32) -> Result<(), DeviceError> {
    if table.get(id)?.0 > 0 {
        return Err(table.in_use(id));
    }
    table.remove(id).map(drop)
}
