//! Queue pairs: creation, transitions, reading, destruction.

use directverbs::ionic::QueueMemory;
use directverbs::ionic::admin::*;
use directverbs::ionic::plan::{Placement, QpPlan};
use directverbs::ionic::qp::{self, NoSharedReceiveQueue};
use directverbs::ionic::recv::RqRecord;
use directverbs::ionic::send::SqRecord;
use directverbs::verbs::{AhId, QpAttributes, QpId, QpInit, QpState, QpType};

use super::device::Device;
use super::error::{Cause, Error, On};
use super::queues::{BLOCKS, CompletionQueue, InnerQp, QueuePair};
use super::session::DBID;
use crate::dma::Owned;
use crate::host::Host;

/// Where the device writes what it knows of a queue pair.
const QUERY_SQ: usize = 512;
const QUERY_RQ: usize = 1024;

/// Numbers of a queue pair.
#[derive(Clone, Copy)]
struct Numbers {
    udma: u8,
    nth: u32,
    ah: u32,
}

impl<H: Host> Device<H> {
    pub(super) fn make_qp(
        &mut self,
        pd: u32,
        init: &QpInit<'_, CompletionQueue<H>, NoSharedReceiveQueue>,
    ) -> Result<QueuePair<H>, Cause> {
        self.objects.pds.check(pd)?;
        let cqs = [init.send_cq.nth, init.recv_cq.nth];
        for cq in cqs {
            self.objects.cqs.check(cq)?;
        }
        let plan = QpPlan::new(&self.caps, &init.capabilities, Placement::default())?;
        let kind =
            QpKind::of(init.qp_type).ok_or(Cause::Unsupported("the device has no such queue pairs"))?;
        let (udma, nth) = self.objects.take_qp()?;
        let ah = self.objects.take_ah(pd).inspect_err(|_| self.objects.give_qp(udma, nth))?;
        let numbers = Numbers { udma, nth, ah };
        let queue = match self.build_qp(&numbers, init, &plan) {
            Ok(queue) => queue,
            Err(cause) => {
                self.give_numbers(&numbers);
                return Err(cause);
            }
        };
        let id = queue.id().get();
        let [sq, rq, ..] = queue.device_addresses();
        let rings =
            [plan.sq.ring, plan.rq.ring].map(|ring| PagePlan::ring(ring.depth_log2 + ring.stride_log2));
        let cmd = CreateQpCmd {
            pd_id: pd.into(),
            sq_cq_id: queue.send_cq().get().into(),
            sq_depth_log2: plan.sq.ring.depth_log2,
            sq_stride_log2: plan.sq.ring.stride_log2,
            sq_page_size_log2: rings[0].page_size_log2,
            sq_tbl_index_xrcd_id: ANY_TABLE.into(),
            sq_map_count: rings[0].count.into(),
            sq_dma_addr: rings[0].dma_addr(sq, 0).into(),
            rq_cq_id: queue.recv_cq().get().into(),
            rq_depth_log2: plan.rq.ring.depth_log2,
            rq_stride_log2: plan.rq.ring.stride_log2,
            rq_page_size_log2: rings[1].page_size_log2,
            rq_tbl_index_srq_id: ANY_TABLE.into(),
            rq_map_count: rings[1].count.into(),
            rq_dma_addr: rings[1].dma_addr(rq, 0).into(),
            id_ver: id.into(),
            dbid_flags: DBID.into(),
            type_state: kind.0,
            ..CreateQpCmd::ZERO
        };
        if let Err(cause) = self.session.rdma(&cmd) {
            if cause.is_harmless() {
                queue.release();
                self.give_numbers(&numbers);
            }
            return Err(cause);
        }
        cqs.iter().for_each(|cq| self.objects.cqs.refer(*cq));
        let (doorbell, ah) = (self.doorbell.clone(), AhId::truncated(ah));
        Ok(QueuePair { queue, doorbell, nth, ah, cqs })
    }

    fn give_numbers(&mut self, numbers: &Numbers) {
        self.objects.give_qp(numbers.udma, numbers.nth);
        self.objects.give_ah(numbers.ah);
    }

    fn build_qp(
        &self,
        numbers: &Numbers,
        init: &QpInit<'_, CompletionQueue<H>, NoSharedReceiveQueue>,
        plan: &QpPlan,
    ) -> Result<Owned<InnerQp, H::Dma, BLOCKS>, Cause> {
        let host = &self.session.link.host;
        let config = qp::QpConfig {
            id: QpId::truncated(self.objects.number(numbers.nth, numbers.udma)),
            qp_type: init.qp_type,
            udma: numbers.udma,
            signal_all: init.signal_all,
            send_cq: init.send_cq.queue.queue(),
            recv_cq: init.recv_cq.queue.queue(),
        };
        let blocks = [
            host.dma(plan.sq.ring.bytes(), 4096)?,
            host.dma(plan.rq.ring.bytes(), 4096)?,
            host.dma(plan.sq.records() * size_of::<SqRecord>(), align_of::<SqRecord>())?,
            host.dma(plan.rq.records() * size_of::<RqRecord>(), align_of::<RqRecord>())?,
        ];
        Ok(Owned::build(blocks, |[sq, rq, sends, receives]| {
            // SAFETY: the device is told of the rings only.
            let sends = unsafe { sends.into_records::<SqRecord>("send records", plan.sq.records()) }?;
            // SAFETY: as above.
            let receives =
                unsafe { receives.into_records::<RqRecord>("receive records", plan.rq.records()) }?;
            let sq = QueueMemory { ring: sq, records: sends, cmb: None };
            let rq = QueueMemory { ring: rq, records: receives, cmb: None };
            InnerQp::new(&self.caps, &config, plan, sq, rq)
        })?)
    }

    pub(super) fn change_qp(
        &mut self,
        qp: &mut QueuePair<H>,
        cqs: &mut [&mut CompletionQueue<H>],
        attributes: &QpAttributes,
    ) -> Result<(), Cause> {
        let to = attributes.check(qp.queue.qp_type(), qp.queue.state())?;
        let headers = attributes.path.as_ref().map(|path| self.headers(path)).transpose()?;
        let (qp_type, state) = (qp.queue.qp_type(), qp.queue.state());
        let target = QpTarget { id: qp.queue.id(), qp_type, state, ah: qp.ah };
        let headers = headers.as_ref().map(|(headers, at)| (headers, *at));
        self.session.rdma(&ModifyQpCmd::new(&target, attributes, headers)?)?;
        if to == QpState::Reset {
            forget(&mut qp.queue, cqs);
        }
        qp.queue.set_state(to);
        Ok(())
    }

    /// Reads a queue pair's attributes from the device, but for its path. If that has found it in error, what is outstanding
    /// is flushed.
    ///
    /// # Errors
    /// The device refuses, or answers with a state that there is not.
    pub fn query_qp(&mut self, qp: &mut QueuePair<H>) -> Result<QpAttributes, Error> {
        let (id, qp_type) = (qp.queue.id().get(), qp.queue.qp_type());
        let read = self.read_qp(id, qp_type, qp.ah).on("queue pair", id)?;
        if read.state == Some(QpState::Err) && qp.queue.state() != QpState::Err {
            qp.queue.set_error();
        }
        Ok(read)
    }

    fn read_qp(&mut self, id: u32, qp_type: QpType, ah: AhId) -> Result<QpAttributes, Cause> {
        let (_, at) = self.session.scratch()?;
        let cmd = QueryQpCmd {
            sq_dma_addr: (at + QUERY_SQ as u64).into(),
            rq_dma_addr: (at + QUERY_RQ as u64).into(),
            ah_id: ah.get().into(),
            id_ver: id.into(),
            dbid_flags: DBID.into(),
            ..QueryQpCmd::ZERO
        };
        self.session.rdma(&cmd)?;
        let (scratch, _) = self.session.scratch()?;
        let sq = scratch.load::<QuerySq>(QUERY_SQ).ok_or(Cause::Failed)?;
        let rq = scratch.load::<QueryRq>(QUERY_RQ).ok_or(Cause::Failed)?;
        queried(qp_type, &sq, &rq)
            .ok_or(Cause::Answer { what: "state of a queue pair", given: rq.state_pmtu.into() })
            .inspect_err(|_| self.session.fail())
    }

    pub(super) fn unmake_qp(
        &mut self,
        qp: QueuePair<H>,
        cqs: &mut [&mut CompletionQueue<H>],
    ) -> Result<(), Cause> {
        let QueuePair { mut queue, nth, ah, cqs: of, .. } = qp;
        // From now on the device writes no CQE that names it.
        let destroyed = self.session.rdma(&DestroyQpCmd { qp_id: queue.id().get().into() });
        forget(&mut queue, cqs);
        destroyed?;
        of.iter().for_each(|cq| self.objects.cqs.unrefer(*cq));
        self.give_numbers(&Numbers { udma: queue.udma(), nth, ah: ah.get() });
        queue.release();
        Ok(())
    }
}

fn forget<H: Host>(qp: &mut InnerQp, cqs: &mut [&mut CompletionQueue<H>]) {
    for cq in cqs {
        cq.queue.queue_mut().forget(qp);
    }
}
