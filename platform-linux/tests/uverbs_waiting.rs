//! Programs that wait instead of polling, and those whose context another library has opened, over the made-up kernel.

mod common;

use std::time::Duration;

use directverbs::verbs::{
    AccessFlags, CompletionQueue as _, Device as _, MemoryRegion as _, Mtu, QpAttributes, QpInit, QpState,
    QpType, QueuePair as _, RecvRequest, SendOp, SendRequest, Sge, Slices, WcStatus, WorkCompletion,
};
use directverbs_fake_uverbs::{Machine, Options, Profile, Release};
use directverbs_linux::Device;
use directverbs_linux::device::{CompletionQueue, QueuePair};
use directverbs_linux::objects::{CompletionChannel, Element, EventKind};
use directverbs_softnic::open::NicKind;
use directverbs_workload::{Job, Op, run_pair};

use common::*;

/// Longer than anything here takes.
const LONG: Option<Duration> = Some(Duration::from_secs(20));

fn pair_of(nic: NicKind) -> Machine {
    let places = [1, 2].map(|place| Profile::new(nic, Release::V7_3, place));
    Machine::new(&Options { threaded: true, ..Options::default() }, &places).expect("a machine")
}

fn device(machine: &Machine, which: usize) -> Device {
    options(machine).open(&machine.devices()[which]).expect("opens")
}

fn init(cq: &CompletionQueue) -> QpInit<'_, CompletionQueue, directverbs_linux::device::SharedReceiveQueue> {
    QpInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        signal_all: false,
    }
}

fn connect(device: &mut Device, qp: &mut QueuePair, cq: &mut CompletionQueue, peer: (&QueuePair, &Device)) {
    for mut attributes in to_rts(peer.0.id(), Mtu::B1024) {
        if let Some(path) = &mut attributes.path {
            path.dgid = peer.1.origin().gid;
            path.sgid_index = device.origin().gid_index;
        }
        device.modify_qp(qp, &mut [&mut *cq], &attributes).expect("a transition");
    }
}

fn poll(cq: &mut CompletionQueue, qp: &mut QueuePair) -> Vec<WorkCompletion> {
    let mut found = [WorkCompletion::default(); 8];
    let mut endpoints = Slices { qps: std::slice::from_mut(qp), srqs: &mut [] };
    let count = cq.poll(&mut endpoints, &mut found).expect("no fault");
    found[..count].to_vec()
}

#[test]
fn a_program_that_waits_is_woken_once_for_each_time_it_has_asked() {
    for nic in NicKind::ALL {
        let machine = pair_of(nic);
        let (mut a, mut b) = (device(&machine, 0), device(&machine, 1));
        let channel = CompletionChannel::create(b.generic()).expect("a channel");
        let (pd_a, pd_b) = (a.alloc_pd().expect("a domain"), b.alloc_pd().expect("a domain"));
        let mut cq_a = a.create_cq(64).expect("a queue");
        let mut cq_b = b.create_cq_on(64, Some(&channel), 1).expect("a queue");
        let mut qp_a = a.create_qp(&pd_a, &init(&cq_a)).expect("a queue pair");
        let mut qp_b = b.create_qp(&pd_b, &init(&cq_b)).expect("a queue pair");
        connect(&mut b, &mut qp_b, &mut cq_b, (&qp_a, &a));
        connect(&mut a, &mut qp_a, &mut cq_a, (&qp_b, &b));
        let region = b.alloc_mr(&pd_b, 64, AccessFlags::LOCAL_WRITE).expect("memory");
        let mut message = a.alloc_mr(&pd_a, 64, AccessFlags::LOCAL_WRITE).expect("memory");
        for round in 0..5u8 {
            let sges = [Sge::new(region.addr(), 64, region.lkey())];
            qp_b.post_recv(&mut cq_b, &[RecvRequest::new(round.into(), &sges)]).expect("room");
            cq_b.arm(false);
            assert!(poll(&mut cq_b, &mut qp_b).is_empty(), "{nic}: nothing was sent");
            assert!(message.write(0, &[round; 8]));
            let sges = [Sge::new(message.addr(), 8, message.lkey())];
            qp_a.post_send(&mut cq_a, &[SendRequest::new(SendOp::Send).sges(&sges).signaled()])
                .expect("room");
            let woken = channel.next(LONG).expect("the device is there");
            assert_eq!(woken, Some(cq_b.user_handle()), "{nic}, round {round}");
            let completions = poll(&mut cq_b, &mut qp_b);
            assert_eq!(completions.len(), 1, "{nic}, round {round}");
            assert_eq!((completions[0].status, completions[0].byte_len), (WcStatus::Success, 8));
            let mut received = [0; 8];
            assert!(region.read(0, &mut received));
            assert_eq!(received, [round; 8]);
            assert_eq!(channel.next(Some(Duration::ZERO)).expect("there"), None, "one event each time");
            while poll(&mut cq_a, &mut qp_a).is_empty() {
                std::thread::yield_now();
            }
        }
        b.modify_qp(&mut qp_b, &mut [&mut cq_b], &QpAttributes::to(QpState::Err)).expect("a transition");
        drop((region, message, qp_a, qp_b, cq_a, cq_b, channel, pd_a, pd_b, a, b));
        assert!(machine.census().is_empty(), "{nic}: {:?}", machine.census());
        assert_eq!(machine.violations(), Vec::<String>::new());
    }
}

#[test]
fn a_context_of_another_library_carries_the_workload() {
    for nic in NicKind::ALL {
        let machine = pair_of(nic);
        let (theirs, mut b) = (device(&machine, 0), device(&machine, 1));
        let file = theirs.generic().file().fd();
        let mut a = options(&machine).import(&machine.devices()[0], file).expect("taken");
        let job = Job { op: Op::Write, iterations: 20, batch: 4, ..Job::default() };
        run_pair(&mut a, &mut b, &job, &mut |_| {}).unwrap_or_else(|error| panic!("{nic}: {error}"));
        drop((a, b));
        assert_eq!(machine.census().device_files, 1, "{nic}: the file is left open");
        theirs.generic().query_port(1).expect("still works");
        drop(theirs);
        assert!(machine.census().is_empty(), "{nic}: {:?}", machine.census());
    }
}

#[test]
fn an_error_of_a_queue_pair_is_told_and_what_is_outstanding_is_flushed() {
    for nic in NicKind::ALL {
        let machine = pair_of(nic);
        let (mut a, mut b) = (device(&machine, 0), device(&machine, 1));
        let (pd_a, pd_b) = (a.alloc_pd().expect("a domain"), b.alloc_pd().expect("a domain"));
        let (mut cq_a, mut cq_b) = (a.create_cq(64).expect("a queue"), b.create_cq(64).expect("a queue"));
        let mut qp_a = a.create_qp(&pd_a, &init(&cq_a)).expect("a queue pair");
        let mut qp_b = b.create_qp(&pd_b, &init(&cq_b)).expect("a queue pair");
        connect(&mut b, &mut qp_b, &mut cq_b, (&qp_a, &a));
        connect(&mut a, &mut qp_a, &mut cq_a, (&qp_b, &b));
        // A key that the peer does not have: its side answers with an error, and both queue pairs stop.
        let message = a.alloc_mr(&pd_a, 64, AccessFlags::LOCAL_WRITE).expect("memory");
        let sges = [Sge::new(message.addr(), 8, message.lkey())];
        let request = SendRequest::write(0x1000, Default::default()).sges(&sges).signaled();
        qp_a.post_send(&mut cq_a, &[request, request]).expect("room");
        let mut seen = Vec::new();
        while seen.len() < 2 {
            seen.extend(poll(&mut cq_a, &mut qp_a).iter().map(|c| c.status));
            std::thread::yield_now();
        }
        assert_eq!(seen, [WcStatus::RemAccess, WcStatus::WrFlush], "{nic}");
        let queried = a.query_qp(&mut qp_a).expect("there");
        assert_eq!((queried.attributes.state, qp_a.state()), (Some(QpState::Err), QpState::Err), "{nic}");
        a.modify_qp(&mut qp_a, &mut [&mut cq_a], &QpAttributes::to(QpState::Reset)).expect("starts anew");
        assert_eq!(qp_a.state(), QpState::Reset);
        let event = b.next_event(LONG).expect("the device is there").expect("the peer's side tells, too");
        assert_eq!(event.element, Element::QueuePair(qp_b.user_handle()), "{nic}");
        assert!(matches!(event.kind, EventKind::QP_ACCESS_ERROR | EventKind::QP_FATAL), "{nic}: {event:?}");
        b.query_qp(&mut qp_b).expect("there");
        assert_eq!(qp_b.state(), QpState::Err, "{nic}");
    }
}
