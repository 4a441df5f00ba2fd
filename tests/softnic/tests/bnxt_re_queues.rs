//! Completion queues of bnxt_re NICs that are resized or armed, shared receive queues with a limit, datagrams, memory
//! management through the send queue, and pushed WQEs.

mod bnxt_re_pair;

use bnxt_re_pair::{CHIPS, End, On, QKEY, outcomes, pair, violations};
use directverbs::verbs::{
    AccessFlags, CompletionQueue as _, Datagram, Device as _, FastRegister, Imm, LKey, MemoryRegion as _,
    PageTable, QpType, QueuePair as _, RKey, RecvRequest, SendFlags, SendOp, SendRequest, Sge,
    SharedReceiveQueue as _, WcFlags, WcOpcode, WcStatus,
};
use directverbs_softnic::device::{MrConfig, MrKind, Notification};

/// Sends `count` empty messages from `a` to `b`, a few at a time, and counts the completions on both sides.
fn exchange(a: &mut End, b: &mut End, count: u64) {
    for i in 0..count {
        b.post_recv(i, 0, 8);
        a.post_send(&[SendRequest::send().wr_id(i).signaled()]);
        assert_eq!(outcomes(&a.wait(On::Send, 1)), [(i, WcStatus::Success)]);
        assert_eq!(outcomes(&b.wait(On::Recv, 1)), [(i, WcStatus::Success)]);
    }
}

#[test]
fn a_completion_queue_is_resized_wherever_its_index_stands() {
    for options in CHIPS {
        for start in (0..300).step_by(37) {
            let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
            exchange(&mut a, &mut b, start);
            for cqe in [200, 10, 500, 64] {
                // Completions that wait in the old ring come out first, in order.
                for i in 0..5 {
                    b.post_recv(i, 0, 8);
                    a.post_send(&[SendRequest::send().wr_id(i).signaled()]);
                }
                a.device.resize_cq(&mut a.send_cq, cqe).unwrap();
                let done: Vec<_> = (0..5).map(|i| (i, WcStatus::Success)).collect();
                assert_eq!(outcomes(&a.wait(On::Send, 5)), done, "{options:?} {start} {cqe}");
                assert_eq!(outcomes(&b.wait(On::Recv, 5)), done);
                exchange(&mut a, &mut b, 41);
            }
            assert_eq!(violations(&a.device), Vec::<String>::new(), "{options:?} {start}");
            b.check();
        }
    }
}

#[test]
fn an_armed_queue_raises_one_event() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        let event = Some(Notification::Cq(b.recv_cq.id()));
        for solicited_only in [false, true, true, false] {
            b.recv_cq.arm(solicited_only);
            assert_eq!(b.poll(On::Recv, 4), []);
            exchange(&mut a, &mut b, 1);
            assert_eq!(b.device.take_event(), event.filter(|_| !solicited_only), "{options:?}");
            b.post_recv(1, 0, 8);
            a.post_send(&[SendRequest::send().flags(SendFlags::SOLICITED | SendFlags::SIGNALED)]);
            b.wait(On::Recv, 1);
            a.wait(On::Send, 1);
            assert_eq!(b.device.take_event(), event.filter(|_| solicited_only), "{options:?}");
            assert_eq!(b.device.take_event(), None);
        }
        b.check();
    }
}

#[test]
fn a_shared_queue_below_its_limit_raises_one_event() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, true);
        (0..4).for_each(|i| b.post_recv(i, 0, 8));
        let srq = b.srq.as_mut().unwrap();
        let event = Some(Notification::SrqLimit(srq.id()));
        srq.arm_limit(3);
        for expected in [None, event, None] {
            a.post_send(&[SendRequest::send().signaled()]);
            a.wait(On::Send, 1);
            b.wait(On::Recv, 1);
            assert_eq!(b.device.take_event(), expected, "{options:?}");
        }
        // Armed when it is below already.
        b.srq.as_mut().unwrap().arm_limit(3);
        b.device.progress();
        assert_eq!(b.device.take_event(), event, "{options:?}");
        b.check();
    }
}

#[test]
fn a_datagram_tells_where_it_came_from() {
    for (options, srq) in CHIPS.into_iter().flat_map(|chip| [(chip, false), (chip, true)]) {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Ud, srq);
        let ah = a.device.create_ah(&a.pd, &b.path()).unwrap();
        let to = Datagram { ah, qp: b.qp.id(), qkey: QKEY };
        a.write(0, b"datagram");
        b.post_recv(5, 1000, 60);
        let sges = [a.sge(0, 8)];
        let op = SendOp::SendToImm(to, Imm::truncated(0x1234_5678));
        a.post_send(&[SendRequest::new(op).sges(&sges).signaled()]);
        a.wait(On::Send, 1);
        let [wc] = b.wait(On::Recv, 1)[..] else { panic!("one completion") };
        assert_eq!((wc.wr_id, wc.byte_len, wc.src_qp, wc.sl), (5, 48, a.qp.id(), 2));
        assert!(wc.flags.contains(WcFlags::GRH | WcFlags::WITH_IMM));
        assert_eq!(wc.imm().map(Imm::get), Some(0x1234_5678));
        assert_eq!(&b.read::<8>(1040), b"datagram");
        a.device.destroy_ah(ah).unwrap();
        a.check();
        b.check();
    }
}

#[test]
fn memory_is_registered_used_and_invalidated_through_the_send_queue() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        let config = MrConfig {
            key: None,
            pd: b.pd.id(),
            kind: MrKind::FastRegister { max_pages: 4 },
            addr: 0,
            length: 0,
            access: AccessFlags::empty(),
        };
        let key = b.device.nic().lock().create_mr(&config).unwrap();
        // Two pages, listed in the end's own memory, in the wrong order.
        let pages = [b.mr.addr() + 8192, b.mr.addr() + 4096];
        b.write(0, &pages.map(|page| (page | 1).to_le_bytes()).concat());
        let register = FastRegister {
            key: LKey::truncated(key),
            addr: 0x10_0000,
            length: 8192,
            page_shift: 12,
            pages: 2,
            table: PageTable::Level1(b.mr.addr()),
            access: AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE,
        };
        b.post_send(&[SendRequest::new(SendOp::FastRegister(register)).wr_id(1).signaled()]);
        let [wc] = b.wait(On::Send, 1)[..] else { panic!("one completion") };
        assert_eq!((wc.status, wc.opcode), (WcStatus::Success, WcOpcode::RegMr), "{options:?}");

        a.write(0, b"end of the first page and start of the second");
        let sges = [a.sge(0, 45)];
        let write = SendRequest::write(0x10_0000 + 4086, RKey::truncated(key)).sges(&sges).signaled();
        a.post_send(&[write]);
        assert_eq!(a.wait(On::Send, 1)[0].status, WcStatus::Success);
        assert_eq!((&b.read::<10>(8192 + 4086), &b.read::<10>(4096)), (b"end of the", b" first pag"));

        b.post_send(&[SendRequest::new(SendOp::LocalInv(RKey::truncated(key))).signaled()]);
        let [wc] = b.wait(On::Send, 1)[..] else { panic!("one completion") };
        assert_eq!((wc.status, wc.opcode), (WcStatus::Success, WcOpcode::LocalInv), "{options:?}");
        a.post_send(&[write]);
        assert_eq!(a.wait(On::Send, 1)[0].status, WcStatus::RemAccess, "{options:?}");
        a.check();
        b.check();
    }
}

#[test]
fn a_fence_waits_for_the_reads_before_it() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        b.write(0, &[7; 4096]);
        let (read, write) = ([a.sge(0, 4096)], [a.sge(0, 4096)]);
        let ((from, rkey), (to, _)) = (b.remote(0), b.remote(8192));
        a.post_send(&[
            SendRequest::read(from, rkey).sges(&read),
            SendRequest::write(to, rkey).sges(&write).flags(SendFlags::FENCE).signaled(),
        ]);
        a.wait(On::Send, 1);
        assert_eq!(b.read::<4096>(8192), [7; 4096], "{options:?}");
        a.check();
    }
}

#[test]
fn requests_and_receives_may_be_empty() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        b.qp.post_recv(&mut b.recv_cq, &[RecvRequest::new(3, &[])]).unwrap();
        let empty = [Sge::new(0xdead_0000, 0, LKey::MAX)];
        a.post_send(&[SendRequest::send().sges(&empty).signaled()]);
        assert_eq!(outcomes(&b.wait(On::Recv, 1)), [(3, WcStatus::Success)], "{options:?}");
        a.wait(On::Send, 1);
        a.check();
        b.check();
    }
}

#[test]
fn a_raw_frame_arrives_as_it_was_sent() {
    for options in CHIPS {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::RawPacket, false);
        let mut frame = [0x5a; 300];
        frame[..6].copy_from_slice(&b.device.port().mac.0);
        frame[6..12].copy_from_slice(&a.device.port().mac.0);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        a.write(0, &frame);
        b.post_recv(7, 4096, 1000);
        let sges = [a.sge(0, 100), a.sge(100, 200)];
        a.post_send(&[SendRequest::send().sges(&sges).wr_id(3).signaled()]);
        let sent = a.wait(On::Send, 1);
        assert_eq!(outcomes(&sent), [(3, WcStatus::Success)]);
        let received = b.wait(On::Recv, 1);
        assert_eq!(outcomes(&received), [(7, WcStatus::Success)]);
        assert_eq!((received[0].byte_len, received[0].opcode), (300, WcOpcode::Recv));
        assert!(b.read::<300>(4096) == frame);
        a.check();
        b.check();
    }
}
