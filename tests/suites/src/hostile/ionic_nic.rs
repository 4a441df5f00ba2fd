use directverbs::ionic::wqe::{
    PAYLOAD_OFFSET, RdmaVersion, RdmaWqe, Sge as WireSge, SqOp, WQE_MIN, WqeFlags,
};
use directverbs::verbs::QpType;
use directverbs_softnic::ionic::{CQ_QTYPE, Ionic, IonicConfig, RQ_QTYPE, SQ_QTYPE, options};
use zerocopy::IntoBytes;

use super::Input;
use super::bench::{Bench, CQ, CQES, QP, Setup};

const ENTRIES: u32 = 16;

/// Where the next WQE goes, and the color of that pass over the ring.
#[derive(Clone, Copy)]
struct Place {
    index: u32,
    color: bool,
}

/// A WQE that the NIC carries out: one SGE of the region, and the region on the other side.
fn almost_right(
    place: Place,
    version: RdmaVersion,
    qp_type: QpType,
    bench: &Bench<Ionic>,
    kind: u8,
) -> [u8; WQE_MIN] {
    let ops = [SqOp::Send, SqOp::Write, SqOp::Read, SqOp::SendInv];
    let op = if qp_type == QpType::Ud { SqOp::Send } else { ops[usize::from(kind % 4)] };
    let flags =
        WqeFlags::new().with_color(place.color).with_signaled(kind & 4 != 0).with_fence(kind & 8 != 0);
    let sge = WireSge { va: bench.region.addr().into(), len: 24.into(), lkey: bench.key.into() };
    let mut wqe = RdmaWqe {
        wqe_idx: u64::from(place.index).into(),
        op: op.opcode(version),
        num_sge: 1,
        flags: flags.into_bits().into(),
        length: 24.into(),
        ..RdmaWqe::ZERO
    };
    if matches!(op, SqOp::Write | SqOp::Read) {
        wqe.remote_va_low = 0x1000.into();
        wqe.remote_rkey = bench.key.into();
    }
    let mut bytes: [u8; WQE_MIN] = zerocopy::transmute!(wqe);
    bytes[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 16].copy_from_slice(sge.as_bytes());
    bytes
}

/// A driver that writes anything into the rings of an ionic NIC, and anything to its doorbells.
///
/// # Panics
/// The NIC did something that it must not do, whatever the driver writes.
pub fn ionic_decode(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.byte();
    let version = if setup & 1 == 0 { RdmaVersion::V1 } else { RdmaVersion::V2 };
    let stride = 64 << (setup >> 2 & 3);
    let config = IonicConfig { reorder: 300_000, ..IonicConfig::new(version) };
    let setup = Setup {
        qp_type: if setup & 2 == 0 { QpType::Rc } else { QpType::Ud },
        sq: (ENTRIES, stride),
        rq: (ENTRIES, stride),
        retransmit: None,
        variable: false,
        options: input.u32() & (options::SQ_SPEC | options::RQ_SPEC),
        max_sge: 255,
    };
    let mut bench = Bench::new(Ionic::new(config), &setup);
    let mut next = Place { index: 0, color: true };
    while !input.is_empty() {
        let (what, at) = (input.byte(), input.u16());
        let index = u32::from(at) % ENTRIES;
        let offset = (index * stride) as usize;
        let ring = if what & 0x80 == 0 { &bench.sq } else { &bench.rq };
        let qp = u64::from(QP.get()) << 24;
        let doorbell = match what % 8 {
            0 => {
                let place = next;
                next.index = (next.index + 1) % ENTRIES;
                next.color ^= next.index == 0;
                let mut wqe = almost_right(place, version, setup.qp_type, &bench, input.byte());
                for _ in 0..input.byte() % 3 {
                    wqe[usize::from(input.byte() % 64)] = input.byte();
                }
                bench.sq.write((place.index * stride) as usize, &wqe);
                Some((SQ_QTYPE.into(), qp | u64::from(next.index)))
            }
            1 => {
                let length = usize::from(input.byte()).min(stride as usize);
                ring.write(offset, input.slice(length));
                None
            }
            2 | 3 => {
                // A WQE whose header repeats its position gets further.
                ring.write(offset, &u64::from(index).to_le_bytes());
                ring.write(offset + 8, &input.array::<56>());
                None
            }
            4 => Some((SQ_QTYPE.into(), qp | u64::from(index))),
            5 => Some((RQ_QTYPE.into(), qp | u64::from(index))),
            6 if what & 0x80 == 0 => {
                let written = bench.nic.hardware().cq_position(CQ).unwrap_or(0) % u64::from(CQES);
                Some((CQ_QTYPE.into(), u64::from(CQ.get()) << 24 | written))
            }
            6 => Some((CQ_QTYPE.into(), u64::from(CQ.get()) << 24 | input.u64() & 0x7_ffff)),
            _ => Some((usize::from(at % 9), input.u64())),
        };
        if let Some((register, value)) = doorbell {
            bench.nic.doorbell(what.into(), register, value);
        }
        bench.run();
        if what & 0x40 != 0 {
            bench.pass();
        }
        if bench.revive() {
            next = Place { index: 0, color: true };
        }
    }
    bench.check();
}
