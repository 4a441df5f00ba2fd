//! Random operation sequences on a bnxt_re queue pair, beside a simple model of what has to happen.

use std::collections::VecDeque;

use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, PushPage, Toggle, Xid};
use directverbs::bnxt_re::psn::SqMsnSearch;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::queue::{SlotIdx, WqeIdx};
use directverbs::verbs::{
    Data, LKey, PostError, Psn, QpAttributes, QpCapabilities, QpId, QpState, QpType, RKey, RecvRequest,
    RemoteAddress, SendOp, SendRequest, Sge, WcStatus,
};
use directverbs_suites::bnxt_re::{Flavor, HANDLE, PSN, Rig, req, res_rc};
use proptest::collection::vec;
use proptest::prelude::*;

const ASKED: QpCapabilities =
    QpCapabilities { max_send_wr: 5, max_recv_wr: 4, max_send_sge: 3, max_recv_sge: 2, max_inline_data: 64 };
const DATA: [u8; 64] = [0xd5; 64];

/// A send request: what kind, how many SGEs or inline bytes, and whether it is signaled.
#[derive(Clone, Copy, Debug)]
struct Wr {
    op: u8,
    sges: usize,
    inline: Option<usize>,
    length: u32,
    signaled: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// Posts a batch, or drops it.
    Send(Vec<Wr>, bool),
    /// Posts a batch whose last request is wrong.
    Refused(Wr),
    Recv(usize),
    /// The device completes so many send requests with one CQE.
    Complete(usize),
    /// The device completes a receive request.
    Received,
    /// The device fails the request at this position.
    Fail(usize),
    Poll(usize),
    /// To the error state, by the driver.
    Error,
    Reset,
    /// Saves, and restores into itself.
    Restore,
}

fn wr() -> impl Strategy<Value = Wr> {
    (0..3u8, 0..4usize, prop::option::of(0..65usize), 0..5000u32, any::<bool>())
        .prop_map(|(op, sges, inline, length, signaled)| Wr { op, sges, inline, length, signaled })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (vec(wr(), 0..4), prop::bool::weighted(0.8)).prop_map(|(wrs, commit)| Step::Send(wrs, commit)),
        1 => wr().prop_map(Step::Refused),
        3 => (0..4usize).prop_map(Step::Recv),
        6 => (1..5usize).prop_map(Step::Complete),
        3 => Just(Step::Received),
        1 => (0..4usize).prop_map(Step::Fail),
        8 => (0..6usize).prop_map(Step::Poll),
        1 => Just(Step::Error),
        1 => Just(Step::Reset),
        1 => Just(Step::Restore),
    ]
}

fn flavor() -> impl Strategy<Value = Flavor> {
    proptest::sample::select(Flavor::all())
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    wr_id: u64,
    signaled: bool,
    slots: u32,
    slot: u32,
}

#[derive(Clone, Copy, Debug)]
enum Cqe {
    Sent(usize),
    Failed(usize),
    Received,
}

/// What has to happen, kept in the simplest terms.
struct Model {
    flavor: Flavor,
    slots: u64,
    wqes: u64,
    reserve: u64,
    modulus: u32,
    rq_wqes: u64,
    slots_posted: u64,
    wqes_posted: u64,
    messages: u32,
    psn: u32,
    send: VecDeque<Outstanding>,
    recv: VecDeque<u64>,
    recv_posted: u64,
    recv_reported: u64,
    /// CQEs that the driver has not consumed, and the requests that they cover.
    cqes: VecDeque<Cqe>,
    covered: usize,
    failed: bool,
    flushes: bool,
    next_id: u64,
}

impl Model {
    fn new(flavor: Flavor, rig: &Rig) -> Self {
        Self {
            flavor,
            slots: rig.plan.send.slots.into(),
            wqes: rig.plan.send.records.into(),
            reserve: rig.plan.send.reserve.into(),
            modulus: rig.plan.send.msn_modulus.max(1),
            rq_wqes: rig.plan.recv.unwrap().wqes.into(),
            slots_posted: 0,
            wqes_posted: 0,
            messages: 0,
            psn: PSN,
            send: VecDeque::new(),
            recv: VecDeque::new(),
            recv_posted: 0,
            recv_reported: 0,
            cqes: VecDeque::new(),
            covered: 0,
            failed: false,
            flushes: false,
            next_id: 1,
        }
    }

    fn slots_of(&self, wr: &Wr) -> u32 {
        let data = wr.inline.map_or(wr.sges, |bytes| bytes.div_ceil(16));
        if self.flavor.mode == WqeMode::Static { 8 } else { 2 + data as u32 }
    }

    fn free(&self) -> u64 {
        self.slots - self.send.iter().map(|o| u64::from(o.slots)).sum::<u64>()
    }

    fn doorbell_index(&self) -> u64 {
        if self.flavor.mode == WqeMode::Static {
            self.wqes_posted % self.wqes
        } else {
            self.slots_posted % self.slots
        }
    }

    /// Takes over a request that the driver accepted, and looks at what it wrote.
    fn post(&mut self, rig: &Rig, wr: &Wr, wr_id: u64) {
        let (slots, slot) = (self.slots_of(wr), (self.slots_posted % self.slots) as u32);
        let length = wr.inline.map_or(wr.length * wr.sges as u32, |bytes| bytes as u32);
        let packets = length.div_ceil(1024).max(1);
        let next = (self.psn + packets) & 0xff_ffff;
        let header: [u8; 16] = rig.sq_memory.read(slot as usize * 16);
        assert_eq!(header[0], [0x00, 0x04, 0x06][usize::from(wr.op)]);
        assert_eq!(header[1], u8::from(wr.signaled) | u8::from(wr.inline.is_some()) << 4);
        assert_eq!(u32::from_le_bytes(header[8..12].try_into().unwrap()), length);
        let table = rig.plan.send.table_offset as usize;
        let index = self.doorbell_index();
        if self.flavor.msn {
            let entry = u64::from_le_bytes(rig.sq_memory.read(table + self.messages as usize * 8));
            assert_eq!(entry, index << 48 | u64::from(next) << 24 | u64::from(self.psn));
            self.messages = (self.messages + 1) % self.modulus;
        } else {
            let entry: [u8; 16] = rig.sq_memory.read(table + index as usize * 16);
            let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
            assert_eq!((word(0) & 0xff_ffff, word(4), word(8)), (self.psn, next, index as u32));
        }
        self.psn = next;
        self.slots_posted += u64::from(slots);
        self.wqes_posted += 1;
        self.send.push_back(Outstanding { wr_id, signaled: wr.signaled, slots, slot });
    }

    /// Completions of a poll with room for `n`.
    fn poll(&mut self, n: usize) -> Vec<(u64, WcStatus)> {
        let mut found = Vec::new();
        while found.len() < n {
            match self.cqes.pop_front() {
                Some(Cqe::Received) => found.push((self.recv.pop_front().unwrap(), WcStatus::Success)),
                Some(Cqe::Sent(count)) => {
                    for done in 0..count {
                        if found.len() == n {
                            self.cqes.push_front(Cqe::Sent(count - done));
                            break;
                        }
                        let o = self.send.pop_front().unwrap();
                        self.covered -= 1;
                        found.extend(o.signaled.then_some((o.wr_id, WcStatus::Success)));
                    }
                }
                Some(Cqe::Failed(earlier)) => {
                    for done in 0..earlier {
                        if found.len() == n {
                            self.cqes.push_front(Cqe::Failed(earlier - done));
                            return found;
                        }
                        let o = self.send.pop_front().unwrap();
                        self.covered -= 1;
                        found.extend(o.signaled.then_some((o.wr_id, WcStatus::Success)));
                    }
                    if found.len() == n {
                        self.cqes.push_front(Cqe::Failed(0));
                        return found;
                    }
                    found.push((self.send.pop_front().unwrap().wr_id, WcStatus::RemAccess));
                    self.covered -= 1;
                    self.failed = true;
                }
                None => break,
            }
        }
        if found.len() < n && self.cqes.is_empty() {
            if self.failed || self.flushes {
                while found.len() < n
                    && let Some(o) = self.send.pop_front()
                {
                    found.push((o.wr_id, WcStatus::WrFlush));
                }
            }
            if self.flushes {
                while found.len() < n
                    && let Some(wr_id) = self.recv.pop_front()
                {
                    self.recv_reported += 1;
                    found.push((wr_id, WcStatus::WrFlush));
                }
            }
        }
        found
    }
}

fn request<'a>(wr: &Wr, wr_id: u64, sges: &'a [Sge], inline: &'a [&'a [u8]]) -> SendRequest<'a> {
    let remote = RemoteAddress { addr: 0x1000, rkey: RKey::truncated(2) };
    let op = match wr.op {
        0 => SendOp::Send,
        1 => SendOp::Write(remote),
        _ => SendOp::Read(remote),
    };
    let request = SendRequest::new(op).wr_id(wr_id);
    let request = if wr.signaled { request.signaled() } else { request };
    SendRequest { data: if wr.inline.is_some() { Data::Inline(inline) } else { Data::Sges(sges) }, ..request }
}

/// A READ carries no inline data.
fn valid(mut wr: Wr) -> Wr {
    if wr.op == 2 {
        wr.inline = None;
    }
    wr
}

fn run(flavor: Flavor, steps: &[Step]) {
    let mut rig = Rig::new(flavor, QpType::Rc, &ASKED, 40);
    let fresh = rig.qp.save();
    let mut model = Model::new(flavor, &rig);
    for step in steps {
        match step {
            Step::Send(wrs, commit) => send(&mut rig, &mut model, wrs, *commit),
            Step::Refused(wr) => refused(&mut rig, &mut model, wr),
            Step::Recv(count) => recv(&mut rig, &mut model, *count),
            Step::Complete(count) => {
                let count = (*count).min(model.send.len() - model.covered);
                if count != 0 && !model.failed && !model.flushes && !failing(&model) {
                    model.covered += count;
                    model.cqes.push_back(Cqe::Sent(count));
                    let done = model.wqes_posted - (model.send.len() - model.covered) as u64;
                    rig.device.push(req((done % model.wqes) as u32, 0));
                }
            }
            Step::Received => {
                let pending = model.cqes.iter().filter(|c| matches!(c, Cqe::Received)).count();
                if model.recv.len() > pending && !model.flushes {
                    model.cqes.push_back(Cqe::Received);
                    let tag = model.recv_reported % model.rq_wqes;
                    model.recv_reported += 1;
                    rig.device.push(res_rc(1, 0, 0, 0, tag as u32));
                }
            }
            Step::Fail(position) => {
                if model.send.len() > model.covered && !model.failed && !model.flushes && !failing(&model) {
                    let position = position % (model.send.len() - model.covered);
                    let o = model.send[model.covered + position];
                    model.covered += position + 1;
                    model.cqes.push_back(Cqe::Failed(position));
                    let done = model.wqes_posted - (model.send.len() - model.covered) as u64;
                    let statically = (done % model.wqes) as u32;
                    let index = if flavor.mode == WqeMode::Static { statically } else { o.slot };
                    rig.device.push(req(index, 7));
                }
            }
            Step::Poll(n) => {
                let found = rig.poll(*n).unwrap();
                rig.spy.take();
                let found: Vec<_> = found.iter().map(|wc| (wc.wr_id, wc.status)).collect();
                assert_eq!(found, model.poll(*n));
            }
            Step::Error => {
                rig.qp.modify(&QpAttributes::to(QpState::Err)).unwrap();
                model.flushes = true;
            }
            Step::Reset => {
                rig.qp.modify(&QpAttributes::to(QpState::Reset)).unwrap();
                rig.cq.forget(HANDLE);
                rig.connect();
                assert_eq!(rig.qp.save(), fresh, "reset equals fresh");
                let next_id = model.next_id;
                model = Model { next_id, ..Model::new(flavor, &rig) };
                assert_eq!(rig.poll(1).unwrap(), []);
                rig.spy.take();
            }
            Step::Restore => {
                let saved = rig.qp.save();
                rig.qp.reset();
                rig.qp.restore(&saved).unwrap();
                assert_eq!(rig.qp.save(), saved);
            }
        }
        agree(&rig, &model);
    }
    // Whatever the device still owes comes, and then nothing does.
    rig.qp.modify(&QpAttributes::to(QpState::Err)).unwrap();
    model.flushes = true;
    let found: Vec<_> = rig.poll(500).unwrap().iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(found, model.poll(500));
    assert_eq!(rig.poll(500).unwrap(), []);
    assert!(rig.qp.send.is_empty() && rig.qp.recv.as_ref().unwrap().is_empty());
}

/// A failure that the driver has not seen yet: the device does nothing more.
fn failing(model: &Model) -> bool {
    model.cqes.iter().any(|c| matches!(c, Cqe::Failed(_)))
}

/// Indices, epochs and PSNs equal the model's.
fn agree(rig: &Rig, model: &Model) {
    let state = rig.qp.send.state();
    assert_eq!(u64::from(state.tail), model.slots_posted % model.slots);
    assert_eq!(u64::from(state.next), model.wqes_posted % model.wqes);
    assert_eq!(state.epoch, model.slots_posted / model.slots % 2 == 1);
    assert_eq!((state.psn, state.msn), (model.psn, if model.flavor.msn { model.messages } else { 0 }));
    let head = model.slots_posted + model.free();
    assert_eq!(u64::from(state.head), head % model.slots);
    let word = rig.qp.send.doorbell();
    assert_eq!(u64::from(word.index().get()), model.doorbell_index());
    let recv = rig.qp.recv.as_ref().unwrap();
    assert_eq!(recv.outstanding() as usize, model.recv.len());
    let recv = recv.state();
    assert_eq!(u64::from(recv.next), model.recv_posted % model.rq_wqes);
    assert_eq!(recv.epoch, model.recv_posted / model.rq_wqes % 2 == 1);
}

fn send(rig: &mut Rig, model: &mut Model, wrs: &[Wr], commit: bool) {
    let before = (rig.qp.send.state(), rig.qp.send.records().to_vec());
    let mut accepted = Vec::new();
    let mut left = model.free();
    let mut batch = rig.qp.send_batch().unwrap();
    for wr in wrs {
        let wr = valid(*wr);
        let sges = vec![Sge::new(0x10, wr.length, LKey::truncated(1)); wr.sges];
        let inline = [&DATA[..wr.inline.unwrap_or(0)]];
        let wr_id = model.next_id;
        model.next_id += 1;
        let slots = u64::from(model.slots_of(&wr));
        let posted = batch.post(&request(&wr, wr_id, &sges, &inline));
        if left <= slots + model.reserve {
            assert!(matches!(posted, Err(PostError::QueueFull { .. })));
        } else {
            assert_eq!(posted, Ok(()));
            left -= slots;
            accepted.push((wr, wr_id));
        }
    }
    if commit {
        batch.commit(&rig.spy);
        for (wr, wr_id) in &accepted {
            model.post(rig, wr, *wr_id);
        }
        let rung = rig.spy.take();
        assert_eq!(rung.len(), usize::from(!accepted.is_empty()));
        assert!(rung.iter().all(|word| *word == rig.qp.send.doorbell()));
    } else {
        drop(batch);
        assert_eq!(rig.qp.send.state(), before.0, "a dropped batch is undone");
        let records = rig.qp.send.records();
        let (mut at, end, len) = (before.0.oldest, before.0.next, rig.plan.send.records);
        while at != end {
            assert_eq!(records[at as usize], before.1[at as usize]);
            at = (at + 1) % len;
        }
        assert_eq!(rig.spy.take(), []);
    }
}

fn refused(rig: &mut Rig, model: &mut Model, wr: &Wr) {
    let (bytes, state) = (rig.sq_memory.bytes(), rig.qp.save());
    let records = rig.qp.send.records().to_vec();
    let long = [0u8; 65];
    let pieces: [&[u8]; 1] = [&long];
    let sges = vec![Sge::new(0x10, wr.length, LKey::truncated(1)); 4];
    let mut batch = rig.qp.send_batch().unwrap();
    assert!(batch.post(&SendRequest::send().sges(&sges)).is_err());
    assert!(batch.post(&SendRequest::send().inline(&pieces)).is_err());
    assert!(batch.post(&SendRequest::read(0, RKey::default()).inline(&[])).is_err());
    batch.commit(&rig.spy);
    assert_eq!((rig.sq_memory.bytes(), rig.qp.save()), (bytes, state), "a failed post changes nothing");
    assert_eq!(rig.qp.send.records(), records);
    assert_eq!(rig.spy.take(), []);
    agree(rig, model);
}

fn recv(rig: &mut Rig, model: &mut Model, count: usize) {
    for _ in 0..count {
        let wr_id = model.next_id;
        model.next_id += 1;
        let posted = rig.qp.post_recv(&rig.spy, &[RecvRequest::new(wr_id, &[])]);
        if model.recv.len() as u64 + 1 == model.rq_wqes {
            assert!(matches!(posted.unwrap_err().error, PostError::QueueFull { .. }));
        } else {
            posted.unwrap();
            model.recv.push_back(wr_id);
            model.recv_posted += 1;
        }
    }
    rig.spy.take();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f1_every_request_completes_once_and_in_order(flavor in flavor(), steps in vec(step(), 0..120)) {
        run(flavor, &steps);
    }

    #[test]
    fn f1_many_laps(flavor in flavor(), wrs in vec(wr(), 1..8), laps in 50..300usize) {
        let steps: Vec<_> = (0..laps)
            .flat_map(|_| [Step::Send(wrs.clone(), true), Step::Complete(8), Step::Poll(8)])
            .collect();
        run(flavor, &steps);
    }

    #[test]
    fn f3_doorbells_round_trip(db_type in 0..16u8, id in 0..1u32 << 20, at in 0..1u32 << 24, epoch: bool, toggle in 0..4u32) {
        let (xid, index) = (Xid::qp(QpId::truncated(id)).unwrap(), DbIndex::wqe(WqeIdx(at)).unwrap());
        let (db_type, toggle) = (DbType::from_code(db_type), Toggle::truncated(toggle));
        let word = DbWord::from_u64(DbWord::ring(db_type, xid, index, Epoch(epoch), toggle).to_u64());
        prop_assert_eq!(
            (word.db_type(), word.xid(), word.index(), word.epoch(), word.toggle()),
            (db_type, xid, index, Epoch(epoch), toggle)
        );
        prop_assert!(word.type_word().valid() && word.type_word().path() == 0);
    }

    #[test]
    fn f3_push_doorbells_round_trip(page in 0..1u32 << 12, id in 0..1u32 << 20, at in 0..1u32 << 24) {
        let (xid, index) = (Xid::qp(QpId::truncated(id)).unwrap(), DbIndex::slot(SlotIdx(at)).unwrap());
        let page = PushPage::new(page).unwrap();
        let word = DbWord::push(DbType::PUSH_END, page, xid, index);
        prop_assert_eq!((word.push_page(), word.xid(), word.index()), (page, xid, index));
        prop_assert_eq!(word.db_type(), DbType::PUSH_END);
    }

    #[test]
    fn f3_msn_entries_round_trip(start in 0..1u32 << 24, packets in 0..1u32 << 24, at: u16) {
        let start = Psn::truncated(start);
        let word = SqMsnSearch::new(start, start.add(packets), at.into()).word();
        prop_assert_eq!((word.start_psn(), word.start_idx()), (start.get(), at));
        prop_assert_eq!(word.next_psn(), (start.get() + packets) % (1 << 24));
    }
}
