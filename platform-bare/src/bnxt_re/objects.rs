//! Objects: their memory, and the commands that create and destroy them.

use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq};
use directverbs::bnxt_re::cq;
use directverbs::bnxt_re::pbl::Use;
use directverbs::bnxt_re::plan::{CqPlan, QpPlan, SRQ_ENTRY_BYTES, SrqPlan};
use directverbs::bnxt_re::qp::{self, QueuePairInit};
use directverbs::bnxt_re::rcfw::cq::{CmdqCreateCq, CmdqDestroyCq};
use directverbs::bnxt_re::rcfw::create::NewQp;
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::qp::{CmdqCreateQp, CmdqDestroyQp, CmdqQueryQp, CreqQueryQpRespSb};
use directverbs::bnxt_re::rcfw::srq::{CmdqCreateSrq, CmdqDestroySrq, CmdqQuerySrq, CreqQuerySrqRespSb};
use directverbs::bnxt_re::send::{SendInit, SendRecord};
use directverbs::bnxt_re::srq::{self, SrqRecord};
use directverbs::text;
use directverbs::verbs::{CqId, MemoryError, QpId, QpInit, QpType, QueuePair as _, SrqId, SrqInit};
use zerocopy::little_endian as le;

use super::area::{Areas, address, shared};
use super::device::{Device, ProtectionDomain};
use super::error::Error;
use super::page::QueuePage;
use super::queue::{CompletionQueue, QueuePair, SharedReceiveQueue};
use crate::host::Host;
use crate::ledger::{Kind, Object};

/// Doorbell page of all queues that do not push: the privileged one.
const DPI: u32 = 0;
/// Bytes of an entry of the tables of READs and atomics.
const READ_ENTRY: u64 = 32;
impl<'n, H: Host> Device<'n, H> {
    /// Whether a protection domain is of this NIC.
    pub(super) fn check_pd(&self, pd: &ProtectionDomain<'_>) -> Result<(), Error> {
        self.check_own(Kind::ProtectionDomain, pd.lease)
    }

    pub(super) fn new_cq(&mut self, cqe: u32) -> Result<CompletionQueue<'n, H>, Error> {
        let plan = CqPlan::new(self.caps(), cqe)?;
        self.check_room()?;
        let mut areas = Areas::default();
        let at = areas.pages(plan.bytes.into());
        let area = areas.list(at, plan.bytes.into(), Use::Ring)?;
        let mut memory = shared(&self.nic.host, areas.bytes())?;
        let base = address(&memory);
        let listed = area.write(&mut memory, base)?;
        let handle = u64::from(self.nic.next_handle());
        let page = QueuePage::new(self.page.clone());
        let (brought, host) = self.nic.brought()?;
        let command = CmdqCreateCq::new(handle, plan.entries, listed, brought.nq_id, DPI)?;
        let done = match brought.command(host, &command) {
            Err(error) if error.is_refusal() => {
                memory.release();
                return Err(error);
            }
            other => other?,
        };
        let xid = done.xid.get();
        self.nic.created(Opcode::CREATE_CQ, (Kind::CompletionQueue, xid), xid, &[])?;
        let id = CqId::truncated(xid);
        let queue = memory.try_map(|memory| {
            let (ring, _) = memory.split_at(plan.bytes as usize);
            cq::CompletionQueue::new(ring, &plan, id).map(|cq| AttachedCq::new(cq, page))
        })?;
        queue.cq.enable(directverbs::bnxt_re::doorbell::Toggle::ZERO, &queue.page);
        Ok(CompletionQueue { queue, plan, handle, lease: self.lease })
    }

    pub(super) fn drop_cq(&mut self, cq: CompletionQueue<'n, H>) -> Result<(), Error> {
        self.check_own(Kind::CompletionQueue, cq.lease)?;
        self.check_unused(cq.object())?;
        let cq_cid = le::U32::new(cq.queue.cq.id().get());
        let (brought, host) = self.nic.brought()?;
        brought.command(host, &CmdqDestroyCq { cq_cid, ..CmdqDestroyCq::ZERO })?;
        self.nic.destroyed(cq.object());
        cq.queue.release();
        Ok(())
    }

    pub(super) fn new_srq(
        &mut self,
        pd: &ProtectionDomain<'_>,
        init: &SrqInit,
    ) -> Result<SharedReceiveQueue<'n, H>, Error> {
        self.check_pd(pd)?;
        let plan = SrqPlan::new(self.caps(), init)?;
        self.check_room()?;
        let bytes = u64::from(plan.entries) * u64::from(SRQ_ENTRY_BYTES);
        let mut areas = Areas::default();
        let at = areas.pages(plan.bytes.into());
        let area = areas.list(at, bytes, Use::Ring)?;
        let records_at = areas.pages((plan.shadow() * size_of::<SrqRecord>()) as u64);
        let mut memory = shared(&self.nic.host, areas.bytes())?;
        let base = address(&memory);
        let listed = area.write(&mut memory, base)?;
        let handle = u64::from(self.nic.next_handle());
        let page = QueuePage::new(self.page.clone());
        let (brought, host) = self.nic.brought()?;
        let command = CmdqCreateSrq::new(handle, plan.entries, listed, brought.nq_id, DPI, pd.id)?;
        let done = match brought.command(host, &command) {
            Err(error) if error.is_refusal() => {
                memory.release();
                return Err(error);
            }
            other => other?,
        };
        let xid = done.xid.get();
        self.nic.created(Opcode::CREATE_SRQ, (Kind::SharedReceiveQueue, xid), xid, &[pd.object()])?;
        let id = SrqId::truncated(xid);
        let queue = memory.try_map(|memory| {
            let (front, records) = memory.split_at(records_at as usize);
            let (ring, _) = front.split_at(plan.bytes as usize);
            // SAFETY: the device was told of the ring and its list alone, which lie in front of the records.
            let records =
                unsafe { records.into_records::<SrqRecord>(text!("receive records"), plan.shadow()) }?;
            let srq = srq::SharedReceiveQueue::new(ring, records, &plan, id)?;
            Ok::<_, MemoryError>(AttachedSrq { srq, page })
        })?;
        queue.srq.enable(&queue.page, directverbs::bnxt_re::doorbell::Toggle::ZERO);
        Ok(SharedReceiveQueue { queue, handle, lease: self.lease })
    }

    pub(super) fn drop_srq(&mut self, srq: SharedReceiveQueue<'n, H>) -> Result<(), Error> {
        self.check_own(Kind::SharedReceiveQueue, srq.lease)?;
        self.check_unused(srq.object())?;
        let srq_cid = le::U32::new(srq.queue.srq.id().get());
        let (brought, host) = self.nic.brought()?;
        brought.command(host, &CmdqDestroySrq { srq_cid, ..CmdqDestroySrq::ZERO })?;
        self.nic.destroyed(srq.object());
        srq.queue.release();
        Ok(())
    }

    /// What the device tells about a shared receive queue: the limit that is armed.
    ///
    /// # Errors
    /// It does not tell.
    pub fn query_srq(&mut self, srq: &SharedReceiveQueue<'_, H>) -> Result<CreqQuerySrqRespSb, Error> {
        self.check_own(Kind::SharedReceiveQueue, srq.lease)?;
        let srq_cid = le::U32::new(srq.queue.srq.id().get());
        let (brought, host) = self.nic.brought()?;
        brought.query(host, &CmdqQuerySrq { srq_cid, ..CmdqQuerySrq::ZERO })
    }

    pub(super) fn new_qp(
        &mut self,
        pd: &ProtectionDomain<'_>,
        init: &QpInit<'_, CompletionQueue<'n, H>, SharedReceiveQueue<'n, H>>,
    ) -> Result<QueuePair<'n, H>, Error> {
        self.check_pd(pd)?;
        let cqs = [init.send_cq, init.recv_cq];
        cqs.iter().try_for_each(|cq| self.check_own(Kind::CompletionQueue, cq.lease))?;
        let srq = init.srq.map_or(Ok(()), |srq| self.check_own(Kind::SharedReceiveQueue, srq.lease));
        srq?;
        let plan = QpPlan::new(self.caps(), &init.capabilities, init.srq.is_some())?;
        self.check_room()?;
        let push = match &self.nic.push {
            Some(pages) => (pages.claim)(pages)?,
            None => None,
        };
        let connected = init.qp_type == QpType::Rc;
        let mut areas = Areas::default();
        let sq_at = areas.pages(plan.send.bytes.into());
        let rq_bytes = plan.recv.map_or(0, |recv| u64::from(recv.bytes));
        let rq_at = areas.pages(rq_bytes);
        let outstanding = self.told.outstanding;
        let table = |entries: u32| if connected { u64::from(entries) * READ_ENTRY } else { 0 };
        let irrq_at = areas.pages(table(outstanding.irrq()));
        let orrq_at = areas.pages(table(outstanding.orrq()));
        let sq_area = areas.list(sq_at, plan.send.bytes.into(), Use::Ring)?;
        let rq_area = match rq_bytes {
            0 => None,
            bytes => Some(areas.list(rq_at, bytes, Use::Ring)?),
        };
        let sends_at = areas.pages((plan.send.shadow() * size_of::<SendRecord>()) as u64);
        let receives = plan.recv.map_or(0, |recv| recv.shadow());
        let receives_at = areas.pages((receives * size_of::<u64>()) as u64);
        let mut memory = shared(&self.nic.host, areas.bytes())?;
        let base = address(&memory);
        let sq = sq_area.write(&mut memory, base)?;
        let rq = rq_area.map(|area| area.write(&mut memory, base)).transpose()?;
        let handle = self.nic.next_handle();
        let command = CmdqCreateQp::new(&NewQp {
            handle: handle.into(),
            qp_type: init.qp_type,
            plan: &plan,
            signal_all: init.signal_all,
            sq,
            rq,
            read_tables: connected.then_some((base + irrq_at, base + orrq_at)),
            send_cq: init.send_cq.queue.cq.id(),
            recv_cq: init.recv_cq.queue.cq.id(),
            srq: init.srq.map(|srq| srq.queue.srq.id()),
            pd: pd.id,
            dpi: push.as_ref().map_or(DPI, |push| push.dpi),
        })?;
        let atomics = self.caps().limits.atomics;
        let page = QueuePage::new(push.as_ref().map_or(&self.page, |push| &push.page).clone());
        let (brought, host) = self.nic.brought()?;
        let done = match brought.command(host, &command) {
            Err(error) if error.is_refusal() => {
                memory.release();
                return Err(error);
            }
            other => other?,
        };
        let xid = done.xid.get();
        let [send_cq, recv_cq] = cqs.map(CompletionQueue::object);
        let mut needs = heapless::Vec::<Object, 4>::from_array([pd.object(), send_cq, recv_cq]);
        needs.extend(init.srq.map(SharedReceiveQueue::object));
        self.nic.created(Opcode::CREATE_QP, (Kind::QueuePair, xid), xid, &needs)?;
        let id = QpId::truncated(xid);
        let send =
            SendInit { plan: plan.send, qp: id, qp_type: init.qp_type, signal_all: init.signal_all, atomics };
        let init = QueuePairInit {
            id,
            handle,
            qp_type: init.qp_type,
            send_cq: init.send_cq.queue.cq.id(),
            recv_cq: init.recv_cq.queue.cq.id(),
            srq: init.srq.map(|srq| srq.queue.srq.id()),
            capabilities: plan.granted(),
        };
        let queue = memory.try_map(|memory| {
            let (rings, records) = memory.split_at(sends_at as usize);
            let (sq, rest) = rings.split_at(rq_at as usize);
            let (rq, _) = rest.split_at(rq_bytes as usize);
            let (sends, receive) = records.split_at((receives_at - sends_at) as usize);
            // SAFETY: the device was told of rings, tables and lists alone, which lie in front of the records.
            let (sends, receive) = unsafe {
                (
                    sends.into_records::<SendRecord>(text!("send records"), plan.send.shadow())?,
                    receive.into_records::<u64>(text!("receive records"), receives)?,
                )
            };
            let qp = qp::QueuePair::assemble(&plan, &send, &init, (sq, sends), Some((rq, receive)))?;
            Ok::<_, MemoryError>(AttachedQp { qp, page })
        })?;
        if let (Some(pages), Some(push)) = (&mut self.nic.push, &push) {
            pages.mark(push, true);
        }
        Ok(QueuePair { queue, push, lease: self.lease })
    }

    pub(super) fn drop_qp(&mut self, qp: QueuePair<'n, H>) -> Result<(), Error> {
        let qp_cid = le::U32::new(qp.queue.qp.id().get());
        let (brought, host) = self.nic.brought()?;
        brought.command(host, &CmdqDestroyQp { qp_cid, ..CmdqDestroyQp::ZERO })?;
        self.nic.destroyed(qp.object());
        if let (Some(pages), Some(push)) = (&mut self.nic.push, &qp.push) {
            pages.mark(push, false);
        }
        qp.queue.release();
        Ok(())
    }

    /// What the device tells about a queue pair.
    ///
    /// # Errors
    /// It does not tell.
    pub fn query_qp(&mut self, qp: &QueuePair<'_, H>) -> Result<CreqQueryQpRespSb, Error> {
        self.check_own(Kind::QueuePair, qp.lease)?;
        let qp_cid = le::U32::new(qp.id().get());
        let (brought, host) = self.nic.brought()?;
        brought.query(host, &CmdqQueryQp { qp_cid, ..CmdqQueryQp::ZERO })
    }
}
