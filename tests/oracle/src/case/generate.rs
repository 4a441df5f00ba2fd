//! From a profile and random numbers to the steps of a case.

use directverbs::verbs::{
    AccessFlags, AhId, BindMw, Datagram, Imm, LKey, MwType, QKey, QpCapabilities, QpId, QpType, RKey,
    RemoteAddress, SendFlags, SendOp, Sge, SrqInit, WcStatus,
};

use super::dice::Rng;
use super::request::{Payload, Recv, Send};
use super::step::{Event, Interface, Message, Step};

/// An operation of a send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of `SendOp`")]
pub enum Operation {
    Send,
    SendImm,
    SendInv,
    Write,
    WriteImm,
    Read,
    CompareSwap,
    FetchAdd,
    LocalInv,
    BindMw,
}

impl Operation {
    /// It takes a receive of the peer, whose completion may wake somebody.
    const fn wakes(self) -> bool {
        matches!(self, Self::Send | Self::SendImm | Self::SendInv | Self::WriteImm)
    }
}

/// All that a connection has with every provider.
pub const CONNECTION: &[Operation] = &[
    Operation::Send,
    Operation::SendImm,
    Operation::Write,
    Operation::Write,
    Operation::WriteImm,
    Operation::Read,
    Operation::CompareSwap,
    Operation::FetchAdd,
];

/// A way in which a request can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foul {
    /// More SGEs than were granted.
    TooManySges,
    /// More inline bytes than were granted.
    InlineTooLong,
    /// A READ with inline data.
    InlineRead,
    /// An atomic that has not one SGE of 8 bytes.
    AtomicSge,
    /// A message of just 2 GiB.
    TwoGigabytes,
    /// A message of more than 2 GiB.
    TooLong,
    /// A message of more than 4 GiB, in two SGEs.
    LengthWraps,
    /// An operation that this kind of queue pair does not have.
    WrongOperation,
    /// Solicited, where nobody is woken.
    Solicited,
}

/// How a case goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temper {
    /// Requests are posted, complete and are polled.
    Steady,
    /// Requests are posted until the queues are full, and complete then.
    Greedy,
    /// The queue pair fails on the way.
    Failing,
    /// Completions come late and in a few entries for many requests, and the poller has little room.
    Coalesced,
}

/// What the cases of a mode may contain.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How the case goes.
    pub temper: Temper,
    /// Queue pairs.
    pub qps: usize,
    /// Their kind.
    pub qp_type: QpType,
    /// Capabilities granted; no receive requests if they come from a shared queue.
    pub capabilities: QpCapabilities,
    /// Shared receive queue.
    pub shared: Option<SrqInit>,
    /// Operations to choose from, as often as they are listed.
    pub operations: Vec<Operation>,
    /// Wrong requests to choose from.
    pub fouls: Vec<Foul>,
    /// One request in so many is wrong.
    pub foul_once_in: u32,
    /// One list of requests in so many is posted with the builder functions; 0 none.
    pub builder_once_in: u32,
    /// One call of the builder functions in so many is given up; 0 none.
    pub abort_once_in: u32,
    /// The device takes solicited from requests that wake nobody, as READ.
    pub solicited_always: bool,
    /// Most requests of a list.
    pub list: u32,
    /// Most requests between the builder functions' start and end.
    pub builder_list: u32,
    /// Address handles.
    pub handles: Vec<AhId>,
    /// Sizes that the completion queue is resized to; none if it is not.
    pub resizes: Vec<u32>,
    /// One step in so many resets the queue pair; 0 none.
    pub reset_once_in: u32,
    /// One step in so many is a completion entry that makes no sense; 0 none.
    pub senseless_once_in: u32,
    /// Messages that arrive may have invalidated a key.
    pub invalidations: bool,
    /// Bits of the queue pair that a datagram comes from.
    pub source_bits: u32,
    /// The limit of the shared receive queue is armed.
    pub limits: bool,
    /// Steps.
    pub steps: u32,
}

impl Profile {
    /// A profile of the usual operations.
    pub fn new(temper: Temper, qp_type: QpType, capabilities: QpCapabilities) -> Self {
        let operations = match qp_type {
            QpType::Rc => CONNECTION.to_vec(),
            QpType::Ud => vec![Operation::Send, Operation::SendImm],
            QpType::RawPacket => vec![Operation::Send],
        };
        Self {
            temper,
            qps: 1,
            qp_type,
            capabilities,
            shared: None,
            operations,
            fouls: vec![Foul::TooManySges, Foul::InlineTooLong],
            foul_once_in: 60,
            builder_once_in: 0,
            abort_once_in: 12,
            solicited_always: true,
            list: 16,
            builder_list: 1,
            handles: Vec::new(),
            resizes: Vec::new(),
            reset_once_in: 50,
            senseless_once_in: 0,
            invalidations: true,
            source_bits: 24,
            limits: true,
            steps: 40,
        }
    }
}

/// The steps of a case.
pub fn steps(profile: &Profile, rng: &mut Rng) -> Vec<Step> {
    let mut maker = Maker { profile, rng, wr_id: 0 };
    let mut steps = Vec::new();
    for number in 0..profile.steps {
        match profile.temper {
            Temper::Failing if number == profile.steps / 2 => maker.failure(&mut steps),
            Temper::Greedy if number % 16 < 12 => steps.push(maker.post()),
            _ => steps.push(maker.usual()),
        }
    }
    steps.push(Step::Poll { budget: 1 << 10 });
    steps
}

struct Maker<'a> {
    profile: &'a Profile,
    rng: &'a mut Rng,
    wr_id: u64,
}

const SEND_ERRORS: &[WcStatus] = &[
    WcStatus::LocLen,
    WcStatus::LocQpOp,
    WcStatus::LocProt,
    WcStatus::RemInvReq,
    WcStatus::RemAccess,
    WcStatus::RemOp,
    WcStatus::RetryExceeded,
    WcStatus::RnrRetryExceeded,
    WcStatus::BadResp,
    WcStatus::MwBind,
];
const RECV_ERRORS: &[WcStatus] =
    &[WcStatus::LocLen, WcStatus::LocProt, WcStatus::LocAccess, WcStatus::LocQpOp, WcStatus::RemInvReq];

impl Maker<'_> {
    fn qp(&mut self) -> usize {
        self.rng.below(self.profile.qps as u32) as usize
    }

    fn usual(&mut self) -> Step {
        let reset = self.profile.reset_once_in;
        if reset != 0 && self.rng.once_in(reset) {
            return Step::Reset { qp: self.qp(), psn: self.psn() };
        }
        let senseless = self.profile.senseless_once_in;
        if senseless != 0 && self.rng.once_in(senseless) {
            return Step::Device(vec![Event::Senseless { qp: self.qp(), which: self.rng.dice() }]);
        }
        let coalesced = self.profile.temper == Temper::Coalesced;
        match self.rng.below(100) {
            0..48 => self.post(),
            48..52 => Step::Arm { solicited: self.rng.once_in(2) },
            52..55 if self.profile.shared.is_some() && self.profile.limits => {
                Step::ArmShared { limit: self.limit() }
            }
            55..58 if !self.profile.resizes.is_empty() => {
                Step::Resize { cqe: *self.rng.pick(&self.profile.resizes) }
            }
            58..80 if coalesced => Step::Device(vec![self.event()]),
            58..80 => {
                let events = self.rng.between(1, 8);
                Step::Device((0..events).map(|_| self.event()).collect())
            }
            _ if coalesced => Step::Poll { budget: self.rng.between(1, 4) },
            _ => Step::Poll { budget: self.rng.between(1, 32) },
        }
    }

    fn psn(&mut self) -> u32 {
        // Near the wrap, mostly.
        if self.rng.once_in(4) { self.rng.bits() >> 8 } else { 0xff_ffff - self.rng.below(200) }
    }

    fn limit(&mut self) -> u32 {
        let max = self.profile.shared.map_or(0, |shared| shared.max_wr);
        self.rng.between(1, max.max(1))
    }

    /// A failure, what follows from it, and a fresh start.
    fn failure(&mut self, steps: &mut Vec<Step>) {
        let qp = self.qp();
        steps.push(match self.rng.below(4) {
            0 => Step::Fail { qp },
            1 => Step::Device(vec![Event::Fatal { qp }]),
            2 => {
                let status = *self.rng.pick(RECV_ERRORS);
                Step::Device(vec![
                    Event::RecvFailed { qp, which: self.rng.dice(), status },
                    Event::Fatal { qp },
                ])
            }
            _ => {
                let status = *self.rng.pick(SEND_ERRORS);
                // The oldest outstanding request fails, mostly.
                let which = if self.rng.once_in(3) { self.rng.dice() } else { super::Dice(0) };
                Step::Device(vec![Event::SendFailed { qp, which, status }, Event::Fatal { qp }])
            }
        });
        for _ in 0..self.rng.between(1, 4) {
            steps.push(Step::Poll { budget: self.rng.between(1, 64) });
            steps.push(self.post());
        }
        steps.push(Step::Poll { budget: 1 << 10 });
        steps.push(Step::Reset { qp, psn: self.psn() });
    }

    fn event(&mut self) -> Event {
        let qp = self.qp();
        match self.rng.below(20) {
            0 => Event::Gone,
            1 => Event::Nothing,
            2..9 => self.received(qp),
            _ => {
                let dice = self.rng.dice();
                // A few, mostly; all of them when they are coalesced.
                let few = self.profile.temper != Temper::Coalesced && !self.rng.once_in(4);
                Event::Sent { qp, count: if few { super::Dice(dice.0 >> 4) } else { dice } }
            }
        }
    }

    fn received(&mut self, qp: usize) -> Event {
        let key = self.rng.bits();
        let message = match (self.profile.qp_type, self.rng.below(4)) {
            (QpType::Rc, 1) => Message::WriteImm(key),
            (QpType::Rc, 2) if self.profile.invalidations => Message::Invalidated(key),
            (QpType::Rc | QpType::Ud, 3) => Message::Imm(key),
            _ => Message::Plain,
        };
        let length = match self.profile.qp_type {
            QpType::Rc => self.length(),
            _ => self.rng.below(1 << 14),
        };
        Event::Received {
            qp,
            which: self.rng.dice(),
            length,
            message,
            src_qp: self.rng.bits() >> (32 - self.profile.source_bits),
        }
    }

    /// A step that posts.
    fn post(&mut self) -> Step {
        let qp = self.qp();
        let shared = self.profile.shared.is_some();
        let receives = shared || self.profile.capabilities.max_recv_wr != 0;
        if receives && self.rng.once_in(4) {
            let count = self.count(self.profile.list);
            let requests = (0..count).map(|_| self.recv()).collect();
            return if shared { Step::PostShared(requests) } else { Step::PostRecv { qp, requests } };
        }
        let (builder, abort) = (self.profile.builder_once_in, self.profile.abort_once_in);
        let interface = match builder != 0 && self.rng.once_in(builder) {
            false => Interface::List,
            true if abort != 0 && self.rng.once_in(abort) => Interface::Abort,
            true => Interface::Builder,
        };
        let most = if interface == Interface::List { self.profile.list } else { self.profile.builder_list };
        let count = self.count(most);
        let requests = (0..count).map(|_| self.send(interface == Interface::List)).collect();
        Step::PostSend { qp, interface, requests }
    }

    fn count(&mut self, most: u32) -> u32 {
        if self.rng.once_in(2) { 1 } else { self.rng.between(1, most) }
    }

    fn next_wr_id(&mut self) -> u64 {
        self.wr_id += 1;
        // All 64 bits count, and no two are the same.
        self.wr_id << 40 | self.rng.long() >> 24
    }

    fn recv(&mut self) -> Recv {
        let max = match self.profile.shared {
            Some(shared) => shared.max_sge,
            None => self.profile.capabilities.max_recv_sge,
        };
        let foul = self.rng.once_in(self.profile.foul_once_in) && max < 6;
        let count = if foul { max + 1 } else { self.pieces(max) };
        Recv { wr_id: self.next_wr_id(), sges: self.sges(count) }
    }

    fn pieces(&mut self, max: u32) -> u32 {
        if max == 0 || !self.rng.once_in(2) { max.min(1) } else { self.rng.between(0, max) }
    }

    fn sges(&mut self, count: u32) -> Vec<Sge> {
        (0..count)
            .map(|_| Sge::new(self.rng.long(), self.length(), LKey::truncated(self.rng.bits())))
            .collect()
    }

    /// Bytes of a piece: around the packet sizes, mostly.
    fn length(&mut self) -> u32 {
        match self.rng.below(8) {
            0 => 0,
            1..4 => self.rng.below(300),
            4 => (256 << self.rng.below(6)) + self.rng.below(3) - 1,
            5 | 6 => self.rng.below(1 << 16),
            _ => self.rng.below(1 << 24),
        }
    }

    fn flags(&mut self, operation: Operation) -> SendFlags {
        let mut flags = SendFlags::empty();
        flags.set(SendFlags::SIGNALED, !self.rng.once_in(3));
        let solicited = self.rng.once_in(4) && (self.profile.solicited_always || operation.wakes());
        flags.set(SendFlags::SOLICITED, solicited);
        flags.set(SendFlags::FENCE, self.rng.once_in(4));
        flags
    }

    fn send(&mut self, fouls: bool) -> Send {
        let foul = (fouls && self.rng.once_in(self.profile.foul_once_in) && !self.profile.fouls.is_empty())
            .then(|| *self.rng.pick(&self.profile.fouls));
        let operation = match foul {
            Some(Foul::InlineRead) => Operation::Read,
            Some(Foul::AtomicSge) => *self.rng.pick(&[Operation::CompareSwap, Operation::FetchAdd]),
            Some(Foul::Solicited) => *self.rng.pick(&[Operation::Write, Operation::Read]),
            Some(Foul::WrongOperation) => {
                *self.rng.pick(&[Operation::Write, Operation::Read, Operation::CompareSwap])
            }
            Some(_) => Operation::Send,
            None => *self.rng.pick(&self.profile.operations),
        };
        let op = self.op(operation);
        let payload = self.payload(operation, foul);
        let mut flags = self.flags(operation);
        flags
            .set(SendFlags::SOLICITED, flags.contains(SendFlags::SOLICITED) || foul == Some(Foul::Solicited));
        Send { wr_id: self.next_wr_id(), op, flags, payload }
    }

    fn op(&mut self, operation: Operation) -> SendOp {
        let key = RKey::truncated(self.rng.bits());
        let imm = Imm::truncated(self.rng.bits());
        let remote = RemoteAddress { addr: self.rng.long(), rkey: key };
        match (operation, self.profile.qp_type) {
            (Operation::Send, QpType::Ud) => SendOp::SendTo(self.datagram()),
            (Operation::SendImm, QpType::Ud) => SendOp::SendToImm(self.datagram(), imm),
            (Operation::Send, _) => SendOp::Send,
            (Operation::SendImm, _) => SendOp::SendImm(imm),
            (Operation::SendInv, _) => SendOp::SendInv(key),
            (Operation::Write, _) => SendOp::Write(remote),
            (Operation::WriteImm, _) => SendOp::WriteImm(remote, imm),
            (Operation::Read, _) => SendOp::Read(remote),
            (Operation::CompareSwap, _) => {
                SendOp::CompareSwap { remote, compare: self.rng.long(), swap: self.rng.long() }
            }
            (Operation::FetchAdd, _) => SendOp::FetchAdd { remote, add: self.rng.long() },
            (Operation::LocalInv, _) => SendOp::LocalInv(key),
            (Operation::BindMw, _) => SendOp::BindMw(BindMw {
                mw_type: MwType::Type2,
                mw: key,
                new_key: RKey::truncated(key.get() & !0xff | self.rng.below(256)),
                region: LKey::truncated(self.rng.bits()),
                addr: self.rng.long(),
                length: u64::from(self.rng.between(1, 1 << 30)),
                access: AccessFlags::from_bits_truncate(self.rng.bits() as _),
            }),
        }
    }

    fn datagram(&mut self) -> Datagram {
        let ah = match self.profile.handles.is_empty() {
            true => AhId::default(),
            false => *self.rng.pick(&self.profile.handles),
        };
        Datagram { ah, qp: QpId::truncated(self.rng.bits()), qkey: QKey::truncated(self.rng.bits()) }
    }

    fn payload(&mut self, operation: Operation, foul: Option<Foul>) -> Payload {
        let QpCapabilities { max_send_sge: sges, max_inline_data: inline, .. } = self.profile.capabilities;
        let atomic = matches!(operation, Operation::CompareSwap | Operation::FetchAdd);
        match (operation, foul) {
            (_, Some(Foul::TooManySges)) => return Payload::Sges(self.sges(sges + 1)),
            (_, Some(Foul::InlineTooLong)) => return self.inline(inline + 1, inline + 64),
            (_, Some(Foul::InlineRead)) => return self.inline(0, inline),
            (_, Some(Foul::TwoGigabytes)) => return self.huge(&[1 << 31]),
            (_, Some(Foul::TooLong)) => {
                let more = self.rng.below(1 << 16);
                return self.huge(&[(1 << 31) + 1 + more]);
            }
            (_, Some(Foul::LengthWraps)) => {
                let more = self.rng.below(1 << 16);
                return self.huge(&[1 << 31, (1 << 31) + more]);
            }
            (_, Some(Foul::AtomicSge)) => {
                let length = self.rng.pick(&[0, 4, 16]);
                return self.huge(&[*length]);
            }
            _ if atomic => return self.huge(&[8]),
            (Operation::LocalInv | Operation::BindMw, _) => return Payload::Sges(Vec::new()),
            _ => {}
        }
        if inline != 0 && operation != Operation::Read && self.rng.once_in(3) {
            return self.inline(0, inline);
        }
        let count = self.pieces(sges);
        Payload::Sges(self.sges(count))
    }

    /// SGEs of these very lengths.
    fn huge(&mut self, lengths: &[u32]) -> Payload {
        let sge = |length: &u32| Sge::new(self.rng.long(), *length, LKey::truncated(self.rng.bits()));
        Payload::Sges(lengths.iter().map(sge).collect())
    }

    /// Inline data of `low` to `high` bytes, in up to as many pieces as SGEs were granted.
    fn inline(&mut self, low: u32, high: u32) -> Payload {
        let total = self.rng.between(low, high);
        let pieces = self.rng.between(1, self.profile.capabilities.max_send_sge.clamp(1, 4));
        let mut left = total;
        let mut owned = Vec::new();
        for piece in 1..=pieces {
            let length = if piece == pieces { left } else { self.rng.between(0, left) };
            owned.push(self.rng.bytes(length as usize));
            left -= length;
        }
        Payload::Inline(owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let capabilities = QpCapabilities {
            max_send_wr: 60,
            max_recv_wr: 30,
            max_send_sge: 3,
            max_recv_sge: 2,
            max_inline_data: 64,
        };
        Profile { builder_once_in: 4, ..Profile::new(Temper::Failing, QpType::Rc, capabilities) }
    }

    #[test]
    fn a_mode_and_a_seed_always_give_the_same_steps() {
        let one = steps(&profile(), &mut Rng::new("a mode", 7));
        assert_eq!(one, steps(&profile(), &mut Rng::new("a mode", 7)));
        assert_ne!(one, steps(&profile(), &mut Rng::new("a mode", 8)));
        assert_ne!(one, steps(&profile(), &mut Rng::new("another", 7)));
    }

    #[test]
    fn over_many_seeds_everything_is_asked_for() {
        let mut requests = Vec::new();
        let mut kinds = std::collections::HashSet::new();
        for seed in 0..100 {
            for step in steps(&profile(), &mut Rng::new("a mode", seed)) {
                kinds.insert(std::mem::discriminant(&step));
                if let Step::PostSend { requests: list, .. } = step {
                    requests.extend(list);
                }
            }
        }
        assert!(kinds.len() >= 7, "{} kinds of steps", kinds.len());
        assert!(requests.iter().any(|r| r.pieces() == 0 && !r.inline()));
        assert!(requests.iter().any(|r| r.pieces() == 4 && !r.inline()), "too many SGEs");
        assert!(requests.iter().any(|r| r.inline() && r.length() == 64));
        assert!(requests.iter().any(|r| r.inline() && r.length() > 64), "too long");
        assert!(requests.iter().any(|r| matches!(r.op, SendOp::FetchAdd { .. })));
        assert!(requests.iter().any(|r| r.inline() && r.length() > 16 && r.pieces() > 1));
        let mut ids: Vec<u64> = requests.iter().map(|r| r.wr_id).collect();
        let before = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() * 100 > before, "numbers differ within a case");
    }
}
