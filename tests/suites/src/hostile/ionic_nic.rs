use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::QpType;
use directverbs_softnic::ionic::{CQ_QTYPE, Ionic, IonicConfig, RQ_QTYPE, SQ_QTYPE, options};

use super::Input;
use super::bench::{Bench, CQ, QP, Setup};

const ENTRIES: u32 = 16;

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
    while !input.is_empty() {
        let (what, at) = (input.byte(), input.u16());
        let index = u32::from(at) % ENTRIES;
        let offset = (index * stride) as usize;
        let ring = if what & 0x80 == 0 { &bench.sq } else { &bench.rq };
        let qp = u64::from(QP.get()) << 24;
        let doorbell = match what % 8 {
            0 | 1 => {
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
        if what & 0x30 == 0 {
            bench.revive();
        }
    }
    bench.check();
}
