//! Bytes that move: what the kernel was told of regions, paths and queue pairs is what it acts on.

use std::sync::Arc;
use std::time::Duration;

use directverbs::verbs::{AccessFlags, Psn, QKey, QpAttributes, QpState, QpType, SrqInit};
use directverbs_linux::objects::{
    AddressHandle, CompletionChannel, CompletionQueue, Context, CqInit, Element, EventKind, MemoryRegion,
    ProtectionDomain, QueuePair, SharedReceiveQueue,
};
use directverbs_linux::uverbs::abi::command::{MODIFY_SRQ, ModifySrq};
use directverbs_linux::uverbs::{Pages, Uhw};

use super::events::{event, readable};
use super::rings::{Completion, Operation, Queue, REMOTE_ACCESS, SUCCESS, Sge, ring_doorbell};
use super::rxe::{self, Ring, connection, to_itself};
use super::{kernel, pd};
use crate::check::Check;
use crate::machine::wait_for;

const SIZE: usize = 3 * 4096;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(a_write_and_a_read_move_the_bytes_of_a_part_of_pages),
        Check::of(requests_reach_memory_by_the_address_that_it_was_registered_for),
        Check::of(a_write_beyond_a_region_is_refused_and_writes_nothing),
        Check::of(a_completion_raises_one_event_when_armed),
        Check::of(a_datagram_takes_the_path_of_its_address_handle),
        Check::of(a_shared_queue_says_when_it_runs_low),
        Check::of(a_completion_queue_that_overruns_is_told),
        Check::of(a_send_queue_that_has_drained_is_told),
    ]
}

/// A queue pair with its rings.
struct End {
    qp: QueuePair,
    send: Queue,
    receive: Option<Queue>,
}

/// Memory, and queue pairs that complete in one queue.
struct Bench {
    context: Context,
    pd: ProtectionDomain,
    pages: Arc<Pages>,
    all: MemoryRegion,
    cq: CompletionQueue,
    completions: Queue,
}

impl Bench {
    fn new(channel: impl Fn(&Context) -> Option<CompletionChannel>) -> Self {
        let pd = pd();
        let context = pd.context();
        let pages = Pages::new(&kernel(), SIZE).expect("memory");
        let bytes: Vec<u8> = (0..SIZE).map(|i| (i % 251) as u8).collect();
        assert!(pages.write(0, &bytes));
        let pages = Arc::new(pages);
        let all = MemoryRegion::register(&pd, &pages, 0..SIZE, AccessFlags::LOCAL_WRITE).expect("a region");
        let channel = channel(&context);
        let init = CqInit { channel: channel.as_ref(), ..CqInit::default() };
        let (cq, ring) = rxe::cq(&context, init).expect("a completion queue");
        let completions = Queue::map(&context, ring);
        Self { context, pd, pages, all, cq, completions }
    }

    fn end(&self, qp_type: QpType, srq: Option<&SharedReceiveQueue>) -> End {
        let (qp, [receive, send]) = rxe::qp(&self.pd, qp_type, &self.cq, srq).expect("a queue pair");
        let map = |ring: Ring| Queue::map(&self.context, ring);
        End { qp, send: map(send), receive: srq.is_none().then(|| map(receive)) }
    }

    /// Two reliable queue pairs, each connected with the other.
    fn connected(&self, srq: Option<&SharedReceiveQueue>) -> [End; 2] {
        let mut ends = [self.end(QpType::Rc, None), self.end(QpType::Rc, srq)];
        let ids = [ends[1].qp.id(), ends[0].qp.id()];
        for (end, peer) in ends.iter_mut().zip(ids) {
            for attributes in connection(peer) {
                end.qp.modify(&attributes, 1).expect("the usual way");
            }
        }
        ends
    }

    fn send(&self, end: &End, wr_id: u64, operation: &Operation, sge: Sge) {
        end.send.send(wr_id, operation, sge);
        ring_doorbell(&self.context, &end.qp);
    }

    /// Bytes of the pages from `offset` on.
    fn sge(&self, offset: usize, length: u32) -> Sge {
        Sge { address: self.pages.address() + offset as u64, length, lkey: self.all.lkey() }
    }

    fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert!(self.pages.read(offset, &mut bytes));
        bytes
    }

    fn completion(&self) -> Completion {
        wait_for("a completion", || self.completions.poll())
    }
}

fn a_write_and_a_read_move_the_bytes_of_a_part_of_pages() {
    let bench = Bench::new(|_| None);
    let [near, far] = bench.connected(None);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    let part = MemoryRegion::register(&bench.pd, &bench.pages, 5000..7100, access).expect("a part");
    let source = bench.bytes(100, 2100);
    let write = Operation::Write(part.iova(), part.rkey());
    bench.send(&near, 1, &write, bench.sge(100, 2100));
    let completion = bench.completion();
    assert_eq!((completion.wr_id, completion.status), (1, SUCCESS));
    assert_eq!(completion.qp, near.qp.id().get());
    assert_eq!(bench.bytes(5000, 2100), source);
    // From the other end, back to another place.
    let read = Operation::Read(part.iova() + 7, part.rkey());
    bench.send(&far, 2, &read, bench.sge(9000, 2000));
    let completion = bench.completion();
    assert_eq!((completion.wr_id, completion.status), (2, SUCCESS));
    assert_eq!(bench.bytes(9000, 2000), source[7..2007]);
    part.destroy().expect("nothing is bound to it");
}

fn requests_reach_memory_by_the_address_that_it_was_registered_for() {
    let bench = Bench::new(|_| None);
    let [near, _far] = bench.connected(None);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let (start, iova) = (bench.pages.address() + 8192 + 24, 0x7000_0000_0018);
    // SAFETY: the pages outlive the region, and nobody holds references into them.
    let region = unsafe { MemoryRegion::register_raw(&bench.pd, start, 100, iova, access) };
    let region = region.expect("at the same place in a page");
    let source = bench.bytes(0, 60);
    bench.send(&near, 3, &Operation::Write(iova + 40, region.rkey()), bench.sge(0, 60));
    assert_eq!(bench.completion().status, SUCCESS);
    assert_eq!(bench.bytes(8192 + 24 + 40, 60), source);
}

fn a_write_beyond_a_region_is_refused_and_writes_nothing() {
    let bench = Bench::new(|_| None);
    let [mut near, mut far] = bench.connected(None);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let part = MemoryRegion::register(&bench.pd, &bench.pages, 4096..4196, access).expect("a part");
    let before = bench.bytes(4096, 4096);
    bench.send(&near, 4, &Operation::Write(part.iova() + 1, part.rkey()), bench.sge(0, 100));
    let completion = bench.completion();
    assert_eq!((completion.wr_id, completion.status), (4, REMOTE_ACCESS));
    assert_eq!(bench.bytes(4096, 4096), before);
    for end in [&mut near, &mut far] {
        let state = end.qp.query().expect("its attributes").attributes.state;
        assert_eq!((state, end.qp.state()), (Some(QpState::Err), QpState::Err));
    }
    assert_eq!(event(&bench.context, EventKind::QP_ACCESS_ERROR), Element::QueuePair(far.qp.user_handle()));
}

fn a_completion_raises_one_event_when_armed() {
    let channel = std::cell::RefCell::new(None);
    let bench = Bench::new(|context| {
        let made = CompletionChannel::create(context).expect("a channel");
        *channel.borrow_mut() = Some(made.clone());
        Some(made)
    });
    let channel = channel.take().expect("made");
    let [near, far] = bench.connected(None);
    let receive = |wr_id| far.receive.as_ref().expect("its own").receive(wr_id, bench.sge(8192, 64));
    let sent = || {
        let mut ids = [bench.completion(), bench.completion()].map(|c| (c.wr_id, c.status));
        ids.sort_unstable();
        ids
    };
    // Without being armed, none.
    receive(10);
    bench.send(&near, 11, &Operation::Send, bench.sge(0, 64));
    assert_eq!(sent(), [(10, SUCCESS), (11, SUCCESS)]);
    assert!(!readable(channel.fd(), 0));
    bench.cq.request_notification(false).expect("armed");
    assert!(!readable(channel.fd(), 0));
    receive(12);
    bench.send(&near, 13, &Operation::Send, bench.sge(64, 64));
    assert!(readable(channel.fd(), 10_000));
    let soon = Some(Duration::from_secs(10));
    assert_eq!(channel.next(soon).expect("an open device"), Some(bench.cq.user_handle()));
    assert_eq!(sent(), [(12, SUCCESS), (13, SUCCESS)]);
    assert_eq!(bench.bytes(8192, 64), bench.bytes(64, 64));
    // One event for one arming, though there were two completions.
    assert_eq!(channel.next(Some(Duration::ZERO)).expect("an open device"), None);
}

fn a_datagram_takes_the_path_of_its_address_handle() {
    let bench = Bench::new(|_| None);
    let mut ends = [bench.end(QpType::Ud, None), bench.end(QpType::Ud, None)];
    let qkey = QKey::new(0x1234_5678).expect("a key");
    for end in &mut ends {
        for attributes in [
            QpAttributes { qkey: Some(qkey), ..QpAttributes::to(QpState::Init) },
            QpAttributes::to(QpState::Rtr),
            QpAttributes { sq_psn: Psn::new(0), ..QpAttributes::to(QpState::Rts) },
        ] {
            end.qp.modify(&attributes, 1).expect("the usual way");
        }
    }
    let [near, far] = &ends;
    let mut reply = [0u32; 2];
    let handle = AddressHandle::create(&bench.pd, &to_itself(), 1, Uhw::reply(&mut reply)).expect("a handle");
    far.receive.as_ref().expect("its own").receive(20, bench.sge(8192, 200));
    let operation = Operation::Datagram { qp: far.qp.id().get(), qkey: qkey.get(), handle: reply[0] };
    bench.send(near, 21, &operation, bench.sge(0, 100));
    let mut completions = [bench.completion(), bench.completion()];
    completions.sort_unstable_by_key(|completion| completion.wr_id);
    assert_eq!(completions.map(|c| (c.wr_id, c.status)), [(20, SUCCESS), (21, SUCCESS)]);
    // The global routing header comes before the bytes.
    assert_eq!(completions[0].bytes, 140);
    assert_eq!(bench.bytes(8192 + 40, 100), bench.bytes(0, 100));
    handle.destroy().expect("nothing refers to it");
}

fn a_shared_queue_says_when_it_runs_low() {
    let bench = Bench::new(|_| None);
    let (srq, reply) = rxe::srq(&bench.pd, SrqInit { max_wr: 8, max_sge: 1 }).expect("a shared queue");
    let ring = Queue::map(&bench.context, reply.ring);
    for wr_id in 30..34 {
        ring.receive(wr_id, bench.sge(8192, 64));
    }
    // This driver has a part of its own in the command, which says nothing for a limit.
    let core = ModifySrq {
        srq_handle: srq.handle().into(),
        attr_mask: 2.into(),
        srq_limit: 3.into(),
        ..ModifySrq::ZERO
    };
    // SAFETY: zero is no address, and the command names no memory.
    let changed = unsafe {
        let uhw = Uhw::request(&[0; 8], &mut []);
        bench.context.file().command(&MODIFY_SRQ, &core, &mut (), uhw)
    };
    changed.expect("a limit");
    assert_eq!(srq.query().expect("its attributes").1, 3);
    let [near, far] = bench.connected(Some(&srq));
    let send = |wr_id| {
        bench.send(&near, wr_id, &Operation::Send, bench.sge(0, 64));
        for completion in [bench.completion(), bench.completion()] {
            assert_eq!(completion.status, SUCCESS);
        }
    };
    send(40);
    assert!(!readable(bench.context.event_fd(), 0), "three are left");
    send(41);
    let reached = event(&bench.context, EventKind::SRQ_LIMIT_REACHED);
    assert_eq!(reached, Element::SharedReceiveQueue(srq.user_handle()));
    assert_eq!(srq.query().expect("its attributes").1, 0, "one event for one limit");
    drop(far);
}

fn a_completion_queue_that_overruns_is_told() {
    let bench = Bench::new(|_| None);
    let [near, _far] = bench.connected(None);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let part = MemoryRegion::register(&bench.pd, &bench.pages, 4096..4196, access).expect("a part");
    for wr_id in 0..u64::from(bench.cq.cqe()) + 8 {
        bench.send(&near, wr_id, &Operation::Write(part.iova(), part.rkey()), bench.sge(0, 8));
        // The kernel has taken the request when its queue is empty again.
        wait_for("the send queue", || near.send.is_empty().then_some(()));
    }
    let told = event(&bench.context, EventKind::CQ_ERROR);
    assert_eq!(told, Element::CompletionQueue(bench.cq.user_handle()));
}

fn a_send_queue_that_has_drained_is_told() {
    let bench = Bench::new(|_| None);
    let [mut near, _far] = bench.connected(None);
    near.qp.modify(&QpAttributes::to(QpState::Sqd), 1).expect("it may stop sending");
    let told = event(&bench.context, EventKind::SQ_DRAINED);
    assert_eq!(told, Element::QueuePair(near.qp.user_handle()));
    assert!(!near.qp.query().expect("its attributes").draining);
}
