use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use directverbs::bnxt_re::wqe::{SLOT_BYTES, STATIC_SLOTS};
use directverbs::verbs::QpType;
use directverbs_softnic::bnxt_re::{BnxtRe, Config};

use super::Input;
use super::bench::{Bench, CQ, QP, Setup};

/// WQEs of the longest kind that a ring holds.
const WQES: u32 = 16;
const WQE_BYTES: u32 = STATIC_SLOTS * SLOT_BYTES;

/// A driver that writes anything into the rings of a bnxt_re NIC, and anything to its doorbells.
///
/// # Panics
/// The NIC did something that it must not do, whatever the driver writes.
pub fn bnxt_re_decode(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.byte();
    let chip = if setup & 1 == 0 { Config::P5 } else { Config::P7 };
    let variable = setup & 4 != 0;
    let (slots, stride) = if variable { (WQES * STATIC_SLOTS, SLOT_BYTES) } else { (WQES, WQE_BYTES) };
    let setup = Setup {
        qp_type: if setup & 2 == 0 { QpType::Rc } else { QpType::Ud },
        sq: (slots, stride),
        rq: (WQES, WQE_BYTES),
        retransmit: Some((slots, chip.retransmit.entry_bytes())),
        variable,
        options: 0,
        max_sge: STATIC_SLOTS - 2,
    };
    let mut bench = Bench::new(BnxtRe::new(Config { coalesce: 300_000, ..chip }), &setup);
    while !input.is_empty() {
        let (what, at) = (input.byte(), input.u16());
        let index = u32::from(at) % slots;
        let ring = if what & 0x80 == 0 { &bench.sq } else { &bench.rq };
        let xid = [Xid::qp(QP), Xid::cq(CQ)].map(|xid| xid.expect("small"));
        let epoch = Epoch(at & 0x8000 != 0);
        let word = |db_type, xid, toggle| {
            let index = DbIndex::limit(index).unwrap_or(DbIndex::ZERO);
            DbWord::ring(db_type, xid, index, epoch, toggle).to_u64()
        };
        let doorbell = match what % 8 {
            0..=2 => {
                let length = usize::from(input.byte());
                ring.write((index * stride) as usize, input.slice(length));
                None
            }
            3 => {
                bench.table.write(usize::from(at) % 2048, &input.array::<16>());
                None
            }
            4 => Some((0, word(DbType::SQ, xid[0], Toggle::ZERO))),
            5 => Some((0, word(DbType::RQ, xid[0], Toggle::ZERO))),
            6 => {
                let kinds = [DbType::CQ, DbType::CQ_ARMSE, DbType::CQ_ARMALL, DbType::CQ_ARMENA];
                Some((0, word(kinds[usize::from(input.byte() % 4)], xid[1], Toggle::ZERO)))
            }
            _ => Some((usize::from(at % 18), input.u64())),
        };
        if let Some((register, value)) = doorbell {
            bench.nic.doorbell(what.into(), register, value);
        }
        bench.run();
        if what & 0x40 != 0 {
            bench.pass();
        }
        bench.revive();
    }
    bench.check();
}
