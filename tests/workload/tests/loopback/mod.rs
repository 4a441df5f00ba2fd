//! Two devices of plain memory that carry out every request at once, and that a test can make lie.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use directverbs::verbs::*;

/// A piece of work that is about to be announced: what a test may change.
pub struct Delivery<'a> {
    /// The target's memory that the message was written to, gathered in writing order.
    pub payload: &'a mut [u8],
    /// The completion.
    pub completion: &'a mut WorkCompletion,
    /// The completion is of a receive request.
    pub is_receive: bool,
    /// The completion shall not be written.
    pub lost: &'a mut bool,
}

type Lie = Box<dyn FnMut(&mut Delivery<'_>)>;

#[derive(Default)]
struct World {
    regions: Vec<Vec<u8>>,
    cqs: Vec<VecDeque<WorkCompletion>>,
    receives: Vec<VecDeque<(u64, Vec<Sge>)>>,
    /// Peer, receive queue, receive completion queue.
    qps: Vec<(QpId, usize, usize)>,
    windows: u32,
    open_windows: Vec<RKey>,
    clock_ns: u64,
    lie: Option<Lie>,
}

/// Regions are 2^32 bytes apart, and the first begins there, so that no address is zero.
const APART: u32 = 32;

impl World {
    fn bytes(&mut self, addr: u64, length: u32) -> &mut [u8] {
        let (region, offset) = ((addr >> APART) as usize - 1, (addr & 0xffff_ffff) as usize);
        &mut self.regions[region][offset..][..length as usize]
    }

    fn gather(&mut self, data: Data<'_>) -> Vec<u8> {
        match data {
            Data::Sges(sges) => sges.iter().flat_map(|s| self.bytes(s.addr, s.length).to_vec()).collect(),
            Data::Inline(pieces) => pieces.concat(),
        }
    }

    fn scatter(&mut self, sges: &[Sge], mut bytes: &[u8]) {
        for sge in sges {
            let (now, rest) = bytes.split_at(bytes.len().min(sge.length as usize));
            self.bytes(sge.addr, now.len() as u32).copy_from_slice(now);
            bytes = rest;
        }
    }

    fn announce(&mut self, cq: usize, mut completion: WorkCompletion, is_receive: bool, payload: &mut [u8]) {
        let mut lost = false;
        if let Some(lie) = &mut self.lie {
            lie(&mut Delivery { payload, completion: &mut completion, is_receive, lost: &mut lost });
        }
        if !lost {
            self.cqs[cq].push_back(completion);
        }
    }

    /// Consumes a receive request of `qp`. Gives back what the message became.
    fn receive(
        &mut self,
        from: QpId,
        qp: QpId,
        mut completion: WorkCompletion,
        mut payload: Vec<u8>,
    ) -> Vec<u8> {
        let (_, queue, cq) = self.qps[qp.get() as usize];
        let (wr_id, sges) = self.receives[queue].pop_front().expect("a receive is posted");
        (completion.wr_id, completion.qp, completion.src_qp) = (wr_id, qp, from);
        self.announce(cq, completion, true, &mut payload);
        self.scatter(&sges, &payload);
        payload
    }

    fn send(&mut self, from: QpId, send_cq: usize, request: &SendRequest<'_>) {
        let (peer, ..) = self.qps[from.get() as usize];
        let length = request.length() as u32;
        let mut done = WorkCompletion { wr_id: request.wr_id, qp: from, ..Default::default() };
        let local: &[Sge] = if let Data::Sges(sges) = request.data { sges } else { &[] };
        let received = |imm_or_rkey, flags| WorkCompletion {
            opcode: WcOpcode::Recv,
            byte_len: length,
            imm_or_rkey,
            flags,
            ..Default::default()
        };
        let mut fetched = Vec::new();
        match request.op {
            SendOp::Send | SendOp::SendImm(_) | SendOp::SendInv(_) => {
                let completion = match request.op {
                    SendOp::SendImm(imm) => received(imm.get(), WcFlags::WITH_IMM),
                    SendOp::SendInv(key) => {
                        let at =
                            self.open_windows.iter().position(|k| *k == key).expect("the window is bound");
                        self.open_windows.remove(at);
                        received(key.get(), WcFlags::WITH_INV)
                    }
                    _ => received(0, WcFlags::empty()),
                };
                let payload = self.gather(request.data);
                self.receive(from, peer, completion, payload);
            }
            SendOp::SendTo(to) => {
                let grh = [&[0; 12][..], &[0x45; 20], &gid(from).0[12..], &gid(to.qp).0[12..]].concat();
                let payload = [grh, self.gather(request.data)].concat();
                let mut completion = received(0, WcFlags::GRH);
                completion.byte_len += 40;
                self.receive(from, to.qp, completion, payload);
            }
            SendOp::Write(remote) | SendOp::WriteImm(remote, _) => {
                done.opcode = WcOpcode::RdmaWrite;
                let mut payload = self.gather(request.data);
                if let SendOp::WriteImm(_, imm) = request.op {
                    let mut completion = received(imm.get(), WcFlags::WITH_IMM);
                    completion.opcode = WcOpcode::RecvRdmaWithImm;
                    payload = self.receive(from, peer, completion, payload);
                }
                self.bytes(remote.addr, length).copy_from_slice(&payload);
            }
            SendOp::Read(remote) => {
                (done.opcode, done.byte_len) = (WcOpcode::RdmaRead, length);
                fetched = self.bytes(remote.addr, length).to_vec();
            }
            SendOp::CompareSwap { remote, .. } | SendOp::FetchAdd { remote, .. } => {
                let word = self.bytes(remote.addr, 8);
                let old = u64::from_le_bytes(word.try_into().unwrap());
                let (opcode, new) = match request.op {
                    SendOp::CompareSwap { compare, swap, .. } => {
                        (WcOpcode::CompSwap, if old == compare { swap } else { old })
                    }
                    SendOp::FetchAdd { add, .. } => (WcOpcode::FetchAdd, old.wrapping_add(add)),
                    _ => (WcOpcode::FetchAdd, old),
                };
                word.copy_from_slice(&new.to_le_bytes());
                (done.opcode, done.byte_len) = (opcode, 8);
                fetched = old.to_le_bytes().to_vec();
            }
            SendOp::BindMw(bind) => {
                done.opcode = WcOpcode::BindMw;
                self.open_windows.push(bind.new_key);
            }
            op => panic!("{op:?} is not one of the workload's"),
        }
        if request.flags.contains(SendFlags::SIGNALED) {
            self.announce(send_cq, done, false, &mut fetched);
        }
        if request.op != SendOp::Send && !fetched.is_empty() {
            self.scatter(local, &fetched);
        }
    }
}

fn gid(qp: QpId) -> Gid {
    Gid::v4(core::net::Ipv4Addr::new(10, 0, 0, qp.get() as u8))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the loopback device never fails")]
pub struct Never;

/// One of the two devices.
pub struct Loopback {
    world: Rc<RefCell<World>>,
    number: u32,
    /// Progress always says that something is under way.
    pub restless: bool,
}

/// Two devices, and what they lie about.
pub fn pair(lie: impl FnMut(&mut Delivery<'_>) + 'static) -> [Loopback; 2] {
    let world = Rc::new(RefCell::new(World { lie: Some(Box::new(lie)), ..World::default() }));
    [0, 1].map(|number| Loopback { world: world.clone(), number, restless: false })
}

impl Loopback {
    /// The time that passes with each look at the clock.
    const TICK_NS: u64 = 100;
}

pub struct Region {
    world: Rc<RefCell<World>>,
    index: usize,
    len: usize,
}

impl MemoryRegion for Region {
    fn addr(&self) -> u64 {
        (self.index as u64 + 1) << APART
    }
    fn len(&self) -> usize {
        self.len
    }
    fn lkey(&self) -> LKey {
        LKey::truncated(self.index as u32)
    }
    fn rkey(&self) -> RKey {
        RKey::truncated(self.index as u32)
    }
    fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let mut world = self.world.borrow_mut();
        let target = world.regions[self.index].get_mut(offset..offset + bytes.len());
        target.map(|t| t.copy_from_slice(bytes)).is_some()
    }
    fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let world = self.world.borrow();
        let source = world.regions[self.index].get(offset..offset + bytes.len());
        source.map(|s| bytes.copy_from_slice(s)).is_some()
    }
}

pub struct Cq {
    world: Rc<RefCell<World>>,
    index: usize,
}

impl CompletionQueue for Cq {
    type QueuePair = Qp;
    type SharedReceiveQueue = Srq;

    fn id(&self) -> CqId {
        CqId::truncated(self.index as u32)
    }
    fn poll<E: Endpoints<Qp, Srq>>(
        &mut self,
        _: &mut E,
        out: &mut [WorkCompletion],
    ) -> Result<usize, CqFault> {
        let queue = &mut self.world.borrow_mut().cqs[self.index];
        let count = queue.len().min(out.len());
        out.iter_mut().zip(queue.drain(..count)).for_each(|(o, c)| *o = c);
        Ok(count)
    }
    fn arm(&mut self, _: bool) {}
}

pub struct Srq {
    world: Rc<RefCell<World>>,
    queue: usize,
}

impl SharedReceiveQueue for Srq {
    fn id(&self) -> SrqId {
        SrqId::truncated(self.queue as u32)
    }
    fn post_recv(&mut self, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        let queue = &mut self.world.borrow_mut().receives[self.queue];
        queue.extend(requests.iter().map(|r| (r.wr_id, r.sges.to_vec())));
        Ok(())
    }
    fn arm_limit(&mut self, _: u32) {}
}

pub struct Qp {
    world: Rc<RefCell<World>>,
    id: QpId,
    qp_type: QpType,
    state: QpState,
    capabilities: QpCapabilities,
    queue: usize,
}

impl Pollable for Qp {
    fn key(&self) -> u32 {
        self.id.get()
    }
    fn flush_seq(&self) -> u32 {
        0
    }
}

impl QueuePair for Qp {
    type CompletionQueue = Cq;

    fn id(&self) -> QpId {
        self.id
    }
    fn qp_type(&self) -> QpType {
        self.qp_type
    }
    fn state(&self) -> QpState {
        self.state
    }
    fn capabilities(&self) -> QpCapabilities {
        self.capabilities
    }
    fn post_send(&mut self, cq: &mut Cq, requests: &[SendRequest<'_>]) -> Result<(), BatchError> {
        let mut world = self.world.borrow_mut();
        if self.state != QpState::Rts {
            return Err(BatchError { index: 0, error: PostError::BadState(self.state) });
        }
        requests.iter().for_each(|request| world.send(self.id, cq.index, request));
        Ok(())
    }
    fn post_recv(&mut self, _: &mut Cq, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        let mut world = self.world.borrow_mut();
        world.receives[self.queue].extend(requests.iter().map(|r| (r.wr_id, r.sges.to_vec())));
        Ok(())
    }
}

impl Device for Loopback {
    type Error = Never;
    type ProtectionDomain = ();
    type MemoryRegion = Region;
    type CompletionQueue = Cq;
    type QueuePair = Qp;
    type SharedReceiveQueue = Srq;

    fn attributes(&self) -> DeviceAttributes {
        DeviceAttributes {
            family: "loopback",
            max_qp: QpCapabilities {
                max_send_wr: 128,
                max_recv_wr: 128,
                max_send_sge: 8,
                max_recv_sge: 9,
                max_inline_data: 100,
            },
            max_cqe: 256,
            max_srq_wr: 128,
            max_rd_atomic: 16,
            atomics: true,
            memory_windows: true,
        }
    }
    fn port(&self) -> PortAttributes {
        let gid = gid(QpId::truncated(self.number));
        PortAttributes {
            active: true,
            mtu: Mtu::B1024,
            mac: Mac([2, 0, 0, 0, 0, self.number as u8]),
            gid,
            gid_index: 0,
        }
    }
    fn progress(&mut self) -> bool {
        self.restless
    }
    fn now_ns(&self) -> u64 {
        let mut world = self.world.borrow_mut();
        world.clock_ns += Self::TICK_NS;
        world.clock_ns
    }
    fn alloc_pd(&mut self) -> Result<(), Never> {
        Ok(())
    }
    fn dealloc_pd(&mut self, (): ()) -> Result<(), Never> {
        Ok(())
    }
    fn alloc_mr(&mut self, (): &(), len: usize, _: AccessFlags) -> Result<Region, Never> {
        let mut world = self.world.borrow_mut();
        world.regions.push(vec![0; len]);
        Ok(Region { world: self.world.clone(), index: world.regions.len() - 1, len })
    }
    fn dealloc_mr(&mut self, _: Region) -> Result<(), Never> {
        Ok(())
    }
    fn alloc_mw(&mut self, (): &(), _: MwType) -> Result<RKey, Never> {
        let mut world = self.world.borrow_mut();
        world.windows += 1;
        Ok(RKey::truncated(world.windows << 8 | 0xfe))
    }
    fn dealloc_mw(&mut self, _: RKey) -> Result<(), Never> {
        Ok(())
    }
    fn create_cq(&mut self, _: u32) -> Result<Cq, Never> {
        let mut world = self.world.borrow_mut();
        world.cqs.push(VecDeque::new());
        Ok(Cq { world: self.world.clone(), index: world.cqs.len() - 1 })
    }
    fn destroy_cq(&mut self, _: Cq) -> Result<(), Never> {
        Ok(())
    }
    fn create_srq(&mut self, (): &(), _: SrqInit) -> Result<Srq, Never> {
        let mut world = self.world.borrow_mut();
        world.receives.push(VecDeque::new());
        Ok(Srq { world: self.world.clone(), queue: world.receives.len() - 1 })
    }
    fn destroy_srq(&mut self, _: Srq) -> Result<(), Never> {
        Ok(())
    }
    fn create_qp(&mut self, (): &(), init: &QpInit<'_, Cq, Srq>) -> Result<Qp, Never> {
        let mut world = self.world.borrow_mut();
        let queue = init.srq.map_or(world.receives.len(), |srq| srq.queue);
        world.receives.push(VecDeque::new());
        // The workload's address of a side is made from its number: the queue pair has the same one.
        let id = QpId::truncated(self.number);
        world.qps.push((QpId::default(), queue, init.recv_cq.index));
        assert_eq!(world.qps.len() as u32, self.number + 1, "one queue pair a device, in order");
        Ok(Qp {
            world: self.world.clone(),
            id,
            qp_type: init.qp_type,
            state: QpState::Reset,
            capabilities: init.capabilities,
            queue,
        })
    }
    fn modify_qp(&mut self, qp: &mut Qp, _: &mut [&mut Cq], attributes: &QpAttributes) -> Result<(), Never> {
        qp.state = attributes.check(qp.qp_type, qp.state).expect("the workload gives what each state needs");
        if let Some(peer) = attributes.dest_qp {
            self.world.borrow_mut().qps[qp.id.get() as usize].0 = peer;
        }
        Ok(())
    }
    fn destroy_qp(&mut self, _: Qp, _: &mut [&mut Cq]) -> Result<(), Never> {
        Ok(())
    }
    fn create_ah(&mut self, (): &(), _: &AddressVector) -> Result<AhId, Never> {
        Ok(AhId::default())
    }
    fn destroy_ah(&mut self, _: AhId) -> Result<(), Never> {
        Ok(())
    }
}
