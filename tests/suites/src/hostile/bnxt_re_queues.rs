use std::sync::Arc;

use directverbs::bnxt_re::caps::{DeviceCaps, Generation, Limits};
use directverbs::bnxt_re::cq::CompletionQueue;
use directverbs::bnxt_re::cqe::{CQE_BYTES, CqReq, CqeTag, CqeType, CqeTypeToggle, PHASE_OFFSET};
use directverbs::bnxt_re::plan::{CqPlan, QpPlan, SrqPlan};
use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
use directverbs::bnxt_re::recv::RecvQueue;
use directverbs::bnxt_re::send::{SendInit, SendQueue, SendRecord};
use directverbs::bnxt_re::srq::{SharedReceiveQueue, SrqRecord};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::queue::Boxed;
use directverbs::verbs::{
    AccessFlags, AddressVector, AhId, CqId, Datagram, Endpoints, Gid, LKey, Mac, Mtu, Pollable, Psn, QKey,
    QpAttributes, QpCapabilities, QpId, QpState, QpType, RKey, RecvRequest, SendFlags, SendOp, SendRequest,
    Sge, SrqId, SrqInit, WcStatus, WorkCompletion,
};
use directverbs_softnic::bus::HostMemory;
use zerocopy::IntoBytes;

use super::Input;
use super::guarded::Guarded;
use super::ledger::{Ledger, Silent, blank, check_blank};

type Pair = QueuePair<'static, Boxed>;
type Srq = SharedReceiveQueue<'static, Boxed>;

const BYTES: usize = CQE_BYTES as usize;
const CQ: CqId = CqId::truncated(5);
const SRQ: SrqId = SrqId::truncated(7);
/// A reliable one, a datagram one, and a reliable one with a shared receive queue.
const KINDS: [QpType; 3] = [QpType::Rc, QpType::Ud, QpType::Rc];
const QPS: [QpId; 3] = [QpId::truncated(2), QpId::truncated(3), QpId::truncated(4)];
const HANDLES: [u32; 3] = [0x101, 0x102, 0x103];
/// Completions asked for at creation, and by each resize in turn.
const SIZES: [u32; 5] = [20, 100, 30, 50, 10];

/// Queue pairs of all kinds, and the completion queue of all.
struct Queues {
    cq: CompletionQueue<'static>,
    qps: [Pair; 3],
    srqs: [Srq; 1],
    caps: DeviceCaps,
    plan: CqPlan,
    ledger: Ledger,
    polls: u64,
    memory: Arc<HostMemory>,
    // Dropped last. The memory of the completion queue, and that of each resize.
    rings: Vec<Guarded>,
    work: Vec<Guarded>,
}

struct Parts<'q>(&'q mut [Pair; 3], &'q mut [Srq; 1]);

impl Endpoints<Pair, Srq> for Parts<'_> {
    fn with_qp<R>(&mut self, key: u32, f: impl FnOnce(&mut Pair) -> R) -> Option<R> {
        self.0.iter_mut().find(|qp| qp.key() == key).map(f)
    }

    fn with_srq<R>(&mut self, id: SrqId, f: impl FnOnce(&mut Srq) -> R) -> Option<R> {
        self.1.iter_mut().find(|srq| srq.id() == id).map(f)
    }

    fn each_qp(&mut self, mut f: impl FnMut(&mut Pair) -> bool) {
        for qp in self.0.iter_mut() {
            if !f(qp) {
                return;
            }
        }
    }

    fn flush_seq(&self) -> u32 {
        self.0.iter().fold(0, |sum, qp| sum.wrapping_add(qp.flush_seq()))
    }
}

fn caps(setup: u8) -> DeviceCaps {
    DeviceCaps {
        generation: if setup & 1 == 0 { Generation::P5 } else { Generation::P7 },
        wqe_mode: if setup & 2 == 0 { WqeMode::Static } else { WqeMode::Variable },
        msn_table: setup & 1 != 0,
        pow2_disabled: setup & 4 != 0,
        push: false,
        pacing: false,
        rate_limit: false,
        page_size: 4096,
        cqe_bytes: CQE_BYTES,
        max_cqe: 0xffff,
        limits: Limits { max_qp_wr: 1000, max_sge: 6, max_srq_wr: 1000, max_srq_sge: 6, atomics: true },
    }
}

/// Takes a queue pair from RESET to RTS.
fn ready(qp: &mut Pair) {
    let path = AddressVector::new(Gid::v4([10, 0, 0, 2].into()), Mac([2, 0, 0, 0, 0, 2]));
    let init = QpAttributes {
        access: Some(AccessFlags::all()),
        qkey: Some(QKey::truncated(1)),
        ..QpAttributes::to(QpState::Init)
    };
    let rtr = QpAttributes {
        path: Some(path),
        mtu: Some(Mtu::B1024),
        dest_qp: Some(QPS[0]),
        rq_psn: Some(Psn::truncated(0)),
        max_dest_rd_atomic: Some(4),
        min_rnr_timer: Some(1),
        ..QpAttributes::to(QpState::Rtr)
    };
    let rts = QpAttributes {
        sq_psn: Some(Psn::truncated(0)),
        timeout: Some(1),
        retry_count: Some(1),
        rnr_retry: Some(1),
        max_rd_atomic: Some(4),
        ..QpAttributes::to(QpState::Rts)
    };
    for attributes in [init, rtr, rts] {
        qp.modify(&attributes).expect("the way to RTS");
    }
}

impl Queues {
    fn new(setup: u8) -> Self {
        let caps = caps(setup);
        let memory = HostMemory::new();
        let mut work = Vec::new();
        let mut lend = |bytes: u32| {
            let guarded = Guarded::new(&memory, bytes as usize);
            // SAFETY: the memory is kept in the same value as the queue, dropped after it, and lent once.
            let ring = unsafe { guarded.ring() };
            work.push(guarded);
            ring
        };
        let wanted = QpCapabilities {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 4,
            max_recv_sge: 2,
            max_inline_data: 64,
        };
        let qps = [0, 1, 2].map(|i: usize| {
            let shared = i == 2;
            let plan = QpPlan::new(&caps, &wanted, shared).expect("small");
            let init =
                SendInit { plan: plan.send, qp: QPS[i], qp_type: KINDS[i], signal_all: false, atomics: true };
            let records = |count: u32| count.next_power_of_two() as usize;
            let shadow = vec![SendRecord::default(); records(plan.send.records)].into_boxed_slice();
            let send = SendQueue::new(lend(plan.send.bytes), shadow, &init).expect("as planned");
            let recv = plan.recv.map(|plan| {
                let shadow = vec![0; records(plan.wqes)].into_boxed_slice();
                RecvQueue::new(lend(plan.bytes), shadow, &plan, QPS[i]).expect("as planned")
            });
            let init = QueuePairInit {
                id: QPS[i],
                handle: HANDLES[i],
                qp_type: KINDS[i],
                send_cq: CQ,
                recv_cq: CQ,
                srq: shared.then_some(SRQ),
                capabilities: plan.granted(),
            };
            let mut qp = Pair::new(&init, send, recv).expect("as planned");
            ready(&mut qp);
            qp
        });
        let plan = SrqPlan::new(&caps, &SrqInit { max_wr: 16, max_sge: 2 }).expect("small");
        let shadow = vec![SrqRecord::default(); plan.entries.next_power_of_two() as usize].into_boxed_slice();
        let srq = Srq::new(lend(plan.bytes), shadow, &plan, SRQ).expect("as planned");
        let plan = CqPlan::new(&caps, SIZES[0]).expect("small");
        let ring = Guarded::new(&memory, plan.bytes as usize);
        // SAFETY: as above.
        let cq = CompletionQueue::new(unsafe { ring.ring() }, &plan, CQ).expect("as planned");
        let ledger = Ledger::default();
        Self { cq, qps, srqs: [srq], caps, plan, ledger, polls: 0, memory, rings: vec![ring], work }
    }

    /// The memory that the completion queue works on.
    fn ring(&self) -> &Guarded {
        let address = self.memory.bus_address(self.cq.memory().address());
        self.rings.iter().find(|ring| Some(ring.addr()) == address).expect("it was lent one of them")
    }

    /// Writes a CQE where the driver looks next, with the phase it waits for.
    fn deliver(&self, mut cqe: [u8; BYTES]) {
        let state = self.cq.state();
        cqe[PHASE_OFFSET] = cqe[PHASE_OFFSET] & !1 | u8::from(state.phase);
        self.ring().write(state.head as usize * BYTES, &cqe);
    }

    fn poll(&mut self, room: usize) {
        let mut out = blank::<8>();
        let out = &mut out[..room];
        self.polls += 1;
        match self.cq.poll(&mut Parts(&mut self.qps, &mut self.srqs), &Silent, out) {
            Ok(count) => {
                check_blank(out, count);
                self.ledger.completed(&out[..count]);
            }
            Err(fault) => {
                check_blank(out, 0);
                assert!(fault.cq == CQ && fault.entry < 0x1_0000, "{fault}");
            }
        }
    }

    fn post_send(&mut self, which: usize, input: &mut Input<'_>) -> bool {
        let sges = [Sge::new(input.u64(), 16, LKey::truncated(1)); 4];
        let (to, kind) = (input.u64(), input.byte());
        let op = match (KINDS[which], kind % 6) {
            (QpType::Ud, _) => {
                SendOp::SendTo(Datagram { ah: AhId::default(), qp: QPS[0], qkey: QKey::truncated(1) })
            }
            (_, 0) => SendOp::Send,
            (_, 1) => SendRequest::read(to, RKey::truncated(1)).op,
            (_, 2) => SendOp::LocalInv(RKey::truncated(1)),
            (_, 3) => SendOp::SendInv(RKey::truncated(2)),
            _ => SendRequest::write(to, RKey::truncated(1)).op,
        };
        let count = if matches!(op, SendOp::LocalInv(_)) { 0 } else { usize::from(kind >> 6) };
        let flags = if kind & 0x20 == 0 { SendFlags::SIGNALED } else { SendFlags::empty() };
        let request = SendRequest::new(op).wr_id(self.ledger.next()).flags(flags).sges(&sges[..count]);
        let posted = self.qps[which].post_send(&Silent, &[request]).is_ok();
        if posted {
            self.ledger.posted(Some(QPS[which]));
        }
        posted
    }

    fn post_recv(&mut self, which: usize) {
        let sges = [Sge::new(0, 16, LKey::truncated(1))];
        let request = RecvRequest::new(self.ledger.next(), &sges);
        if self.qps[which].recv.is_some() {
            if self.qps[which].post_recv(&Silent, &[request]).is_ok() {
                self.ledger.posted(Some(QPS[which]));
            }
            return;
        }
        let mut batch = self.srqs[0].batch();
        if batch.post(&request).is_ok() {
            batch.commit(&Silent);
            self.ledger.posted(None);
        }
    }

    fn reset(&mut self, which: usize) {
        let qp = &mut self.qps[which];
        qp.modify(&QpAttributes::to(QpState::Reset)).expect("from every state");
        self.cq.forget(HANDLES[which]);
        ready(qp);
        self.ledger.forget(QPS[which]);
    }

    fn begin_resize(&mut self) {
        let Some(size) = SIZES.get(self.rings.len()) else { return };
        let Ok(plan) = CqPlan::resized(&self.caps, *size, &self.plan) else { return };
        let ring = Guarded::new(&self.memory, plan.bytes as usize);
        // SAFETY: as in `new`.
        if self.cq.begin_resize(unsafe { ring.ring() }, &plan).is_ok() {
            self.plan = plan;
        }
        self.rings.push(ring);
    }

    /// A CQE that may make sense: of one of the queue pairs, with numbers near those that are outstanding.
    fn plausible(&self, which: usize, input: &mut Input<'_>) -> [u8; BYTES] {
        let mut cqe = input.array::<BYTES>();
        let (kind, near, bad) = (input.byte(), input.byte(), input.byte());
        let handle = u64::from(HANDLES[which]).to_le_bytes();
        let send = self.qps[which].send.state();
        let cqe_type = match kind {
            0..128 => {
                let index = send.oldest.wrapping_add((near & 3).into()) as u16;
                cqe[0..8].copy_from_slice(&handle);
                cqe[8..10].copy_from_slice(&index.to_le_bytes());
                CqeType::REQ
            }
            128..250 => {
                let oldest = self.qps[which].recv.as_ref().map_or(u32::from(near), |r| r.state().oldest);
                let index = if which == 2 { u32::from(near) % 17 } else { oldest + u32::from(near == 0) };
                let tag = CqeTag::new().with_wr_id(index & 0xf_ffff).with_high(near);
                cqe[8..16].copy_from_slice(&handle);
                cqe[28..32].copy_from_slice(&tag.into_bits().to_le_bytes());
                if KINDS[which] == QpType::Ud { CqeType::RES_UD } else { CqeType::RES_RC }
            }
            250 => {
                cqe[0..8].copy_from_slice(&handle);
                CqeType::TERMINAL
            }
            251..253 => CqeType::NO_OP,
            _ => CqeType::CUT_OFF,
        };
        let toggle = CqeTypeToggle::new().with_cqe_type(cqe_type.0).with_resize_toggle(near & 3);
        cqe[PHASE_OFFSET] = toggle.into_bits();
        if bad >= 4 {
            cqe[PHASE_OFFSET + 1] = 0;
        } else if self.caps.wqe_mode == WqeMode::Variable && cqe_type == CqeType::REQ {
            cqe[8..10].copy_from_slice(&(send.head as u16).to_le_bytes());
        }
        cqe
    }

    /// Whether the entry that is looked at next is old.
    fn at_rest(&self) -> bool {
        let state = self.cq.state();
        (self.ring().read(state.head as usize * BYTES + PHASE_OFFSET) & 1 == 1) != state.phase
    }

    /// Whatever came before, the queues work again once they are reset and drained.
    fn recover(&mut self) {
        for which in 0..3 {
            self.reset(which);
        }
        for _ in 0..8 * self.cq.entries() {
            if self.at_rest() {
                break;
            }
            self.poll(8);
        }
        assert!(self.at_rest(), "the queue does not come to rest");
        self.poll(8);
        // What had to be skipped on the way may have put a queue pair into error.
        for which in 0..3 {
            self.reset(which);
        }
        self.poll(8);
        let wr_id = self.ledger.next();
        assert!(self.post_send(0, &mut Input::new(&[])), "a fresh queue pair takes a request");
        let cqe = CqReq { qp_handle: u64::from(HANDLES[0]).into(), sq_cons_idx: 1.into(), ..CqReq::ZERO };
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(cqe.as_bytes());
        self.deliver(bytes);
        let mut out = [WorkCompletion::default(); 1];
        let polled = self.cq.poll(&mut Parts(&mut self.qps, &mut self.srqs), &Silent, &mut out);
        assert_eq!((polled, out[0].wr_id, out[0].status), (Ok(1), wr_id, WcStatus::Success));
    }
}

/// A hostile bnxt_re device that writes anything into completion rings, among posts, errors, resizes and resets of a
/// driver. Returns how often was polled.
///
/// # Panics
/// The driver did something that it must not do, whatever the device writes.
pub fn bnxt_re_poll(data: &[u8]) -> u64 {
    let mut input = Input::new(data);
    let mut queues = Queues::new(input.byte());
    while !input.is_empty() {
        let (what, room) = (input.byte(), input.byte());
        let which = usize::from(room >> 3) % 3;
        match what {
            0..64 => {
                queues.post_send(which, &mut input);
            }
            64..112 => queues.post_recv(which),
            112..232 => {
                let cqe = queues.plausible(which, &mut input);
                queues.deliver(cqe);
            }
            232..240 => queues.deliver(input.array()),
            240 => {
                let at = usize::from(input.u16());
                let length = usize::from(input.byte());
                queues.ring().write(at, input.slice(length));
            }
            241 => queues.qps[which].set_error(),
            242..244 => queues.begin_resize(),
            _ => queues.reset(which),
        }
        queues.poll(usize::from(room & 7));
    }
    queues.recover();
    for guarded in queues.rings.iter().chain(&queues.work) {
        guarded.check();
    }
    queues.polls
}
