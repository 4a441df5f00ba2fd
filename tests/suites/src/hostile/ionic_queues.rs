use directverbs::ionic::caps::{Caps, ExpressQueues, ExpressStrides};
use directverbs::ionic::cq::{CompletionQueue, CqRing};
use directverbs::ionic::cqe::{CQE_BYTES, CqeType, QidTypeFlags, SendCqe};
use directverbs::ionic::doorbell::QueueType;
use directverbs::ionic::plan::{CqPlan, Placement, QpPlan};
use directverbs::ionic::qp::{NoSharedReceiveQueue, QpConfig, QueuePair};
use directverbs::ionic::recv::RqRecord;
use directverbs::ionic::send::SqRecord;
use directverbs::ionic::{QueueMemory, wqe::RdmaVersion};
use directverbs::queue::Boxed;
use directverbs::verbs::{
    AhId, CqId, Datagram, LKey, QKey, QpCapabilities, QpId, QpState, QpType, RKey, RecvRequest, SendFlags,
    SendOp, SendRequest, Sge, Slices, WcStatus, WorkCompletion,
};
use directverbs_softnic::bus::HostMemory;
use zerocopy::IntoBytes;

use super::Input;
use super::guarded::Guarded;
use super::ledger::{Ledger, Silent, blank, check_blank};

type Pair = QueuePair<'static, Boxed>;

const QPS: [QpId; 2] = [QpId::truncated(2), QpId::truncated(3)];
const CQS: [CqId; 2] = [CqId::truncated(5), CqId::truncated(6)];
const KINDS: [QpType; 2] = [QpType::Rc, QpType::Ud];

/// Two queue pairs, one on each pipeline, and the completion queue of both.
struct Queues {
    cq: CompletionQueue<'static>,
    qps: [Pair; 2],
    plan: CqPlan,
    ledger: Ledger,
    polls: u64,
    // Dropped last.
    rings: [Guarded; 2],
    work: Vec<Guarded>,
}

impl Queues {
    fn new(version: RdmaVersion) -> Self {
        let qtype = |n| QueueType::new(n).unwrap_or_default();
        let caps = Caps {
            version,
            page_shift: 12,
            sq_qtype: qtype(3),
            rq_qtype: qtype(4),
            cq_qtype: qtype(5),
            max_stride: 8,
            max_spec: 8,
            udma_count: 2,
            express_strides: ExpressStrides::all(),
            express_queues: ExpressQueues::all(),
        };
        let memory = HostMemory::new();
        let plan = CqPlan::new(&caps, 1).expect("small");
        let rings = [(); 2].map(|()| Guarded::new(&memory, plan.ring.bytes()));
        let [a, b] = [0, 1].map(|i: usize| {
            // SAFETY: the rings are dropped after the queue, and each is lent once.
            let ring = unsafe { rings[i].ring() };
            Some(CqRing::new(CQS[i], caps.cq_qtype, &plan, ring).expect("as planned"))
        });
        let cq = CompletionQueue::new(2, [a, b]).expect("as planned");
        let mut work = Vec::new();
        let wanted = QpCapabilities {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 4,
            max_recv_sge: 2,
            max_inline_data: 64,
        };
        let qps = [0u8, 1].map(|udma| {
            let plan = QpPlan::new(&caps, &wanted, Placement::default()).expect("small");
            let [sq, rq] = [plan.sq, plan.rq].map(|queue| {
                let guarded = Guarded::new(&memory, queue.ring.bytes());
                // SAFETY: as above.
                let ring = unsafe { guarded.ring() };
                work.push(guarded);
                ring
            });
            let config = QpConfig {
                id: QPS[usize::from(udma)],
                qp_type: KINDS[usize::from(udma)],
                udma,
                signal_all: false,
                send_cq: &cq,
                recv_cq: &cq,
            };
            let sq_records = vec![SqRecord::default(); plan.sq.records()].into_boxed_slice();
            let rq_records = vec![RqRecord::default(); plan.rq.records()].into_boxed_slice();
            let sq = QueueMemory { ring: sq, records: sq_records, cmb: None };
            let rq = QueueMemory { ring: rq, records: rq_records, cmb: None };
            let mut qp = Pair::new(&caps, &config, &plan, sq, rq).expect("as planned");
            qp.set_state(QpState::Rts);
            qp
        });
        Self { cq, qps, plan, ledger: Ledger::default(), polls: 0, rings, work }
    }

    /// Writes a CQE where the driver looks next, on pipeline `udma`, with the color it waits for.
    fn deliver(&self, udma: usize, mut cqe: [u8; CQE_BYTES]) {
        let Some(ring) = self.cq.ring(udma as u8) else { return };
        let state = ring.state();
        cqe[31] = cqe[31] & !1 | u8::from(state.color);
        self.rings[udma].write(usize::from(state.prod) * CQE_BYTES, &cqe);
    }

    fn poll(&mut self, room: usize) -> usize {
        let mut out = blank::<8>();
        let out = &mut out[..room];
        let mut endpoints = Slices { qps: &mut self.qps, srqs: &mut [] as &mut [NoSharedReceiveQueue] };
        self.polls += 1;
        match self.cq.poll(&mut endpoints, &Silent, out) {
            Ok(count) => {
                check_blank(out, count);
                self.ledger.completed(&out[..count]);
                count
            }
            Err(fault) => {
                check_blank(out, 0);
                assert!(CQS.contains(&fault.cq) && fault.entry < self.plan.ring.depth(), "{fault}");
                0
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
            (_, 1) => SendRequest::write(to, RKey::truncated(1)).op,
            (_, 2) => SendRequest::read(to, RKey::truncated(1)).op,
            (_, 3) => SendOp::LocalInv(RKey::truncated(1)),
            (_, 4) => SendOp::SendInv(RKey::truncated(2)),
            _ => SendRequest::write(to, RKey::truncated(1)).op,
        };
        let count = if matches!(op, SendOp::LocalInv(_)) { 0 } else { usize::from(kind >> 6) };
        let flags = if kind & 0x20 == 0 { SendFlags::SIGNALED } else { SendFlags::empty() };
        let request = SendRequest::new(op).wr_id(self.ledger.next()).flags(flags).sges(&sges[..count]);
        let posted = self.qps[which].post_send(&mut self.cq, &[request], &Silent).is_ok();
        if posted {
            self.ledger.posted(Some(QPS[which]));
        }
        posted
    }

    fn post_recv(&mut self, which: usize) {
        let sges = [Sge::new(0, 16, LKey::truncated(1))];
        let request = RecvRequest::new(self.ledger.next(), &sges);
        if self.qps[which].post_recv(&mut self.cq, &[request], &Silent).is_ok() {
            self.ledger.posted(Some(QPS[which]));
        }
    }

    fn reset(&mut self, which: usize) {
        let qp = &mut self.qps[which];
        self.cq.forget(qp);
        qp.reset();
        qp.set_state(QpState::Rts);
        self.ledger.forget(QPS[which]);
    }

    /// A CQE that may make sense: of the queue pair on a pipeline, with numbers near those that are outstanding.
    fn plausible(&self, which: usize, input: &mut Input<'_>) -> [u8; CQE_BYTES] {
        let mut cqe = input.array::<CQE_BYTES>();
        let state = self.qps[which].send_queue().state();
        let near = input.byte();
        let msn = state.msn_cons.wrapping_add((near & 7).into()) & 0xff_ffff;
        let index = state.cons.wrapping_add((near & 7).into()) & 0x3f;
        cqe[4..8].copy_from_slice(&msn.to_be_bytes());
        cqe[16..18].copy_from_slice(&index.to_le_bytes());
        let index = self.qps[which].recv_queue().state().cons.wrapping_add((near & 7).into()) & 0x3f;
        cqe[0..2].copy_from_slice(&index.to_le_bytes());
        let word = u32::from_be_bytes([cqe[28], cqe[29], cqe[30], cqe[31]]);
        let word = QidTypeFlags::from_bits(word)
            .with_qid(QPS[which].get())
            .with_cqe_type(1 + (near >> 3) % 3)
            .with_error(input.byte() < 4);
        cqe[28..32].copy_from_slice(&word.into_bits().to_be_bytes());
        cqe
    }

    /// Whatever came before, the queues work again once they are reset and drained.
    fn recover(&mut self) {
        for which in 0..2 {
            self.reset(which);
        }
        let depth = self.plan.ring.depth() as usize;
        let mut quiet = 0;
        for _ in 0..8 * depth {
            quiet = if self.at_rest() { quiet + 1 } else { 0 };
            if quiet == 2 {
                break;
            }
            self.poll(8);
        }
        assert!(self.at_rest(), "the queue does not come to rest");
        self.poll(8);
        self.poll(8);
        let wr_id = self.ledger.next();
        assert!(self.post_send(0, &mut Input::new(&[])), "a fresh queue pair takes a request");
        let cqe = SendCqe {
            msg_msn: 1.into(),
            qid_type_flags: QidTypeFlags::new()
                .with_qid(QPS[0].get())
                .with_cqe_type(CqeType::SEND_MSN.0)
                .into_bits()
                .into(),
            ..SendCqe::ZERO
        };
        let mut bytes = [0; CQE_BYTES];
        bytes.copy_from_slice(cqe.as_bytes());
        self.deliver(0, bytes);
        let mut out = [WorkCompletion::default(); 1];
        let mut endpoints = Slices { qps: &mut self.qps, srqs: &mut [] as &mut [NoSharedReceiveQueue] };
        let polled = self.cq.poll(&mut endpoints, &Silent, &mut out);
        assert_eq!((polled, out[0].wr_id, out[0].status), (Ok(1), wr_id, WcStatus::Success));
    }

    /// Whether neither ring has an entry of the color that is waited for.
    fn at_rest(&self) -> bool {
        [0u8, 1].into_iter().all(|udma| {
            let Some(state) = self.cq.ring(udma).map(CqRing::state) else { return true };
            let word = self.rings[usize::from(udma)].read(usize::from(state.prod) * CQE_BYTES + 31);
            (word & 1 == 1) != state.color
        })
    }
}

/// A hostile ionic device that writes anything into completion rings, among posts, errors and resets of a driver.
/// Returns how often was polled.
///
/// # Panics
/// The driver did something that it must not do, whatever the device writes.
pub fn ionic_poll(data: &[u8]) -> u64 {
    let mut input = Input::new(data);
    let version = if input.byte() & 1 == 0 { RdmaVersion::V1 } else { RdmaVersion::V2 };
    let mut queues = Queues::new(version);
    while !input.is_empty() {
        let (what, room) = (input.byte(), input.byte());
        let which = usize::from(what >> 7);
        match what & 0x7f {
            0..=31 => {
                queues.post_send(which, &mut input);
            }
            32..=55 => queues.post_recv(which),
            56..=111 => {
                let cqe = queues.plausible(which, &mut input);
                queues.deliver(which, cqe);
            }
            112..=115 => {
                let cqe = queues.plausible(which, &mut input);
                queues.deliver(1 - which, cqe);
            }
            116..=119 => {
                let cqe = input.array();
                queues.deliver(which, cqe);
            }
            120 => {
                let at = usize::from(input.u16());
                let length = usize::from(input.byte());
                queues.rings[which].write(at, input.slice(length));
            }
            121 => queues.qps[which].set_error(),
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
