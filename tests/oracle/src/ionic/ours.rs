//! Our side: the core's queues over plain memory.

use std::rc::Rc;

use directverbs::ionic::QueueMemory;
use directverbs::ionic::caps::Caps;
use directverbs::ionic::clock::Clock;
use directverbs::ionic::cmb::{Cmb, CmbGrant};
use directverbs::ionic::cq::{CompletionQueue, CqRing};
use directverbs::ionic::plan::{CqPlan, QpPlan, RingPlan};
use directverbs::ionic::qp::{NoSharedReceiveQueue, QpConfig, QueuePair, SavedQp};
use directverbs::ionic::recv::{RqRecord, RqState};
use directverbs::ionic::send::{SqRecord, SqState};
use directverbs::queue::Boxed;
use directverbs::verbs::{
    CqFault, CqId, MemoryError, PostError, QpId, QpState, QpType, Slices, WorkCompletion,
};

use super::memory::{Controller, Log};
use crate::case::{Access, Pages, Recv, Send};

/// What rings hold before the queues are made: they are to zero them.
const OLD: u8 = 0xa5;

/// Most queue pairs of a case.
pub(super) const QPS: usize = 4;

/// Names of the send rings of the queue pairs in controller memory, as areas and as pages of the log.
pub(super) const SEND_CMB: [&str; QPS] = ["send cmb 0", "send cmb 1", "send cmb 2", "send cmb 3"];
/// Names of the receive rings in controller memory.
pub(super) const RECV_CMB: [&str; QPS] = ["recv cmb 0", "recv cmb 1", "recv cmb 2", "recv cmb 3"];

/// What the queues of a case are made of.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The device.
    pub caps: Caps,
    /// Its clock.
    pub clock: Option<Clock>,
    /// Kind of the queue pairs.
    pub qp_type: QpType,
    /// Sizes.
    pub plan: QpPlan,
    /// Sizes.
    pub cq_plan: CqPlan,
    /// Where send and receive queues are.
    pub grants: [CmbGrant; 2],
    /// Stores to controller memory are logged.
    pub log_cmb: bool,
    /// Pipeline of the queue pairs.
    pub udma: u8,
    /// Pipelines on which the completion queue has a ring.
    pub udma_mask: u8,
    /// Every send request produces a completion.
    pub signal_all: bool,
    /// Numbers of the queue pairs.
    pub qps: Vec<QpId>,
    /// Numbers of the completion rings by pipeline: of one completion queue, or of one for sends and one for receives.
    pub cqs: Vec<[CqId; 2]>,
    /// Number of the first message, near the end of its 24 bits, say; a multiple of the depth, as the provider compares
    /// message numbers modulo the depth only.
    pub first_message: u32,
}

/// Rings of a queue pair.
pub(super) struct Rings {
    /// Send ring.
    pub sq: Pages,
    /// Receive ring.
    pub rq: Pages,
    /// Send ring in controller memory.
    pub sq_cmb: Option<Rc<Pages>>,
    /// Receive ring in controller memory.
    pub rq_cmb: Option<Rc<Pages>>,
}

/// The core's queues. The memory comes last: it goes when the queues are gone.
pub(super) struct Ours {
    pub cqs: Vec<CompletionQueue<'static>>,
    pub qps: Vec<QueuePair<'static, Boxed, Controller>>,
    log: Log,
    pub cq_rings: Vec<[Option<Pages>; 2]>,
    pub rings: Vec<Rings>,
}

impl Ours {
    /// Makes the queues, in state RTS.
    pub fn new(setup: &Setup) -> Result<Self, MemoryError> {
        let log = Log::default();
        let (mut cqs, mut cq_rings) = (Vec::new(), Vec::new());
        for ids in &setup.cqs {
            let (mut pages, mut made) = ([None, None], [None, None]);
            for udma in (0..2).filter(|udma| setup.udma_mask >> udma & 1 != 0) {
                let ring = pages[udma].insert(Pages::new(setup.cq_plan.ring.bytes(), OLD));
                // SAFETY: the pages are kept beside the ring.
                let memory = unsafe { ring.ring() };
                made[udma] = Some(CqRing::new(ids[udma], setup.caps.cq_qtype, &setup.cq_plan, memory)?);
            }
            cqs.push(CompletionQueue::new(setup.caps.udma_count, made)?);
            cq_rings.push(pages);
        }
        let (mut qps, mut rings) = (Vec::new(), Vec::new());
        for number in 0..setup.qps.len() {
            let pages = Rings::new(setup);
            qps.push(queue_pair(setup, number, &cqs, &pages, &log)?);
            rings.push(pages);
        }
        Ok(Self { cqs, qps, log, cq_rings, rings })
    }

    /// Takes the accesses so far.
    pub fn accesses(&self) -> Vec<Access> {
        self.log.take()
    }

    /// Posts requests up to the first that is refused, under one doorbell.
    pub fn post_send(&mut self, qp: usize, requests: &[Send]) -> Result<(), (usize, PostError)> {
        let mut batch = self.qps[qp].send_batch(&mut self.cqs[0]).map_err(|error| (0, error))?;
        let mut refused = Ok(());
        for (index, request) in requests.iter().enumerate() {
            if let Err(error) = request.with(|request| batch.post(request)) {
                refused = Err((index, error));
                break;
            }
        }
        batch.commit(&self.log);
        refused
    }

    /// Posts all requests or none; with `give_up` none in the end.
    pub fn post_all(
        &mut self,
        qp: usize,
        requests: &[Send],
        give_up: bool,
    ) -> Result<(), (usize, PostError)> {
        let mut batch = self.qps[qp].send_batch(&mut self.cqs[0]).map_err(|error| (0, error))?;
        for (index, request) in requests.iter().enumerate() {
            request.with(|request| batch.post(request)).map_err(|error| (index, error))?;
        }
        if !give_up {
            batch.commit(&self.log);
        }
        Ok(())
    }

    /// Posts requests up to the first that is refused, under one doorbell.
    pub fn post_recv(&mut self, qp: usize, requests: &[Recv]) -> Result<(), (usize, PostError)> {
        let last = self.cqs.len() - 1;
        let mut batch = self.qps[qp].recv_batch(&mut self.cqs[last]).map_err(|error| (0, error))?;
        let mut refused = Ok(());
        for (index, request) in requests.iter().enumerate() {
            if let Err(error) = batch.post(&request.request()) {
                refused = Err((index, error));
                break;
            }
        }
        batch.commit(&self.log);
        refused
    }

    /// Polls a completion queue for at most `room` completions.
    pub fn poll(&mut self, cq: usize, room: usize) -> Result<Vec<WorkCompletion>, CqFault> {
        let mut out = vec![WorkCompletion::default(); room];
        let mut endpoints = Slices::<_, NoSharedReceiveQueue> { qps: &mut self.qps, srqs: &mut [] };
        let count = self.cqs[cq].poll(&mut endpoints, &self.log, &mut out)?;
        out.truncate(count);
        Ok(out)
    }

    /// The queue pair goes to RESET and back to RTS.
    pub fn reset(&mut self, qp: usize) {
        let queue_pair = &mut self.qps[qp];
        for cq in &mut self.cqs {
            cq.forget(queue_pair);
        }
        queue_pair.reset();
        queue_pair.set_state(QpState::Rts);
    }
}

impl Rings {
    fn new(setup: &Setup) -> Self {
        let pages = |ring: RingPlan| Pages::new(ring.bytes(), OLD);
        // Controller memory is zeroed, as that of the made-up device is.
        let cmb = |grant: CmbGrant, ring: RingPlan| {
            (grant != CmbGrant::Host).then(|| Rc::new(Pages::new(ring.bytes(), 0)))
        };
        let (sq, rq) = (setup.plan.sq.ring, setup.plan.rq.ring);
        Self {
            sq: pages(sq),
            rq: pages(rq),
            sq_cmb: cmb(setup.grants[0], sq),
            rq_cmb: cmb(setup.grants[1], rq),
        }
    }
}

fn queue_pair(
    setup: &Setup,
    number: usize,
    cqs: &[CompletionQueue<'static>],
    rings: &Rings,
    log: &Log,
) -> Result<QueuePair<'static, Boxed, Controller>, MemoryError> {
    let config = QpConfig {
        id: setup.qps[number],
        qp_type: setup.qp_type,
        udma: setup.udma,
        signal_all: setup.signal_all,
        send_cq: &cqs[0],
        recv_cq: &cqs[cqs.len() - 1],
    };
    let cmb = |name, pages: &Option<Rc<Pages>>, grant| match (grant, pages) {
        (CmbGrant::Cmb { express, mapping }, Some(pages)) => {
            let log = setup.log_cmb.then(|| log.clone());
            Some(Cmb { memory: Controller { name, pages: pages.clone(), log }, express, mapping })
        }
        _ => None,
    };
    let sq = || QueueMemory {
        // SAFETY: the pages are kept beside the queue pair, and the first of the two queue pairs below is gone before
        // the second is made.
        ring: unsafe { rings.sq.ring() },
        records: vec![SqRecord::default(); setup.plan.sq.records()].into_boxed_slice(),
        cmb: cmb(SEND_CMB[number], &rings.sq_cmb, setup.grants[0]),
    };
    let rq = || QueueMemory {
        // SAFETY: as above.
        ring: unsafe { rings.rq.ring() },
        records: vec![RqRecord::default(); setup.plan.rq.records()].into_boxed_slice(),
        cmb: cmb(RECV_CMB[number], &rings.rq_cmb, setup.grants[1]),
    };
    let fresh = QueuePair::<Boxed, _>::new(&setup.caps, &config, &setup.plan, sq(), rq())?;
    drop(fresh);
    let saved = SavedQp {
        state: QpState::Rts,
        sq: SqState {
            color: true,
            msn_prod: setup.first_message,
            msn_cons: setup.first_message,
            ..SqState::default()
        },
        rq: RqState::default(),
    };
    QueuePair::restore(&setup.caps, &config, &setup.plan, sq(), rq(), &saved)
}
