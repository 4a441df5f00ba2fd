//! Queue pairs: creation, transitions, reading, destruction.

use core::marker::PhantomData;

use directverbs::ionic::QueueMemory;
use directverbs::ionic::admin::*;
use directverbs::ionic::cmb::{Cmb, Mapping};
use directverbs::ionic::devcmd::{CmbArea, CmbKind};
use directverbs::ionic::plan::{Placement, QpPlan, RingPlan, WorkQueuePlan};
use directverbs::ionic::qp::{self, NoSharedReceiveQueue};
use directverbs::ionic::recv::RqRecord;
use directverbs::ionic::send::SqRecord;
use directverbs::text;
use directverbs::verbs::{AhId, PlanError, QpAttributes, QpId, QpInit, QpState};

use super::device::{Device, ProtectionDomain, QP};
use super::error::{Cause, Error, On};
use super::queues::{BLOCKS, CompletionQueue, InnerQp, QueuePair};
use super::session::{BAR_MEMORY, DBID};
use crate::dma::Owned;
use crate::host::Host;
use crate::ledger::Kind;
use crate::registers::{Caching, DoorbellPage};

/// Where the device writes what it knows of a queue pair.
const QUERY_SQ: usize = 512;
const QUERY_RQ: usize = 1024;
const QUERY_HEADERS: usize = 1536;

/// Numbers of a queue pair.
#[derive(Clone, Copy)]
struct Numbers {
    udma: u8,
    id: u32,
    ah: u32,
}

/// Controller memory for a queue, mapped.
struct Placed<H: Host> {
    place: CmbArea,
    cmb: Cmb<DoorbellPage<H::Bar>>,
}

/// The part of a command that tells of a ring: pages, and where it is.
struct Told {
    pages: PagePlan,
    at: u64,
}

impl Told {
    fn new(ring: RingPlan, host: u64, place: Option<CmbArea>) -> Self {
        let pages = PagePlan::ring(ring.depth_log2 + ring.stride_log2);
        // That a queue in controller memory is named by its offset in the BAR is assumed: no document says it.
        let at = place.map_or_else(|| pages.dma_addr(host, 0), |place| place.offset);
        Self { pages, at }
    }
}

impl<'n, H: Host> Device<'n, H> {
    /// Takes controller memory for a queue, if it is wanted and there is some.
    ///
    /// # Errors
    /// It is required and there is none.
    fn place(&mut self, plan: &WorkQueuePlan) -> Result<Option<Placed<H>>, Cause> {
        let wish = plan.cmb;
        if !wish.enable {
            return Ok(None);
        }
        let express = CmbKind::express(plan.ring.stride_log2).filter(|_| wish.express);
        let plain = Some(CmbKind::MEMORY).filter(|_| !(wish.express && wish.require));
        for kind in [express, plain].into_iter().flatten() {
            let Some(area) = self.memory.area(kind) else { continue };
            let books = self.nic.books.as_mut().ok_or(Cause::Failed)?;
            let Some(place) = books.place(area, plan.ring.bytes() as u64) else { continue };
            match self.host().map_bar(BAR_MEMORY, place.offset, plan.ring.bytes(), Caching::WriteCombining) {
                Ok(bar) => {
                    let (express, mapping) = (kind != CmbKind::MEMORY, Mapping::WriteCombined);
                    let cmb = Cmb { memory: DoorbellPage(bar), express, mapping };
                    return Ok(Some(Placed { place, cmb }));
                }
                Err(error) => {
                    self.vacate(Some(place));
                    if wish.require {
                        return Err(error.into());
                    }
                }
            }
        }
        if wish.require {
            let none = text!("there is not the controller memory required");
            return Err(PlanError::Unsupported(none).into());
        }
        Ok(None)
    }

    fn vacate(&mut self, place: Option<CmbArea>) {
        if let (Some(books), Some(place)) = (&mut self.nic.books, place) {
            books.vacate(place);
        }
    }

    pub(super) fn make_qp(
        &mut self,
        pd: &ProtectionDomain<'_>,
        init: &QpInit<'_, CompletionQueue<'n, H>, NoSharedReceiveQueue>,
    ) -> Result<QueuePair<'n, H>, Cause> {
        for lease in [pd.lease, init.send_cq.lease, init.recv_cq.lease] {
            self.check_own(lease)?;
        }
        let plan =
            QpPlan::new(&self.caps, &init.capabilities, Placement { sq: pd.config.sq, rq: pd.config.rq })?;
        let kind = QpKind::of(init.qp_type)
            .ok_or(Cause::Unsupported(text!("the device has no such queue pairs")))?;
        self.check_room()?;
        let (udma, id) = self.nic.free_qp(pd.config.pipelines)?;
        let numbers = Numbers { udma, id, ah: self.nic.free_ah()? };
        let sq = self.place(&plan.sq)?;
        let sq_place = sq.as_ref().map(|placed| placed.place);
        let rq = self.place(&plan.rq).inspect_err(|_| self.vacate(sq_place))?;
        let places = [sq_place, rq.as_ref().map(|placed| placed.place)];
        let cmbs = [sq, rq].map(|placed| placed.map(|placed| placed.cmb));
        let made = self.build_qp(&numbers, init, &plan, cmbs).and_then(|queue| {
            let [sq, rq, ..] = queue.device_addresses();
            let addresses = [Told::new(plan.sq.ring, sq, places[0]), Told::new(plan.rq.ring, rq, places[1])];
            match self.tell_qp(pd, kind, &plan, &queue, &addresses, places) {
                Ok(()) => Ok(queue),
                Err(cause) => {
                    if cause.is_harmless() {
                        queue.release();
                    }
                    Err(cause)
                }
            }
        });
        let queue = match made {
            Ok(queue) => queue,
            Err(cause) => {
                if cause.is_harmless() {
                    places.into_iter().for_each(|place| self.vacate(place));
                }
                return Err(cause);
            }
        };
        let cqs = [init.send_cq, init.recv_cq].map(|cq| (Kind::CompletionQueue, self.number(cq.nth, 0)));
        // It keeps an address handle's number for itself.
        let needs = [pd.object(), cqs[0], cqs[1], (Kind::AddressHandle, numbers.ah)];
        self.nic.created((Kind::QueuePair, id), &needs);
        let (doorbell, ah) = (self.doorbell.clone(), AhId::truncated(numbers.ah));
        Ok(QueuePair { queue, doorbell, ah, places, lease: self.lease, host: PhantomData })
    }

    /// Has the device create a queue pair.
    fn tell_qp(
        &mut self,
        pd: &ProtectionDomain<'_>,
        kind: QpKind,
        plan: &QpPlan,
        queue: &InnerQp<'n, H>,
        [sq, rq]: &[Told; 2],
        places: [Option<CmbArea>; 2],
    ) -> Result<(), Cause> {
        let flags = QpFlags::new().with_sq_cmb(places[0].is_some()).with_rq_cmb(places[1].is_some());
        let cmd = CreateQpCmd {
            pd_id: pd.id.into(),
            priv_flags: u32::from(flags).into(),
            sq_cq_id: queue.send_cq().get().into(),
            sq_depth_log2: plan.sq.ring.depth_log2,
            sq_stride_log2: plan.sq.ring.stride_log2,
            sq_page_size_log2: sq.pages.page_size_log2,
            sq_tbl_index_xrcd_id: ANY_TABLE.into(),
            sq_map_count: sq.pages.count.into(),
            sq_dma_addr: sq.at.into(),
            rq_cq_id: queue.recv_cq().get().into(),
            rq_depth_log2: plan.rq.ring.depth_log2,
            rq_stride_log2: plan.rq.ring.stride_log2,
            rq_page_size_log2: rq.pages.page_size_log2,
            rq_tbl_index_srq_id: ANY_TABLE.into(),
            rq_map_count: rq.pages.count.into(),
            rq_dma_addr: rq.at.into(),
            id_ver: queue.id().get().into(),
            dbid_flags: DBID.into(),
            type_state: kind.0,
            ..CreateQpCmd::ZERO
        };
        self.nic.session.rdma(&cmd).map(drop)
    }

    fn build_qp(
        &self,
        numbers: &Numbers,
        init: &QpInit<'_, CompletionQueue<'n, H>, NoSharedReceiveQueue>,
        plan: &QpPlan,
        [sq_cmb, rq_cmb]: [Option<Cmb<DoorbellPage<H::Bar>>>; 2],
    ) -> Result<Owned<InnerQp<'n, H>, H::Dma, BLOCKS>, Cause> {
        let config = qp::QpConfig {
            id: QpId::truncated(numbers.id),
            qp_type: init.qp_type,
            udma: numbers.udma,
            signal_all: init.signal_all,
            send_cq: init.send_cq.queue.queue(),
            recv_cq: init.recv_cq.queue.queue(),
        };
        let host = self.host();
        let blocks = [
            host.dma(plan.sq.ring.bytes(), 4096)?,
            host.dma(plan.rq.ring.bytes(), 4096)?,
            host.dma(plan.sq.records() * size_of::<SqRecord>(), align_of::<SqRecord>())?,
            host.dma(plan.rq.records() * size_of::<RqRecord>(), align_of::<RqRecord>())?,
        ];
        Ok(Owned::build(blocks, |[sq, rq, sends, receives]| {
            // SAFETY: the device is told of the rings only.
            let sends = unsafe { sends.into_records::<SqRecord>(text!("send records"), plan.sq.records()) }?;
            // SAFETY: as above.
            let receives =
                unsafe { receives.into_records::<RqRecord>(text!("receive records"), plan.rq.records()) }?;
            let sq = QueueMemory { ring: sq, records: sends, cmb: sq_cmb };
            let rq = QueueMemory { ring: rq, records: receives, cmb: rq_cmb };
            InnerQp::<'n, H>::new(&self.caps, &config, plan, sq, rq)
        })?)
    }

    pub(super) fn change_qp(
        &mut self,
        qp: &mut QueuePair<'n, H>,
        cqs: &mut [&mut CompletionQueue<'n, H>],
        attributes: &QpAttributes,
    ) -> Result<(), Cause> {
        self.check_own(qp.lease)?;
        let (qp_type, state) = (qp.queue.qp_type(), qp.queue.state());
        // What cannot be is found out before the device is asked for anything.
        let to = attributes.check(qp_type, state)?;
        let headers = attributes.path.as_ref().map(|path| self.headers(path)).transpose()?;
        let target = QpTarget { id: qp.queue.id(), qp_type, state, ah: qp.ah };
        let headers = headers.as_ref().map(|(headers, at)| (headers, *at));
        self.nic.session.rdma(&ModifyQpCmd::new(&target, attributes, headers)?)?;
        if to == QpState::Reset {
            forget(&mut qp.queue, cqs);
        }
        qp.queue.set_state(to);
        Ok(())
    }

    /// Reads a queue pair's attributes from the device; its path too, if the device tells it and it is from one of our GIDs. If
    /// that has found it in error, what is outstanding is flushed.
    ///
    /// # Errors
    /// The device refuses, or answers with a state that there is not.
    pub fn query_qp(&mut self, qp: &mut QueuePair<'n, H>) -> Result<QpAttributes, Error> {
        let id = qp.queue.id().get();
        let read = self.check_own(qp.lease).and_then(|()| self.read_qp(qp)).on(QP, id)?;
        if read.state == Some(QpState::Err) && qp.queue.state() != QpState::Err {
            qp.queue.set_error();
        }
        Ok(read)
    }

    fn read_qp(&mut self, qp: &QueuePair<'n, H>) -> Result<QpAttributes, Cause> {
        let (scratch, at) = self.nic.session.scratch()?;
        // What the device does not write must not be taken for its answer.
        scratch.store_bytes(QUERY_HEADERS, &[0; TEMPLATE_MAX]);
        let cmd = QueryQpCmd {
            hdr_dma_addr: (at + QUERY_HEADERS as u64).into(),
            sq_dma_addr: (at + QUERY_SQ as u64).into(),
            rq_dma_addr: (at + QUERY_RQ as u64).into(),
            ah_id: qp.ah.get().into(),
            id_ver: qp.queue.id().get().into(),
            dbid_flags: DBID.into(),
        };
        self.nic.session.rdma(&cmd)?;
        let (scratch, _) = self.nic.session.scratch()?;
        let sq = scratch.load::<QuerySq>(QUERY_SQ).ok_or(Cause::Failed)?;
        let rq = scratch.load::<QueryRq>(QUERY_RQ).ok_or(Cause::Failed)?;
        let headers = scratch.load::<[u8; TEMPLATE_MAX]>(QUERY_HEADERS).ok_or(Cause::Failed)?;
        let read = queried(qp.queue.qp_type(), &sq, &rq)
            .ok_or(Cause::Answer { what: text!("state of a queue pair"), given: rq.state_pmtu.into() })
            .inspect_err(|_| self.nic.session.fail())?;
        Ok(QpAttributes { path: self.path_of(&headers), ..read })
    }

    pub(super) fn unmake_qp(
        &mut self,
        qp: QueuePair<'n, H>,
        cqs: &mut [&mut CompletionQueue<'n, H>],
    ) -> Result<(), Cause> {
        self.check_own(qp.lease)?;
        let QueuePair { mut queue, places, .. } = qp;
        let id = queue.id().get();
        // From now on the device writes no CQE that names it.
        let destroyed = self.nic.session.rdma(&DestroyQpCmd { qp_id: id.into() });
        forget(&mut queue, cqs);
        destroyed?;
        self.nic.destroyed((Kind::QueuePair, id));
        places.into_iter().for_each(|place| self.vacate(place));
        queue.release();
        Ok(())
    }
}

fn forget<H: Host>(qp: &mut InnerQp<'_, H>, cqs: &mut [&mut CompletionQueue<'_, H>]) {
    for cq in cqs {
        cq.queue.queue_mut().forget(qp);
    }
}
