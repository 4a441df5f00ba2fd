//! Our side: the core's queues over plain memory.

use std::collections::VecDeque;
use std::rc::Rc;

use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq};
use directverbs::bnxt_re::caps::DeviceCaps;
use directverbs::bnxt_re::cq::CompletionQueue;
use directverbs::bnxt_re::doorbell::PushPage;
use directverbs::bnxt_re::plan::{CqPlan, QpPlan, SRQ_ENTRY_BYTES, SrqPlan};
use directverbs::bnxt_re::push::PushBuffer;
use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
use directverbs::bnxt_re::recv::RecvQueue;
use directverbs::bnxt_re::send::{SendInit, SendQueue, SendRecord, SendState};
use directverbs::bnxt_re::srq::{SharedReceiveQueue, SrqRecord};
use directverbs::queue::{Boxed, Doorbell, RingMemory};
use directverbs::verbs::{
    CompletionQueue as _, CqId, MemoryError, PlanError, QpCapabilities, QpId, QpType, Slices, SrqId, SrqInit,
    WorkCompletion,
};

use super::bell::{Bell, Fifo, Log, PushMemory};
use crate::case::{Outcome, Pages, Recv, Send};

type Qp = AttachedQp<'static, Boxed, Bell>;
type Cq = AttachedCq<'static, Boxed, Bell>;
type Srq = AttachedSrq<'static, Boxed, Bell>;

/// Queues that the core refuses to make.
#[derive(Debug, thiserror::Error)]
pub enum OursError {
    /// No plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Memory or ids that do not fit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// The memory of a queue that goes into [`Ours`] with it.
fn ring(pages: &Pages) -> RingMemory<'static> {
    // SAFETY: `Ours` drops queues before their memory, and makes one over each.
    unsafe { pages.ring() }
}

/// Our queues. Fields are dropped in this order: queues before their memory.
#[derive(Debug)]
pub struct Ours {
    /// Queue pairs.
    pub qps: Vec<Qp>,
    /// Shared receive queues.
    pub srqs: Vec<Srq>,
    /// Completion queues.
    pub cqs: Vec<Cq>,
    /// Push buffers of the queue pairs.
    push: Vec<Option<PushBuffer<PushMemory>>>,
    /// Completions that were found while a completion queue was resized.
    backlog: Vec<VecDeque<WorkCompletion>>,
    /// Plans of the completion queues.
    pub cq_plans: Vec<CqPlan>,
    /// Plans of the queue pairs.
    pub qp_plans: Vec<QpPlan>,
    /// Memory of send queues.
    pub send_memory: Vec<Pages>,
    /// Memory of receive queues.
    pub recv_memory: Vec<Option<Pages>>,
    /// Memory of shared receive queues.
    pub srq_memory: Vec<Pages>,
    /// Bytes of the shared receive queue's entries.
    pub srq_bytes: u32,
    /// Memory of completion queues.
    pub cq_memory: Vec<Pages>,
    /// What was stored to the device.
    pub log: Log,
    caps: DeviceCaps,
    fifo: Option<Rc<Fifo>>,
}

/// What a queue pair is made from.
#[derive(Clone, Copy, Debug)]
pub struct QpSpec {
    /// Number that the device gave.
    pub id: QpId,
    /// Kind.
    pub qp_type: QpType,
    /// Capabilities asked for.
    pub capabilities: QpCapabilities,
    /// Every send request completes.
    pub signal_all: bool,
    /// Place of its completion queue for sends.
    pub send_cq: usize,
    /// Place of its completion queue for receives.
    pub recv_cq: usize,
    /// It takes receive requests from the shared queue.
    pub shared: bool,
    /// Push page and buffer in it.
    pub push: Option<(PushPage, usize)>,
}

impl Ours {
    /// No queues.
    pub fn new(caps: DeviceCaps, fifo: Option<Rc<Fifo>>) -> Self {
        Self {
            qps: Vec::new(),
            srqs: Vec::new(),
            cqs: Vec::new(),
            push: Vec::new(),
            backlog: Vec::new(),
            cq_plans: Vec::new(),
            qp_plans: Vec::new(),
            send_memory: Vec::new(),
            recv_memory: Vec::new(),
            srq_memory: Vec::new(),
            srq_bytes: 0,
            cq_memory: Vec::new(),
            log: Log::default(),
            caps,
            fifo,
        }
    }

    fn bell(&self, id: u32) -> Bell {
        Bell::new(&self.log, id, self.fifo.as_ref())
    }

    /// Makes a completion queue.
    pub fn create_cq(&mut self, id: u32, cqe: u32) -> Result<(), OursError> {
        let plan = CqPlan::new(&self.caps, cqe)?;
        let memory = Pages::new(plan.bytes as usize, 0);
        let cq = CompletionQueue::new(ring(&memory), &plan, CqId::truncated(id))?;
        self.cqs.push(AttachedCq::new(cq, self.bell(id)));
        self.cq_plans.push(plan);
        self.cq_memory.push(memory);
        self.backlog.push(VecDeque::new());
        Ok(())
    }

    /// Makes a shared receive queue.
    pub fn create_srq(&mut self, id: u32, asked: &SrqInit) -> Result<SrqPlan, OursError> {
        let plan = SrqPlan::new(&self.caps, asked)?;
        let memory = Pages::new(plan.bytes as usize, 0);
        let records = vec![SrqRecord::default(); plan.entries.next_power_of_two() as usize];
        let srq =
            SharedReceiveQueue::new(ring(&memory), records.into_boxed_slice(), &plan, SrqId::truncated(id))?;
        self.srqs.push(AttachedSrq { srq, page: self.bell(id) });
        self.srq_memory.push(memory);
        self.srq_bytes = plan.entries * SRQ_ENTRY_BYTES;
        Ok(plan)
    }

    /// Makes a queue pair. Its handle is its place, counted from 1.
    pub fn create_qp(&mut self, spec: &QpSpec) -> Result<(), OursError> {
        let plan = QpPlan::new(&self.caps, &spec.capabilities, spec.shared)?;
        let memory = Pages::new(plan.send.bytes as usize, 0);
        let records = vec![SendRecord::default(); plan.send.records.next_power_of_two() as usize];
        let init = SendInit {
            plan: plan.send,
            qp: spec.id,
            qp_type: spec.qp_type,
            signal_all: spec.signal_all,
            atomics: self.caps.limits.atomics,
        };
        let send = SendQueue::new(ring(&memory), records.into_boxed_slice(), &init)?;
        let mut recv_memory = None;
        let mut recv = None;
        if let Some(plan) = &plan.recv {
            let memory = Pages::new(plan.bytes as usize, 0);
            let records = vec![0; plan.wqes.next_power_of_two() as usize];
            recv = Some(RecvQueue::new(ring(&memory), records.into_boxed_slice(), plan, spec.id)?);
            recv_memory = Some(memory);
        }
        let srq = self.srqs.first().filter(|_| spec.shared).map(|srq| srq.srq.id());
        let init = QueuePairInit {
            id: spec.id,
            handle: self.qps.len() as u32 + 1,
            qp_type: spec.qp_type,
            send_cq: self.cqs[spec.send_cq].cq.id(),
            recv_cq: self.cqs[spec.recv_cq].cq.id(),
            srq,
            capabilities: plan.granted(),
        };
        let qp = QueuePair::new(&init, send, recv)?;
        let push = match spec.push {
            Some((page, index)) => Some(PushBuffer::new(PushMemory(Rc::clone(&self.log)), page, index)?),
            None => None,
        };
        self.qps.push(AttachedQp { qp, page: self.bell(spec.id.get()) });
        self.qp_plans.push(plan);
        self.send_memory.push(memory);
        self.recv_memory.push(recv_memory);
        self.push.push(push);
        Ok(())
    }

    /// Index, slot and slots of each outstanding send WQE, oldest first.
    pub fn outstanding(&self, qp: usize) -> impl Iterator<Item = (u32, u32, u32)> {
        let (plan, queue) = (self.qp_plans[qp].send, &self.qps[qp].qp.send);
        let state = queue.state();
        let first = (state.oldest, state.head);
        let wqe = move |(index, slot): (u32, u32)| (index, slot, queue.records()[index as usize].slots());
        let behind = move |at: &(u32, u32)| {
            let (index, slot, slots) = wqe(*at);
            Some(((index + 1) % plan.records, (slot + slots) % plan.slots))
        };
        std::iter::successors(Some(first), behind).map(wqe).take(queue.outstanding() as usize)
    }

    /// Posts as the provider does: what comes before a request that is refused is posted, and `pushes` says which
    /// requests go by push. The request at `probed` is only tried, and nothing after it is posted: with this one the
    /// provider is known to differ. [`Outcome::Done`] if all that were tried would be taken.
    pub fn post_send(
        &mut self,
        qp: usize,
        requests: &[Send],
        pushes: impl Fn(&Send) -> bool,
        probed: Option<usize>,
    ) -> Outcome {
        let AttachedQp { qp: queue, page } = &mut self.qps[qp];
        let buffer = self.push[qp].as_ref();
        let tried = probed.map_or(requests.len(), |probed| probed + 1);
        let mut outcome = Outcome::Done;
        let mut unrung = false;
        let mut next = 0;
        while next < tried && outcome == Outcome::Done {
            let request = &requests[next];
            if Some(next) == probed {
                let posted = queue.send_batch().and_then(|mut batch| request.with(|r| batch.post(r)));
                outcome = posted.map_or(Outcome::Refused(next), |()| Outcome::Done);
                break;
            }
            if let Some(buffer) = buffer.filter(|_| pushes(request)) {
                match request.with(|r| queue.push(r, buffer, page)) {
                    Ok(()) => unrung = false,
                    Err(_) => outcome = Outcome::Refused(next),
                }
                next += 1;
                continue;
            }
            let Ok(mut batch) = queue.send_batch() else { return Outcome::Refused(next) };
            let end = probed.unwrap_or(tried);
            while next < end && !(buffer.is_some() && pushes(&requests[next])) {
                if requests[next].with(|r| batch.post(r)).is_err() {
                    outcome = Outcome::Refused(next);
                    break;
                }
                next += 1;
            }
            if next == requests.len() {
                batch.commit(page);
            } else {
                unrung |= batch.len() != 0;
                let _ = batch.finish();
            }
        }
        if unrung {
            page.store(0, queue.send.doorbell().to_u64());
        }
        outcome
    }

    /// Writes requests into the ring and gives them up. Also the state that the queue would be in had it not.
    pub fn abort_send(&mut self, qp: usize, requests: &[Send]) -> (Outcome, Option<SendState>) {
        let queue = &mut self.qps[qp].qp;
        let before = queue.send.state();
        let Ok(mut batch) = queue.send_batch() else { return (Outcome::Failed, None) };
        if !requests.iter().all(|request| request.with(|r| batch.post(r)).is_ok()) {
            return (Outcome::Failed, None);
        }
        let _ = batch.finish();
        let after = queue.send.state();
        let restored = queue.send.restore(&before);
        (restored.map_or(Outcome::Failed, |()| Outcome::Done), Some(after))
    }

    /// Posts as the provider does: what comes before a request that is refused is posted.
    pub fn post_recv(&mut self, qp: usize, requests: &[Recv]) -> Outcome {
        let AttachedQp { qp: queue, page } = &mut self.qps[qp];
        let Ok(mut batch) = queue.recv_batch() else { return Outcome::Refused(0) };
        let refused = requests.iter().position(|request| batch.post(&request.request()).is_err());
        batch.commit(page);
        refused.map_or(Outcome::Done, Outcome::Refused)
    }

    /// Posts as the provider does: what comes before a request that is refused is posted.
    pub fn post_shared(&mut self, requests: &[Recv]) -> Outcome {
        let AttachedSrq { srq, page } = &mut self.srqs[0];
        let mut batch = srq.batch();
        let refused = requests.iter().position(|request| batch.post(&request.request()).is_err());
        batch.commit(page);
        refused.map_or(Outcome::Done, Outcome::Refused)
    }

    /// Polls; what was found during a resize comes first. Also the faults that were met.
    pub fn poll(&mut self, cq: usize, budget: u32) -> (Vec<WorkCompletion>, u64) {
        let mut found: Vec<WorkCompletion> = Vec::new();
        while found.len() < budget as usize
            && let Some(wc) = self.backlog[cq].pop_front()
        {
            found.push(wc);
        }
        let left = budget as usize - found.len();
        if left == 0 {
            return (found, 0);
        }
        let mut out = vec![WorkCompletion::default(); left];
        let mut endpoints = Slices { qps: &mut self.qps[..], srqs: &mut self.srqs[..] };
        match self.cqs[cq].poll(&mut endpoints, &mut out) {
            Ok(count) => {
                found.extend(&out[..count]);
                (found, 0)
            }
            Err(_) => (found, 1),
        }
    }

    /// Makes new memory ready for a resize; `false` if there is no such size.
    pub fn begin_resize(&mut self, cq: usize, cqe: u32) -> Result<bool, OursError> {
        let Ok(plan) = CqPlan::resized(&self.caps, cqe, &self.cq_plans[cq]) else { return Ok(false) };
        let memory = Pages::new(plan.bytes as usize, 0);
        self.cqs[cq].cq.begin_resize(ring(&memory), &plan)?;
        self.cq_plans[cq] = plan;
        self.cq_memory.push(memory);
        Ok(true)
    }

    /// Polls the old memory to its end, one completion at a time as the provider does, and goes over to the new.
    pub fn finish_resize(&mut self, cq: usize) -> bool {
        let AttachedCq { cq: queue, page, .. } = &mut self.cqs[cq];
        let mut endpoints = Slices { qps: &mut self.qps[..], srqs: &mut self.srqs[..] };
        loop {
            let mut out = [WorkCompletion::default()];
            let Ok(progress) = queue.finish_resize(&mut endpoints, page, &mut out, 0, || ()) else {
                return false;
            };
            self.backlog[cq].extend(&out[..progress.completions]);
            if progress.done {
                break;
            }
        }
        let _ = queue.take_old_memory();
        let new = self.cq_memory.pop();
        if let Some(new) = new {
            self.cq_memory[cq] = new;
        }
        true
    }
}
