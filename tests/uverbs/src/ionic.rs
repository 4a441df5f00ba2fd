//! ionic's driver: what it checks, and what it tells the NIC. Source: kernel `rdma/ionic-abi.h`.

use std::sync::Arc;

use directverbs::verbs::{CqId, QpId, QpType};
use directverbs_softnic::device::{CqConfig, Memory, QpConfig, RingConfig};
use directverbs_softnic::ionic::{CQ_QTYPE, PIPELINE_SHIFT, RQ_QTYPE, SQ_QTYPE, options};
use zerocopy::IntoBytes;

use crate::Errno;
use crate::abi::QpCap;
use crate::abi::ionic::*;
use crate::lifecycle::{CqRequest, QpRequest};
use crate::objects::{Cq, Events, Qp};
use crate::pages::{PAGE, Region, Rights, Stores};
use crate::profile::Release;
use crate::session::Session;
use crate::udata::Udata;
use crate::user::Pin;

const PAGE_SHIFT: u32 = 12;
/// Pipelines.
const UDMA_COUNT: u8 = 2;
/// Longest WQE, base-two logarithm of its bytes.
const MAX_STRIDE_LOG2: u8 = 10;
/// SGEs of a list of lengths.
const MAX_SPEC: u8 = 8;
/// Opcodes of queue pairs, and of the admin queue.
const OPCODES: [u8; 2] = [16, 19];
/// Doorbell register of admin queues.
const ADMIN_QTYPE: u8 = 2;
/// Strides with express doorbells: 64, 128, 256 and 512 bytes.
const EXPRESS_STRIDES: u8 = 0b1111;
/// Only send queues are placed in the NIC's memory.
const EXPRESS_QUEUES: u8 = 1;
/// Completions that a queue has room for beside those asked for.
const CQ_GRACE: u32 = 100;

/// A clock that counts nanoseconds.
const CLOCK: ClockInfo = ClockInfo {
    sign: 0,
    resv: 0,
    nsec: 0,
    cycles: 0,
    frac: 0,
    mult: 1,
    shift: 0,
    mask: u64::MAX,
    overflow_period: u64::MAX,
};

/// GET_CONTEXT: the driver's reply.
pub fn get_context(session: &mut Session<'_>, udata: &Udata) -> Result<Vec<u8>, Errno> {
    let request: CtxReq = udata.get(session.release(), 8, 8)?;
    if request != CtxReq::default() {
        return Err(Errno::INVAL);
    }
    let dpi = session.device.take_dpi()?;
    let nic = session.device.nic.clone();
    let added = Region::new(PAGE, Rights::Any, Stores::Doorbell(nic, dpi))
        .and_then(|doorbell| session.add_page(0, Arc::new(doorbell)));
    let cookie = added.inspect_err(|_| session.device.dpis.give(dpi))?;
    session.context()?.driver.doorbell = Some((dpi, cookie));
    let mut phc_offset = 0;
    if session.release() >= Release::V7_3 {
        let clock = Region::new(PAGE, Rights::ReadOnly, Stores::Plain)?;
        clock.write(0, CLOCK.as_bytes());
        phc_offset = session.add_page(0, Arc::new(clock))?;
    }
    let reply = CtxResp {
        page_shift: PAGE_SHIFT,
        version: if session.device.is_ionic_v1() { 1 } else { 2 },
        qp_opcodes: OPCODES[0],
        admin_opcodes: OPCODES[1],
        sq_qtype: SQ_QTYPE,
        rq_qtype: RQ_QTYPE,
        cq_qtype: CQ_QTYPE,
        admin_qtype: ADMIN_QTYPE,
        max_stride: MAX_STRIDE_LOG2,
        max_spec: MAX_SPEC,
        udma_count: UDMA_COUNT,
        expdb_mask: EXPRESS_STRIDES,
        expdb_qtypes: EXPRESS_QUEUES,
        phc_offset,
        ..CtxResp::default()
    };
    Ok(reply.as_bytes().to_vec())
}

/// CREATE_AH: the driver's reply.
pub fn create_ah(id: u32) -> Vec<u8> {
    AhResp { ahid: id, pad: 0 }.as_bytes().to_vec()
}

/// Checks a ring and pins it.
fn ring(session: &Session<'_>, desc: &Qdesc) -> Result<(RingConfig, Pin), Errno> {
    let (depth, stride) = (u32::from(desc.depth_log2), u32::from(desc.stride_log2));
    let all = desc.addr != 0 && desc.size != 0 && desc.mask != 0 && depth != 0 && stride != 0;
    let good = all
        && desc.addr.is_multiple_of(PAGE as u64)
        && depth <= 16
        && stride <= u32::from(MAX_STRIDE_LOG2)
        && u32::from(desc.mask) == (1 << depth) - 1
        && u64::from(desc.size) >= 1u64 << (depth + stride);
    if !good {
        return Err(Errno::INVAL);
    }
    let pin = session.device.memory.pin(desc.addr, desc.size.into(), true)?;
    Ok((RingConfig { memory: Memory::Host(desc.addr), entries: 1 << depth, stride: 1 << stride }, pin))
}

/// CQ_CREATE: the queue, and the driver's reply.
pub fn create_cq(session: &mut Session<'_>, asked: &CqRequest) -> Result<(Cq, Vec<u8>), Errno> {
    let request: CqReq = asked.udata.get(session.release(), 40, 40)?;
    if request.rsvd != [0; 7] {
        return Err(Errno::INVAL);
    }
    if asked.cqe < 1 || asked.cqe + CQ_GRACE > 0xffff {
        return Err(Errno::INVAL);
    }
    // A mask of none stands for all that there are.
    let all = (1 << UDMA_COUNT) - 1;
    let mask = if request.udma_mask == 0 { all } else { request.udma_mask };
    if mask & !all != 0 {
        return Err(Errno::INVAL);
    }
    let given = |udma: usize| mask >> udma & 1 != 0;
    let mut rings = Vec::new();
    for udma in (0..UDMA_COUNT.into()).filter(|udma| given(*udma)) {
        rings.push((udma, ring(session, &request.cq[udma])?));
    }
    let nth = session.device.take_cq()?;
    let mut cq = Cq {
        ids: [None; 2],
        cqe: asked.cqe,
        channel: asked.channel,
        completions: 0,
        events: Events { user_handle: asked.user_handle, file: asked.events, reported: 0 },
        pins: Vec::new(),
        toggle: None,
    };
    for (udma, (ring, pin)) in rings {
        let id = CqId::truncated((udma as u32) << PIPELINE_SHIFT | nth);
        let config = CqConfig { id: Some(id), ring, handle: 0, vector: asked.vector as u16 };
        if let Err(errno) = session.nic(|nic| nic.create_cq(&config)) {
            for made in cq.ids.into_iter().flatten() {
                session.nic(|nic| nic.destroy_cq(made))?;
            }
            session.device.cqs.give(nth);
            return Err(errno);
        }
        cq.ids[udma] = Some(id);
        cq.pins.push(pin);
    }
    let reply = CqResp { cqid: cq.ids.map(|id| id.map_or(0, CqId::get)), udma_mask: mask, rsvd: [0; 7] };
    Ok((cq, reply.as_bytes().to_vec()))
}

/// The send queue's place in the NIC's memory: where, the flags granted, and the ring there.
struct Place {
    start: u64,
    granted: u8,
    ring: RingConfig,
}

/// Places a send queue in the NIC's memory if it is asked for and there is room.
fn place(session: &mut Session<'_>, asked: u8, ring: &RingConfig) -> Result<Option<Place>, Errno> {
    if asked & cmb::ENABLE == 0 {
        return Ok(None);
    }
    let refuse = |errno| if asked & cmb::REQUIRE != 0 { Err(errno) } else { Ok(None) };
    let known = cmb::ENABLE | cmb::REQUIRE | cmb::EXPDB | cmb::WC | cmb::UC;
    let both = cmb::WC | cmb::UC;
    if asked & !known != 0 || asked & both == both {
        return refuse(Errno::INVAL);
    }
    let express = asked & cmb::EXPDB != 0 && EXPRESS_STRIDES & (ring.stride >> 6) as u8 != 0;
    if asked & cmb::EXPDB != 0 && !express && asked & cmb::REQUIRE != 0 {
        return Err(Errno::INVAL);
    }
    let len = u64::from(session.device.profile.device_memory);
    let Some(start) = session.device.space.take(len, ring.bytes()) else { return refuse(Errno::NOMEM) };
    let mapping = if asked & cmb::UC != 0 { cmb::UC } else { cmb::WC };
    let granted = cmb::ENABLE | mapping | if express { cmb::EXPDB } else { 0 };
    Ok(Some(Place { start, granted, ring: RingConfig { memory: Memory::Device(start), ..ring.clone() } }))
}

/// QP_CREATE: the queue pair, and the driver's reply.
pub fn create_qp(session: &mut Session<'_>, asked: &QpRequest) -> Result<(Qp, Vec<u8>), Errno> {
    // The reserved bytes are not looked at: rdma-core's provider leaves in them what was on its stack.
    let request: QpReq = asked.udata.get(session.release(), 40, 40)?;
    if asked.qp_type == QpType::RawPacket || asked.srq.is_some() || asked.flags != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let (cap, limits) = (&asked.cap, session.device.limits);
    let over = cap.max_send_wr > limits.max_qp_wr
        || cap.max_recv_wr > limits.max_qp_wr
        || cap.max_send_sge > limits.max_sge
        || cap.max_recv_sge > limits.max_sge
        || cap.max_inline_data > limits.max_inline;
    let spec = |asked: u8| asked == 0 || asked <= MAX_SPEC;
    if over || !spec(request.sq_spec) || !spec(request.rq_spec) {
        return Err(Errno::INVAL);
    }
    let (sq, sq_pin) = ring(session, &request.sq)?;
    let (rq, rq_pin) = ring(session, &request.rq)?;
    // Receive queues are never placed in the NIC.
    if request.rq_cmb & cmb::REQUIRE != 0 {
        return Err(Errno::INVAL);
    }
    let objects = session.objects()?;
    let (send_cq, recv_cq) = (objects.cq(asked.send_cq)?.ids, objects.cq(asked.recv_cq)?.ids);
    let pd = objects.pd(asked.pd)?;
    let wanted = if request.udma_mask == 0 { (1 << UDMA_COUNT) - 1 } else { request.udma_mask };
    let on = |udma: u8| {
        let at = usize::from(udma);
        wanted >> udma & 1 != 0 && send_cq[at].is_some() && recv_cq[at].is_some()
    };
    let turn = session.device.turn;
    let udma = (0..UDMA_COUNT).map(|i| (turn + i) % UDMA_COUNT).find(|udma| on(*udma)).ok_or(Errno::INVAL)?;
    session.device.turn = (udma + 1) % UDMA_COUNT;
    let id = session.device.take_qp(udma)?;
    let made = build(session, asked, &request, (QpId::truncated(id), udma, pd), (sq, rq));
    let (place, reply) = made.inspect_err(|_| session.device.give_qp(id))?;
    let pins = vec![sq_pin, rq_pin];
    Ok((asked.made(QpId::truncated(id), QpCap { ..*cap }, pins, place), reply.as_bytes().to_vec()))
}

/// Places the send queue, makes its page, and creates the queue pair in the NIC.
fn build(
    session: &mut Session<'_>,
    asked: &QpRequest,
    request: &QpReq,
    (id, udma, pd): (QpId, u8, directverbs::verbs::PdId),
    (sq, rq): (RingConfig, RingConfig),
) -> Result<(Option<(u64, u64)>, QpResp), Errno> {
    let objects = session.objects()?;
    let at = usize::from(udma);
    let cq = |handle| objects.cq(handle)?.ids[at].ok_or(Errno::INVAL);
    let (send_cq, recv_cq) = (cq(asked.send_cq)?, cq(asked.recv_cq)?);
    let place = place(session, request.sq_cmb, &sq)?;
    let mut reply = QpResp { qpid: id.get(), udma_idx: udma, ..QpResp::default() };
    let flag = |set, flag| if set { flag } else { 0 };
    let mut flags =
        flag(request.sq_spec != 0, options::SQ_SPEC) | flag(request.rq_spec != 0, options::RQ_SPEC);
    let (mut sq, mut placed) = (sq, None);
    if let Some(Place { start, granted, ring }) = place {
        let stores = Stores::Device(session.device.nic.clone(), start);
        let added = Region::new(ring.bytes() as usize, Rights::Any, stores)
            .and_then(|region| session.add_page(0, Arc::new(region)));
        let cookie = added.inspect_err(|_| session.device.space.give(start))?;
        flags |= flag(granted & cmb::EXPDB != 0, options::SQ_EXPRESS);
        (reply.sq_cmb, reply.sq_cmb_offset) = (granted, cookie);
        (sq, placed) = (ring, Some((start, cookie)));
    }
    let config = QpConfig {
        id: Some(id),
        qp_type: asked.qp_type,
        pd,
        send_cq,
        recv_cq,
        srq: None,
        sq,
        rq: Some(rq),
        retransmit: None,
        variable_entries: false,
        signal_all: asked.signal_all,
        capabilities: asked.capabilities(),
        handle: 0,
        pipeline: udma,
        options: flags,
    };
    match session.nic(|nic| nic.create_qp(&config)) {
        Ok(_) => Ok((placed, reply)),
        Err(errno) => {
            if let Some((start, cookie)) = placed {
                session.device.space.give(start);
                session.context()?.pages.remove(&cookie);
            }
            Err(errno)
        }
    }
}
