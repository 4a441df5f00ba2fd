//! Queue pairs of bnxt_re NICs that go into error, and come out of it by a reset.

mod bnxt_re_pair;

use bnxt_re_pair::{CHIPS, End, On, connect, outcomes, pair};
use directverbs::verbs::{
    CompletionQueue as _, LKey, QpAttributes, QpState, QpType, QueuePair as _, RKey, SendRequest, Sge,
    WcStatus,
};
use directverbs_softnic::host::bnxt_re::BnxtReOptions;

/// A request, and its SGEs, that one end may not post towards the other.
type Wrong = fn(&End, &End) -> (SendRequest<'static>, Vec<Sge>);

/// Everything that the hardware may leave to one CQE, and nothing of it.
fn every_chip() -> impl Iterator<Item = BnxtReOptions> {
    CHIPS.into_iter().flat_map(|chip| [0, 900_000].map(|coalesce| BnxtReOptions { coalesce, ..chip }))
}

#[test]
fn what_came_before_a_failed_request_completes_first_and_what_came_after_is_flushed() {
    for options in every_chip() {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        for i in 0..3 {
            a.post_recv(100 + i, 0, 64);
            b.post_recv(100 + i, 0, 64);
        }
        let sges = [a.sge(0, 16)];
        let (addr, rkey) = b.remote(0);
        let wrong = RKey::truncated(rkey.get() ^ 1);
        a.post_send(&[
            SendRequest::write(addr, rkey).sges(&sges).wr_id(1),
            SendRequest::write(addr, rkey).sges(&sges).wr_id(2).signaled(),
            SendRequest::read(addr, rkey).sges(&sges).wr_id(3),
            SendRequest::write(addr, wrong).sges(&sges).wr_id(4),
            SendRequest::write(addr, rkey).sges(&sges).wr_id(5),
            SendRequest::write(addr, rkey).sges(&sges).wr_id(6).signaled(),
        ]);
        let done = a.wait(On::Send, 4);
        let expected = [
            (2, WcStatus::Success),
            (4, WcStatus::RemAccess),
            (5, WcStatus::WrFlush),
            (6, WcStatus::WrFlush),
        ];
        assert_eq!(outcomes(&done), expected, "{options:?}");
        assert_eq!(done.iter().map(|wc| wc.vendor_err).collect::<Vec<_>>(), [0, 7, 0, 0], "{options:?}");
        for end in [&mut a, &mut b] {
            let flushed = end.wait(On::Recv, 3);
            let expected: Vec<_> = (100..103).map(|id| (id, WcStatus::WrFlush)).collect();
            assert_eq!(outcomes(&flushed), expected, "{options:?}");
            assert_eq!(end.qp.state(), QpState::Err);
            end.check();
        }
    }
}

#[test]
fn each_failure_has_its_status_and_code() {
    for options in CHIPS {
        let fail = |request: Wrong| {
            let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
            b.post_recv(1, 0, 8);
            let (request, sges) = request(&a, &b);
            a.post_send(&[SendRequest { data: directverbs::verbs::Data::Sges(&sges), ..request }]);
            let done = a.wait(On::Send, 1);
            a.check();
            b.check();
            (done[0].status, done[0].vendor_err)
        };
        let bad_lkey = fail(|a, b| {
            let (addr, rkey) = b.remote(0);
            let sge = Sge { lkey: LKey::truncated(0xbad), ..a.sge(0, 8) };
            (SendRequest::write(addr, rkey), vec![sge])
        });
        assert_eq!(bad_lkey, (WcStatus::LocProt, 4), "{options:?}");
        let out_of_bounds = fail(|a, b| {
            let (addr, rkey) = b.remote(bnxt_re_pair::REGION - 4);
            (SendRequest::read(addr, rkey), vec![a.sge(0, 8)])
        });
        assert_eq!(out_of_bounds, (WcStatus::RemAccess, 7), "{options:?}");
        let too_long = fail(|a, _| (SendRequest::send(), vec![a.sge(0, 9)]));
        assert_eq!(too_long, (WcStatus::RemInvReq, 6), "{options:?}");
    }
}

#[test]
fn a_message_longer_than_the_receive_request_fails_both_sides() {
    for (options, srq) in CHIPS.into_iter().flat_map(|chip| [(chip, false), (chip, true)]) {
        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, srq);
        b.post_recv(1, 0, 8);
        b.post_recv(2, 0, 8);
        let sges = [a.sge(0, 9)];
        a.post_send(&[SendRequest::send().sges(&sges)]);
        let done = b.wait(On::Recv, if srq { 1 } else { 2 });
        assert_eq!((done[0].wr_id, done[0].status, done[0].vendor_err), (1, WcStatus::LocLen, 2));
        // The second request of a shared queue stays there for others.
        assert!(srq || outcomes(&done)[1] == (2, WcStatus::WrFlush), "{done:?}");
        assert_eq!(b.poll(On::Recv, 4), []);
        a.wait(On::Send, 1);
        b.check();
    }
}

#[test]
fn a_peer_that_has_no_receive_request_or_is_gone_exhausts_the_retries() {
    for options in CHIPS {
        let (_fabric, [mut a, b]) = pair(options, QpType::Rc, false);
        let sges = [a.sge(0, 8)];
        a.post_send(&[SendRequest::send().sges(&sges)]);
        let done = a.wait(On::Send, 1);
        assert_eq!((done[0].status, done[0].vendor_err), (WcStatus::RnrRetryExceeded, 9), "{options:?}");
        drop(b);

        let (_fabric, [mut a, mut b]) = pair(options, QpType::Rc, false);
        b.modify(&QpAttributes::to(QpState::Reset));
        let sges = [a.sge(0, 8)];
        a.post_send(&[SendRequest::send().sges(&sges)]);
        let done = a.wait(On::Send, 1);
        assert_eq!((done[0].status, done[0].vendor_err), (WcStatus::RetryExceeded, 10), "{options:?}");
        a.check();
    }
}

#[test]
fn going_into_error_flushes_both_queues_once_and_in_order() {
    for options in every_chip() {
        let (_fabric, [mut a, _b]) = pair(options, QpType::Rc, false);
        (0..5).for_each(|i| a.post_recv(i, 0, 8));
        let sges = [a.sge(0, 8)];
        let requests: Vec<_> = (0..5).map(|i| SendRequest::send().sges(&sges).wr_id(i)).collect();
        a.post_send(&requests);
        a.modify(&QpAttributes::to(QpState::Err));
        let expected: Vec<_> = (0..5).map(|i| (i, WcStatus::WrFlush)).collect();
        for on in [On::Send, On::Recv] {
            assert_eq!(outcomes(&a.wait(on, 5)), expected, "{options:?}");
            assert_eq!(a.poll(on, 4), []);
        }
        // What is posted in error is flushed too.
        a.post_recv(7, 0, 8);
        a.post_send(&[SendRequest::send().wr_id(8)]);
        assert_eq!(outcomes(&a.wait(On::Send, 1)), [(8, WcStatus::WrFlush)]);
        assert_eq!(outcomes(&a.wait(On::Recv, 1)), [(7, WcStatus::WrFlush)]);
        a.check();
    }
}

#[test]
fn a_reset_queue_pair_is_as_good_as_new() {
    for options in every_chip() {
        let (fabric, mut ends) = pair(options, QpType::Rc, false);
        for round in 0..5 {
            // Far enough for indices to wrap and epochs to differ.
            for _ in 0..7 * (round + 1) {
                let [a, b] = &mut ends;
                b.post_recv(9, 512, 64);
                let sges = [a.sge(0, 64)];
                let (addr, rkey) = b.remote(1024);
                a.post_send(&[
                    SendRequest::write(addr, rkey).sges(&sges).wr_id(1),
                    SendRequest::send().sges(&sges).wr_id(2).signaled(),
                ]);
                assert_eq!(outcomes(&a.wait(On::Send, 1)), [(2, WcStatus::Success)], "{options:?}");
                assert_eq!(outcomes(&b.wait(On::Recv, 1)), [(9, WcStatus::Success)], "{options:?}");
            }
            // Completions that nobody polled belong to the past.
            let [a, b] = &mut ends;
            let (addr, rkey) = b.remote(0);
            let sges = [a.sge(0, 8)];
            a.post_send(&[SendRequest::write(addr, rkey).sges(&sges).wr_id(77).signaled()]);
            assert!(fabric.settle(bnxt_re_pair::PATIENCE));
            for end in &mut ends {
                if round % 2 == 0 {
                    end.modify(&QpAttributes::to(QpState::Err));
                }
                end.modify(&QpAttributes::to(QpState::Reset));
                assert_eq!((end.poll(On::Send, 4), end.poll(On::Recv, 4)), (vec![], vec![]), "{options:?}");
            }
            connect(&mut ends);
        }
        ends.iter().for_each(End::check);
        assert_ne!(ends[0].send_cq.id(), ends[0].recv_cq.id());
    }
}
