use std::sync::Arc;

use directverbs::verbs::{
    AccessFlags, AddressVector, CqId, Gid, Mac, Mtu, Psn, QKey, QpAttributes, QpCapabilities, QpId, QpState,
    QpType,
};
use directverbs_softnic::bus::HostMemory;
use directverbs_softnic::clock::Clock;
use directverbs_softnic::device::{CqConfig, Memory, MrConfig, MrKind, NicConfig, QpConfig, RingConfig};
use directverbs_softnic::nic::{FrontEnd, Nic};

use super::guarded::Guarded;

pub(super) const QP: QpId = QpId::truncated(2);
pub(super) const CQ: CqId = CqId::truncated(1);
/// Entries of the completion queue.
pub(super) const CQES: u32 = 16;
/// Bytes of the memory region.
pub(super) const REGION: usize = 4096;
/// Turns after which a NIC with some dozens of entries to work on must have come to rest, but for its timers.
const TURNS: usize = 2000;

/// Entries and bytes of an entry of a ring.
pub(super) type Shape = (u32, u32);

/// What a NIC's queue pair is created from.
pub(super) struct Setup {
    pub qp_type: QpType,
    pub sq: Shape,
    pub rq: Shape,
    pub retransmit: Option<Shape>,
    pub variable: bool,
    pub options: u32,
    pub max_sge: u32,
}

/// A NIC with a queue pair in RTS, whose driver and peer may do anything.
pub(super) struct Bench<F> {
    pub nic: Nic<F>,
    pub clock: Clock,
    /// Send queue.
    pub sq: Guarded,
    /// Receive queue.
    pub rq: Guarded,
    /// Retransmit table.
    pub table: Guarded,
    cq: Guarded,
    /// Memory that the peer may reach with `key`, from the region's address on.
    pub region: Guarded,
    pub key: u32,
}

/// The NIC's address, and its peer's.
pub(super) const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
pub(super) const IPS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

impl<F: FrontEnd> Bench<F> {
    pub fn new(front_end: F, setup: &Setup) -> Self {
        let memory = HostMemory::new();
        let clock = Clock::simulated();
        let config = NicConfig {
            mac: MACS[0],
            gids: vec![Gid::v4(IPS[0].into())],
            mtu: Mtu::B1024,
            device_memory: 0,
            all_memory_key: None,
        };
        let mut nic = Nic::new(front_end, config, memory.clone(), clock.clone());
        let pd = nic.create_pd().expect("the first domain");
        let region = Guarded::new(&memory, REGION);
        let kind = MrKind::Region(Memory::Host(region.addr()));
        let addr = region.addr();
        let mr = MrConfig { key: None, pd, kind, addr, length: REGION as u64, access: AccessFlags::all() };
        // Addresses of a zero-based region would be others.
        let mr = MrConfig { access: mr.access - AccessFlags::ZERO_BASED, ..mr };
        let key = nic.create_mr(&mr).expect("the first region");
        let (cq, cq_ring) = ring(&memory, (CQES, 32));
        nic.create_cq(&CqConfig { id: Some(CQ), ring: cq_ring, handle: 0, vector: 0 })
            .expect("the first queue");
        let (sq, sq_ring) = ring(&memory, setup.sq);
        let (rq, rq_ring) = ring(&memory, setup.rq);
        let (table, table_ring) = ring(&memory, setup.retransmit.unwrap_or((1, 16)));
        let qp = QpConfig {
            id: Some(QP),
            qp_type: setup.qp_type,
            pd,
            send_cq: CQ,
            recv_cq: CQ,
            srq: None,
            sq: sq_ring,
            rq: Some(rq_ring),
            retransmit: setup.retransmit.map(|_| table_ring),
            variable_entries: setup.variable,
            signal_all: false,
            capabilities: QpCapabilities {
                max_send_wr: setup.sq.0,
                max_recv_wr: setup.rq.0,
                max_send_sge: setup.max_sge,
                max_recv_sge: setup.max_sge,
                max_inline_data: setup.sq.1,
            },
            handle: 0x77,
            pipeline: 0,
            options: setup.options,
        };
        nic.create_qp(&qp).expect("the first pair");
        for attributes in way_to_rts() {
            nic.modify_qp(QP, &attributes).expect("the way to RTS");
        }
        Self { nic, clock, sq, rq, table, cq, region, key }
    }

    /// Lets the NIC work until it comes to rest, and takes what it sends.
    ///
    /// # Panics
    /// It does not come to rest.
    pub fn run(&mut self) {
        let rests = (0..TURNS).any(|_| {
            while self.nic.take_frame().is_some() {}
            !self.nic.step()
        });
        assert!(rests, "a NIC without a peer works for ever");
    }

    /// Makes a queue pair that went into error fresh again; `true` if it had to be.
    pub fn revive(&mut self) -> bool {
        let dead = self.nic.query_qp(QP).is_ok_and(|qp| qp.state > QpState::Rts);
        if dead {
            self.nic.modify_qp(QP, &QpAttributes::to(QpState::Reset)).expect("from every state");
            for attributes in way_to_rts() {
                self.nic.modify_qp(QP, &attributes).expect("the way to RTS");
            }
        }
        dead
    }

    /// Lets the time pass until the NIC's next timer.
    pub fn pass(&mut self) {
        if let Some(at) = self.nic.next_timer() {
            self.clock.advance_to(at);
        }
    }

    /// Checks that nothing was written outside.
    pub fn check(&self) {
        for guarded in [&self.sq, &self.rq, &self.table, &self.cq, &self.region] {
            guarded.check();
        }
    }
}

fn ring(memory: &Arc<HostMemory>, (entries, stride): Shape) -> (Guarded, RingConfig) {
    let guarded = Guarded::new(memory, (entries * stride) as usize);
    let config = RingConfig { memory: Memory::Host(guarded.addr()), entries, stride };
    (guarded, config)
}

/// The attributes that take a queue pair of any kind from RESET to RTS.
pub(super) fn way_to_rts() -> [QpAttributes; 3] {
    let init = QpAttributes {
        access: Some(AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_ATOMIC),
        qkey: Some(QKey::truncated(1)),
        ..QpAttributes::to(QpState::Init)
    };
    let rtr = QpAttributes {
        path: Some(AddressVector::new(Gid::v4(IPS[1].into()), MACS[1])),
        mtu: Some(Mtu::B1024),
        dest_qp: Some(QP),
        rq_psn: Some(Psn::truncated(0)),
        max_dest_rd_atomic: Some(4),
        min_rnr_timer: Some(1),
        ..QpAttributes::to(QpState::Rtr)
    };
    let rts = QpAttributes {
        sq_psn: Some(Psn::truncated(0)),
        timeout: Some(1),
        retry_count: Some(1),
        rnr_retry: Some(1),
        max_rd_atomic: Some(4),
        ..QpAttributes::to(QpState::Rts)
    };
    [init, rtr, rts]
}
