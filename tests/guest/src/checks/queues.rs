//! Completion queues, shared receive queues and queue pairs: what the kernel keeps of them.

use directverbs::verbs::{Mtu, QpAttributes, QpCapabilities, QpId, QpInit, QpState, QpType, SrqInit};
use directverbs_linux::error::Error;
use directverbs_linux::objects::{
    CompletionQueue, CqFlags, CqInit, ProtectionDomain, QpBuffers, QueuePair, SharedReceiveQueue,
};
use directverbs_linux::uverbs::abi::methods::{destroy, object};
use directverbs_linux::uverbs::{Mapping, Protection, Uhw};
use rustix::io::Errno;

use super::packets::{Packet, send};
use super::rxe::{self, CAPABILITIES, Ring, connection, to_itself};
use super::{context, pd, refused, says};
use crate::check::Check;

const SRQ: SrqInit = SrqInit { max_wr: 10, max_sge: 3 };

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(queues_are_granted_at_least_what_was_asked),
        Check::of(their_rings_can_be_mapped),
        Check::of(numbers_that_the_device_does_not_have_are_not_asked_for),
        Check::of(a_driver_that_lacks_its_part_refuses),
        Check::of(what_the_driver_does_not_have_is_said_to_be_absent),
        Check::of(a_completion_queue_is_resized),
        Check::of(a_queue_pair_goes_from_reset_to_rts_and_back),
        Check::of(a_transition_that_there_is_not_is_not_asked_for),
        Check::of(a_path_mtu_larger_than_the_ports_is_not_asked_for),
        Check::of(a_refused_transition_leaves_the_state),
        Check::of(queues_in_use_are_not_destroyed),
        Check::of(a_queue_pair_of_another_context_is_not_made),
        Check::of(a_queue_that_could_not_be_made_leaves_nothing),
    ]
}

fn queues_are_granted_at_least_what_was_asked() {
    let pd = pd();
    let (cq, _) = rxe::cq(&pd.context(), CqInit::default()).expect("a completion queue");
    assert!(cq.cqe() >= 16);
    let (srq, reply) = rxe::srq(&pd, SRQ).expect("a shared receive queue");
    let granted = srq.granted();
    assert!(granted.max_wr >= 10 && granted.max_sge >= 3, "{granted:?}");
    assert_ne!(reply.number, 0);
    let (told, limit) = srq.query().expect("its attributes");
    assert_eq!((told.max_wr, told.max_sge, limit), (granted.max_wr, granted.max_sge, 0));
    for (qp_type, srq) in [(QpType::Rc, None), (QpType::Rc, Some(&srq)), (QpType::Ud, None)] {
        let (mut qp, _) = rxe::qp(&pd, qp_type, &cq, srq).expect("a queue pair");
        let granted = qp.granted();
        assert!(granted.max_send_wr >= 16 && granted.max_send_sge >= 2, "{granted:?}");
        assert!(granted.max_inline_data >= 32, "{granted:?}");
        assert!(srq.is_some() || granted.max_recv_wr >= 16, "{granted:?}");
        assert!(qp.id().get() > 1);
        let told = qp.query().expect("its attributes");
        assert_eq!((told.attributes.state, told.signal_all), (Some(QpState::Reset), false));
        // Receives of a shared queue are that queue's.
        let own = if srq.is_some() {
            QpCapabilities { max_recv_wr: 0, max_recv_sge: 0, ..granted }
        } else {
            granted
        };
        assert_eq!(told.capabilities, own);
        qp.destroy().expect("nothing refers to it");
    }
}

fn their_rings_can_be_mapped() {
    let pd = pd();
    let context = pd.context();
    let (cq, ring) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let (qp, rings) = rxe::qp(&pd, QpType::Rc, &cq, None).expect("a queue pair");
    let map = |ring: Ring| {
        let length = ring.size as usize;
        context.file().map(ring.offset, length.next_multiple_of(4096), Protection::ReadWrite, "ring")
    };
    for ring in [ring, rings[0], rings[1]] {
        let mapping: Mapping = map(ring).expect("a mapping");
        // It begins with the binary logarithm of an entry's size.
        let log = mapping.load_u32(0).expect("in the mapping");
        assert!((4..12).contains(&log), "{log}");
    }
    let error = map(Ring { offset: 0x7fff_f000, ..ring }).expect_err("no ring is there");
    says(&error.to_string(), &["ring", "mmap failed"]);
    qp.destroy().expect("nothing refers to it");
}

fn numbers_that_the_device_does_not_have_are_not_asked_for() {
    let pd = pd();
    let context = pd.context();
    let most = context.limits().base;
    let (cq, _) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let limit = |error: Error, name: &str| {
        let Error::Limit { attribute, max, .. } = error else { panic!("{error}") };
        assert_eq!(attribute, name);
        assert!(error.to_string().contains(&max.to_string()), "{error}");
    };
    let cqe = most.max_cqe.get() + 1;
    let create = |init: &CqInit<'_>| CompletionQueue::create(&context, init, Uhw::none());
    limit(create(&CqInit { cqe, ..CqInit::default() }).expect_err("too many"), "cqe");
    limit(create(&CqInit::default()).expect_err("none"), "cqe");
    let vector = context.completion_vectors();
    limit(create(&CqInit { cqe: 1, vector, ..CqInit::default() }).expect_err("none"), "completion vector");
    let max_wr = most.max_srq_wr.get() + 1;
    limit(rxe::srq(&pd, SrqInit { max_wr, ..SRQ }).expect_err("too many"), "max_wr");
    let max_sge = most.max_srq_sge.get() + 1;
    limit(rxe::srq(&pd, SrqInit { max_sge, ..SRQ }).expect_err("too many"), "max_sge");
    let cases: [(&str, QpCapabilities); 2] = [
        ("max_send_wr", QpCapabilities { max_send_wr: most.max_qp_wr.get() + 1, ..CAPABILITIES }),
        ("max_recv_sge", QpCapabilities { max_recv_sge: most.max_sge.get() + 1, ..CAPABILITIES }),
    ];
    for (name, capabilities) in cases {
        limit(create_qp(&pd, &cq, capabilities, Uhw::none()).expect_err("too many"), name);
    }
}

fn create_qp(
    pd: &ProtectionDomain,
    cq: &CompletionQueue,
    capabilities: QpCapabilities,
    uhw: Uhw<'_>,
) -> Result<QueuePair, Error> {
    let init: QpInit<'_, CompletionQueue, SharedReceiveQueue> =
        QpInit { qp_type: QpType::Rc, capabilities, send_cq: cq, recv_cq: cq, srq: None, signal_all: false };
    QueuePair::create(pd, &init, &QpBuffers::default(), &[], uhw)
}

fn a_driver_that_lacks_its_part_refuses() {
    let pd = pd();
    let context = pd.context();
    let (cq, _) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let init = CqInit { cqe: 16, ..CqInit::default() };
    let text = refused(CompletionQueue::create(&context, &init, Uhw::none()), Errno::INVAL);
    says(&text, &["completion queue", "CQ_CREATE", "dv info"]);
    let text = refused(SharedReceiveQueue::create(&pd, SRQ, Uhw::none()), Errno::INVAL);
    says(&text, &["shared receive queue", "SRQ_CREATE"]);
    let text = refused(create_qp(&pd, &cq, CAPABILITIES, Uhw::none()), Errno::INVAL);
    says(&text, &["queue pair", "QP_CREATE"]);
    // Nor does it take a request where it has none.
    let mut reply = [0; 2 * size_of::<Ring>()];
    // SAFETY: zero is no address.
    let uhw = unsafe { Uhw::request(&[0; 8], &mut reply) };
    refused(create_qp(&pd, &cq, CAPABILITIES, uhw), Errno::INVAL);
}

fn what_the_driver_does_not_have_is_said_to_be_absent() {
    let pd = pd();
    let context = pd.context();
    let timestamps = CqInit { flags: CqFlags::TIMESTAMPS, ..CqInit::default() };
    let error = rxe::cq(&context, timestamps).expect_err("no timestamps");
    assert!(error.is_absent(), "{error}");
    let (cq, _) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let error = rxe::qp(&pd, QpType::RawPacket, &cq, None).expect_err("no raw packets");
    assert!(error.is_absent(), "{error}");
}

fn a_completion_queue_is_resized() {
    let context = context();
    let (cq, first) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let mut ring = Ring::default();
    let cqe = cq.resize(1000, Uhw::reply(&mut ring)).expect("another size");
    assert!(cqe >= 1000 && ring.size > first.size, "{cqe}, {ring:?}");
    assert!(matches!(cq.resize(0, Uhw::none()), Err(Error::Limit { .. })));
    refused(cq.resize(16, Uhw::none()), Errno::INVAL);
}

fn a_queue_pair_goes_from_reset_to_rts_and_back() {
    let pd = pd();
    let (cq, _) = rxe::cq(&pd.context(), CqInit::default()).expect("a completion queue");
    let (mut qp, _) = rxe::qp(&pd, QpType::Rc, &cq, None).expect("a queue pair");
    let peer = QpId::truncated(0x12_3456);
    for attributes in connection(peer) {
        qp.modify(&attributes, 1).expect("the usual way");
        let told = qp.query().expect("its attributes").attributes;
        assert_eq!(told.state, attributes.state);
    }
    let told = qp.query().expect("its attributes").attributes;
    let [init, rtr, rts] = connection(peer);
    assert_eq!((told.access, told.mtu, told.dest_qp), (init.access, rtr.mtu, rtr.dest_qp));
    assert_eq!((told.rq_psn, told.sq_psn), (rtr.rq_psn, rts.sq_psn));
    assert_eq!((told.max_rd_atomic, told.max_dest_rd_atomic), (rts.max_rd_atomic, rtr.max_dest_rd_atomic));
    assert_eq!(
        (told.timeout, told.retry_count, told.rnr_retry),
        (rts.timeout, rts.retry_count, rts.rnr_retry)
    );
    let (path, asked) = (told.path.expect("a path"), to_itself());
    assert_eq!((path.dgid, path.sgid_index, path.hop_limit), (asked.dgid, asked.sgid_index, asked.hop_limit));
    let error = qp.set_rate_limit(1000).expect_err("this driver limits no rate");
    assert!(error.is_absent(), "{error}");
    qp.modify(&QpAttributes::to(QpState::Err), 1).expect("any state may fail");
    assert_eq!(qp.query().expect("its attributes").attributes.state, Some(QpState::Err));
    qp.modify(&QpAttributes::to(QpState::Reset), 1).expect("back");
    qp.modify(&init, 1).expect("once more");
    qp.destroy().expect("nothing refers to it");
}

fn a_transition_that_there_is_not_is_not_asked_for() {
    let pd = pd();
    let (cq, _) = rxe::cq(&pd.context(), CqInit::default()).expect("a completion queue");
    let (mut qp, _) = rxe::qp(&pd, QpType::Rc, &cq, None).expect("a queue pair");
    let [_, rtr, rts] = connection(QpId::truncated(5));
    for attributes in [rtr, rts] {
        assert!(matches!(qp.modify(&attributes, 1), Err(Error::State(_))));
    }
    assert_eq!(qp.query().expect("its attributes").attributes.state, Some(QpState::Reset));
}

fn a_path_mtu_larger_than_the_ports_is_not_asked_for() {
    let pd = pd();
    let (cq, _) = rxe::cq(&pd.context(), CqInit::default()).expect("a completion queue");
    let (mut qp, _) = rxe::qp(&pd, QpType::Rc, &cq, None).expect("a queue pair");
    let [init, rtr, _] = connection(QpId::truncated(5));
    qp.modify(&init, 1).expect("INIT");
    let error = qp.modify(&QpAttributes { mtu: Some(Mtu::B4096), ..rtr }, 1).expect_err("too large");
    says(&error.to_string(), &["queue pair", "path MTU 4096", "1024"]);
    assert_eq!(qp.state(), QpState::Init);
}

fn a_refused_transition_leaves_the_state() {
    let pd = pd();
    let (cq, _) = rxe::cq(&pd.context(), CqInit::default()).expect("a completion queue");
    let (mut qp, _) = rxe::qp(&pd, QpType::Rc, &cq, None).expect("a queue pair");
    let [init, rtr, _] = connection(QpId::truncated(5));
    qp.modify(&init, 1).expect("INIT");
    let mut path = to_itself();
    path.sgid_index = 200;
    says(
        &refused(qp.modify(&QpAttributes { path: Some(path), ..rtr }, 1), Errno::NODATA),
        &["MODIFY_QP", "no GID"],
    );
    assert_eq!(qp.state(), QpState::Init);
    qp.modify(&rtr, 1).expect("with a GID that there is");
    // The kernel is asked for a limit of the rate only where there is something to be limited.
    let error = qp.set_rate_limit(1000).expect_err("not ready to send");
    assert!(matches!(error, Error::Value { attribute: "rate limit", .. }), "{error}");
}

fn queues_in_use_are_not_destroyed() {
    let pd = pd();
    let context = pd.context();
    let file = context.file();
    let (cq, _) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let (srq, _) = rxe::srq(&pd, SRQ).expect("a shared receive queue");
    let (qp, _) = rxe::qp(&pd, QpType::Rc, &cq, Some(&srq)).expect("a queue pair");
    let kernel = |object_id, method_id, handle: u32| {
        let mut reply = [0u32; 2];
        let mut packet = Packet::new(object_id, method_id);
        packet.attribute(0, 0, handle.into());
        match object_id {
            object::CQ => packet.output(1, &mut reply),
            _ => packet.output(1, &mut reply[0]),
        };
        send(&context, &packet)
    };
    assert_eq!(kernel(object::CQ, 1, cq.handle()), Err(Errno::BUSY));
    assert_eq!(kernel(object::SRQ, 1, srq.handle()), Err(Errno::BUSY));
    refused(file.destroy(&destroy::PD, pd.handle()), Errno::BUSY);
    for error in [cq.clone().destroy().expect_err("in use"), srq.clone().destroy().expect_err("in use")] {
        assert!(matches!(error, Error::InUse { .. }), "{error}");
    }
    qp.destroy().expect("nothing refers to it");
    cq.destroy().expect("nothing refers to it any more");
    srq.destroy().expect("nothing refers to it any more");
    pd.destroy().expect("nothing refers to it any more");
}

fn a_queue_pair_of_another_context_is_not_made() {
    let (one, other) = (pd(), pd());
    let (cq, _) = rxe::cq(&other.context(), CqInit::default()).expect("a completion queue");
    let error = rxe::qp(&one, QpType::Rc, &cq, None).expect_err("it belongs to the other");
    assert!(matches!(error, Error::OtherContext { .. }), "{error}");
}

fn a_queue_that_could_not_be_made_leaves_nothing() {
    let pd = pd();
    let context = pd.context();
    let (cq, _) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    for _ in 0..3 {
        refused(create_qp(&pd, &cq, CAPABILITIES, Uhw::none()), Errno::INVAL);
        assert!(rxe::qp(&pd, QpType::RawPacket, &cq, None).is_err());
    }
    // Nothing refers to them.
    cq.destroy().expect("no queue pair is left");
    pd.destroy().expect("no queue pair is left");
}
