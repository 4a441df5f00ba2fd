//! Cases of group B: bnxt_re send queue layout, variable WQEs, retransmit tables.

use directverbs::bnxt_re::caps::{Limits, UD_REFRESH};
use directverbs::bnxt_re::plan::{CqPlan, DirectParameters, QpPlan, RecvPlan, SendPlan, SrqPlan};
use directverbs::bnxt_re::psn::{Retransmit, SqMsnSearch};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::text;
use directverbs::verbs::{
    AccessFlags, AhId, BindMw, Datagram, FastRegister, Imm, LKey, MwType, PageTable, PlanError, PostError,
    Psn, QKey, QpAttributes, QpCapabilities, QpId, QpState, QpType, RKey, RemoteAddress, SendFlags, SendOp,
    SendRequest, Sge, SrqInit,
};
use directverbs_suites::bnxt_re::{Flavor, PSN, Rig, SMALL, req};
use zerocopy::IntoBytes;

const REMOTE: RemoteAddress =
    RemoteAddress { addr: 0x1122_3344_5566_7788, rkey: RKey::truncated(0xa1b2_c3d4) };

fn sge(length: u32) -> Sge {
    Sge::new(0x0102_0304_0506_0708, length, LKey::truncated(0x1112_1314))
}

fn rig(flavor: Flavor) -> Rig {
    Rig::new(flavor, QpType::Rc, &SMALL, 64)
}

/// Posts one request on a fresh ring and returns its first 128 bytes.
fn posted(flavor: Flavor, qp_type: QpType, request: SendRequest<'_>) -> [u8; 128] {
    let mut rig = Rig::new(flavor, qp_type, &SMALL, 64);
    rig.qp.post_send(&rig.spy, &[request]).unwrap();
    rig.sq_memory.read(0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn b1_inline_40_takes_5_slots() {
    let data = [0xaa; 40];
    let pieces: [&[u8]; 1] = [&data];
    let wqe = posted(Flavor::P7, QpType::Rc, SendRequest::new(SendOp::Write(REMOTE)).inline(&pieces));
    assert_eq!(wqe[..4], [0x04, 0x10, 5, 0]);
    assert_eq!(hex(&wqe[..32]), "041005000000000028000000000000008877665544332211d4c3b2a100000000");
    assert_eq!(wqe[32..72], [0xaa; 40]);
    assert_eq!(wqe[72..], [0; 56]);
}

#[test]
fn b2_static_wqes_take_128_bytes_and_6_sges() {
    for max_send_sge in [0, 1, 6] {
        let asked = QpCapabilities { max_send_sge, ..SMALL };
        let plan = SendPlan::new(&Flavor::P5.caps(), &asked).unwrap();
        assert_eq!((plan.wqe_bytes, plan.slots), (128, plan.wqes * 8));
    }
    let mut caps = Flavor::P5.caps();
    caps.limits.max_sge = 13;
    let asked = QpCapabilities { max_send_sge: 7, ..SMALL };
    let over = PlanError::OverDevice { what: text!("max_send_sge"), asked: 7, max: 6 };
    assert_eq!(SendPlan::new(&caps, &asked), Err(over));
    let asked = QpCapabilities { max_recv_sge: 3, ..SMALL };
    assert_eq!(RecvPlan::new(&caps, &asked).unwrap().wqe_slots, 8);
}

#[test]
fn b3_no_sge_has_length_zero_also_behind_another_request() {
    for flavor in Flavor::all() {
        let mut rig = rig(flavor);
        let sges = [sge(100)];
        let write = SendRequest::new(SendOp::Write(REMOTE));
        rig.qp.post_send(&rig.spy, &[write.sges(&sges), write]).unwrap();
        let (at, slots) = if flavor.mode == WqeMode::Static { (128, 8) } else { (48, 2) };
        let header: [u8; 32] = rig.sq_memory.read(at);
        assert_eq!(hex(&header[..16]), "04000200000000000000000000000000");
        assert_eq!(rig.qp.send.records()[1].slots(), slots);
        assert_eq!(rig.qp.send.records()[1].length, 0);
    }
}

#[test]
fn b5_inline_across_the_end_of_the_ring() {
    let data: Vec<u8> = (1..=90).collect();
    let pieces = [&data[..33], &data[33..50], &data[50..]];
    let mut rig = rig(Flavor::P7);
    let slots = rig.plan.send.slots;
    // Empty writes take two slots each; two pieces of inline data make the parity odd.
    let one: [&[u8]; 1] = [&[7]];
    let write = SendRequest::new(SendOp::Write(REMOTE)).signaled();
    for before_end in [7, 3, 2, 1] {
        loop {
            let tail = rig.qp.send.state().tail;
            let left = (slots - tail) % slots;
            if left == before_end {
                break;
            }
            let odd = left % 2 != before_end % 2;
            let filler = if odd { write.inline(&one) } else { write };
            rig.qp.post_send(&rig.spy, &[filler]).unwrap();
            complete_all(&mut rig);
        }
        let tail = rig.qp.send.state().tail;
        rig.qp.post_send(&rig.spy, &[write.inline(&pieces)]).unwrap();
        let stored: Vec<u8> =
            (0..8).flat_map(|i| rig.sq_memory.read::<16>(((tail + i) % slots) as usize * 16)).collect();
        assert_eq!(stored[..4], [0x04, 0x11, 8, 0], "{before_end} slots before the end");
        assert_eq!(stored[32..122], data);
        assert_eq!(rig.qp.send.state().tail, (tail + 8) % slots);
        complete_all(&mut rig);
    }
}

fn complete_all(rig: &mut Rig) {
    rig.device.push(req(rig.qp.send.state().next, 0));
    rig.poll(16).unwrap();
}

#[test]
fn b6_inline_pieces_add_up() {
    let (a, b) = ([1u8; 20], [2u8; 21]);
    let pieces: [&[u8]; 2] = [&a, &b];
    let wqe = posted(Flavor::P7, QpType::Rc, SendRequest::send().inline(&pieces));
    assert_eq!((wqe[2], wqe[8]), (5, 41));
    assert_eq!((&wqe[32..52], &wqe[52..73]), (&a[..], &b[..]));
}

#[test]
fn b8_each_wqe_of_a_batch_has_its_own_header() {
    let mut rig = rig(Flavor::P7);
    let sges = [sge(1), sge(2), sge(3)];
    let mut batch = rig.qp.send_batch().unwrap();
    batch.post(&SendRequest::send().sges(&sges[..1]).signaled()).unwrap();
    batch.post(&SendRequest::send().sges(&sges).flags(SendFlags::SOLICITED)).unwrap();
    batch.commit(&rig.spy);
    assert_eq!(rig.sq_memory.read::<4>(0), [0, 1, 3, 0]);
    assert_eq!(rig.sq_memory.read::<4>(48), [0, 8, 5, 0]);
    let slots: Vec<u32> = rig.qp.send.records()[..2].iter().map(|r| r.slots()).collect();
    assert_eq!(slots, [3, 5]);
}

#[test]
fn b9_inline_limit_is_the_length_asked_for() {
    let asked = QpCapabilities { max_inline_data: 201, ..SMALL };
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &asked, 64);
    let data = [3u8; 202];
    let fits: [&[u8]; 1] = [&data[..201]];
    rig.qp.post_send(&rig.spy, &[SendRequest::send().inline(&fits)]).unwrap();
    let long: [&[u8]; 2] = [&data[..201], &data[..1]];
    let error = rig.qp.post_send(&rig.spy, &[SendRequest::send().inline(&long)]).unwrap_err().error;
    assert_eq!(error, PostError::InlineTooLong { given: 202, max: 201 });
    let most = QpCapabilities { max_inline_data: 13 * 16, ..SMALL };
    assert!(SendPlan::new(&Flavor::P7.caps(), &most).is_ok());
    let over = QpCapabilities { max_inline_data: 13 * 16 + 1, ..SMALL };
    let error = PlanError::OverDevice { what: text!("max_inline_data"), asked: 209, max: 208 };
    assert_eq!(SendPlan::new(&Flavor::P7.caps(), &over), Err(error));
}

#[test]
fn b10_variable_wqes_take_13_sges() {
    let asked = QpCapabilities { max_send_sge: 13, max_recv_sge: 13, ..SMALL };
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &asked, 64);
    let sges = [sge(1); 14];
    rig.qp.post_send(&rig.spy, &[SendRequest::send().sges(&sges[..13])]).unwrap();
    assert_eq!(rig.sq_memory.read::<4>(0), [0, 0, 15, 0]);
    let error = rig.qp.post_send(&rig.spy, &[SendRequest::send().sges(&sges)]).unwrap_err().error;
    assert_eq!(error, PostError::TooManySges { given: 14, max: 13 });
    let over = QpCapabilities { max_send_sge: 14, ..SMALL };
    assert!(SendPlan::new(&Flavor::P7.caps(), &over).is_err());
}

#[test]
fn b11_msn_entry() {
    let start = Psn::truncated(0xff_ffff);
    let entry = SqMsnSearch::new(start, start.add(2), 0x10);
    assert_eq!(entry.as_bytes(), 0x0010_0000_01ff_ffff_u64.to_le_bytes());
}

#[test]
fn b12_psn_advances_by_packets() {
    let lengths = [(0, 1), (1, 1), (1024, 1), (1025, 2), (1 << 20, 1024), (1 << 31, 1 << 21)];
    for flavor in Flavor::all() {
        let mut rig = rig(flavor);
        let mut psn = Psn::truncated(PSN);
        for (length, packets) in lengths {
            let sges = [sge(length)];
            rig.qp.post_send(&rig.spy, &[SendRequest::new(SendOp::Read(REMOTE)).sges(&sges)]).unwrap();
            psn = psn.add(packets);
            assert_eq!(rig.qp.send.state().psn, psn.get(), "{length}");
        }
        let long = [sge(1 << 31), sge(1)];
        let error = rig.qp.post_send(&rig.spy, &[SendRequest::send().sges(&long)]).unwrap_err().error;
        assert_eq!(error, PostError::MessageTooLong { given: (1 << 31) + 1, max: 1 << 31 });
    }
}

#[test]
fn b13_entry_sizes() {
    let sizes = [Retransmit::Psn, Retransmit::PsnExt, Retransmit::Msn].map(|r| (r.log2(), r.entry_bytes()));
    assert_eq!(sizes, [(3, 8), (4, 16), (3, 8)]);
}

#[test]
fn b14_msn_modulus() {
    let asked = QpCapabilities { max_send_wr: 100, max_send_sge: 2, ..QpCapabilities::default() };
    let plan = SendPlan::new(&Flavor::P7.caps(), &asked).unwrap();
    assert_eq!((plan.slots, plan.msn_modulus), (1024, 512));
    let statics = Flavor { mode: WqeMode::Static, ..Flavor::P7 };
    let plan = SendPlan::new(&statics.caps(), &asked).unwrap();
    assert_eq!((plan.wqes, plan.msn_modulus), (229, 256));
    // The table is used round and round.
    let mut rig = Rig::new(Flavor::P7, QpType::Rc, &SMALL, 64);
    let modulus = rig.plan.send.msn_modulus;
    for i in 0..modulus + 3 {
        assert_eq!(rig.qp.send.state().msn, i % modulus);
        rig.qp.post_send(&rig.spy, &[SendRequest::send()]).unwrap();
        complete_all(&mut rig);
    }
}

#[test]
fn b16_table_begins_right_behind_the_ring() {
    let direct = |slots, npsn| DirectParameters {
        sq_len: u32::next_multiple_of(slots * 16 + npsn * 8, 4096),
        sq_slots: slots,
        sq_wqe_bytes: 48,
        sq_psn_bytes: 8,
        sq_npsn: npsn,
        msn_table_offset: slots * 16,
        msn_modulus: npsn,
        rq_len: 0,
        rq_slots: 0,
        rq_wqe_bytes: 0,
    };
    for (slots, npsn, offset, len) in [(1024, 512, 16384, 20480), (512, 256, 8192, 12288)] {
        let d = direct(slots, npsn);
        assert_eq!((d.msn_table_offset, d.sq_len), (offset, len));
        assert_eq!(d.check(&Flavor::P7.caps()), Ok(()));
        let at_end = DirectParameters { msn_table_offset: len - npsn * 8, ..d };
        assert_eq!(at_end.check(&Flavor::P7.caps()).is_ok(), slots == 1024);
    }
    let plan = QpPlan::new(&Flavor::P7.caps(), &SMALL, false).unwrap();
    let d = DirectParameters::new(&Flavor::P7.caps(), &plan).unwrap();
    assert_eq!((d.sq_slots, d.msn_table_offset), (plan.send.slots, plan.send.slots * 16));
    assert_eq!((d.sq_npsn, d.msn_modulus), (1024, 1024));
    let wrote = |rig: &Rig, at: u32| u64::from_le_bytes(rig.sq_memory.read(at as usize));
    let mut rig = rig(Flavor::P7);
    rig.qp.post_send(&rig.spy, &[SendRequest::send()]).unwrap();
    assert_ne!(wrote(&rig, rig.plan.send.slots * 16), 0);
}

#[test]
fn b17_what_the_kernel_refuses_of_fixed_rings() {
    let caps = Flavor::P7.caps();
    let plan = QpPlan::new(&caps, &SMALL, false).unwrap();
    let good = DirectParameters::new(&caps, &plan).unwrap();
    let slots = good.sq_slots;
    let bad = [
        DirectParameters { sq_slots: 0, ..good },
        DirectParameters { sq_slots: 65537, msn_table_offset: 65537 * 16, sq_len: 1 << 24, ..good },
        DirectParameters { sq_npsn: 0, ..good },
        DirectParameters { sq_npsn: slots.next_power_of_two(), sq_len: 1 << 24, ..good },
        DirectParameters { sq_len: slots * 16 + good.sq_npsn * 8 - 1, ..good },
    ];
    for parameters in bad {
        assert!(parameters.check(&caps).is_err(), "{parameters:?}");
    }
    let statics = Flavor { mode: WqeMode::Static, ..Flavor::P7 }.caps();
    assert_eq!(
        DirectParameters::new(&statics, &QpPlan::new(&statics, &SMALL, false).unwrap()),
        Err(PlanError::Unsupported(text!("fixed ring sizes need variable WQE mode")))
    );
    let sized = good.send_plan(&caps, &SMALL).unwrap();
    assert_eq!((sized.slots, sized.msn_modulus, sized.bytes), (slots, good.sq_npsn, good.sq_len));
    let greedy = QpCapabilities { max_send_wr: 4000, ..SMALL };
    assert!(good.send_plan(&caps, &greedy).is_err());
}

#[test]
fn b23_no_receive_requests_no_receive_queue() {
    for flavor in Flavor::all() {
        let asked = QpCapabilities { max_recv_wr: 0, max_recv_sge: 0, ..SMALL };
        let plan = QpPlan::new(&flavor.caps(), &asked, false).unwrap();
        assert_eq!(plan.recv, None);
        assert_eq!(plan.granted().max_recv_wr, 0);
        if flavor == Flavor::P7 {
            assert_eq!(DirectParameters::new(&flavor.caps(), &plan).unwrap().rq_len, 0);
        }
    }
}

/// Own finding: the kernel driver and the vendor's provider check what is asked of the receive side also when there is no
/// receive queue.
#[test]
fn b23_limits_of_receives_hold_without_a_receive_queue() {
    for flavor in Flavor::all() {
        let caps = flavor.caps();
        let Limits { max_qp_wr, max_sge, .. } = caps.limits;
        let none = QpCapabilities { max_recv_wr: 0, max_recv_sge: 0, ..SMALL };
        let granted = |asked: QpCapabilities, srq| QpPlan::new(&caps, &asked, srq).is_ok();
        for srq in [false, true] {
            assert!(granted(QpCapabilities { max_recv_sge: max_sge, ..none }, srq));
            assert!(!granted(QpCapabilities { max_recv_sge: max_sge + 1, ..none }, srq));
        }
        assert!(granted(QpCapabilities { max_recv_wr: max_qp_wr, ..none }, true));
        assert!(!granted(QpCapabilities { max_recv_wr: max_qp_wr + 1, ..none }, true));
    }
}

#[test]
fn b24_the_advertised_maximum_is_granted() {
    for flavor in Flavor::all() {
        let caps = flavor.caps();
        let max = SendPlan::max_send_wr(&caps, 4, 96);
        let asked = QpCapabilities { max_send_wr: max, ..SMALL };
        assert!(SendPlan::new(&caps, &asked).unwrap().max_wr >= max);
        let over = QpCapabilities { max_send_wr: max + 1, ..SMALL };
        assert!(matches!(SendPlan::new(&caps, &over), Err(PlanError::OverDevice { .. })));
        // All that was granted fits at once, at the largest size.
        let mut rig = Rig::new(flavor, QpType::Rc, &SMALL, 64);
        let data = [0u8; 96];
        let pieces: [&[u8]; 1] = [&data];
        for _ in 0..rig.plan.send.max_wr {
            rig.qp.post_send(&rig.spy, &[SendRequest::send().inline(&pieces)]).unwrap();
        }
    }
}

#[test]
fn b25_full_queue_writes_nothing_and_rings_nothing() {
    for flavor in Flavor::all() {
        let mut rig = rig(flavor);
        let sges = [sge(9)];
        let request = SendRequest::new(SendOp::Write(REMOTE)).sges(&sges);
        let per_wqe = if flavor.mode == WqeMode::Static { 8 } else { 3 };
        let mut posted = 0;
        let error = loop {
            match rig.qp.post_send(&rig.spy, &[request]) {
                Ok(()) => posted += 1,
                Err(e) => break e.error,
            }
        };
        let (slots, reserve) = (rig.plan.send.slots, rig.plan.send.reserve);
        // Refused when what is free is no more than needed and reserved together.
        assert!(slots - posted * per_wqe <= per_wqe + reserve);
        assert!(slots - (posted - 1) * per_wqe > per_wqe + reserve);
        assert!(matches!(error, PostError::QueueFull { needed, .. } if needed == per_wqe), "{error:?}");
        let (bytes, state, records) =
            (rig.sq_memory.bytes(), rig.qp.send.state(), rig.qp.send.records().to_vec());
        rig.spy.events.take();
        for _ in 0..100 {
            rig.qp.post_send(&rig.spy, &[request]).unwrap_err();
        }
        assert_eq!(rig.sq_memory.bytes(), bytes);
        assert_eq!((rig.qp.send.state(), rig.qp.send.records()), (state, &records[..]));
        assert_eq!(rig.spy.events.take(), []);
        complete_all(&mut rig);
        rig.qp.post_send(&rig.spy, &[request]).unwrap();
    }
}

#[test]
fn b26_depths_are_powers_of_two_unless_disabled() {
    let asked = QpCapabilities { max_send_wr: 100, max_recv_wr: 100, ..SMALL };
    let exact = Flavor { exact: true, ..Flavor::P5 }.caps();
    let plan = QpPlan::new(&exact, &asked, false).unwrap();
    assert_eq!((plan.send.wqes, plan.recv.unwrap().wqes), (229, 101));
    assert_eq!((plan.send.npsn, plan.send.bytes), (229, (229u32 * (128 + 16)).next_multiple_of(4096)));
    let plan = QpPlan::new(&Flavor::P5.caps(), &asked, false).unwrap();
    assert_eq!((plan.send.wqes, plan.recv.unwrap().wqes), (256, 128));
    assert_eq!(CqPlan::new(&exact, 100).unwrap().entries, 201);
    assert_eq!(CqPlan::new(&Flavor::P5.caps(), 100).unwrap().entries, 256);
    let srq = SrqInit { max_wr: 100, max_sge: 1 };
    assert_eq!(SrqPlan::new(&exact, &srq).unwrap().entries, 101);
    assert_eq!(SrqPlan::new(&Flavor::P5.caps(), &srq).unwrap().entries, 128);
}

#[test]
fn b28_variable_slots_are_a_multiple_of_256() {
    for max_send_wr in [1, 16, 100, 1000] {
        let asked = QpCapabilities { max_send_wr, ..SMALL };
        let plan = SendPlan::new(&Flavor::P7.caps(), &asked).unwrap();
        assert_eq!(plan.slots % 256, 0);
        assert_eq!(plan.slots, ((max_send_wr + 129) * 8).next_multiple_of(256));
    }
}

#[test]
fn b29_receive_headers_take_32_bytes() {
    let asked = QpCapabilities { max_recv_sge: 3, ..SMALL };
    let plan = RecvPlan::new(&Flavor::P7.caps(), &asked).unwrap();
    assert_eq!((plan.wqe_slots, plan.slots), (5, 45));
    let plan = SrqPlan::new(&Flavor::P7.caps(), &SrqInit { max_wr: 31, max_sge: 6 }).unwrap();
    assert_eq!((plan.entries, plan.bytes), (32, 4096));
    assert!(SrqPlan::new(&Flavor::P7.caps(), &SrqInit { max_wr: 31, max_sge: 7 }).is_err());
}

#[test]
fn b30_b40_atomic_operands() {
    for flavor in [Flavor::P5, Flavor::P7] {
        let mut rig = rig(flavor);
        let sges = [sge(8)];
        let cas = SendOp::CompareSwap { remote: REMOTE, compare: 0x0a0b, swap: 0x0c0d };
        let add = SendOp::FetchAdd { remote: REMOTE, add: 0x0e0f };
        // On a second lap, the fetch and add takes the place of the compare and swap.
        for op in [cas, add] {
            rig.qp.modify(&QpAttributes::to(QpState::Reset)).unwrap();
            rig.connect();
            rig.qp.post_send(&rig.spy, &[SendRequest::new(op).sges(&sges)]).unwrap();
            let wqe: [u8; 48] = rig.sq_memory.read(0);
            let (op, operands) = match op {
                SendOp::FetchAdd { .. } => ("0b", "0f0e0000000000000000000000000000"),
                _ => ("08", "0d0c0000000000000b0a000000000000"),
            };
            let header = format!("{op}000300d4c3b2a18877665544332211{operands}");
            assert_eq!(hex(&wqe), header + "08070605040302011413121108000000");
        }
    }
}

#[test]
fn b31_immediate_data_and_keys_are_little_endian_numbers() {
    let imm = posted(Flavor::P7, QpType::Rc, SendRequest::new(SendOp::SendImm(Imm::truncated(0x0102_0304))));
    assert_eq!(imm[..8], [1, 0, 2, 0, 4, 3, 2, 1]);
    let write = SendRequest::new(SendOp::WriteImm(REMOTE, Imm::truncated(0x0102_0304)));
    assert_eq!(posted(Flavor::P7, QpType::Rc, write)[..8], [5, 0, 2, 0, 4, 3, 2, 1]);
    let inv = posted(Flavor::P7, QpType::Rc, SendRequest::new(SendOp::SendInv(RKey::truncated(0x0102_0304))));
    assert_eq!(inv[..8], [2, 0, 2, 0, 4, 3, 2, 1]);
}

#[test]
fn b32_datagrams_need_an_address_handle_of_20_bits() {
    let to = Datagram {
        ah: AhId::truncated(0xf_ffff),
        qp: QpId::truncated(0x12_3456),
        qkey: QKey::truncated(0x8001_0203),
    };
    let sges = [sge(64)];
    let wqe = posted(Flavor::P7, QpType::Ud, SendRequest::send_to(to).sges(&sges));
    let header = "0000030000000000400000000302018056341200ffff0f000000000000000000";
    assert_eq!(hex(&wqe[..32]), header);
    let mut rig = Rig::new(Flavor::P7, QpType::Ud, &SMALL, 64);
    let wide = Datagram { ah: AhId::truncated(0x10_0000), ..to };
    let error = rig.qp.post_send(&rig.spy, &[SendRequest::send_to(wide)]).unwrap_err().error;
    assert_eq!(error, PostError::OutOfRange { field: text!("address handle"), value: 0x10_0000, bits: 20 });
    let error = rig.qp.post_send(&rig.spy, &[SendRequest::send()]).unwrap_err().error;
    assert!(matches!(error, PostError::NotSupported { qp_type: QpType::Ud, .. }));
    assert_eq!(rig.spy.events.take(), []);
}

#[test]
fn b34_fences_only_if_asked() {
    let cases = [
        (SendFlags::empty(), 0),
        (SendFlags::SIGNALED, 1),
        (SendFlags::LOCAL_FENCE, 2),
        (SendFlags::FENCE, 4),
        (SendFlags::SOLICITED, 8),
    ];
    for (flags, bits) in cases {
        assert_eq!(posted(Flavor::P5, QpType::Rc, SendRequest::send().flags(flags))[1], bits);
    }
}

#[test]
fn b35_only_old_datagram_queue_pairs_want_rts_again() {
    let mut caps = Flavor::P5.caps();
    caps.generation = directverbs::bnxt_re::caps::Generation::Legacy;
    let to = Datagram { ah: AhId::default(), qp: QpId::default(), qkey: QKey::default() };
    let wants = |caps, qp_type| {
        let request = if qp_type == QpType::Ud { SendRequest::send_to(to) } else { SendRequest::send() };
        let mut rig = Rig::with_caps(caps, qp_type, &SMALL, 64);
        let mut posts = 0;
        while posts < UD_REFRESH && !rig.qp.send.wants_refresh() {
            let mut batch = rig.qp.send_batch().unwrap();
            for _ in 0..16 {
                batch.post(&request.signaled()).unwrap();
            }
            posts += batch.len();
            batch.finish();
            rig.device.push(req(rig.qp.send.state().next, 0));
            rig.poll(16).unwrap();
            rig.spy.events.borrow_mut().clear();
        }
        let wants = rig.qp.send.wants_refresh();
        rig.qp.modify(&QpAttributes::to(QpState::Rts)).unwrap();
        assert!(!rig.qp.send.wants_refresh());
        (wants, posts)
    };
    assert_eq!(wants(caps, QpType::Ud), (true, UD_REFRESH));
    assert_eq!(wants(Flavor::P5.caps(), QpType::Ud), (false, UD_REFRESH));
}

#[test]
fn b36_msn_entries_of_a_batch_name_their_own_wqe() {
    let mut rig = rig(Flavor::P7);
    let sges = [sge(2000), sge(1)];
    let requests =
        [SendRequest::send().sges(&sges), SendRequest::send(), SendRequest::send().sges(&sges[1..])];
    rig.qp.post_send(&rig.spy, &requests).unwrap();
    let table = rig.plan.send.table_offset as usize;
    let entries: Vec<_> = (0..3)
        .map(|i| {
            let word = u64::from_le_bytes(rig.sq_memory.read(table + i * 8));
            (word >> 48, word >> 24 & 0xff_ffff, word & 0xff_ffff)
        })
        .collect();
    assert_eq!(entries, [(0, 0xff_fff2, 0xff_fff0), (4, 0xff_fff3, 0xff_fff2), (6, 0xff_fff4, 0xff_fff3)]);
}

#[test]
fn b41_header_size_and_tail_follow_the_payload() {
    for length in 0..=96usize {
        let mut rig = rig(Flavor::P7);
        let data = vec![9u8; length];
        let pieces: [&[u8]; 1] = [&data];
        rig.qp.post_send(&rig.spy, &[SendRequest::send().inline(&pieces)]).unwrap();
        let slots = 2 + length.div_ceil(16) as u32;
        assert_eq!(u32::from(rig.sq_memory.read::<4>(0)[2]), slots);
        assert_eq!(rig.qp.send.state().tail, slots);
        assert_eq!(rig.sq_memory.read::<16>(slots as usize * 16), [0; 16]);
    }
}

#[test]
fn local_operations_have_their_layouts() {
    let inv =
        posted(Flavor::P7, QpType::Rc, SendRequest::new(SendOp::LocalInv(RKey::truncated(0x0102_0304))));
    assert_eq!(hex(&inv[..8]), "0c00000004030201");
    let bind = BindMw {
        mw_type: MwType::Type2,
        mw: RKey::truncated(0x5566_7701),
        new_key: RKey::truncated(0x5566_7702),
        region: LKey::truncated(0x1112_1314),
        addr: 0x0102_0304_0506_0708,
        length: 0xa1_b2c3_d4e5,
        access: AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE,
    };
    let wqe = posted(Flavor::P7, QpType::Rc, SendRequest::new(SendOp::BindMw(bind)).signaled());
    assert_eq!(hex(&wqe[..32]), "0e0106000200000014131211027766550807060504030201e5d4c3b2a1000000");
    let register = FastRegister {
        key: LKey::truncated(0x1112_1314),
        addr: 0x0102_0304_0506_0708,
        length: 0x1000,
        page_shift: 21,
        pages: 3,
        table: PageTable::Level1(0x1_0000),
        access: AccessFlags::LOCAL_WRITE | AccessFlags::ZERO_BASED,
    };
    let wqe = posted(Flavor::P7, QpType::Rc, SendRequest::new(SendOp::FastRegister(register)));
    assert_eq!(hex(&wqe[..32]), "0d00012914131211001000000000004000000100000000000807060504030201");

    let mut rig = rig(Flavor::P7);
    let wide = BindMw { length: 1 << 40, ..bind };
    let other = BindMw { new_key: RKey::truncated(0x5567_7702), ..bind };
    let small = FastRegister { page_shift: 11, ..register };
    let refused = [SendOp::BindMw(wide), SendOp::BindMw(other), SendOp::FastRegister(small)];
    for op in refused {
        let error = rig.qp.post_send(&rig.spy, &[SendRequest::new(op)]).unwrap_err().error;
        assert!(matches!(error, PostError::OutOfRange { .. }), "{error:?}");
    }
    // They send nothing: no PSN, no message.
    let before = rig.qp.send.state();
    rig.qp.post_send(&rig.spy, &[SendRequest::new(SendOp::LocalInv(RKey::default()))]).unwrap();
    let after = rig.qp.send.state();
    assert_eq!((after.psn, after.msn), (before.psn, before.msn));
}

#[test]
fn raw_frames_are_sends() {
    let sges = [sge(60)];
    let wqe = posted(Flavor::P5, QpType::RawPacket, SendRequest::send().sges(&sges));
    assert_eq!(hex(&wqe[..16]), "00000300000000003c00000000000000");
    let mut rig = Rig::new(Flavor::P5, QpType::RawPacket, &SMALL, 64);
    let refused = [SendOp::Write(REMOTE), SendOp::SendImm(Imm::default()), SendOp::LocalInv(RKey::default())];
    for op in refused {
        let error = rig.qp.post_send(&rig.spy, &[SendRequest::new(op)]).unwrap_err().error;
        assert!(matches!(error, PostError::NotSupported { qp_type: QpType::RawPacket, .. }), "{error:?}");
    }
}
