//! Two NICs without queue formats: work goes straight into the engine, and events are kept as they come.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use directverbs::verbs::{
    AccessFlags, AddressVector, AhId, CqId, Gid, LKey, Mac, Mtu, PdId, Psn, QKey, QpAttributes,
    QpCapabilities, QpId, QpState, QpType, RKey, RemoteAddress, SendFlags, SendOp, Sge, SrqId, WcStatus,
};
use directverbs_softnic::bus::{HostBlock, HostMemory};
use directverbs_softnic::device::{
    AhConfig, CqConfig, DeviceError, Memory, ModifyQp, MrConfig, MrKind, NicConfig, QpConfig, RingConfig,
    SrqConfig,
};
use directverbs_softnic::fabric::{Fabric, FabricOptions, NicHandle};
use directverbs_softnic::nic::{FrontEnd, Hardware};
use directverbs_softnic::roce::{Completion, Event, Payload, RecvWork, SendWork, Side};

/// Bytes of memory registered on each side.
pub const LEN: usize = 4 << 20;
/// Everything that a region can allow.
pub const ALL: AccessFlags = AccessFlags::LOCAL_WRITE
    .union(AccessFlags::REMOTE_WRITE)
    .union(AccessFlags::REMOTE_READ)
    .union(AccessFlags::REMOTE_ATOMIC)
    .union(AccessFlags::MW_BIND);

/// A front end that keeps events.
#[derive(Debug, Default)]
pub struct Recorder {
    pub events: Vec<Event>,
}

impl FrontEnd for Recorder {
    fn create_cq(&mut self, _: &mut Hardware, _: CqId, _: &CqConfig) -> Result<(), DeviceError> {
        Ok(())
    }
    fn resize_cq(&mut self, _: &mut Hardware, _: CqId, _: &RingConfig) -> Result<(), DeviceError> {
        Ok(())
    }
    fn destroy_cq(&mut self, _: &mut Hardware, _: CqId) {}
    fn create_srq(&mut self, _: &mut Hardware, _: SrqId, _: &SrqConfig) -> Result<(), DeviceError> {
        Ok(())
    }
    fn destroy_srq(&mut self, _: &mut Hardware, _: SrqId) {}
    fn create_qp(&mut self, _: &mut Hardware, _: QpId, _: &QpConfig) -> Result<(), DeviceError> {
        Ok(())
    }
    fn modify_qp(&mut self, _: &mut Hardware, _: QpId, _: QpState, _: QpState, _: &ModifyQp) {}
    fn destroy_qp(&mut self, _: &mut Hardware, _: QpId) {}
    fn doorbell(&mut self, _: &mut Hardware, _: u32, _: usize, _: u64) {}
    fn reset(&mut self) {
        self.events.clear();
    }
    fn event(&mut self, _: &mut Hardware, event: &Event) {
        self.events.push(*event);
    }
}

/// What differs between tests.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub options: FabricOptions,
    pub qp_type: QpType,
    pub mtu: Mtu,
    pub ipv6: bool,
    pub vlan: Option<u16>,
    pub access: AccessFlags,
    pub region: AccessFlags,
    pub timeout: u8,
    pub retry_count: u8,
    pub rnr_retry: u8,
    pub reads: u8,
    pub first_psn: u32,
    pub srq: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            options: FabricOptions { seed: 1, ..FabricOptions::default() },
            qp_type: QpType::Rc,
            mtu: Mtu::B1024,
            ipv6: false,
            vlan: None,
            access: ALL,
            region: ALL,
            timeout: 10,
            retry_count: 7,
            rnr_retry: 7,
            reads: 4,
            first_psn: 0xff_fff0, // so that every test wraps around
            srq: false,
        }
    }
}

/// One NIC with one queue pair and one region.
pub struct Node {
    pub nic: NicHandle<Recorder>,
    pub memory: Arc<HostMemory>,
    pub block: HostBlock,
    pub pd: PdId,
    pub cq: CqId,
    pub srq: Option<SrqId>,
    pub qp: QpId,
    pub key: u32,
    pub path: AddressVector,
    pub ah: AhId,
}

/// Two nodes, connected.
pub struct Pair {
    pub fabric: Fabric,
    pub a: Node,
    pub b: Node,
    pub setup: Setup,
}

pub fn gid(setup: &Setup, node: u8) -> Gid {
    if setup.ipv6 {
        Gid::v6([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(node)].into())
    } else {
        Gid::v4([10, 0, 0, node].into())
    }
}

pub fn mac(node: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, node])
}

fn ring() -> RingConfig {
    RingConfig { memory: Memory::Host(0), entries: 64, stride: 64 }
}

pub fn qp_config(node: &Node, qp_type: QpType) -> QpConfig {
    QpConfig {
        id: None,
        qp_type,
        pd: node.pd,
        send_cq: node.cq,
        recv_cq: node.cq,
        srq: node.srq,
        sq: ring(),
        rq: None,
        retransmit: None,
        variable_entries: false,
        signal_all: false,
        capabilities: QpCapabilities::default(),
        handle: 0x1234,
        pipeline: 0,
        options: 0,
    }
}

impl Node {
    fn new(fabric: &Fabric, setup: &Setup, own: u8, peer: u8) -> Self {
        let memory = HostMemory::new();
        let config = NicConfig {
            mac: mac(own),
            gids: vec![gid(setup, own)],
            mtu: Mtu::B4096,
            device_memory: 0,
            all_memory_key: None,
        };
        let nic = fabric.attach(Recorder::default(), config, memory.clone());
        let block = memory.alloc(LEN);
        let (pd, cq, srq, key, ah);
        let path = AddressVector { vlan: setup.vlan, ..AddressVector::new(gid(setup, peer), mac(peer)) };
        {
            let mut nic = nic.lock();
            pd = nic.create_pd().unwrap();
            cq = nic.create_cq(&CqConfig { id: None, ring: ring(), handle: 0, vector: 0 }).unwrap();
            let srq_config = SrqConfig { id: None, pd, ring: ring(), max_sge: 4, handle: 0 };
            srq = setup.srq.then(|| nic.create_srq(&srq_config).unwrap());
            let region = MrConfig {
                key: None,
                pd,
                kind: MrKind::Region(Memory::Host(block.addr())),
                addr: block.addr(),
                length: LEN as u64,
                access: setup.region,
            };
            key = nic.create_mr(&region).unwrap();
            ah = nic.create_ah(&AhConfig { id: None, pd, path }).unwrap();
        }
        let qp = QpId::default();
        let mut node = Self { nic, memory, block, pd, cq, srq, qp, key, path, ah };
        node.qp = node.nic.lock().create_qp(&qp_config(&node, setup.qp_type)).unwrap();
        node
    }

    /// Brings the queue pair to RTS.
    pub fn connect(&self, setup: &Setup, peer: QpId) {
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            self.modify(&QpAttributes {
                access: Some(setup.access),
                qkey: Some(QKey::truncated(0x1111_1111)),
                path: Some(self.path),
                mtu: Some(setup.mtu),
                dest_qp: Some(peer),
                rq_psn: Some(Psn::truncated(setup.first_psn)),
                sq_psn: Some(Psn::truncated(setup.first_psn)),
                max_rd_atomic: Some(setup.reads),
                max_dest_rd_atomic: Some(setup.reads),
                min_rnr_timer: Some(1),
                timeout: Some(setup.timeout),
                retry_count: Some(setup.retry_count),
                rnr_retry: Some(setup.rnr_retry),
                ..QpAttributes::to(state)
            })
            .unwrap();
        }
    }

    pub fn modify(&self, attributes: &QpAttributes) -> Result<(), DeviceError> {
        self.nic.lock().modify_qp(self.qp, attributes)
    }

    pub fn sge(&self, offset: usize, len: usize) -> Sge {
        Sge::new(self.block.addr() + offset as u64, len as u32, LKey::truncated(self.key))
    }

    pub fn remote(&self, offset: usize) -> RemoteAddress {
        RemoteAddress { addr: self.block.addr() + offset as u64, rkey: RKey::truncated(self.key) }
    }

    pub fn post(&self, work: SendWork) {
        let mut nic = self.nic.lock();
        nic.hardware().post_send(self.qp, work).unwrap();
        nic.doorbell(0, 0, 0);
    }

    /// Posts a signaled send request.
    pub fn send(&self, token: u64, op: SendOp, sges: &[Sge]) {
        self.post(work(token, op, sges));
    }

    pub fn recv(&self, token: u64, sges: &[Sge]) {
        let mut nic = self.nic.lock();
        let work = RecvWork { token, sges: Ok(sges.to_vec()) };
        match self.srq {
            Some(srq) => nic.hardware().post_srq(srq, work).unwrap(),
            None => nic.hardware().post_recv(self.qp, work).unwrap(),
        }
        nic.doorbell(0, 0, 0);
    }

    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.nic.lock().front_end().events)
    }

    /// The completions so far, and forgets all events.
    pub fn take_completions(&self) -> Vec<Completion> {
        let completion = |event| match event {
            Event::Completion(completion) => Some(completion),
            _ => None,
        };
        self.take_events().into_iter().filter_map(completion).collect()
    }

    /// Token and status of the completions of one side.
    pub fn take_outcomes(&self, side: Side) -> Vec<(u64, WcStatus)> {
        let all = self.take_completions();
        all.iter().filter(|c| c.side == side).map(|c| (c.token, c.status)).collect()
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        assert!(self.block.write(offset, bytes));
    }

    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        assert!(self.block.read(offset, &mut bytes));
        bytes
    }

    pub fn state(&self) -> QpState {
        self.nic.lock().query_qp(self.qp).unwrap().state
    }
}

impl Pair {
    pub fn new(setup: Setup) -> Self {
        let fabric = Fabric::new(setup.options);
        let a = Node::new(&fabric, &setup, 1, 2);
        let b = Node::new(&fabric, &setup, 2, 1);
        a.connect(&setup, b.qp);
        b.connect(&setup, a.qp);
        Self { fabric, a, b, setup }
    }

    /// Steps until nothing will come any more.
    pub fn settle(&self) {
        assert!(self.fabric.settle(10_000_000), "the fabric never comes to rest");
    }
}

/// A signaled send request.
pub fn work(token: u64, op: SendOp, sges: &[Sge]) -> SendWork {
    SendWork { token, op: Ok(op), flags: SendFlags::SIGNALED, payload: Payload::Sges(sges.to_vec()) }
}

/// Bytes that differ at every place, by seed.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut random = directverbs_softnic::fault::Random::new(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
