//! Commands about queues.

use std::collections::BTreeMap;

use directverbs::bnxt_re::hwrm::context::ContextType;
use directverbs::bnxt_re::pbl::page_shift;
use directverbs::bnxt_re::plan::SRQ_ENTRY_BYTES;
use directverbs::bnxt_re::psn::Retransmit;
use directverbs::bnxt_re::rcfw::cq::{CmdqCreateCq, CmdqDestroyCq, CmdqResizeCq};
use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::qp::{CmdqCreateQp, CmdqDestroyQp, CreqQueryQpRespSb, create_flags, kind};
use directverbs::bnxt_re::rcfw::srq::{CmdqCreateSrq, CmdqDestroySrq};
use directverbs::bnxt_re::wqe::{SLOT_BYTES, STATIC_SGES, STATIC_SLOTS, WqeMode};
use directverbs::verbs::{CqId, QpCapabilities, QpId, QpType, SrqId};

use super::channel::{Outcome, Reply};
use super::chip::{MAX_CQ, MAX_RD_ATOMIC, MAX_SRQ};
use super::function::BnxtFunction;
use super::list::{List, ListError};
use super::queries::MAX_SGES;
use crate::device::{CqConfig, DeviceError, Memory, Notification, QpConfig, RingConfig, SrqConfig};

/// Bytes of a CQE.
const CQE_BYTES: u32 = 32;
/// Queue pair of general services.
const GSI: u32 = 1;
/// Bytes of an entry of the tables of READs and atomics.
const READ_ENTRY: u64 = 32;

/// Queues that the host has created.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub cqs: BTreeMap<u32, CqRecord>,
    pub srqs: BTreeMap<u32, u16>,
    pub qps: BTreeMap<u32, QpRecord>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CqRecord {
    /// Queue of its notifications.
    pub nq: u16,
    /// Notifications so far.
    pub events: u16,
}

#[derive(Clone, Debug)]
pub(super) struct QpRecord {
    /// What a query tells.
    pub attributes: CreqQueryQpRespSb,
    /// Kind.
    pub qp_type: QpType,
    /// Its doorbell page.
    pub dpi: u32,
}

impl Objects {
    /// Whether a queue's notifications go there.
    pub fn uses_nq(&self, id: u16) -> bool {
        self.cqs.values().any(|cq| cq.nq == id) || self.srqs.values().any(|nq| *nq == id)
    }

    /// There are no queues.
    pub fn is_empty(&self) -> bool {
        self.cqs.is_empty() && self.srqs.is_empty() && self.qps.is_empty()
    }
}

/// Level in bits 0 and 1 and page size in bits 2 to 4.
fn queue_list(root: u64, attribute: u32) -> Result<List, ListError> {
    let code = (attribute >> 2 & 7) as u8;
    let shift = page_shift(code).ok_or(ListError::PageSize(code))?;
    Ok(List { root, level: attribute as u8 & 3, shift, ring: true })
}

/// Level in bits 0 to 3 and page size in bits 4 to 7.
fn qp_list(root: u64, attribute: u8) -> Result<List, ListError> {
    let code = attribute >> 4;
    let shift = page_shift(code).ok_or(ListError::PageSize(code))?;
    Ok(List { root, level: attribute & 0xf, shift, ring: true })
}

impl BnxtFunction {
    fn check_page(&self, opcode: Opcode, dpi: u32) -> Result<(), Status> {
        if dpi < self.chip.pages() {
            return Ok(());
        }
        self.violation(format_args!("{opcode}: doorbell page {dpi}"));
        Err(Status::INVALID_PARAMETER)
    }

    fn check_nq(&self, opcode: Opcode, nq: u16) -> Result<(), Status> {
        if self.state.rings.is_nq(nq) && !self.state.rcfw.uses(nq) {
            return Ok(());
        }
        self.violation(format_args!("{opcode}: {nq} is no notification queue"));
        Err(Status::INVALID_PARAMETER)
    }

    /// Whether there is room for one more object in context memory, and in the chip.
    fn room(&self, kind: ContextType, objects: usize, max: u32) -> Result<(), Status> {
        let next = objects as u32 + 1;
        if next <= max && self.has_contexts(kind, next) { Ok(()) } else { Err(Status::RESOURCES) }
    }

    pub(super) fn create_cq(&mut self, command: &CmdqCreateCq) -> Outcome {
        let opcode = Opcode::CREATE_CQ;
        self.room(ContextType::CQ, self.state.objects.cqs.len(), MAX_CQ)?;
        let nq = (command.cq_fco_cnq_id.get() & 0xfff) as u16;
        self.check_nq(opcode, nq)?;
        self.check_page(opcode, command.dpi.get())?;
        let ring = queue_list(command.pbl.get(), command.pg_size_lvl.get())
            .and_then(|list| list.ring(self.bus(), command.cq_size.get(), CQE_BYTES, 0))
            .map_err(|error| self.bad_list(opcode, &error))?;
        let config = CqConfig { id: None, ring, handle: command.cq_handle.get(), vector: 0 };
        let made = self.nic.lock().create_cq(&config);
        let cq = made.map_err(|error| self.refused(opcode, &error))?;
        self.state.objects.cqs.insert(cq.get(), CqRecord { nq, events: 0 });
        Ok(Reply::xid(cq.get()))
    }

    pub(super) fn destroy_cq(&mut self, command: &CmdqDestroyCq) -> Outcome {
        // What it was told before it goes goes out first: the count is of what was written.
        self.notify();
        let cq = CqId::truncated(command.cq_cid.get());
        let gone = self.nic.lock().destroy_cq(cq);
        gone.map_err(|error| self.refused(Opcode::DESTROY_CQ, &error))?;
        let events = self.state.objects.cqs.remove(&cq.get()).map_or(0, |record| record.events);
        let [low, high] = events.to_le_bytes();
        Ok(Reply { word: cq.get(), rest: [0, 0, low, high, 0, 0], side: None })
    }

    pub(super) fn resize_cq(&mut self, command: &CmdqResizeCq) -> Outcome {
        let opcode = Opcode::RESIZE_CQ;
        let word = command.new_cq_size_pg_size_lvl.get();
        let ring = queue_list(command.new_pbl.get(), word)
            .and_then(|list| list.ring(self.bus(), word >> 5 & 0xff_ffff, CQE_BYTES, 0))
            .map_err(|error| self.bad_list(opcode, &error))?;
        let cq = CqId::truncated(command.cq_cid.get());
        let resized = self.nic.lock().resize_cq(cq, &ring);
        resized.map_err(|error| self.refused(opcode, &error))?;
        Ok(Reply::xid(cq.get()))
    }

    pub(super) fn create_srq(&mut self, command: &CmdqCreateSrq) -> Outcome {
        let opcode = Opcode::CREATE_SRQ;
        self.room(ContextType::SRQ, self.state.objects.srqs.len(), MAX_SRQ.into())?;
        let nq = command.eventq_id.get() & 0xfff;
        self.check_nq(opcode, nq)?;
        self.check_page(opcode, command.dpi.get())?;
        let ring = queue_list(command.pbl.get(), command.pg_size_lvl.get().into())
            .and_then(|list| list.ring(self.bus(), command.srq_size.get().into(), SRQ_ENTRY_BYTES, 0))
            .map_err(|error| self.bad_list(opcode, &error))?;
        let pd = self.pd(command.pd_id.get())?;
        let config = SrqConfig { id: None, pd, ring, max_sge: STATIC_SGES, handle: command.srq_handle.get() };
        let made = self.nic.lock().create_srq(&config);
        let srq = made.map_err(|error| self.refused(opcode, &error))?;
        self.state.objects.srqs.insert(srq.get(), nq);
        Ok(Reply::xid(srq.get()))
    }

    pub(super) fn destroy_srq(&mut self, command: &CmdqDestroySrq) -> Outcome {
        self.notify();
        let srq = SrqId::truncated(command.srq_cid.get());
        let gone = self.nic.lock().destroy_srq(srq);
        gone.map_err(|error| self.refused(Opcode::DESTROY_SRQ, &error))?;
        self.state.objects.srqs.remove(&srq.get());
        Ok(Reply::xid(srq.get()))
    }

    pub(super) fn create_qp(&mut self, command: &CmdqCreateQp) -> Outcome {
        let opcode = Opcode::CREATE_QP;
        self.room(ContextType::QP, self.state.objects.qps.len(), self.chip.max_qp)?;
        self.check_page(opcode, command.dpi.get())?;
        let (qp_type, id) = match command.r#type {
            kind::RC => (QpType::Rc, None),
            kind::UD => (QpType::Ud, None),
            kind::RAW_ETHERTYPE => (QpType::RawPacket, None),
            kind::GSI => (QpType::Ud, Some(QpId::truncated(GSI))),
            other => {
                self.violation(format_args!("{opcode}: kind {other}"));
                return Err(Status::INVALID_PARAMETER);
            }
        };
        let flags = command.qp_flags.get();
        let variable = flags & create_flags::VARIABLE_SIZED_WQE != 0;
        if !variable && self.chip.wqe_mode == WqeMode::Variable {
            self.violation(format_args!("{opcode}: WQEs of fixed size"));
            return Err(Status::INVALID_PARAMETER);
        }
        if qp_type == QpType::Rc {
            self.check_read_tables(command)?;
        }
        let capabilities = capabilities(command, variable);
        let (sq, retransmit) = self
            .send_ring(command, variable, qp_type == QpType::Rc)
            .map_err(|error| self.bad_list(opcode, &error))?;
        let srq = flags & create_flags::SRQ_USED != 0;
        let rq = if srq || command.rq_size.get() == 0 {
            None
        } else {
            let stride = (2 + capabilities.max_recv_sge.max(1)) * SLOT_BYTES;
            let list = qp_list(command.rq_pbl.get(), command.rq_pg_size_rq_lvl);
            let ring = list.and_then(|list| list.ring(self.bus(), command.rq_size.get(), stride, 0));
            Some(ring.map_err(|error| self.bad_list(opcode, &error))?)
        };
        let config = QpConfig {
            id,
            qp_type,
            pd: self.pd(command.pd_id.get())?,
            send_cq: CqId::truncated(command.scq_cid.get()),
            recv_cq: CqId::truncated(command.rcq_cid.get()),
            srq: srq.then(|| SrqId::truncated(command.srq_cid.get())),
            sq,
            rq,
            retransmit,
            variable_entries: variable,
            signal_all: flags & create_flags::FORCE_COMPLETION != 0,
            capabilities,
            handle: command.qp_handle.get(),
            pipeline: 0,
            options: 0,
        };
        let made = self.nic.lock().create_qp(&config);
        let qp = made.map_err(|error| self.refused(opcode, &error))?;
        let record = QpRecord { attributes: CreqQueryQpRespSb::ZERO, qp_type, dpi: command.dpi.get() };
        self.state.objects.qps.insert(qp.get(), record);
        Ok(Reply::xid(qp.get()))
    }

    /// The tables of READs and atomics must be there for as many as can be outstanding.
    fn check_read_tables(&self, command: &CmdqCreateQp) -> Result<(), Status> {
        let n = u64::from(MAX_RD_ATOMIC);
        for (name, at, entries) in
            [("IRRQ", command.irrq_addr.get(), 2 * n + 2), ("ORRQ", command.orrq_addr.get(), n + 1)]
        {
            let mut table = vec![0; (entries * READ_ENTRY) as usize];
            if !at.is_multiple_of(4096) || self.bus().read(at, &mut table).is_err() {
                self.violation(format_args!("CREATE_QP: {name} of {entries} entries at {at:#x}"));
                return Err(Status::INVALID_PARAMETER);
            }
        }
        Ok(())
    }

    /// The send ring, and the retransmit table right behind it.
    fn send_ring(
        &self,
        command: &CmdqCreateQp,
        variable: bool,
        connected: bool,
    ) -> Result<(RingConfig, Option<RingConfig>), ListError> {
        let size = command.sq_size.get();
        let stride = if variable { SLOT_BYTES } else { STATIC_SLOTS * SLOT_BYTES };
        let table = self.chip.front_end().retransmit;
        // The host keeps a power of two of entries for messages; with WQEs of variable size half of them are used.
        let (kept, entries) = match table {
            Retransmit::Msn => {
                let kept = size.next_power_of_two();
                (kept, if variable { kept / 2 } else { kept })
            }
            _ => (size, size),
        };
        let behind = u64::from(kept) * u64::from(table.entry_bytes());
        let list = qp_list(command.sq_pbl.get(), command.sq_pg_size_sq_lvl)?;
        // What the driver lists is a multiple of a page; how much it keeps for datagrams is its own business.
        let ring = if connected {
            list.ring(self.bus(), size, stride, behind)?
        } else {
            list.ring(self.bus(), size, stride, behind).or_else(|_| list.ring(self.bus(), size, stride, 0))?
        };
        let Memory::Pages { shift, pages, .. } = &ring.memory else { return Ok((ring, None)) };
        let memory = Memory::Pages { shift: *shift, first: ring.bytes(), pages: pages.clone() };
        let table = RingConfig { memory, entries, stride: table.entry_bytes() };
        Ok((ring, connected.then_some(table)))
    }

    pub(super) fn destroy_qp(&mut self, command: &CmdqDestroyQp) -> Outcome {
        let qp = QpId::truncated(command.qp_cid.get());
        let gone = self.nic.lock().destroy_qp(qp);
        gone.map_err(|error| self.refused(Opcode::DESTROY_QP, &error))?;
        self.state.objects.qps.remove(&qp.get());
        Ok(Reply::xid(qp.get()))
    }

    /// Hands what the NIC has to tell to the host; `true` if there was any.
    pub(super) fn notify(&mut self) -> bool {
        let mut any = false;
        loop {
            let Some(event) = self.nic.lock().take_notification() else { return any };
            any = true;
            match event {
                Notification::Cq(cq) => {
                    let Some(record) = self.state.objects.cqs.get_mut(&cq.get()) else { continue };
                    record.events = record.events.wrapping_add(1);
                    let nq = record.nq;
                    self.notification(nq, &event);
                }
                Notification::SrqLimit(srq) => {
                    let Some(nq) = self.state.objects.srqs.get(&srq.get()).copied() else { continue };
                    self.notification(nq, &event);
                }
                Notification::QpError(qp) => self.qp_error(qp),
                Notification::CqError(cq) => self.cq_error(cq),
                // Nothing is told of these: the driver sees a drained queue by its completions.
                Notification::QpAccess(_) | Notification::SqDrained(_) => {}
            }
        }
    }

    fn notification(&mut self, nq: u16, event: &Notification) {
        let entry = |phase| self.nic.lock().front_end().nqe(event, phase);
        let (Some(old), Some(new)) = (entry(false), entry(true)) else { return };
        self.ring_write(nq, false, |phase| if phase { new } else { old });
    }

    /// Whether there is such a queue pair.
    pub(super) fn known_qp(&self, opcode: Opcode, qp: u32) -> Result<(), Status> {
        if self.state.objects.qps.contains_key(&qp) {
            return Ok(());
        }
        Err(self.refused(opcode, &DeviceError::NoSuch { object: "queue pair", id: qp }))
    }
}

/// What the host was granted. SGEs are told; inline data may fill a WQE.
fn capabilities(command: &CmdqCreateQp, variable: bool) -> QpCapabilities {
    let sges = |word: u16| u32::from(word & 0xf);
    QpCapabilities {
        max_send_wr: command.sq_size.get(),
        max_recv_wr: command.rq_size.get(),
        max_send_sge: sges(command.sq_fwo_sq_sge.get()),
        max_recv_sge: sges(command.rq_fwo_rq_sge.get()),
        max_inline_data: if variable { MAX_SGES } else { STATIC_SGES } * SLOT_BYTES,
    }
}
