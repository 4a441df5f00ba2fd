//! Commands of the write interface: by `write`, or inside the method INVOKE_WRITE.
//!
//! Source: kernel `drivers/infiniband/core/uverbs_cmd.c`, `uverbs_main.c`.

use zerocopy::{FromBytes, IntoBytes};

use directverbs::bnxt_re::doorbell::Xid;

use crate::abi::{self, EXTENDED, HandleOnly, NUMBER, command as number};
use crate::lifecycle::{self, CqRequest, QpRequest, SrqRequest, reply};
use crate::methods::{self, parse};
use crate::profile::Family;
use crate::schema::{FileKind, ObjectKind};
use crate::session::Session;
use crate::udata::Udata;
use crate::umem::Buffer;
use crate::user::copy_out;
use crate::{Errno, bnxt_re, transition};

/// A reply: the core's structure, and what the driver adds.
#[derive(Debug, Default)]
pub struct Reply {
    /// The core's.
    pub core: Vec<u8>,
    /// The driver's.
    pub driver: Vec<u8>,
}

impl Reply {
    fn core<T: IntoBytes + zerocopy::Immutable>(of: &T) -> Self {
        Self { core: reply(of), driver: Vec::new() }
    }

    fn new<T: IntoBytes + zerocopy::Immutable>(of: &T, driver: Vec<u8>) -> Self {
        Self { core: reply(of), driver }
    }
}

type Run = fn(&mut Session<'_>, &[u8], &Udata) -> Result<Reply, Errno>;

/// A command.
pub struct Command {
    number: u32,
    /// Bytes of the request that the core needs.
    pub request: usize,
    /// Bytes of the reply that there must be room for.
    pub reply: usize,
    run: Run,
    without_context: bool,
}

impl Command {
    const fn new(number: u32, request: usize, reply: usize, run: Run) -> Self {
        Self { number, request, reply, run, without_context: false }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn run(&self, session: &mut Session<'_>, request: &[u8], udata: &Udata) -> Result<Reply, Errno> {
        if !self.without_context {
            session.context()?;
        }
        (self.run)(session, request, udata)
    }
}

/// All commands.
const COMMANDS: &[Command] = &[
    Command { without_context: true, ..Command::new(number::GET_CONTEXT, 8, 8, get_context) },
    Command::new(number::QUERY_DEVICE, 8, 176, |session, _, _| Ok(Reply::core(&device(session)))),
    Command::new(number::QUERY_DEVICE | EXTENDED, 8, 184, query_device_ex),
    Command::new(number::QUERY_PORT, 16, 40, query_port),
    Command::new(number::ALLOC_PD, 8, 4, |session, _, _| {
        let (handle, driver) = lifecycle::alloc_pd(session)?;
        Ok(Reply::new(&handle, driver))
    }),
    Command::new(number::DEALLOC_PD, 4, 0, |session, request, _| destroy(session, ObjectKind::Pd, request)),
    Command::new(number::CREATE_AH, 56, 4, |session, request, _| {
        let (handle, driver) = lifecycle::create_ah(session, &parse(request)?)?;
        Ok(Reply::new(&handle, driver))
    }),
    Command::new(number::DESTROY_AH, 4, 0, |session, request, _| destroy(session, ObjectKind::Ah, request)),
    Command::new(number::REG_MR, 40, 12, |session, request, _| {
        let asked: abi::RegMr = parse(request)?;
        let buffer = Buffer::va(asked.start, asked.length);
        let (handle, key) = lifecycle::reg_mr(session, asked.pd, &buffer, asked.hca_va, asked.access)?;
        Ok(Reply::core(&[handle, key, key]))
    }),
    Command::new(number::DEREG_MR, 4, 0, |session, request, _| destroy(session, ObjectKind::Mr, request)),
    Command::new(number::ALLOC_MW, 16, 8, |session, request, _| {
        let asked: abi::AllocMw = parse(request)?;
        let (handle, key) = lifecycle::alloc_mw(session, asked.pd, asked.mw_type)?;
        Ok(Reply::core(&[handle, key]))
    }),
    Command::new(number::DEALLOC_MW, 4, 0, |session, request, _| destroy(session, ObjectKind::Mw, request)),
    Command::new(number::CREATE_COMP_CHANNEL, 8, 4, |session, _, _| {
        session.events.open(FileKind::Channel, session.fd).map(|fd| Reply::core(&fd))
    }),
    Command::new(number::CREATE_CQ, 32, 8, create_cq),
    Command::new(number::CREATE_CQ | EXTENDED, 32, 16, create_cq_ex),
    Command::new(number::RESIZE_CQ, 16, 4, resize_cq),
    Command::new(number::DESTROY_CQ, 16, 8, |session, request, _| {
        destroy(session, ObjectKind::Cq, request.get(8..).unwrap_or_default())?;
        Ok(Reply::core(&[session.gone.completions, session.gone.events]))
    }),
    // Processes poll by themselves, and arm with a doorbell.
    Command::new(number::POLL_CQ, 16, 8, |_, _, _| Err(Errno::OPNOTSUPP)),
    Command::new(number::REQ_NOTIFY_CQ, 8, 0, |_, _, _| Err(Errno::OPNOTSUPP)),
    Command::new(number::CREATE_QP, 56, 32, create_qp),
    Command::new(number::CREATE_QP | EXTENDED, 64, 40, create_qp_ex),
    Command::new(number::QUERY_QP, 16, 128, query_qp),
    Command::new(number::MODIFY_QP, 112, 0, |session, request, _| {
        transition::modify_qp(session, &parse(request)?, false).map(|()| Reply::default())
    }),
    Command::new(number::MODIFY_QP | EXTENDED, 112, 8, |session, request, _| {
        transition::modify_qp(session, &parse(request)?, true)?;
        Ok(Reply::core(&[0u32, 8]))
    }),
    Command::new(number::DESTROY_QP, 16, 4, |session, request, _| {
        destroy(session, ObjectKind::Qp, request.get(8..).unwrap_or_default())?;
        Ok(Reply::core(&session.gone.events))
    }),
    Command::new(number::CREATE_SRQ, 32, 16, create_srq),
    Command::new(number::MODIFY_SRQ, 16, 0, modify_srq),
    Command::new(number::QUERY_SRQ, 16, 16, |session, request, _| {
        let asked: HandleOnly = parse(request)?;
        let objects = session.objects()?;
        let srq = objects.srq(objects.check(ObjectKind::Srq, asked.handle.into())?)?;
        Ok(Reply::core(&[srq.max_wr, srq.max_sge, srq.limit, 0]))
    }),
    Command::new(number::DESTROY_SRQ, 16, 4, |session, request, _| {
        destroy(session, ObjectKind::Srq, request.get(8..).unwrap_or_default())?;
        Ok(Reply::core(&session.gone.events))
    }),
];

/// The command with this number.
///
/// # Errors
/// EOPNOTSUPP: there is none.
pub fn find(number: u32) -> Result<&'static Command, Errno> {
    COMMANDS.iter().find(|command| command.number == number).ok_or(Errno::OPNOTSUPP)
}

fn destroy(session: &mut Session<'_>, kind: ObjectKind, request: &[u8]) -> Result<Reply, Errno> {
    let handle = session.objects()?.check(kind, parse::<u32>(request)?.into())?;
    session.gone = session.destroy(handle)?;
    Ok(Reply::default())
}

fn get_context(session: &mut Session<'_>, _: &[u8], udata: &Udata) -> Result<Reply, Errno> {
    let driver = lifecycle::get_context(session, udata)?;
    let events = session.open_events();
    let Ok(events) = events else {
        session.close();
        return Err(Errno::MFILE);
    };
    let vectors = session.device.profile.vectors;
    session.context()?.events = Some(events);
    Ok(Reply::new(&[events.cast_unsigned(), vectors], driver))
}

fn device(session: &Session<'_>) -> abi::QueryDevice {
    let (limits, guid) = (session.device.limits, u64::from_ne_bytes(session.device.guid()));
    let (vendor_id, vendor_part_id) = session.device.profile.pci();
    abi::QueryDevice {
        fw_ver: 0x0001_0000_0000,
        node_guid: guid,
        sys_image_guid: guid,
        max_mr_size: limits.max_mr_size,
        page_size_cap: 0xffff_f000,
        vendor_id: vendor_id.into(),
        vendor_part_id: vendor_part_id.into(),
        max_qp: limits.max_qp,
        max_qp_wr: limits.max_qp_wr,
        max_sge: limits.max_sge,
        max_sge_rd: limits.max_sge,
        max_cq: limits.max_cq,
        max_cqe: limits.max_cqe,
        max_mr: 1 << 16,
        max_pd: 1 << 16,
        max_qp_rd_atom: limits.max_rd_atomic,
        max_qp_init_rd_atom: limits.max_rd_atomic,
        atomic_cap: 1,
        max_mw: limits.max_mw,
        max_ah: 1 << 16,
        max_srq: limits.max_srq,
        max_srq_wr: limits.max_srq_wr,
        max_srq_sge: limits.max_srq_sge,
        max_pkeys: 1,
        phys_port_cnt: 1,
        ..abi::QueryDevice::default()
    }
}

fn query_device_ex(session: &mut Session<'_>, request: &[u8], _: &Udata) -> Result<Reply, Errno> {
    let [comp_mask, reserved]: [u32; 2] = parse(request)?;
    if comp_mask != 0 || reserved != 0 {
        return Err(Errno::INVAL);
    }
    let base = device(session);
    let whole = size_of::<abi::QueryDevice>() + size_of::<abi::QueryDeviceTail>();
    let tail = abi::QueryDeviceTail { response_length: whole as u32, ..Default::default() };
    let rates = session.family() == Family::BnxtRe && crate::udata::is_robust(session.release());
    let pacing = abi::bnxt_re::PacketPacingCaps {
        qp_rate_limit_min: 1000,
        qp_rate_limit_max: 100_000_000,
        supported_qpts: 1 << 2,
        reserved: 0,
    };
    let core = [base.as_bytes(), tail.as_bytes()].concat();
    Ok(Reply { core, driver: if rates { reply(&pacing) } else { Vec::new() } })
}

fn query_port(session: &mut Session<'_>, request: &[u8], _: &Udata) -> Result<Reply, Errno> {
    if request.get(8) != Some(&1) {
        return Err(Errno::INVAL);
    }
    Ok(Reply::core(&methods::port(session.device)))
}

fn channel(session: &Session<'_>, fd: i32) -> Result<Option<i32>, Errno> {
    if fd < 0 {
        return Ok(None);
    }
    session.events.check(FileKind::Channel, session.fd, fd as u64).map(Some)
}

fn create_cq(session: &mut Session<'_>, request: &[u8], udata: &Udata) -> Result<Reply, Errno> {
    let asked: abi::CreateCq = parse(request)?;
    let asked = CqRequest {
        cqe: asked.cqe,
        user_handle: asked.user_handle,
        channel: channel(session, asked.comp_channel)?,
        vector: asked.comp_vector,
        flags: 0,
        events: session.events_file(None),
        buffer: None,
        udata: udata.clone(),
    };
    let (handle, cqe, driver) = lifecycle::create_cq(session, &asked)?;
    Ok(Reply::new(&[handle, cqe], driver))
}

fn create_cq_ex(session: &mut Session<'_>, request: &[u8], udata: &Udata) -> Result<Reply, Errno> {
    let asked: abi::CreateCqEx = parse(request)?;
    if asked.comp_mask != 0 || asked.reserved != 0 {
        return Err(Errno::INVAL);
    }
    let asked = CqRequest {
        cqe: asked.cqe,
        user_handle: asked.user_handle,
        channel: channel(session, asked.comp_channel)?,
        vector: asked.comp_vector,
        flags: asked.flags,
        events: session.events_file(None),
        buffer: None,
        udata: udata.clone(),
    };
    let (handle, cqe, driver) = lifecycle::create_cq(session, &asked)?;
    Ok(Reply::new(&[handle, cqe, 0, 16], driver))
}

fn resize_cq(session: &mut Session<'_>, request: &[u8], udata: &Udata) -> Result<Reply, Errno> {
    let asked: abi::ResizeCq = parse(request)?;
    let handle = session.objects()?.check(ObjectKind::Cq, asked.cq.into())?;
    let cqe = match session.family() {
        Family::BnxtRe => bnxt_re::resize_cq(session, handle, asked.cqe, udata)?,
        Family::Ionic => return Err(Errno::OPNOTSUPP),
    };
    Ok(Reply::core(&[cqe, 0]))
}

fn qp_request(session: &mut Session<'_>, asked: &abi::CreateQp, udata: &Udata) -> Result<QpRequest, Errno> {
    let objects = session.objects()?;
    let find = |kind, handle: u32| objects.check(kind, handle.into());
    let srq = (asked.is_srq != 0).then(|| find(ObjectKind::Srq, asked.srq)).transpose()?;
    let (send_cq, recv_cq) = (find(ObjectKind::Cq, asked.send_cq)?, find(ObjectKind::Cq, asked.recv_cq)?);
    let none: Option<Buffer> = None;
    Ok(QpRequest {
        qp_type: lifecycle::qp_type(asked.qp_type.into())?,
        pd: find(ObjectKind::Pd, asked.pd)?,
        send_cq,
        recv_cq,
        srq,
        cap: abi::QpCap {
            max_send_wr: asked.max_send_wr,
            max_recv_wr: asked.max_recv_wr,
            max_send_sge: asked.max_send_sge,
            max_recv_sge: asked.max_recv_sge,
            max_inline_data: asked.max_inline_data,
        },
        signal_all: asked.sq_sig_all != 0,
        flags: 0,
        user_handle: asked.user_handle,
        events: session.events_file(None),
        sq_buffer: none,
        rq_buffer: none,
        dbr: None,
        udata: udata.clone(),
    })
}

fn make_qp(session: &mut Session<'_>, asked: &QpRequest) -> Result<(abi::CreateQpResp, Vec<u8>), Errno> {
    let (handle, qpn, cap, driver) = lifecycle::create_qp(session, asked)?;
    let core = abi::CreateQpResp {
        handle,
        qpn,
        max_send_wr: cap.max_send_wr,
        max_recv_wr: cap.max_recv_wr,
        max_send_sge: cap.max_send_sge,
        max_recv_sge: cap.max_recv_sge,
        max_inline_data: cap.max_inline_data,
        reserved: 0,
    };
    Ok((core, driver))
}

fn create_qp(session: &mut Session<'_>, request: &[u8], udata: &Udata) -> Result<Reply, Errno> {
    let asked: abi::CreateQp = parse(request.get(8..).unwrap_or_default())?;
    let asked = qp_request(session, &asked, udata)?;
    let (core, driver) = make_qp(session, &asked)?;
    Ok(Reply::new(&core, driver))
}

/// The extended form begins with the same fields, and goes on with a mask, flags and more.
fn create_qp_ex(session: &mut Session<'_>, request: &[u8], udata: &Udata) -> Result<Reply, Errno> {
    let asked: abi::CreateQp = parse(request)?;
    let [comp_mask, flags]: [u32; 2] = parse(request.get(48..).unwrap_or_default())?;
    if comp_mask != 0 {
        return Err(Errno::INVAL);
    }
    let asked = QpRequest { flags, ..qp_request(session, &asked, udata)? };
    let (core, driver) = make_qp(session, &asked)?;
    let core = [core.as_bytes(), [0u32, 40].as_bytes()].concat();
    Ok(Reply { core, driver })
}

fn query_qp(session: &mut Session<'_>, request: &[u8], _: &Udata) -> Result<Reply, Errno> {
    let asked: HandleOnly = parse(request)?;
    let objects = session.objects()?;
    let qp = objects.qp(objects.check(ObjectKind::Qp, asked.handle.into())?)?;
    let (id, mut reply) = (qp.id, qp.attributes);
    let status = session.nic(|nic| nic.query_qp(id))?;
    reply.qp_state = status.state as u8;
    reply.cur_qp_state = reply.qp_state;
    (reply.sq_psn, reply.rq_psn) = (status.sq_psn, status.rq_psn);
    Ok(Reply::core(&reply))
}

fn create_srq(session: &mut Session<'_>, request: &[u8], udata: &Udata) -> Result<Reply, Errno> {
    let asked: abi::CreateSrq = parse(request)?;
    let asked = SrqRequest {
        pd: session.objects()?.check(ObjectKind::Pd, asked.pd.into())?,
        max_wr: asked.max_wr,
        max_sge: asked.max_sge,
        limit: asked.limit,
        user_handle: asked.user_handle,
        events: session.events_file(None),
        udata: udata.clone(),
    };
    let (handle, driver) = lifecycle::create_srq(session, &asked)?;
    let id = session.objects()?.srq(handle)?.id.get();
    Ok(Reply::new(&[handle, asked.max_wr, asked.max_sge, id], driver))
}

fn modify_srq(session: &mut Session<'_>, request: &[u8], _: &Udata) -> Result<Reply, Errno> {
    const LIMIT: u32 = 2;
    let asked: abi::ModifySrq = parse(request)?;
    let objects = session.objects()?;
    let handle = objects.check(ObjectKind::Srq, asked.srq.into())?;
    let srq = objects.srq_mut(handle)?;
    // The driver does not resize, and takes one attribute at a time.
    if asked.attr_mask != LIMIT || asked.limit > srq.entries {
        return Err(Errno::INVAL);
    }
    srq.limit = asked.limit;
    let id = srq.id;
    if let (Ok(xid), true) = (Xid::srq(id), asked.limit != 0) {
        let toggle = session.device.nic.lock().front_end().srq_toggle(id).unwrap_or(0);
        bnxt_re::arm_srq(session, xid, asked.limit, toggle);
    }
    Ok(Reply::default())
}

/// Carries out what was written to a device file.
///
/// # Errors
/// What the kernel answers.
///
/// # Safety
/// The reply's address that the command names may be written.
pub unsafe fn write(session: &mut Session<'_>, bytes: &[u8]) -> Result<(), Errno> {
    let words = <[u16; 4]>::read_from_prefix(bytes).map_err(|_| Errno::INVAL)?.0;
    let number = u32::from(words[0]) | u32::from(words[1]) << 16;
    let (in_words, out_words) = (usize::from(words[2]), usize::from(words[3]));
    if number & !(EXTENDED | NUMBER) != 0 {
        return Err(Errno::INVAL);
    }
    let command = find(number)?;
    let body = bytes.get(8..).unwrap_or_default();
    if number & EXTENDED != 0 {
        let (address, rest) = u64::read_from_prefix(body).map_err(|_| Errno::INVAL)?;
        let (provider, rest) = <[u16; 4]>::read_from_prefix(rest).map_err(|_| Errno::INVAL)?;
        let [driver_in, driver_out, reserved @ ..] = provider;
        let (driver_in, driver_out) = (usize::from(driver_in) * 8, usize::from(driver_out) * 8);
        let (core_in, core_out) = (in_words * 8, out_words * 8);
        if core_in + driver_in != rest.len() {
            return Err(Errno::INVAL);
        }
        if core_in < command.request {
            return Err(Errno::NOSPC);
        }
        let room = core_out + driver_out;
        if reserved != [0; 2] || (address == 0) != (room == 0) {
            return Err(Errno::INVAL);
        }
        if address != 0 && core_out < command.reply {
            return Err(Errno::NOSPC);
        }
        let (core, driver) = rest.split_at(core_in);
        let reply = command.run(session, core, &Udata::new(driver.to_vec()))?;
        // SAFETY: the caller's.
        return unsafe { answer(address, &reply, core_out, driver_out) };
    }
    if in_words * 4 != bytes.len() {
        return Err(Errno::INVAL);
    }
    if body.len() < command.request || out_words * 4 < command.reply {
        return Err(Errno::NOSPC);
    }
    let (core, driver) = body.split_at(command.request);
    let reply = command.run(session, core, &Udata::new(driver.to_vec()))?;
    if command.reply == 0 {
        return Ok(());
    }
    let address = u64::read_from_prefix(core).map_err(|_| Errno::INVAL)?.0;
    // SAFETY: the caller's.
    unsafe { answer(address, &reply, command.reply, out_words * 4 - command.reply) }
}

/// Writes the core's part of a reply and behind it the driver's, each as far as there is room.
unsafe fn answer(address: u64, reply: &Reply, core: usize, driver: usize) -> Result<(), Errno> {
    let part = |bytes: &[u8], room: usize| bytes.get(..room.min(bytes.len())).unwrap_or_default().to_vec();
    // SAFETY: the caller's.
    unsafe {
        copy_out(address, &part(&reply.core, core))?;
        copy_out(address + core as u64, &part(&reply.driver, driver))
    }
}
