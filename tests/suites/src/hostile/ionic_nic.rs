use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{
    AccessFlags, AddressVector, CqId, Gid, Mac, Mtu, Psn, QKey, QpAttributes, QpCapabilities, QpId, QpState,
    QpType,
};
use directverbs_softnic::bus::HostMemory;
use directverbs_softnic::clock::Clock;
use directverbs_softnic::device::{CqConfig, Memory, MrConfig, MrKind, NicConfig, QpConfig, RingConfig};
use directverbs_softnic::ionic::{CQ_QTYPE, Ionic, IonicConfig, RQ_QTYPE, SQ_QTYPE, options};
use directverbs_softnic::nic::Nic;

use super::Input;
use super::guarded::Guarded;

const QP: QpId = QpId::truncated(2);
const CQ: CqId = CqId::truncated(1);
const ENTRIES: u32 = 16;
/// Turns after which a NIC with sixteen entries to work on must have come to rest, but for its timers.
const TURNS: usize = 1000;

/// A driver that writes anything into the rings of an ionic NIC, and anything to its doorbells.
///
/// # Panics
/// The NIC did something that it must not do, whatever the driver writes.
pub fn ionic_decode(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.byte();
    let version = if setup & 1 == 0 { RdmaVersion::V1 } else { RdmaVersion::V2 };
    let qp_type = if setup & 2 == 0 { QpType::Rc } else { QpType::Ud };
    let stride = 64 << (setup >> 2 & 3);
    let config = IonicConfig { reorder: 300_000, ..IonicConfig::new(version) };
    let memory = HostMemory::new();
    let mut nic = Nic::new(Ionic::new(config), nic_config(), memory.clone(), Clock::simulated());
    let rings = [(); 3].map(|()| Guarded::new(&memory, (ENTRIES * stride) as usize));
    set_up(&mut nic, &rings, qp_type, stride, input.u32() & (options::SQ_SPEC | options::RQ_SPEC));
    while !input.is_empty() {
        let (what, at) = (input.byte(), input.u16());
        let index = u32::from(at) % ENTRIES;
        let offset = (index * stride) as usize;
        let qp = u64::from(QP.get()) << 24;
        let doorbell = match what % 8 {
            side @ (0 | 1) => {
                let length = usize::from(input.byte()).min(stride as usize);
                rings[usize::from(side)].write(offset, input.slice(length));
                None
            }
            side @ (2 | 3) => {
                // A WQE whose header repeats its position gets further.
                rings[usize::from(side - 2)].write(offset, &u64::from(index).to_le_bytes());
                rings[usize::from(side - 2)].write(offset + 8, &input.array::<56>());
                None
            }
            4 => Some((SQ_QTYPE.into(), qp | u64::from(index))),
            5 => Some((RQ_QTYPE.into(), qp | u64::from(index))),
            6 => Some((CQ_QTYPE.into(), u64::from(CQ.get()) << 24 | input.u64() & 0x7_ffff)),
            _ => Some((usize::from(at % 9), input.u64())),
        };
        if let Some((register, value)) = doorbell {
            nic.doorbell(what.into(), register, value);
        }
        let rests = (0..TURNS).any(|_| !nic.step());
        assert!(rests, "a NIC without a peer works for ever");
    }
    for ring in &rings {
        ring.check();
    }
}

fn nic_config() -> NicConfig {
    NicConfig {
        mac: Mac([2, 0, 0, 0, 0, 1]),
        gids: vec![Gid::v4([10, 0, 0, 1].into())],
        mtu: Mtu::B1024,
        device_memory: 0,
        all_memory_key: None,
    }
}

fn set_up(nic: &mut Nic<Ionic>, rings: &[Guarded; 3], qp_type: QpType, stride: u32, options: u32) {
    let ring = |guarded: &Guarded, stride| RingConfig {
        memory: Memory::Host(guarded.addr()),
        entries: ENTRIES,
        stride,
    };
    let pd = nic.create_pd().expect("the first domain");
    let region = MrConfig {
        key: None,
        pd,
        kind: MrKind::Region(Memory::Host(rings[0].addr())),
        addr: 0,
        length: u64::from(ENTRIES * stride),
        access: AccessFlags::all(),
    };
    nic.create_mr(&region).expect("the first region");
    nic.create_cq(&CqConfig { id: Some(CQ), ring: ring(&rings[2], 32), handle: 0, vector: 0 })
        .expect("the first queue");
    let qp = QpConfig {
        id: Some(QP),
        qp_type,
        pd,
        send_cq: CQ,
        recv_cq: CQ,
        srq: None,
        sq: ring(&rings[0], stride),
        rq: Some(ring(&rings[1], stride)),
        retransmit: None,
        variable_entries: false,
        signal_all: false,
        capabilities: QpCapabilities {
            max_send_wr: ENTRIES - 1,
            max_recv_wr: ENTRIES - 1,
            max_send_sge: 255,
            max_recv_sge: 255,
            max_inline_data: stride,
        },
        handle: 0,
        pipeline: 0,
        options,
    };
    nic.create_qp(&qp).expect("the first pair");
    let path = AddressVector::new(Gid::v4([10, 0, 0, 2].into()), Mac([2, 0, 0, 0, 0, 2]));
    let init = QpAttributes {
        access: Some(AccessFlags::all()),
        qkey: Some(QKey::truncated(1)),
        ..QpAttributes::to(QpState::Init)
    };
    let rtr = QpAttributes {
        path: Some(path),
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
    for attributes in [init, rtr, rts] {
        nic.modify_qp(QP, &attributes).expect("the way to RTS");
    }
}
