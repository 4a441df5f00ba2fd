//! bnxt_re's queues: what the driver checks of their memory, and what it tells the NIC.

use std::sync::Arc;

use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use directverbs::verbs::{CqId, QpType};
use directverbs_softnic::device::{CqConfig, Memory, QpConfig, RingConfig, SrqConfig};
use zerocopy::IntoBytes;

use super::{CQE, has_msn_table, has_toggles};
use crate::Errno;
use crate::abi::QpCap;
use crate::abi::bnxt_re::*;
use crate::lifecycle::{CqRequest, QpRequest, SrqRequest};
use crate::objects::{Cq, Events, Qp, Srq};
use crate::pages::{PAGE, Region, Rights, Stores};
use crate::profile::Release;
use crate::session::Session;
use crate::udata::{Udata, check_mask};
use crate::umem::{self, Umem};

/// Bit of `cq_req.comp_mask`: the ring has as many entries as asked for.
const FIXED_NUM_CQE: u64 = 1;
/// Bit of `qp_req.comp_mask`: in 6.12 `sq_slots` counts, since then all numbers are taken as they are.
const FIXED_QUE_ATTR: u64 = 1;
/// Bit of `cq_resp.comp_mask` and `srq_resp.comp_mask`.
const TOGGLE_PAGE: u64 = 1;
const MAX_SQ_SLOTS: u32 = 65536;
/// Bytes of a slot.
const SLOT: u32 = 16;
/// Bytes of a WQE in static mode, and of an entry of a shared receive queue.
const STATIC_WQE: u32 = 128;
/// Send requests that a static queue has beside those asked for.
const RESERVED_WRS: u32 = 128;

fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE as u64)
}

/// Entries of a ring for `entries`: a power of two, unless the context does without.
fn depth(session: &mut Session<'_>, entries: u32) -> Result<u32, Errno> {
    let exact = session.context()?.driver.exact_depths;
    if exact { Ok(entries) } else { entries.checked_next_power_of_two().ok_or(Errno::INVAL) }
}

fn toggle_page(session: &Session<'_>) -> Result<Option<Arc<Region>>, Errno> {
    if !has_toggles(&session.device.profile) {
        return Ok(None);
    }
    Region::new(PAGE, Rights::ReadOnly, Stores::Plain).map(|region| Some(Arc::new(region)))
}

/// Lets a queue be armed, as the driver does after creation and after each event.
pub(crate) fn enable(session: &Session<'_>, kind: DbType, xid: Xid, toggle: u8) {
    let word = DbWord::ring(kind, xid, DbIndex::ZERO, Epoch(false), Toggle::truncated(toggle.into()));
    session.device.nic.lock().doorbell(0, 0, word.to_u64());
}

fn ring(memory: &Umem, offset: u64, entries: u32, stride: u32) -> RingConfig {
    RingConfig { memory: Memory::Host(memory.pin.start() + offset), entries, stride }
}

/// CQ_CREATE: the queue, and the driver's reply.
pub fn create_cq(session: &mut Session<'_>, asked: &CqRequest) -> Result<(Cq, Vec<u8>), Errno> {
    let release = session.release();
    let known = if release >= Release::V7_2 { 24 } else { 16 };
    let request: CqReq = asked.udata.get(release, 16, known)?;
    check_mask(release, request.comp_mask, FIXED_NUM_CQE)?;
    if asked.flags != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let max = session.device.limits.max_cqe;
    if asked.cqe < 1 || asked.cqe > max {
        return Err(Errno::INVAL);
    }
    let fixed = request.comp_mask & FIXED_NUM_CQE != 0 && release >= Release::V7_2;
    let entries = if fixed { asked.cqe } else { depth(session, asked.cqe + 1)?.min(max + 1) };
    let bytes = pages(u64::from(entries) * u64::from(CQE));
    let memory = umem::get(session, asked.buffer.as_ref(), request.cq_va, bytes)?;
    let toggle = toggle_page(session)?;
    let config =
        CqConfig { id: None, ring: ring(&memory, 0, entries, CQE), handle: 0, vector: asked.vector as u16 };
    let id = session.nic(|nic| nic.create_cq(&config))?;
    if let Ok(xid) = Xid::cq(id) {
        enable(session, DbType::CQ_ARMENA, xid, 0);
    }
    let comp_mask = if toggle.is_some() { TOGGLE_PAGE } else { 0 };
    let reply = CqResp { cqid: id.get(), phase: 1, comp_mask, ..CqResp::default() };
    let cq = Cq {
        ids: [Some(id), None],
        cqe: entries,
        channel: asked.channel,
        completions: 0,
        events: Events { user_handle: asked.user_handle, file: asked.events, reported: 0 },
        pins: vec![memory.pin],
        toggle,
    };
    Ok((cq, reply.as_bytes().to_vec()))
}

/// RESIZE_CQ: entries granted.
pub fn resize_cq(session: &mut Session<'_>, handle: u32, cqe: u32, udata: &Udata) -> Result<u32, Errno> {
    let release = session.release();
    let request: ResizeCqReq = udata.get(release, 8, 8)?;
    let max = session.device.limits.max_cqe;
    if cqe < 1 || cqe > max {
        return Err(Errno::INVAL);
    }
    let entries = depth(session, cqe + 1)?.min(max + 1);
    let bytes = pages(u64::from(entries) * u64::from(CQE));
    let memory = umem::get(session, None, request.cq_va, bytes)?;
    let id = session.objects()?.cq(handle)?.ids[0].ok_or(Errno::INVAL)?;
    let config = ring(&memory, 0, entries, CQE);
    session.nic(|nic| nic.resize_cq(id, &config))?;
    let cq = session.objects()?.cq_mut(handle)?;
    cq.cqe = entries;
    // The NIC writes to the old ring until the process has acknowledged the new one.
    cq.pins.push(memory.pin);
    Ok(cqe)
}

/// SRQ_CREATE: the queue, and the driver's reply.
pub fn create_srq(session: &mut Session<'_>, asked: &SrqRequest) -> Result<(Srq, Vec<u8>), Errno> {
    let release = session.release();
    let limits = session.device.limits;
    if asked.max_wr >= limits.max_srq_wr || asked.max_sge > limits.max_srq_sge {
        return Err(Errno::INVAL);
    }
    let request: SrqReq = asked.udata.get(release, 16, 16)?;
    let entries = depth(session, asked.max_wr + 1)?.min(limits.max_srq_wr + 1);
    let bytes = pages(u64::from(entries) * u64::from(STATIC_WQE));
    let memory = umem::get(session, None, request.srqva, bytes)?;
    let toggle = toggle_page(session)?;
    let config = SrqConfig {
        id: None,
        pd: session.objects()?.pd(asked.pd)?,
        ring: ring(&memory, 0, entries, STATIC_WQE),
        max_sge: asked.max_sge,
        handle: 0,
    };
    let id = session.nic(|nic| nic.create_srq(&config))?;
    if let Ok(xid) = Xid::srq(id) {
        enable(session, DbType::SRQ_ARMENA, xid, 0);
        if asked.limit != 0 {
            arm_srq(session, xid, asked.limit, 0);
        }
    }
    let comp_mask = if toggle.is_some() { TOGGLE_PAGE } else { 0 };
    let reply = SrqResp { srqid: id.get(), rsvd: 0, comp_mask };
    let srq = Srq {
        id,
        max_wr: asked.max_wr,
        max_sge: asked.max_sge,
        limit: asked.limit,
        entries,
        events: Events { user_handle: asked.user_handle, file: asked.events, reported: 0 },
        pin: memory.pin,
        toggle,
    };
    Ok((srq, reply.as_bytes().to_vec()))
}

/// Asks the NIC for an event once a shared receive queue falls below `limit`.
pub(crate) fn arm_srq(session: &Session<'_>, xid: Xid, limit: u32, toggle: u8) {
    let toggle = Toggle::truncated(toggle.into());
    if let Ok(index) = DbIndex::limit(limit) {
        let word = DbWord::ring(DbType::SRQ_ARM, xid, index, Epoch(false), toggle);
        session.device.nic.lock().doorbell(0, 0, word.to_u64());
    }
}

/// Sizes of a queue pair, as the driver computes them.
struct Sizes {
    /// Entries of the send ring, and their bytes.
    sq: (u32, u32),
    /// Entries of the retransmit table.
    npsn: u32,
    /// Modulus of the table: entries that the NIC uses.
    table: u32,
    /// Entries of the receive ring, and their bytes.
    rq: (u32, u32),
}

fn sizes(session: &mut Session<'_>, asked: &QpRequest, request: &QpReq) -> Result<Sizes, Errno> {
    let (limits, variable) = (session.device.limits, session.context()?.driver.variable_wqe);
    let msn = has_msn_table(&session.device.profile);
    // In 6.12 the bit says something else, and only that `sq_slots` is there.
    let fixed = request.comp_mask & FIXED_QUE_ATTR != 0 && session.release() >= Release::V7_2;
    if fixed && !variable {
        return Err(Errno::OPNOTSUPP);
    }
    let cap = &asked.cap;
    let sq = if variable {
        let slots = request.sq_slots;
        if slots == 0 || slots > MAX_SQ_SLOTS {
            return Err(Errno::INVAL);
        }
        (slots, SLOT)
    } else {
        let entries = depth(session, cap.max_send_wr + RESERVED_WRS + 1)?;
        (entries.min((limits.max_qp_wr + RESERVED_WRS + 1).next_power_of_two()), STATIC_WQE)
    };
    let bound = (sq.0 / 2).max(1).next_power_of_two();
    let npsn = if fixed {
        if request.sq_npsn == 0 || request.sq_npsn > bound {
            return Err(Errno::INVAL);
        }
        request.sq_npsn
    } else if msn {
        sq.0.next_power_of_two()
    } else {
        sq.0
    };
    let table = match (msn, fixed, variable) {
        (true, false, true) => npsn / 2,
        _ => npsn,
    };
    let wqe = if variable { (2 + cap.max_recv_sge.max(1)) * SLOT } else { STATIC_WQE };
    let entries = match () {
        () if asked.srq.is_some() => 0,
        () if fixed => cap.max_recv_wr,
        () => depth(session, cap.max_recv_wr + 1)?.min((limits.max_qp_wr + 1).next_power_of_two()),
    };
    Ok(Sizes { sq, npsn, table, rq: (entries, wqe) })
}

/// QP_CREATE: the queue pair, and the driver's reply.
pub fn create_qp(session: &mut Session<'_>, asked: &QpRequest) -> Result<(Qp, Vec<u8>), Errno> {
    let release = session.release();
    let known = if release >= Release::V7_2 { 40 } else { 36 };
    let request: QpReq = asked.udata.get(release, 24, known)?;
    check_mask(release, request.comp_mask, FIXED_QUE_ATTR)?;
    let limits = session.device.limits;
    let cap = &asked.cap;
    let over = cap.max_send_wr > limits.max_qp_wr
        || cap.max_recv_wr > limits.max_qp_wr
        || cap.max_send_sge > limits.max_sge
        || cap.max_recv_sge > limits.max_sge
        || cap.max_inline_data > limits.max_inline;
    if over {
        return Err(Errno::INVAL);
    }
    if asked.flags != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let Sizes { sq, npsn, table, rq } = sizes(session, asked, &request)?;
    let slots = u64::from(sq.0) * u64::from(sq.1);
    let psn_bytes = if has_msn_table(&session.device.profile) { 8 } else { 16 };
    let connected = asked.qp_type == QpType::Rc;
    let behind = if connected { u64::from(npsn) * psn_bytes } else { 0 };
    let send = umem::get(session, asked.sq_buffer.as_ref(), request.qpsva, pages(slots + behind))?;
    let mut pins = Vec::new();
    let receive = match rq.0 {
        0 => None,
        // A queue that nobody can post to has no memory either.
        _ if cap.max_recv_wr == 0 => None,
        entries => {
            let bytes = pages(u64::from(entries) * u64::from(rq.1));
            let memory = umem::get(session, asked.rq_buffer.as_ref(), request.qprva, bytes)?;
            let config = ring(&memory, 0, entries, rq.1);
            pins.push(memory.pin);
            Some(config)
        }
    };
    let retransmit = connected.then(|| ring(&send, slots, table, psn_bytes as u32));
    let dpi = asked.dbr.map(|handle| session.objects()?.dbr(handle)).transpose()?;
    let objects = session.objects()?;
    let cq = |handle| objects.cq(handle)?.ids[0].ok_or(Errno::INVAL);
    let (send_cq, recv_cq): (CqId, CqId) = (cq(asked.send_cq)?, cq(asked.recv_cq)?);
    let variable = sq.1 == SLOT;
    let config = QpConfig {
        id: None,
        qp_type: asked.qp_type,
        pd: objects.pd(asked.pd)?,
        send_cq,
        recv_cq,
        srq: asked.srq.map(|srq| objects.srq(srq).map(|srq| srq.id)).transpose()?,
        sq: ring(&send, 0, sq.0, sq.1),
        rq: receive,
        retransmit,
        variable_entries: variable,
        signal_all: asked.signal_all,
        capabilities: asked.capabilities(),
        handle: request.qp_handle,
        pipeline: 0,
        options: 0,
    };
    // The NIC takes doorbells of any page; which one is the driver's to remember.
    let _ = dpi;
    let id = session.nic(|nic| nic.create_qp(&config))?;
    pins.push(send.pin);
    let reply = QpResp { qpid: id.get(), rsvd: 0 };
    let granted = QpCap { ..*cap };
    Ok((asked.made(id, granted, pins, None), reply.as_bytes().to_vec()))
}
