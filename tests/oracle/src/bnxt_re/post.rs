//! Posting on both sides.

use directverbs::bnxt_re::doorbell::{DbType, DbWord};
use directverbs::bnxt_re::plan::SendPlan;
use directverbs::bnxt_re::psn::Retransmit;
use directverbs::bnxt_re::push::PUSH_BUFFER_BYTES;
use directverbs::bnxt_re::send::SendState;
use directverbs::bnxt_re::wqe::{SLOT_BYTES, WqeMode};
use directverbs::verbs::{LKey, QpType, SendOp, Sge};

use super::areas::{SEND_RING, TABLE};
use super::bell::PUSH;
use super::exceptions::{
    ABORT_KEEPS, BUILDER_ROOM, BUILDER_START, BUILDER_STICKY, BUILDER_UD, FETCH_ADD, REFUSED_LEAVES_BYTES,
    SEND_INV, SRQ_ARM_LATE,
};
use super::known::{Known, Placed, known, place, used_slots};
use super::pair::{BnxtRePair, allow};
use crate::case::{Access, Allowance, Allowed, Exception, Outcome, Payload, Played, Recv, Send};

/// Everything may differ: the two go apart here.
fn apart(exception: &'static Exception, theirs: Outcome, ours: Outcome) -> Vec<Allowance> {
    let areas = SEND_RING.iter().chain(&TABLE);
    let bytes = areas.map(|area| allow(exception, Allowed::Bytes { area, range: 0..usize::MAX }));
    let whole = [Allowed::Outcome { theirs, ours }, Allowed::Accesses, Allowed::Completions];
    whole.into_iter().map(|allowed| allow(exception, allowed)).chain(bytes).collect()
}

impl BnxtRePair<'_> {
    pub(super) fn post_send(&mut self, qp: usize, requests: &[Send]) -> Played {
        let plan = self.ours.qp_plans[qp].send;
        let before = self.ours.qps[qp].qp.send.state();
        let qp_type = self.mode.qp_type;
        let theirs = self.theirs.post_send(qp, requests);
        let first_known =
            requests.iter().enumerate().find_map(|(i, r)| Some((i, known(r, qp_type, self.mode.atomics)?)));
        let probed = match (theirs, first_known) {
            (Outcome::Refused(at), Some((i, Known::TheyRefuse(_)))) if at == i => Some(i),
            _ => None,
        };
        let push = self.mode.config.push;
        let ours = self.ours.post_send(qp, requests, |r| push && r.inline() && r.length() <= 96, probed);

        let mut allowances = Vec::new();
        let mut parted = false;
        let posted = match (theirs, ours) {
            (Outcome::Refused(at), _) | (_, Outcome::Refused(at)) => at,
            _ => requests.len(),
        };
        let places = place(&plan, qp_type, &before, &requests[..posted]);
        allowances.extend(posting_faults(qp, &plan, requests, &places));
        match (theirs, first_known) {
            (Outcome::Refused(at), Some((i, Known::TheyRefuse(exception)))) if at == i => {
                allowances.push(allow(exception, Allowed::Outcome { theirs, ours: Outcome::Done }));
                // Ours has tried it: the entry is written, and free.
                let now = self.ours.qps[qp].qp.send.state();
                let tried = place(&plan, qp_type, &now, &requests[at..=at]);
                allowances.extend(tried.iter().map(|placed| allow(exception, entry(qp, &plan, placed))));
            }
            (_, Some((i, Known::TheyPost(exception)))) if ours == Outcome::Refused(i) => {
                allowances.extend(apart(exception, theirs, ours));
                parted = true;
            }
            _ => {}
        }
        if let Outcome::Refused(at) = theirs
            && let Some(request) = requests.get(at)
        {
            let slots = if request.inline() { 2 } else { used_slots(request) };
            let tail = self.ours.qps[qp].qp.send.state().tail;
            allowances.extend(
                ring_bytes(qp, &plan, tail, 0, slots * SLOT_BYTES)
                    .into_iter()
                    .map(|allowed| allow(&REFUSED_LEAVES_BYTES, allowed)),
            );
        }
        let nameless = requests[..posted].iter().filter(|r| matches!(r.op, SendOp::SendInv(_)));
        self.nameless.extend(nameless.map(|request| request.wr_id));
        let mut played = self.played(theirs, ours, allowances, parted);
        played.allowances.extend(pushed_faults(&played.theirs.accesses));
        played
    }

    /// Posts with the builder functions.
    pub(super) fn build(&mut self, qp: usize, requests: &[Send], abort: bool) -> Played {
        let plan = self.ours.qp_plans[qp].send;
        let qp_type = self.mode.qp_type;
        let before = self.ours.qps[qp].qp.send.state();
        let Some(requests) = buildable(&plan, &before, requests) else { return Played::default() };
        let places = place(&plan, qp_type, &before, requests);
        let mut allowances = posting_faults(qp, &plan, requests, &places);
        if qp_type == QpType::Ud {
            // Length and queue key.
            let header = |placed: &Placed| ring_bytes(qp, &plan, placed.slot, 8, 8);
            allowances.extend(places.iter().flat_map(header).map(|allowed| allow(&BUILDER_UD, allowed)));
        }
        if let [first, rest @ ..] = &places[..]
            && !rest.is_empty()
        {
            // One entry is written again and again, the others are not.
            let wrong = places
                .iter()
                .filter(|placed| plan.retransmit != Retransmit::Msn || placed.slot != first.slot);
            allowances.extend(wrong.map(|placed| allow(&BUILDER_START, entry(qp, &plan, placed))));
        }
        let mut assumed = Vec::new();
        let theirs = self.theirs.build(qp, requests, abort);
        let push = self.mode.config.push;
        let ours = if abort {
            let (outcome, after) = self.ours.abort_send(qp, requests);
            if let Some(after) = after
                && (after.psn != before.psn || after.msn != before.msn)
            {
                let state = SendState { psn: after.psn, msn: after.msn, ..before };
                if self.ours.qps[qp].qp.send.restore(&state).is_ok() {
                    assumed.push(&ABORT_KEEPS);
                }
            }
            outcome
        } else {
            match self.ours.post_send(qp, requests, |r| push && r.inline() && r.length() < 96, None) {
                Outcome::Done => Outcome::Done,
                _ => Outcome::Failed,
            }
        };
        let mut parted = theirs != ours;
        if parted {
            allowances.extend(apart(&BUILDER_ROOM, theirs, ours));
        }
        if theirs == Outcome::Failed {
            // One that fits, and fails nevertheless.
            let sges = vec![Sge::new(0x1000, 8, LKey::truncated(1))];
            let small = Send { payload: Payload::Sges(sges), ..requests[0].clone() };
            if self.theirs.build(qp, &[small], false) == Outcome::Failed {
                assumed.push(&BUILDER_STICKY);
                allowances.extend(apart(&BUILDER_STICKY, theirs, ours));
                parted = true;
            }
        }
        Played { assumed, ..self.played(theirs, ours, allowances, parted) }
    }

    pub(super) fn post_shared(&mut self, requests: &[Recv]) -> Played {
        let theirs = self.theirs.post_shared(requests);
        let ours = self.ours.post_shared(requests);
        let mut played = self.played(theirs, ours, Vec::new(), false);
        let Some(limit) = self.limit else { return played };
        // The provider may arm in the middle: a doorbell for what it has posted so far, and the arm.
        let stores = &played.theirs.accesses;
        let word = |access: &Access| match access {
            Access::Store { value, .. } => Some(DbWord::from_u64(*value)),
            _ => None,
        };
        let arm = stores.iter().position(|access| {
            word(access).is_some_and(|word| word.db_type() == DbType::SRQ_ARM && word.index().get() == limit)
        });
        if let Some(arm) = arm {
            let mut extra = vec![stores[arm]];
            if stores.len() > played.ours.accesses.len() + 1 && arm > 0 {
                extra.push(stores[arm - 1]);
            }
            let only = extra.into_iter().map(|access| allow(&SRQ_ARM_LATE, Allowed::OnlyTheirs(access)));
            played.allowances.extend(only);
            self.limit = None;
        }
        played
    }
}

/// Requests that can be given to the builder functions: others make the provider run into memory that is not its own.
fn buildable<'r>(plan: &SendPlan, before: &SendState, requests: &'r [Send]) -> Option<&'r [Send]> {
    let requests = match requests {
        [first, ..] if plan.mode == WqeMode::Static => std::slice::from_ref(first),
        other => other,
    };
    let used = (before.tail + plan.slots - before.head) % plan.slots;
    let room = plan.slots - plan.reserve - used;
    let needed: u32 = requests.iter().map(used_slots).sum();
    let one = matches!(requests, [_]);
    // With no room for a header and an SGE, the provider stores through a null pointer; records of a batch that wraps
    // are stored behind their array.
    let first_fits = room > 3 && (one || needed + 16 < room);
    let records_fit = before.next + requests.len() as u32 <= plan.records;
    let has =
        |request: &Send| !matches!(request.op, SendOp::SendInv(_) | SendOp::LocalInv(_) | SendOp::BindMw(_));
    (first_fits && records_fit && requests.iter().all(has)).then_some(requests)
}

/// `len` bytes of the send ring from byte `offset` of slot `slot`, as one or, across the ring's end, two ranges.
fn ring_bytes(qp: usize, plan: &SendPlan, slot: u32, offset: u32, len: u32) -> Vec<Allowed> {
    let ring = (plan.slots * SLOT_BYTES) as usize;
    let start = (slot * SLOT_BYTES + offset) as usize % ring;
    let end = start + len as usize;
    let area = SEND_RING[qp];
    let first = Allowed::Bytes { area, range: start..end.min(ring) };
    if end <= ring { vec![first] } else { vec![first, Allowed::Bytes { area, range: 0..end - ring }] }
}

fn entry(qp: usize, plan: &SendPlan, placed: &Placed) -> Allowed {
    let bytes = plan.retransmit.entry_bytes() as usize;
    let at = placed.entry as usize * bytes;
    Allowed::Bytes { area: TABLE[qp], range: at..at + bytes }
}

/// Faults that requests show which both sides post.
fn posting_faults(qp: usize, plan: &SendPlan, requests: &[Send], places: &[Placed]) -> Vec<Allowance> {
    let mut allowances = Vec::new();
    for (request, placed) in requests.iter().zip(places) {
        let (exception, bytes) = match request.op {
            SendOp::FetchAdd { .. } => (&FETCH_ADD, ring_bytes(qp, plan, placed.slot, 24, 8)),
            SendOp::SendInv(_) => (&SEND_INV, ring_bytes(qp, plan, placed.slot, 0, 1)),
            _ => continue,
        };
        allowances.extend(bytes.into_iter().map(|allowed| allow(exception, allowed)));
    }
    allowances
}

/// Faults of WQEs that are seen in the push buffer.
fn pushed_faults(theirs: &[Access]) -> impl Iterator<Item = Allowance> {
    const OPERATION: u64 = 0xff;
    theirs.iter().enumerate().filter_map(|(index, access)| match access {
        Access::Store { page: PUSH, offset, value }
            if offset % PUSH_BUFFER_BYTES == 0 && value & OPERATION == 0xff =>
        {
            Some(allow(&SEND_INV, Allowed::StoreBits { index, mask: OPERATION }))
        }
        _ => None,
    })
}
