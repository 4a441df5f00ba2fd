//! Polling, arming and resizing on both sides.

use directverbs::bnxt_re::cq::CqState;
use directverbs::bnxt_re::doorbell::{DbType, DbWord};
use directverbs::verbs::{QpType, WcOpcode, WcStatus, WorkCompletion};

use super::exceptions::{
    ERROR_BLAMES_OLDEST, NO_INVALIDATED, RESIZE_ACK, RESIZE_EARLY, RESIZE_FAILED, RESIZE_KEEPS_COUNT,
    SEND_INV, SRQ_ARM_LATE, TAG_UNCHECKED, UD_SOURCE,
};
use super::forge::Device;
use super::pair::{BnxtRePair, FRESH, allow};
use crate::case::{Access, Allowance, Allowed, Completion, Exception, Outcome, Played};

impl BnxtRePair<'_> {
    pub(super) fn poll(&mut self, budget: u32) -> Played {
        let mut allowances = Vec::new();
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        let mut faults = 0;
        let late = (0..self.counted.len()).any(|cq| self.rings_late(cq));
        let datagram = self.mode.qp_type == QpType::Ud;
        for cq in 0..self.ours.cqs.len() {
            theirs.extend(self.theirs.poll(cq, budget).iter().map(|wc| Completion::theirs(wc, datagram)));
            let before = self.ours.cqs[cq].cq.state();
            let (found, fault) = self.ours.poll(cq, budget);
            faults += fault;
            for wc in &found {
                allowances.extend(self.polling_faults(ours.len(), wc, datagram));
                ours.push(Completion::ours(wc, datagram));
            }
            self.count(cq, &before);
        }
        if self.device.later_failure {
            allowances.push(allow(&ERROR_BLAMES_OLDEST, Allowed::Completions));
            // Where one has room for what the entry completes and the other has not, the entry stays.
            allowances.push(allow(&ERROR_BLAMES_OLDEST, Allowed::Accesses));
        }
        if self.device.wrong_tag {
            allowances.push(allow(&TAG_UNCHECKED, Allowed::Completions));
            allowances.push(allow(&TAG_UNCHECKED, Allowed::Accesses));
            allowances.push(allow(&TAG_UNCHECKED, Allowed::Value { name: "faults", theirs: 0, ours: 1 }));
        }
        if let Some(srq) = self.ours.srqs.first() {
            let records = srq.srq.records();
            self.device.returned(|tag| records[tag as usize].posted);
        }
        let kept =
            self.deferred.iter().zip(&self.ours.cq_plans).all(|(theirs, plan)| *theirs == plan.deferred);
        let parted = self.device.later_failure || self.device.wrong_tag || !kept || late;
        let mut played = self.played(Outcome::Done, Outcome::Done, allowances, parted);
        if !kept {
            allow_cq_doorbells(&RESIZE_FAILED, &mut played);
        }
        if late {
            allow_cq_doorbells(&RESIZE_KEEPS_COUNT, &mut played);
        }
        played.theirs.values.push(("faults", 0));
        played.ours.values.push(("faults", faults));
        played.theirs.completions = theirs;
        played.ours.completions = ours;
        played
    }

    /// Follows the provider's count of consumed CQEs.
    fn count(&mut self, cq: usize, before: &CqState) {
        let entries = self.ours.cqs[cq].cq.entries();
        let consumed = (self.ours.cqs[cq].cq.state().head + entries - before.head) % entries;
        self.counted[cq] = self.counted_after(cq, consumed);
    }

    fn counted_after(&self, cq: usize, consumed: u32) -> u32 {
        let (deferred, half) = (self.deferred[cq], self.ours.cqs[cq].cq.entries() / 2);
        let after = |count, _| if deferred && count + 1 >= half { 0 } else { count + 1 };
        (0..consumed).fold(self.counted[cq], after)
    }

    /// What the provider has counted before a resize is enough for a doorbell, even before a CQE is consumed.
    fn rings_late(&self, cq: usize) -> bool {
        self.deferred[cq] && self.counted[cq] >= self.ours.cqs[cq].cq.entries() / 2
    }

    fn polling_faults(&self, index: usize, wc: &WorkCompletion, datagram: bool) -> Vec<Allowance> {
        let field = |exception, field, theirs| allow(exception, Allowed::Field { index, field, theirs });
        let mut allowances = Vec::new();
        if wc.status != WcStatus::Success {
            return allowances;
        }
        if self.nameless.contains(&wc.wr_id) {
            allowances.push(field(&SEND_INV, "opcode", Some(0xff)));
        }
        if wc.invalidated().is_some() {
            allowances.push(field(&NO_INVALIDATED, "invalidated", None));
            allowances.push(field(&NO_INVALIDATED, "flags", Some(0)));
        }
        if datagram && wc.opcode == WcOpcode::Recv {
            let source = u64::from(wc.src_qp.get());
            allowances.push(field(&UD_SOURCE, "src_qp", Some(source & 0x18_ffff)));
        }
        allowances
    }

    pub(super) fn arm(&mut self, solicited: bool) -> Result<Played, super::Error> {
        use directverbs::verbs::CompletionQueue;
        for cq in 0..self.ours.cqs.len() {
            self.toggle_cq(cq);
            self.theirs.arm(cq, solicited)?;
            self.ours.cqs[cq].arm(solicited);
        }
        Ok(self.played(Outcome::Done, Outcome::Done, Vec::new(), false))
    }

    fn next_toggle(&mut self) -> u32 {
        self.toggles += 1;
        self.toggles & 3
    }

    fn toggle_cq(&mut self, cq: usize) {
        if self.mode.config.toggle {
            let toggle = self.next_toggle();
            self.theirs.set_cq_toggle(cq, toggle);
            self.ours.cqs[cq].page.toggle.set(toggle);
        }
    }

    pub(super) fn arm_shared(&mut self, limit: u32) -> Result<Played, super::Error> {
        use directverbs::verbs::SharedReceiveQueue;
        if self.mode.config.toggle {
            let toggle = self.next_toggle();
            self.theirs.set_srq_toggle(toggle);
            self.ours.srqs[0].page.toggle.set(toggle);
        }
        self.theirs.arm_shared(limit)?;
        self.ours.srqs[0].arm_limit(limit);
        self.limit = Some(limit);
        let mut played = self.played(Outcome::Done, Outcome::Done, Vec::new(), false);
        let only = played.ours.accesses.iter().map(|a| allow(&SRQ_ARM_LATE, Allowed::OnlyOurs(*a)));
        played.allowances = only.collect();
        Ok(played)
    }

    pub(super) fn resize(&mut self, cqe: u32) -> Result<Played, super::Error> {
        let (cq, mut assumed) = (0, Vec::new());
        if self.device.later_failure || self.device.wrong_tag {
            // The next poll ends the case.
            return Ok(Played::default());
        }
        let (waiting, old) = (self.waiting(cq), self.ours.cqs[cq].cq.state());
        let entries = self.ours.cqs[cq].cq.entries();
        self.deferred[cq] = 2 * cqe <= self.mode.config.max_cq_depth;
        let kept = self.deferred[cq] == self.ours.cq_plans[cq].deferred;
        let late = self.rings_late(cq);
        let counted = self.counted_after(cq, waiting);
        if !self.ours.begin_resize(cq, cqe)? {
            let theirs = self.theirs.resize(cq, cqe);
            return Ok(self.played(theirs, Outcome::Failed, Vec::new(), false));
        }
        let toggle = self.next_toggle();
        self.write_cqe(&Device::cut_off(toggle, cq));
        let theirs = self.theirs.resize(cq, cqe);
        let done = self.ours.finish_resize(cq);
        let ours = if done { Outcome::Done } else { Outcome::Failed };
        self.producers[cq] = FRESH;
        self.counted[cq] = counted;
        if self.ours.cq_plans[cq].deferred && counted != 0 {
            let state = self.ours.cqs[cq].cq.state();
            // More than enough for a doorbell is as much as just enough after the next CQE.
            let most = (self.ours.cqs[cq].cq.entries() / 2).max(1) - 1;
            self.ours.cqs[cq].cq.restore(&CqState { consumed: counted.min(most), ..state })?;
            assumed.push(&RESIZE_KEEPS_COUNT);
        }
        let mut played = self.played(theirs, ours, Vec::new(), late);
        // Before the acknowledgement, ours announces a wrap that no doorbell has announced.
        let head = (old.head + waiting) % entries;
        if let [.., announced, _] = played.ours.accesses[..]
            && let Access::Store { value, .. } = announced
            && DbWord::from_u64(value).db_type() == DbType::CQ
            && DbWord::from_u64(value).index().get() == head
            && counted > head
            && kept
            && !late
        {
            played.allowances.push(allow(&RESIZE_ACK, Allowed::OnlyOurs(announced)));
        }
        if !kept {
            allow_cq_doorbells(&RESIZE_EARLY, &mut played);
        } else if late {
            allow_cq_doorbells(&RESIZE_KEEPS_COUNT, &mut played);
        }
        played.assumed = assumed;
        Ok(played)
    }
}

/// Doorbells with a consumer index may be rung by one side only.
fn allow_cq_doorbells(exception: &'static Exception, played: &mut Played) {
    let (theirs, ours) = (&played.theirs.accesses, &played.ours.accesses);
    let only = |one: &[Access], other: &[Access], make: fn(Access) -> Allowed| -> Vec<Allowance> {
        let mut left = other.to_vec();
        let mut allowances = Vec::new();
        for access in one {
            let Access::Store { value, .. } = access else { continue };
            if let Some(at) = left.iter().position(|a| a == access) {
                left.remove(at);
            } else if DbWord::from_u64(*value).db_type() == DbType::CQ {
                allowances.push(allow(exception, make(*access)));
            }
        }
        allowances
    };
    let mut allowances = only(theirs, ours, Allowed::OnlyTheirs);
    allowances.extend(only(ours, theirs, Allowed::OnlyOurs));
    played.allowances.extend(allowances);
}
