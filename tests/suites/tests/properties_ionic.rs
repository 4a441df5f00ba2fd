//! Random sequences of operations on ionic queues against a simple model of the queues and of the device.

use std::collections::VecDeque;

use directverbs::ionic::QueueMemory;
use directverbs::ionic::caps::ExpressStrides;
use directverbs::ionic::cmb::{Cmb, CmbGrant, Mapping};
use directverbs::ionic::cq::{CompletionQueue, CqRing};
use directverbs::ionic::cqe::{AdminCqe, CqeType, RecvCqe, RecvOp, SendCqe, SrcQpnOp, Status};
use directverbs::ionic::doorbell::{DbRing, DoorbellWord, QueueDoorbell, QueueType, RingIdx};
use directverbs::ionic::plan::{CqPlan, WorkQueuePlan};
use directverbs::ionic::qp::{NoSharedReceiveQueue, QpConfig, QueuePair};
use directverbs::ionic::send::SqRecord;
use directverbs::ionic::wqe::{BaseHeader, RdmaVersion, SpecFormat, SqOp, WqeFlags};
use directverbs::queue::Boxed;
use directverbs::verbs::{
    AccessFlags, AhId, BindMw, CqId, Datagram, Endpoints, Imm, LKey, MwType, Pollable, PostError, QKey,
    QpCapabilities, QpId, QpState, QpType, RKey, RecvRequest, RemoteAddress, SendFlags, SendOp, SendRequest,
    Sge, SrqId, WcStatus, WorkCompletion,
};
use directverbs_suites::ionic::{
    Arena, Event, FakeCq, RQ, Recorder, SQ, Setup, View, completion_queue, cq_id, queue_pair,
};
use proptest::collection::vec;
use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

type Qp<'m> = QueuePair<'m, Boxed, Recorder>;

/// Parameters of a request; what it becomes depends on the queue pair.
#[derive(Clone, Copy, Debug)]
struct Want {
    kind: u8,
    sges: u8,
    length: u16,
    flags: u8,
}

#[derive(Clone, Debug)]
enum Op {
    Send(usize, Vec<Want>),
    Recv(usize, Vec<Want>),
    /// Posts and drops the batch.
    Undo(usize, Vec<Want>),
    /// Posts something that is refused.
    Refuse(usize, u8),
    /// The device acknowledges that many messages.
    Messages(usize, u8),
    /// The device completes one of its local operations.
    Local(usize, u8),
    /// The device fills receives.
    Arrive(usize, u8),
    Poll(u8),
    Arm(bool),
    /// The device reports an error and flushes.
    Fail(usize),
    SetError(usize),
    Reset(usize),
    /// Everything is polled, and the credit compared.
    Check,
}

fn wants() -> impl Strategy<Value = Want> {
    (any::<u8>(), any::<u8>(), any::<u16>(), any::<u8>()).prop_map(|(kind, sges, length, flags)| Want {
        kind,
        sges,
        length,
        flags,
    })
}

fn ops() -> impl Strategy<Value = Op> {
    let qp = 0..2usize;
    prop_oneof![
        6 => (qp.clone(), vec(wants(), 0..6)).prop_map(|(q, w)| Op::Send(q, w)),
        4 => (qp.clone(), vec(wants(), 0..6)).prop_map(|(q, w)| Op::Recv(q, w)),
        1 => (qp.clone(), vec(wants(), 0..6)).prop_map(|(q, w)| Op::Undo(q, w)),
        1 => (qp.clone(), any::<u8>()).prop_map(|(q, k)| Op::Refuse(q, k)),
        6 => (qp.clone(), 1..9u8).prop_map(|(q, n)| Op::Messages(q, n)),
        4 => (qp.clone(), any::<u8>()).prop_map(|(q, n)| Op::Local(q, n)),
        4 => (qp.clone(), 1..5u8).prop_map(|(q, n)| Op::Arrive(q, n)),
        6 => (0..12u8).prop_map(Op::Poll),
        1 => any::<bool>().prop_map(Op::Arm),
        1 => qp.clone().prop_map(Op::Fail),
        1 => qp.clone().prop_map(Op::SetError),
        1 => qp.prop_map(Op::Reset),
        1 => Just(Op::Check),
    ]
}

fn setups() -> impl Strategy<Value = Setup> {
    let grant = prop_oneof![
        3 => Just(CmbGrant::Host),
        1 => Just(CmbGrant::Cmb { express: false, mapping: Mapping::WriteCombined }),
        1 => Just(CmbGrant::Cmb { express: false, mapping: Mapping::Uncached }),
        1 => Just(CmbGrant::Cmb { express: true, mapping: Mapping::WriteCombined }),
        1 => Just(CmbGrant::Cmb { express: true, mapping: Mapping::Uncached }),
    ];
    let sizes = (0..200u32, 0..14u32, 0..14u32, 0..200u32, 1..400u32);
    let kinds = (any::<[bool; 4]>(), prop_oneof![Just(0u8), Just(8), Just(16)]);
    (sizes, kinds, grant.clone(), grant).prop_map(|(sizes, (bools, max_spec), sq, rq)| {
        let (wr, send_sge, recv_sge, inline, cqe) = sizes;
        let [v1, ud, pipelines, signal_all] = bools;
        let mut setup = Setup::new(if v1 { RdmaVersion::V1 } else { RdmaVersion::V2 });
        setup.caps.max_spec = max_spec;
        setup.caps.express_strides = ExpressStrides::all();
        setup.qp_type = if ud { QpType::Ud } else { QpType::Rc };
        setup.udma_mask = if pipelines { 3 } else { 1 };
        setup.signal_all = signal_all;
        setup.cqe = cqe;
        setup.capabilities = QpCapabilities {
            max_send_wr: wr,
            max_recv_wr: wr / 2,
            max_send_sge: send_sge,
            max_recv_sge: recv_sge,
            max_inline_data: inline,
        };
        (setup.sq, setup.rq) = (sq, rq);
        // What the plan could not have, the device does not grant.
        let plan = setup.plan();
        let granted = |grant, express: bool| match grant {
            CmbGrant::Cmb { express: true, mapping } => CmbGrant::Cmb { express, mapping },
            other => other,
        };
        (setup.sq, setup.rq) = (granted(sq, plan.sq.cmb.express), granted(rq, plan.rq.cmb.express));
        setup
    })
}

/// A send request in the model.
#[derive(Clone, Debug)]
struct Sent {
    wr_id: u64,
    index: u16,
    remote: bool,
    signaled: bool,
    done: bool,
}

/// A ring in the device: host memory, or controller memory that the events fill.
struct DeviceRing<'m> {
    host: View<'m>,
    cmb: Option<Vec<u8>>,
    stride: usize,
    mask: u16,
    prod: u16,
}

impl DeviceRing<'_> {
    fn wqe(&self, index: u16) -> Vec<u8> {
        let offset = usize::from(index) * self.stride;
        match &self.cmb {
            Some(cmb) => cmb[offset..offset + self.stride].to_vec(),
            None => self.host.read(offset, self.stride),
        }
    }
}

/// A queue pair, what the model knows of it, and the device's side.
struct Side<'m> {
    qp: Qp<'m>,
    setup: Setup,
    bell: Recorder,
    sq: DeviceRing<'m>,
    rq: DeviceRing<'m>,
    sent: VecDeque<Sent>,
    received: VecDeque<u64>,
    recv_index: u16,
    msn: u32,
    posted: u64,
    expected_send: VecDeque<(u64, WcStatus)>,
    expected_recv: VecDeque<(u64, WcStatus)>,
    /// The model expects everything left to be flushed.
    failed: bool,
}

struct World<'m> {
    arena: &'m Arena,
    cq: CompletionQueue<'m>,
    bell: Recorder,
    cqs: [Option<FakeCq<'m>>; 2],
    sides: Vec<Side<'m>>,
    next_id: u64,
}

impl<'m> World<'m> {
    fn new(arena: &'m Arena, setup: Setup) -> Self {
        let (cq, cqs) = completion_queue(arena, &setup.caps, setup.cqe, setup.udma_mask);
        let sides = (0..2).map(|i| Side::new(arena, setup, &cq, i)).collect();
        Self { arena, cq, bell: Recorder::default(), cqs, sides, next_id: 0 }
    }

    fn device(&mut self, side: usize) -> &mut FakeCq<'m> {
        let udma = self.sides[side].setup.udma;
        self.cqs[usize::from(udma)].as_mut().expect("a ring")
    }

    /// Room in the completion ring of `side`, as the device sees it.
    fn room(&self, side: usize) -> bool {
        let udma = self.sides[side].setup.udma;
        let (device, ring) = (self.cqs[usize::from(udma)].as_ref().unwrap(), self.cq.ring(udma).unwrap());
        let used = device.prod.wrapping_sub(ring.state().prod) & device.mask;
        used + 4 < device.mask
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Send(side, wants) => self.send(*side, wants, true),
            Op::Undo(side, wants) => self.send(*side, wants, false),
            Op::Recv(side, wants) => self.recv(*side, wants),
            Op::Refuse(side, kind) => self.refuse(*side, *kind),
            Op::Messages(side, n) => self.messages(*side, *n, None),
            Op::Local(side, n) => self.local(*side, *n),
            Op::Arrive(side, n) => {
                for _ in 0..*n {
                    self.arrive(*side);
                }
            }
            Op::Poll(room) => {
                self.poll((*room).into());
            }
            Op::Arm(solicited) => self.cq.arm(*solicited),
            Op::Fail(side) => self.fail(*side),
            Op::SetError(side) => {
                self.drain();
                self.sides[*side].qp.set_error();
                self.sides[*side].flush_all();
            }
            Op::Reset(side) => self.reset(*side),
            Op::Check => self.check(),
        }
    }

    fn send(&mut self, side: usize, wants: &[Want], commit: bool) {
        let s = &mut self.sides[side];
        let (saved, records) = (s.qp.save(), live(&s.qp));
        let first = self.next_id;
        let bell = s.bell.clone();
        let made: Vec<_> = wants.iter().map(|w| Made::new(&s.setup, &s.qp, *w)).collect();
        let pieces: Vec<Vec<&[u8]>> =
            made.iter().map(|made| made.pieces.iter().map(Vec::as_slice).collect()).collect();
        let requests = made.iter().zip(&pieces).zip(first..);
        let requests: Vec<_> = requests.map(|((made, pieces), id)| made.request(pieces).wr_id(id)).collect();
        let outstanding = u32::from(saved.sq.prod.wrapping_sub(saved.sq.cons) & s.sq.mask);
        let room = u32::from(s.sq.mask) - outstanding;
        let fit = requests.len().min(room as usize);
        let full = |error: &PostError| assert!(matches!(error, PostError::QueueFull { .. }), "{error}");
        // All ways of posting make the same.
        match first % 3 {
            _ if !commit => {
                let mut batch = s.qp.send_batch(&mut self.cq).expect("state RTS or ERR");
                for request in &requests {
                    if let Err(error) = batch.post(request) {
                        full(&error);
                        break;
                    }
                }
                assert_eq!(batch.len() as usize, fit);
                drop(batch);
                assert_eq!((s.qp.save(), live(&self.sides[side].qp)), (saved, records));
                return;
            }
            0 => {
                let mut batch = s.qp.send_batch(&mut self.cq).expect("state RTS or ERR");
                requests[..fit].iter().for_each(|request| batch.post(request).expect("room"));
                if let Some(request) = requests.get(fit) {
                    full(&batch.post(request).expect_err("no room"));
                }
                let word = batch.doorbell();
                batch.commit(&bell);
                let prod = s.qp.save().sq.prod;
                assert_eq!(word, DoorbellWord::new().with_qid(s.setup.qp).with_index(prod).into_bits());
            }
            1 => {
                if fit < requests.len() {
                    let error = s.qp.post_send(&mut self.cq, &requests, &bell).expect_err("no room");
                    full(&error.error);
                    assert_eq!((error.index, s.qp.save(), live(&s.qp)), (fit, saved, records));
                }
                s.qp.post_send(&mut self.cq, &requests[..fit], &bell).expect("room");
            }
            _ => {
                for (i, request) in requests.iter().enumerate() {
                    let posted = s.qp.post_send(&mut self.cq, std::slice::from_ref(request), &bell);
                    assert_eq!(posted.is_ok(), i < fit, "{posted:?}");
                }
            }
        }
        let count = fit as u64;
        self.next_id += count;
        s.observe(SQ);
        for (i, made) in (0..count).zip(&made) {
            let index = saved.sq.prod.wrapping_add(i as u16) & s.sq.mask;
            made.check(&s.setup, &s.qp, &s.sq.wqe(index), index, s.posted / (u64::from(s.sq.mask) + 1));
            s.posted += 1;
            s.sent.push_back(Sent {
                wr_id: first + i,
                index,
                remote: made.remote(&s.setup),
                signaled: made.signaled(&s.setup),
                done: false,
            });
        }
        if s.failed {
            s.flush_all();
        }
    }

    fn recv(&mut self, side: usize, wants: &[Want]) {
        let s = &mut self.sides[side];
        let bell = s.bell.clone();
        let first = self.next_id;
        let start = s.qp.save().rq.prod;
        let max = s.qp.capabilities().max_recv_sge;
        let lists: Vec<Vec<Sge>> = wants.iter().map(|w| sges(w, u32::from(w.sges) % (max + 1))).collect();
        let requests: Vec<_> =
            lists.iter().zip(first..).map(|(list, id)| RecvRequest::new(id, list)).collect();
        let mut count = 0;
        let mut next = |posted: Result<(), PostError>| match posted {
            Ok(()) => count += 1,
            Err(error) => assert!(matches!(error, PostError::QueueFull { .. }), "{error}"),
        };
        match first % 3 {
            0 => {
                let mut batch = s.qp.recv_batch(&mut self.cq).expect("state RTS or ERR");
                requests.iter().for_each(|request| next(batch.post(request)));
                batch.commit(&bell);
            }
            1 => {
                // Those that there is room for, if not for all.
                let fit = match s.qp.post_recv(&mut self.cq, &requests, &bell) {
                    Ok(()) => requests.len(),
                    Err(error) => {
                        s.qp.post_recv(&mut self.cq, &requests[..error.index], &bell).expect("room");
                        error.index
                    }
                };
                requests[..fit].iter().for_each(|_| next(Ok(())));
            }
            _ => {
                for request in &requests {
                    let posted = s.qp.post_recv(&mut self.cq, std::slice::from_ref(request), &bell);
                    next(posted.map_err(|error| error.error));
                }
            }
        }
        self.next_id += count;
        s.observe(RQ);
        for (i, list) in (0..count).zip(&lists) {
            let index = start.wrapping_add(i as u16) & s.rq.mask;
            let wqe = s.rq.wqe(index);
            let header = BaseHeader::read_from_bytes(&wqe[..16]).unwrap();
            let length: u32 = list.iter().map(|s| s.length).sum();
            assert_eq!((header.wqe_idx.get(), header.op), (index.into(), 0));
            assert_eq!((usize::from(header.num_sge_key), header.imm_data_key.get()), (list.len(), length));
            check_sges(&wqe, header, list, s.setup.rq.express());
            s.received.push_back(first + i);
        }
        if s.failed {
            s.flush_all();
        }
    }

    /// Posts what is refused: nothing may change.
    fn refuse(&mut self, side: usize, kind: u8) {
        let s = &mut self.sides[side];
        let max = s.qp.capabilities();
        let ud = s.setup.qp_type == QpType::Ud;
        let many = vec![Sge::new(1, 1, LKey::MAX); max.max_send_sge.max(max.max_recv_sge) as usize + 1];
        let long = vec![0u8; max.max_inline_data as usize + 1];
        let (wrong, remote) = (RKey::MAX, RemoteAddress { addr: 0, rkey: RKey::MAX });
        let to = Datagram { ah: AhId::MAX, qp: QpId::MAX, qkey: QKey::MAX };
        let send = if ud { SendRequest::send_to(to) } else { SendRequest::send() };
        let pieces: [&[u8]; 1] = [&long];
        let mut state = s.qp.state();
        let request = match kind % 8 {
            0 => send.sges(&many),
            1 => send.inline(&pieces),
            2 => send.flags(SendFlags::LOCAL_FENCE),
            3 if ud => SendRequest::send(),
            3 => SendRequest::send_to(to),
            4 => SendRequest::new(SendOp::FetchAdd { remote, add: 1 }).sges(&many[..1]),
            5 => SendRequest::new(SendOp::LocalInv(wrong)).flags(SendFlags::SOLICITED),
            6 => {
                state = QpState::Init;
                send
            }
            _ => SendRequest::read(0, wrong).inline(&[]),
        };
        let before = (
            s.qp.state(),
            s.sq.host.all(),
            s.rq.host.all(),
            s.qp.save(),
            self.cq.ring(s.setup.udma).unwrap().state(),
        );
        if state == QpState::Init {
            s.qp.set_state(state);
        }
        let (good, bell) = ([send], s.bell.clone());
        assert!(s.qp.post_send(&mut self.cq, &[request], &bell).is_err());
        s.qp.set_state(before.0);
        if kind & 8 != 0 {
            let list = [RecvRequest::new(0, &many)];
            assert!(s.qp.post_recv(&mut self.cq, &list, &bell).is_err());
        }
        if kind & 16 != 0 && s.setup.udma_mask == 1 {
            // A completion queue on the other pipeline only.
            let rings = other_rings(self.arena, &s.setup);
            let mut other = CompletionQueue::new(2, rings).unwrap();
            assert!(s.qp.post_send(&mut other, &good, &bell).is_err());
        }
        let after = (
            s.qp.state(),
            s.sq.host.all(),
            s.rq.host.all(),
            s.qp.save(),
            self.cq.ring(s.setup.udma).unwrap().state(),
        );
        assert_eq!(before, after);
        assert_eq!(bell.take(), []);
    }

    fn messages(&mut self, side: usize, n: u8, error: Option<Status>) {
        if self.sides[side].failed || !self.room(side) {
            return;
        }
        let s = &mut self.sides[side];
        let mut count = 0;
        for sent in s.sent.iter_mut().filter(|s| s.remote && !s.done).take(n.into()) {
            sent.done = true;
            count += 1;
        }
        if count == 0 {
            return;
        }
        s.msn += count;
        let (qp, msn) = (s.setup.qp, s.msn);
        if error.is_none() {
            s.advance();
        }
        self.device(side).send(qp, CqeType::SEND_MSN, msn & 0xff_ffff, 0, error);
    }

    fn local(&mut self, side: usize, pick: u8) {
        if self.sides[side].failed || !self.room(side) {
            return;
        }
        let s = &mut self.sides[side];
        let mut waiting: Vec<_> = s.sent.iter_mut().filter(|s| !s.remote && !s.done).collect();
        if waiting.is_empty() {
            return;
        }
        let pick = usize::from(pick) % waiting.len();
        waiting[pick].done = true;
        let (qp, index) = (s.setup.qp, waiting[pick].index);
        s.advance();
        self.device(side).npg(qp, index);
    }

    fn arrive(&mut self, side: usize) {
        if self.sides[side].failed || !self.room(side) {
            return;
        }
        let s = &mut self.sides[side];
        let Some(wr_id) = s.received.pop_front() else { return };
        let (qp, index) = (s.setup.qp, s.recv_index);
        s.recv_index = (index + 1) & s.rq.mask;
        s.expected_recv.push_back((wr_id, WcStatus::Success));
        self.device(side).recv(qp, index, 100, |cqe| {
            cqe.src_qpn_op = SrcQpnOp::new().with_src_qpn(77).with_op(RecvOp::SEND_IMM.0).into_bits().into();
            cqe.imm_data_rkey = (wr_id as u32).into();
        });
    }

    /// The oldest message, if there is one, fails; the rest is flushed.
    fn fail(&mut self, side: usize) {
        if self.sides[side].failed || !self.room(side) {
            return;
        }
        let blocked = self.sides[side].sent.front().is_some_and(|s| !s.remote);
        if !blocked && !self.sides[side].sent.is_empty() {
            let wr_id = self.sides[side].sent[0].wr_id;
            self.messages(side, 1, Some(Status::RETRY_EXCEEDED));
            self.sides[side].sent.pop_front();
            self.sides[side].expected_send.push_back((wr_id, WcStatus::RetryExceeded));
        }
        let qp = self.sides[side].setup.qp;
        self.device(side).send(qp, CqeType::SEND_NPG, 0, 0, Some(Status::WQE_FLUSHED));
        self.device(side).recv_error(qp, 0, Status::WQE_FLUSHED);
        self.sides[side].flush_all();
    }

    fn reset(&mut self, side: usize) {
        let (arena, cq) = (self.arena, &mut self.cq);
        let s = &mut self.sides[side];
        // What was not polled yet reports nothing any more.
        cq.forget(&mut s.qp);
        assert_eq!(cq.forget(&mut s.qp), 0, "forgotten once");
        s.qp.reset();
        let fresh = Side::new(arena, s.setup, cq, side);
        let mut saved = fresh.qp.save();
        saved.state = QpState::Reset;
        assert_eq!(s.qp.save(), saved);
        assert_eq!(s.qp.send_queue().records(), fresh.qp.send_queue().records());
        assert_eq!(s.qp.recv_queue().records(), fresh.qp.recv_queue().records());
        assert_eq!((s.sq.host.all(), s.rq.host.all()), (fresh.sq.host.all(), fresh.rq.host.all()));
        s.qp.set_state(QpState::Rts);
        s.sq.prod = 0;
        s.rq.prod = 0;
        s.sent.clear();
        s.received.clear();
        s.expected_send.clear();
        s.expected_recv.clear();
        (s.recv_index, s.msn, s.posted, s.failed) = (0, 0, 0, false);
    }

    fn poll(&mut self, room: usize) -> usize {
        let mut out = vec![WorkCompletion::default(); room];
        let n =
            self.cq.poll(&mut Sides(&mut self.sides), &self.bell, &mut out).expect("the device makes sense");
        for wc in &out[..n] {
            let side = self.sides.iter_mut().find(|s| s.setup.qp == wc.qp.get()).expect("one of ours");
            let got = (wc.wr_id, wc.status);
            if side.expected_send.front() == Some(&got) {
                side.expected_send.pop_front();
            } else {
                assert_eq!(
                    side.expected_recv.pop_front(),
                    Some(got),
                    "in order, once: {:?}",
                    side.expected_send
                );
                if wc.status == WcStatus::Success {
                    assert_eq!((wc.imm(), wc.byte_len), (Imm::new(wc.wr_id as u32), 100));
                }
            }
        }
        n
    }

    /// Goes on with queues restored from what these saved, over the same rings.
    fn restore(&mut self) {
        let caps = self.sides[0].setup.caps;
        let plan = CqPlan::new(&caps, self.sides[0].setup.cqe).unwrap();
        let rings = [0, 1].map(|udma| {
            let state = self.cq.ring(udma)?.state();
            let view = self.cqs[usize::from(udma)]?.view;
            let ring =
                CqRing::restore(cq_id(udma.into()), caps.cq_qtype, &plan, view.ring(), &state).unwrap();
            assert_eq!(ring.state(), state);
            Some(ring)
        });
        self.cq = CompletionQueue::new(caps.udma_count, rings).unwrap();
        for side in &mut self.sides {
            side.restore(&self.cq);
        }
    }

    fn drain(&mut self) {
        while self.poll(7) > 0 {}
    }

    /// Everything has been reported, and the credit is what the model says.
    fn check(&mut self) {
        self.drain();
        for s in &self.sides {
            assert_eq!((&s.expected_send, &s.expected_recv), (&VecDeque::new(), &VecDeque::new()));
        }
        for udma in 0..2u8 {
            let (Some(ring), Some(device)) = (self.cq.ring(udma), &self.cqs[usize::from(udma)]) else {
                continue;
            };
            let state = ring.state();
            assert_eq!((state.prod, state.color), (device.prod, device.color));
            let here = self.sides.iter().filter(|s| s.setup.udma == udma);
            let used: u32 =
                here.map(|s| s.qp.send_queue().outstanding() + s.qp.recv_queue().outstanding()).sum();
            let credit = state.reserve + state.reserve_pending + used as i32 + state.stale as i32;
            assert_eq!(credit, i32::from(device.mask));
            assert_eq!(state.stale, 0);
        }
    }
}

fn other_rings<'m>(arena: &'m Arena, setup: &Setup) -> [Option<CqRing<'m>>; 2] {
    let plan = CqPlan::new(&setup.caps, 1).unwrap();
    let memory = arena.ring(plan.ring.bytes()).0;
    [None, Some(CqRing::new(cq_id(1), setup.caps.cq_qtype, &plan, memory).unwrap())]
}

/// The queue pairs of all sides.
struct Sides<'a, 'm>(&'a mut [Side<'m>]);

impl<'m> Endpoints<Qp<'m>, NoSharedReceiveQueue> for Sides<'_, 'm> {
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut Qp<'m>) -> R) -> Option<R> {
        self.0.iter_mut().find(|s| s.setup.qp == key).map(|s| f(&mut s.qp))
    }

    fn with_srq<R>(&mut self, _: SrqId, _: impl FnOnce(&mut NoSharedReceiveQueue) -> R) -> Option<R> {
        None
    }

    fn each_qp(&mut self, mut f: impl FnMut(&mut Qp<'m>) -> bool) {
        self.0.iter_mut().all(|s| f(&mut s.qp));
    }

    fn flush_seq(&self) -> u32 {
        self.0.iter().fold(0, |sum, s| sum.wrapping_add(s.qp.flush_seq()))
    }
}

impl<'m> Side<'m> {
    fn new(arena: &'m Arena, setup: Setup, cq: &CompletionQueue<'m>, side: usize) -> Self {
        let udma = if setup.udma_mask == 3 { side as u8 } else { 0 };
        let setup = Setup { qp: 5 + side as u32, udma, ..setup };
        let bell = Recorder::default();
        let (qp, sq, rq) = queue_pair(arena, &setup, cq, &bell);
        let plan = setup.plan();
        let ring = |host: View<'m>, grant: CmbGrant, plan: WorkQueuePlan| DeviceRing {
            host,
            cmb: (grant != CmbGrant::Host).then(|| vec![0; plan.ring.bytes()]),
            stride: plan.ring.stride() as usize,
            mask: plan.ring.mask(),
            prod: 0,
        };
        Self {
            qp,
            setup,
            bell,
            sq: ring(sq, setup.sq, plan.sq),
            rq: ring(rq, setup.rq, plan.rq),
            sent: VecDeque::new(),
            received: VecDeque::new(),
            recv_index: 0,
            msn: 0,
            posted: 0,
            expected_send: VecDeque::new(),
            expected_recv: VecDeque::new(),
            failed: false,
        }
    }

    /// What the device learns from a commit to the queue of `register`.
    fn observe(&mut self, register: usize) {
        let (ring, qp) = if register == SQ { (&mut self.sq, &self.qp) } else { (&mut self.rq, &self.qp) };
        let (grant_sq, grant_rq) = qp.placement();
        let grant = if register == SQ { grant_sq } else { grant_rq };
        for event in self.bell.take() {
            match event {
                Event::Copy { offset, block } => {
                    ring.cmb.as_mut().expect("in controller memory")[offset..offset + 64]
                        .copy_from_slice(&*block);
                    if grant.express() && (offset + 64) % ring.stride == 0 {
                        let word = u64::from_le_bytes(block[56..].try_into().unwrap());
                        let word = directverbs::ionic::doorbell::ExpressWord::from_bits(word);
                        assert_eq!((word.qid(), usize::from(word.qtype())), (self.setup.qp, register));
                        assert_eq!(word.index(), (offset / ring.stride + 1) as u16 & ring.mask);
                        ring.prod = word.index();
                    }
                }
                Event::Store { register: r, value } if r == register => {
                    let word = DoorbellWord::from_bits(value);
                    assert_eq!((word.qid(), word.ring()), (self.setup.qp, 0));
                    ring.prod = word.index();
                }
                _ => {}
            }
        }
        let saved = qp.save();
        assert_eq!(ring.prod, if register == SQ { saved.sq.prod } else { saved.rq.prod });
    }

    /// Requests at the front that are done are reported.
    fn advance(&mut self) {
        while let Some(sent) = self.sent.pop_front_if(|s| s.done) {
            if sent.signaled {
                self.expected_send.push_back((sent.wr_id, WcStatus::Success));
            }
        }
    }

    /// Goes on with a queue pair restored from what this one saved, over the same rings.
    fn restore(&mut self, cq: &CompletionQueue<'m>) {
        let plan = self.setup.plan();
        let config = QpConfig {
            id: self.qp.id(),
            qp_type: self.setup.qp_type,
            udma: self.setup.udma,
            signal_all: self.setup.signal_all,
            send_cq: cq,
            recv_cq: cq,
        };
        let cmb = |grant| match grant {
            CmbGrant::Host => None,
            CmbGrant::Cmb { express, mapping } => Some(Cmb { memory: self.bell.clone(), express, mapping }),
        };
        let saved = self.qp.save();
        let (sends, receives) =
            (self.qp.send_queue().records().into(), self.qp.recv_queue().records().into());
        // The old queue pair is not used any more: its rings pass to the new one.
        let sq = QueueMemory { ring: self.sq.host.ring(), records: sends, cmb: cmb(self.setup.sq) };
        let rq = QueueMemory { ring: self.rq.host.ring(), records: receives, cmb: cmb(self.setup.rq) };
        self.qp =
            QueuePair::restore(&self.setup.caps, &config, &plan, sq, rq, &saved).expect("what was saved");
        assert_eq!(self.qp.save(), saved);
    }

    /// Everything left is flushed.
    fn flush_all(&mut self) {
        self.failed = true;
        self.expected_send.extend(self.sent.drain(..).map(|s| (s.wr_id, WcStatus::WrFlush)));
        self.expected_recv.extend(self.received.drain(..).map(|wr_id| (wr_id, WcStatus::WrFlush)));
    }
}

/// A request made from a [`Want`], with what it points to.
#[derive(Debug)]
struct Made {
    op: SendOp,
    code: SqOp,
    flags: SendFlags,
    sges: Vec<Sge>,
    pieces: Vec<Vec<u8>>,
    inline: bool,
}

fn sges(want: &Want, count: u32) -> Vec<Sge> {
    (0..count)
        .map(|i| {
            Sge::new(
                u64::from(want.length) << 32 | u64::from(i),
                u32::from(want.length % 0xf000) + i,
                LKey::truncated(i << 8 | 7),
            )
        })
        .collect()
}

impl Made {
    fn new(setup: &Setup, qp: &Qp<'_>, want: Want) -> Self {
        let max = qp.capabilities();
        let key = RKey::truncated(u32::from(want.length) << 8 | 0x1234_0000);
        let remote = RemoteAddress { addr: u64::from(want.length) << 33 | 5, rkey: key };
        let imm = Imm::truncated(u32::from(want.length) << 7);
        let to = Datagram {
            ah: AhId::truncated(want.length.into()),
            qp: QpId::truncated(want.kind.into()),
            qkey: QKey::truncated(7),
        };
        let no_atomics = setup.caps.version == RdmaVersion::V1 && setup.sq.express();
        let (op, code) = match (setup.qp_type, want.kind % 11) {
            (QpType::Ud, kind) if kind % 2 == 0 => (SendOp::SendTo(to), SqOp::Send),
            (QpType::Ud, _) => (SendOp::SendToImm(to, imm), SqOp::SendImm),
            (_, 0) => (SendOp::Send, SqOp::Send),
            (_, 1) => (SendOp::SendImm(imm), SqOp::SendImm),
            (_, 2) => (SendOp::SendInv(key), SqOp::SendInv),
            (_, 3) => (SendOp::WriteImm(remote, imm), SqOp::WriteImm),
            (_, 4) => (SendOp::Read(remote), SqOp::Read),
            (_, 5) if !no_atomics => {
                (SendOp::CompareSwap { remote, compare: 3 << 40, swap: 9 << 50 }, SqOp::CompareSwap)
            }
            (_, 6) if !no_atomics => (SendOp::FetchAdd { remote, add: 9 << 50 }, SqOp::FetchAdd),
            (_, 7) => (SendOp::LocalInv(key), SqOp::LocalInv),
            (_, 8) => {
                let new_key = RKey::truncated(key.get() | 0xcd);
                let access = AccessFlags::REMOTE_WRITE | AccessFlags::ZERO_BASED;
                let bind = BindMw {
                    mw_type: MwType::Type2,
                    mw: key,
                    new_key,
                    region: LKey::MAX,
                    addr: 4096,
                    length: 99,
                    access,
                };
                (SendOp::BindMw(bind), SqOp::BindMw)
            }
            _ => (SendOp::Write(remote), SqOp::Write),
        };
        let mut allowed = SendFlags::SIGNALED | SendFlags::FENCE;
        let carries =
            matches!(code, SqOp::Send | SqOp::SendImm | SqOp::SendInv | SqOp::Write | SqOp::WriteImm);
        if carries && code != SqOp::Write {
            allowed |= SendFlags::SOLICITED;
        }
        let inline = carries && want.flags & 0x80 != 0;
        let (mut list, mut pieces) = (Vec::new(), Vec::new());
        if inline {
            let bytes: Vec<u8> =
                (0..u32::from(want.length) % (max.max_inline_data + 1)).map(|i| i as u8 | 1).collect();
            pieces = bytes.chunks(usize::from(want.sges % 40) + 1).map(<[u8]>::to_vec).collect();
        } else if matches!(code, SqOp::CompareSwap | SqOp::FetchAdd) {
            list = vec![Sge::new(0x1122_3344_5566_7788, 8, LKey::truncated(0x99))];
        } else if carries || code == SqOp::Read {
            list = sges(&want, u32::from(want.sges) % (max.max_send_sge + 1));
        }
        Self {
            op,
            code,
            flags: SendFlags::from_bits_truncate(want.flags) & allowed,
            sges: list,
            pieces,
            inline,
        }
    }

    fn request<'a>(&'a self, pieces: &'a [&'a [u8]]) -> SendRequest<'a> {
        let request = SendRequest::new(self.op).flags(self.flags);
        if self.inline { request.inline(pieces) } else { request.sges(&self.sges) }
    }

    fn remote(&self, setup: &Setup) -> bool {
        setup.qp_type == QpType::Rc && !self.code.is_local()
    }

    fn signaled(&self, setup: &Setup) -> bool {
        setup.signal_all || self.flags.contains(SendFlags::SIGNALED)
    }

    /// Decodes the WQE that the device has, the `pass`th in its place.
    fn check(&self, setup: &Setup, qp: &Qp<'_>, wqe: &[u8], index: u16, pass: u64) {
        let header = BaseHeader::read_from_bytes(&wqe[..16]).unwrap();
        let flags = WqeFlags::from_bits(header.flags.get());
        assert_eq!(header.wqe_idx.get(), u64::from(index));
        assert_eq!(SqOp::from_opcode(setup.caps.version, header.op), Some(self.code));
        assert_eq!(flags.color(), pass.is_multiple_of(2));
        let want = (
            self.flags.contains(SendFlags::FENCE),
            self.flags.contains(SendFlags::SOLICITED),
            self.signaled(setup),
        );
        assert_eq!((flags.fence(), flags.solicited(), flags.signaled()), want);
        assert_eq!(flags.inline(), self.inline);
        let express = qp.placement().0.express();
        let word = |at: usize| u32::from_be_bytes(wqe[at..at + 4].try_into().unwrap());
        match self.op {
            SendOp::CompareSwap { remote, swap, .. } | SendOp::FetchAdd { remote, add: swap } => {
                assert_eq!(u64::from(word(16)) << 32 | u64::from(word(20)), remote.addr);
                assert_eq!(u64::from(word(28)) << 32 | u64::from(word(32)), swap);
                assert_eq!(header.num_sge_key, 1);
                let v1 = setup.caps.version == RdmaVersion::V1;
                assert_eq!((word(48), word(52)), (0x1122_3344, 0x5566_7788));
                assert_eq!(if v1 { word(60) } else { word(44) }, 0x99);
                return;
            }
            SendOp::LocalInv(key) => {
                assert_eq!(header.imm_data_key.get(), key.get());
                assert!(wqe[16..wqe.len() - 8].iter().all(|b| *b == 0));
                return;
            }
            SendOp::BindMw(bind) => {
                assert_eq!((header.imm_data_key.get(), header.num_sge_key), (bind.mw.get(), 0xcd));
                assert_eq!((word(20), word(28), word(32)), (4096, 99, u32::MAX));
                assert_eq!(wqe[36..38], [0xc0, 0x22]);
                return;
            }
            _ => {}
        }
        assert_eq!(
            u64::from(word(28)),
            self.sges.iter().map(|s| u64::from(s.length)).sum::<u64>() + self.pieces.concat().len() as u64
        );
        if self.inline {
            let bytes = self.pieces.concat();
            let end = wqe.len() - if express { 8 } else { 0 };
            assert_eq!(wqe[32..32 + bytes.len()], bytes);
            assert!(wqe[32 + bytes.len()..end].iter().all(|b| *b == 0), "nothing is left of an earlier WQE");
        } else {
            assert_eq!(usize::from(header.num_sge_key), self.sges.len());
            check_sges(wqe, header, &self.sges, express);
        }
    }
}

fn check_sges(wqe: &[u8], header: BaseHeader, sges: &[Sge], express: bool) {
    let spec = SpecFormat::from_bits(WqeFlags::from_bits(header.flags.get()).spec()).expect("a form");
    let mut want = Vec::new();
    for i in 0..16 {
        let length = sges.get(i).map_or(0, |s| s.length);
        match spec {
            SpecFormat::None => {}
            SpecFormat::Spec32 if i < 8 => want.extend(length.to_be_bytes()),
            SpecFormat::Spec32 => {}
            SpecFormat::Spec16 => want.extend((length as u16).to_be_bytes()),
        }
    }
    for sge in sges {
        want.extend(sge.addr.to_be_bytes());
        want.extend(sge.length.to_be_bytes());
        want.extend(sge.lkey.get().to_be_bytes());
    }
    let end = wqe.len() - if express { 8 } else { 0 };
    want.resize(end - 32, 0);
    assert_eq!(wqe[32..end], want);
}

/// Records of the requests that are outstanding.
fn live(qp: &Qp<'_>) -> (Vec<SqRecord>, Vec<(u64, u32)>) {
    let (state, sq, rq) = (qp.save(), qp.send_queue().records(), qp.recv_queue().records());
    let mask = qp.capabilities().max_send_wr as u16;
    let count = state.sq.prod.wrapping_sub(state.sq.cons) & mask;
    let at = |i: u16| usize::from(state.sq.cons.wrapping_add(i) & mask);
    let sends = (0..count).map(|i| sq[at(i)]).collect();
    (sends, rq.iter().filter(|r| r.posted).map(|r| (r.wr_id, r.extent)).collect())
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn f1_every_request_completes_exactly_once_and_in_order(setup in setups(), ops in vec(ops(), 0..80)) {
        let arena = Arena::default();
        let mut world = World::new(&arena, setup);
        for op in &ops {
            world.step(op);
        }
        // The device completes everything that is left.
        for side in 0..2 {
            for _ in 0..400 {
                world.messages(side, 9, None);
                world.local(side, 0);
                world.arrive(side);
                world.drain();
            }
        }
        world.check();
        for side in &world.sides {
            prop_assert_eq!((side.sent.len(), side.received.len()), (0, 0));
            prop_assert_eq!(side.qp.send_queue().outstanding() + side.qp.recv_queue().outstanding(), 0);
        }
    }

    #[test]
    fn a_restored_queue_pair_goes_on_where_it_was(setup in setups(), before in vec(ops(), 0..40), after in vec(ops(), 0..40)) {
        let arena = Arena::default();
        let mut world = World::new(&arena, setup);
        before.iter().for_each(|op| world.step(op));
        world.restore();
        after.iter().for_each(|op| world.step(op));
        world.check();
    }

    #[test]
    fn hostile_cqes_complete_nothing_twice(
        setup in setups(),
        cqes in vec((any::<[u8; 32]>(), 0..4u8, 0..8u8, any::<u16>()), 0..60),
        room in 1..9usize,
    ) {
        let arena = Arena::default();
        let mut world = World::new(&arena, setup);
        let want = Want { kind: 0, sges: 0, length: 0, flags: 2 };
        world.send(0, &[want; 20], true);
        world.recv(0, &[want; 20]);
        let mut seen = std::collections::HashSet::new();
        for (mut bytes, kind, small, number) in cqes {
            // Mostly near the truth: our queue pair, and numbers that may be outstanding.
            if kind > 0 {
                bytes[28..31].copy_from_slice(&[0, 0, 5]);
                bytes[31] = small << 5 | bytes[31] & 2;
                bytes[..2].copy_from_slice(&(number % 32).to_le_bytes());
                bytes[4..8].copy_from_slice(&(u32::from(number) % 32).to_be_bytes());
                bytes[16..18].copy_from_slice(&(number % 32).to_le_bytes());
            }
            world.device(0).push(&bytes);
            let mut out = vec![WorkCompletion::default(); room];
            while let Ok(n @ 1..) = world.cq.poll(&mut Sides(&mut world.sides), &world.bell, &mut out) {
                for wc in &out[..n] {
                    prop_assert!(seen.insert(wc.wr_id) && wc.wr_id < world.next_id);
                }
            }
        }
        let qp = &world.sides[0].qp;
        let left = qp.send_queue().outstanding() + qp.recv_queue().outstanding();
        prop_assert!(seen.len() as u64 + u64::from(left) <= world.next_id);
    }

    #[test]
    fn f3_words_decode_to_what_they_were_made_from(
        ids in (0..1u32 << 24, 0..1u32 << 24, any::<u32>()),
        index in any::<u16>(),
        small in (0..8u8, 0..32u8, any::<[bool; 5]>()),
        bytes in any::<[u8; 32]>(),
    ) {
        let (qid, other, _) = ids;
        let (register, op, [a, b, c, d, e]) = small;
        let db = QueueDoorbell::completion_queue(QueueType::new(register).unwrap(), CqId::truncated(qid));
        for ring in [DbRing::Index, DbRing::ArmAny, DbRing::ArmSolicited] {
            let word = DoorbellWord::from_bits(db.word(ring, RingIdx(index)));
            prop_assert_eq!((word.qid(), word.ring(), word.index()), (qid, ring as u8, index));
            let again = DoorbellWord::new().with_index(index).with_ring(ring as u8).with_qid(qid);
            prop_assert_eq!(word, again);
        }
        let express = directverbs::ionic::doorbell::ExpressWord::from_bits(db.express(RingIdx(index), 0xffff));
        prop_assert_eq!((express.qid(), express.qtype(), express.index()), (qid, register, index.wrapping_add(1)));
        let source = SrcQpnOp::new().with_src_qpn(other).with_op(op).with_vlan(a).with_ipv4(b);
        prop_assert_eq!((source.src_qpn(), source.op(), source.vlan(), source.ipv4()), (other, op, a, b));
        let flags = WqeFlags::new().with_fence(a).with_solicited(b).with_inline(c).with_signaled(d).with_color(e).with_spec(op & 3);
        prop_assert_eq!(flags.into_bits() & 0x0fe0, 0);
        prop_assert_eq!((flags.fence(), flags.solicited(), flags.inline(), flags.signaled(), flags.color(), flags.spec()), (a, b, c, d, e, op & 3));
        let (send, recv, admin) = (
            SendCqe::read_from_bytes(&bytes).unwrap(),
            RecvCqe::read_from_bytes(&bytes).unwrap(),
            AdminCqe::read_from_bytes(&bytes).unwrap(),
        );
        prop_assert_eq!((send.as_bytes(), recv.as_bytes(), admin.as_bytes()), (&bytes[..], &bytes[..], &bytes[..]));
        prop_assert_eq!(send.qid_type_flags.get(), u32::from_be_bytes(bytes[28..].try_into().unwrap()));
        prop_assert_eq!(QpId::new(ids.2).is_some(), ids.2 < 1 << 24);
    }
}
