//! What a bnxt_re NIC does not let its driver get away with.

mod bnxt_re_pair;

use bnxt_re_pair::{CHIPS, End, LOSSLESS, On, PATIENCE, connect, devices, outcomes, pair, violations};
use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use directverbs::queue::WqeIdx;
use directverbs::verbs::{
    CompletionQueue as _, QpAttributes, QpState, QpType, QueuePair as _, SendRequest, WcStatus,
};
use directverbs_softnic::device::Notification;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::host::bnxt_re::BnxtReOptions;

/// Every doorbell is lost.
const LOST: FaultPlan = FaultPlan { drop_doorbell: 1_000_000, ..FaultPlan::NONE };

/// Changes the first bytes of a WQE.
type Spoil = fn(&mut [u8; 16]);

fn word(db_type: DbType, xid: Xid, index: u32, epoch: bool) -> u64 {
    DbWord::ring(db_type, xid, DbIndex::wqe(WqeIdx(index)).unwrap(), Epoch(epoch), Toggle::ZERO).to_u64()
}

/// Stores doorbells that the driver would not, and returns what the NIC says to them.
fn ring(end: &End, register: usize, values: &[u64]) -> Vec<String> {
    for value in values {
        end.device.nic().lock().doorbell(1, register, *value);
    }
    violations(&end.device)
}

/// Bus address of the send ring.
fn ring_address(end: &End) -> u64 {
    let process = end.qp.driver().qp.send.memory().address();
    end.device.memory().bus_address(process).unwrap()
}

/// Posts `request` with a lost doorbell, lets `spoil` change the bytes at the start of the ring and of the retransmit
/// table, and has the doorbell stored again.
fn spoiled(end: &mut End, request: SendRequest<'_>, spoil: impl FnOnce(&mut [u8; 16], &mut [u8; 16])) {
    end.device.nic().lock().set_faults(LOST, 1);
    end.post_send(&[request]);
    let memory = ring_address(end);
    let table = memory + u64::from(bnxt_re_pair::table_offset(&end.device));
    let mut nic = end.device.nic().lock();
    nic.set_faults(FaultPlan::NONE, 1);
    let (mut header, mut entry) = ([0; 16], [0; 16]);
    let bus = nic.hardware().bus();
    bus.read(memory, &mut header).unwrap();
    bus.read(table, &mut entry).unwrap();
    spoil(&mut header, &mut entry);
    bus.write(memory, &header).unwrap();
    bus.write(table, &entry).unwrap();
    drop(nic);
    directverbs::verbs::Device::progress(&mut end.device);
}

#[test]
fn a_doorbell_that_makes_no_sense_is_dropped_and_counted() {
    for options in CHIPS {
        let (_fabric, [a, _b]) = pair(options, QpType::Rc, false);
        let (qp, cq) = (Xid::qp(a.qp.id()).unwrap(), Xid::cq(a.send_cq.id()).unwrap());
        let cases = [
            (0, 1 << 32, "is not valid"),
            (0, word(DbType::SQ, qp, 0, false) | 1 << 56, "is not for RoCE"),
            (0, word(DbType::SQ, qp, 1, true), "SQ doorbell dropped"),
            (0, word(DbType::SQ, qp, 0xff_ffff, false), "SQ doorbell dropped"),
            (0, word(DbType::RQ, qp, 1, true), "RQ doorbell dropped"),
            (0, word(DbType::CQ, cq, 1, false), "consumer doorbell dropped"),
            (0, word(DbType::CQ_CUTOFF_ACK, cq, 0, false), "CQ_CUTOFF_ACK"),
            (0, word(DbType::SQ, Xid::ring(0x999), 0, false), "no such queue pair"),
            (0, word(DbType::CQ, Xid::ring(0x999), 0, false), "no such queue"),
            (0, word(DbType::SRQ, Xid::ring(0x999), 0, false), "no such queue"),
            (0, word(DbType::NQ_ARM, Xid::ring(1), 0, false), "doorbell of type"),
            (2, word(DbType::SQ, qp, 0, false), "at register 2"),
            (1, word(DbType::PUSH_END, qp, 1, false), "push end without its start"),
        ];
        for (i, (register, value, expected)) in cases.into_iter().enumerate() {
            let said = ring(&a, register, &[value]);
            assert_eq!(said.len(), i + 1, "{options:?} {expected}: {said:?}");
            assert!(said[i].contains(expected), "{options:?} {expected}: {said:?}");
        }
        assert_eq!(a.device.nic().lock().front_end().violations().count(), cases.len() as u64);
    }
}

#[test]
fn a_doorbell_that_moves_backwards_is_dropped() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        b.post_recv(1, 0, 8);
        a.post_send(&[SendRequest::send().signaled()]);
        a.wait(On::Send, 1);
        let qp = Xid::qp(a.qp.id()).unwrap();
        let said = ring(&a, 0, &[word(DbType::SQ, qp, 0, false)]);
        assert!(said[0].contains("index 0 epoch 0 after"), "{said:?}");
        assert_eq!(
            ring(&b, 0, &[word(DbType::RQ, Xid::qp(b.qp.id()).unwrap(), 1, false)]),
            [""; 0],
            "rung twice"
        );
    }
}

#[test]
fn a_wrong_retransmit_entry_fails_the_queue_pair() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        b.post_recv(1, 0, 8);
        spoiled(&mut a, SendRequest::send().wr_id(1), |_, entry| entry[0] ^= 1);
        assert_eq!(outcomes(&a.wait(On::Send, 1)), [(1, WcStatus::WrFlush)], "{options:?}");
        assert!(violations(&a.device)[0].contains("retransmit entry 0 says"), "{:?}", violations(&a.device));
        assert_eq!(a.device.take_event(), Some(Notification::QpError(a.qp.id())));
    }
}

#[test]
fn an_entry_or_a_wqe_changed_before_a_retransmission_is_found() {
    for (options, in_table) in CHIPS.into_iter().flat_map(|chip| [(chip, false), (chip, true)]) {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        b.modify(&QpAttributes::to(QpState::Reset));
        a.post_send(&[SendRequest::send().wr_id(1)]);
        let ring = ring_address(&a);
        let table = u64::from(bnxt_re_pair::table_offset(&a.device));
        let at = if in_table { ring + table } else { ring };
        a.device.nic().lock().hardware().bus().write(at, &[0x5a]).unwrap();
        a.wait(On::Send, 1);
        let expected = if in_table { "retransmit entry 0" } else { "was changed before it completed" };
        assert!(violations(&a.device)[0].contains(expected), "{:?}", violations(&a.device));
    }
}

#[test]
fn a_wqe_that_makes_no_sense_fails_with_the_reason() {
    for options in CHIPS {
        let cases: [(Spoil, &str); 5] = [
            (|header| header[0] = 0x03, "WQE type 0x3"),
            (|header| header[1] |= 0x80, "flags 0x80"),
            (|header| header[8] = 7, "length field 7"),
            (|header| header[2] = 14, ""),
            (|header| header[2] = 1, ""),
        ];
        for (spoil, expected) in cases {
            let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
            b.post_recv(1, 0, 64);
            let sges = [a.sge(0, 8)];
            spoiled(&mut a, SendRequest::send().sges(&sges).wr_id(1), |header, _| spoil(header));
            let done = a.wait(On::Send, 1);
            assert_eq!(
                (done[0].status, done[0].vendor_err),
                (WcStatus::LocQpOp, 3),
                "{options:?} {expected}"
            );
            let said = violations(&a.device);
            assert!(said.len() == 1 && said[0].contains(expected), "{options:?} {expected}: {said:?}");
        }
    }
}

#[test]
fn an_overrun_completion_queue_fails_with_its_queue_pairs() {
    for options in CHIPS {
        let options = BnxtReOptions { coalesce: 0, ..options };
        let (_fabric, devices) = devices(options, LOSSLESS);
        let mut ends = devices.map(|device| End::new(device, QpType::Rc, 2, false));
        connect(&mut ends);
        let [a, b] = &mut ends;
        let (addr, rkey) = b.remote(0);
        let sges = [a.sge(0, 8)];
        let write = SendRequest::write(addr, rkey).sges(&sges).signaled();
        a.post_send(&[write; 12]);
        for _ in 0..PATIENCE {
            if !directverbs::verbs::Device::progress(&mut a.device) {
                break;
            }
        }
        let events: Vec<_> = std::iter::from_fn(|| a.device.take_event()).collect();
        assert!(events.contains(&Notification::CqError(a.send_cq.id())), "{options:?} {events:?}");
        assert!(events.contains(&Notification::QpError(a.qp.id())), "{options:?} {events:?}");
        assert!(violations(&a.device)[0].contains("overrun"), "{:?}", violations(&a.device));
    }
}

#[test]
fn a_pushed_wqe_goes_out_and_must_be_the_one_in_the_ring() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        for i in 0..200 {
            let data: [u8; 40] = core::array::from_fn(|at| at as u8 ^ i as u8);
            b.post_recv(i, 0, 64);
            let pieces = [&data[..]];
            let request = SendRequest::send().inline(&pieces).wr_id(i).signaled();
            if i % 3 == 0 {
                a.post_send(&[request]);
            } else {
                a.device.push_send(&mut a.qp, &request, i as usize % 16).unwrap();
            }
            assert_eq!(outcomes(&a.wait(On::Send, 1)), [(i, WcStatus::Success)], "{options:?}");
            b.wait(On::Recv, 1);
            assert_eq!(b.read::<40>(0), data, "{options:?} {i}");
        }
        a.check();
        b.check();
    }
}
