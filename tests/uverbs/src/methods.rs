//! What the methods of the core do.

use zerocopy::{FromBytes, IntoBytes};

use crate::Errno;
use crate::abi::{BufferDesc, GidEntry, QpCap, QueryPort, QueryPortEx};
use crate::command;
use crate::device::Device;
use crate::lifecycle::{self, CqRequest, QpRequest, SrqRequest};
use crate::packet::Bundle;
use crate::profile::{Family, Release};
use crate::schema::{UHW_IN, UHW_OUT};
use crate::session::Session;
use crate::udata::{Udata, is_robust};
use crate::umem::Buffer;

/// `IB_UVERBS_CORE_SUPPORT_*`.
const OPTIONAL_MR_ACCESS: u64 = 1;
const ROBUST_UDATA: u64 = 2;
/// `enum ib_uverbs_gid_type`.
const ROCE_V2: u32 = 2;
/// `IB_UVERBS_QP_CREATE_SQ_SIG_ALL`.
const SIGNAL_ALL: u32 = 1 << 12;
/// All flags of queue pairs that the core knows.
const QP_FLAGS: u32 = SIGNAL_ALL | 1 << 1 | 1 << 8 | 1 << 9 | 1 << 11;

fn udata(bundle: &Bundle<'_>) -> Result<Udata, Errno> {
    Ok(Udata::new(bundle.bytes(UHW_IN)?.unwrap_or_default()))
}

/// INVOKE_WRITE.
pub fn invoke_write(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    const CORE_IN: u16 = 0;
    const CORE_OUT: u16 = 1;
    const WRITE_CMD: u16 = 2;
    let command = command::find(bundle.word(WRITE_CMD)?)?;
    let request = bundle.bytes(CORE_IN)?.unwrap_or_default();
    if request.len() < command.request || bundle.room(CORE_OUT) < command.reply {
        return Err(Errno::NOSPC);
    }
    let reply = command.run(session, &request, &udata(bundle)?)?;
    bundle.put(CORE_OUT, &reply.core)?;
    bundle.put(UHW_OUT, &reply.driver)
}

fn features(release: Release) -> u64 {
    OPTIONAL_MR_ACCESS | if is_robust(release) { ROBUST_UDATA } else { 0 }
}

/// GET_CONTEXT.
pub fn get_context(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    let reply = lifecycle::get_context(session, &udata(bundle)?)?;
    query_context(session, bundle)?;
    bundle.put(UHW_OUT, &reply)
}

/// QUERY_CONTEXT.
pub fn query_context(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    bundle.put(0, session.device.profile.vectors.as_bytes())?;
    bundle.put(1, features(session.release()).as_bytes())
}

/// State of the port: active Ethernet.
pub fn port(device: &Device) -> QueryPort {
    const ACTIVE: u8 = 4;
    const LINK_UP: u8 = 5;
    const ETHERNET: u8 = 2;
    let mtu = device.profile.mtu as u8;
    QueryPort {
        port_cap_flags: 1 << 16,
        max_msg_sz: 1 << 30,
        gid_tbl_len: device.profile.gids().len() as u32,
        pkey_tbl_len: 1,
        state: ACTIVE,
        max_mtu: 5,
        active_mtu: mtu,
        max_vl_num: 1,
        // 4 lanes of 25 Gb/s.
        active_width: 2,
        active_speed: 32,
        phys_state: LINK_UP,
        link_layer: ETHERNET,
        ..QueryPort::default()
    }
}

/// QUERY_PORT.
pub fn query_port(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    if bundle.number(0)? != 1 {
        return Err(Errno::INVAL);
    }
    let legacy = port(session.device);
    let reply = QueryPortEx { legacy, active_speed_ex: legacy.active_speed.into(), ..QueryPortEx::default() };
    bundle.put(1, reply.as_bytes())
}

fn gid(device: &Device, index: u32) -> Option<GidEntry> {
    let gid = device.profile.gids().get(index as usize)?.0;
    Some(GidEntry { gid, gid_index: index, port_num: 1, gid_type: ROCE_V2, netdev_ifindex: device.ifindex() })
}

/// QUERY_GID_TABLE.
pub fn query_gid_table(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    let size = bundle.number(0)? as usize;
    bundle.flags(1, 0)?;
    let room = bundle.room(2);
    if size == 0 || !room.is_multiple_of(size) {
        return Err(Errno::INVAL);
    }
    let entries: Vec<GidEntry> = (0..).map_while(|index| gid(session.device, index)).collect();
    if room / size < entries.len() {
        return Err(Errno::INVAL);
    }
    let mut bytes = Vec::new();
    for entry in &entries {
        let mut entry = entry.as_bytes().to_vec();
        entry.resize(size, 0);
        bytes.extend(entry);
    }
    bundle.put(2, &bytes)?;
    bundle.put(3, (entries.len() as u64).as_bytes())
}

/// QUERY_GID_ENTRY.
pub fn query_gid_entry(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    bundle.flags(2, 0)?;
    if bundle.word(0)? != 1 {
        return Err(Errno::INVAL);
    }
    let index = bundle.word(1)?;
    let entry = gid(session.device, index).ok_or(Errno::INVAL)?;
    bundle.put(3, entry.as_bytes())
}

fn buffer(bundle: &Bundle<'_>, id: u16) -> Result<Option<Buffer>, Errno> {
    bundle.structure::<BufferDesc>(id)?.map(Buffer::new).transpose()
}

/// The ring memory that CQ_CREATE was told of.
fn cq_buffer(bundle: &Bundle<'_>) -> Result<Option<Buffer>, Errno> {
    const VA: u16 = 8;
    const LENGTH: u16 = 9;
    const FD: u16 = 10;
    const OFFSET: u16 = 11;
    const UMEM: u16 = 12;
    let older = [VA, LENGTH, FD, OFFSET].map(|id| bundle.has(id));
    if bundle.has(UMEM) {
        return if older == [false; 4] { buffer(bundle, UMEM) } else { Err(Errno::INVAL) };
    }
    match older {
        [false, false, false, false] => Ok(None),
        [true, true, false, false] => Ok(Some(Buffer::va(bundle.number(VA)?, bundle.number(LENGTH)?))),
        [false, true, true, true] => {
            let fd = bundle.handle(FD).ok_or(Errno::INVAL)?.cast_signed();
            Ok(Some(Buffer::dmabuf(fd, bundle.number(OFFSET)?, bundle.number(LENGTH)?)))
        }
        _ => Err(Errno::INVAL),
    }
}

/// CQ_CREATE.
pub fn create_cq(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    let asked = CqRequest {
        vector: bundle.word(4)?,
        cqe: bundle.word(1)?,
        user_handle: bundle.number(2)?,
        flags: bundle.flags(5, 3)?,
        channel: bundle.handle(3).map(u32::cast_signed),
        events: session.events_file(bundle.handle(7)),
        // ionic's driver looks at none of these.
        buffer: if session.family() == Family::BnxtRe { cq_buffer(bundle)? } else { None },
        udata: udata(bundle)?,
    };
    let (handle, cqe, reply) = lifecycle::create_cq(session, &asked)?;
    bundle.made(handle)?;
    bundle.put(6, cqe.as_bytes())?;
    bundle.put(UHW_OUT, &reply)
}

/// CQ_DESTROY.
pub fn destroy_cq(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    bundle.put(1, [session.gone.completions, session.gone.events].as_bytes())
}

/// QP_DESTROY and SRQ_DESTROY.
pub fn destroy_counted(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    bundle.put(1, session.gone.events.as_bytes())
}

/// QP_CREATE.
pub fn create_qp(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    const CAP: u16 = 8;
    const FLAGS: u16 = 10;
    const DBR: u16 = 0x1002;
    let cap: QpCap = bundle.structure(CAP)?.unwrap_or_default();
    let qp_type = lifecycle::qp_type(bundle.number(9)?)?;
    let (pd, send_cq, recv_cq) = (bundle.needed(2)?, bundle.needed(4)?, bundle.needed(5)?);
    let flags = bundle.flags(FLAGS, QP_FLAGS)?;
    let other = flags & !SIGNAL_ALL;
    if other != 0 && qp_type == directverbs::verbs::QpType::Rc {
        return Err(Errno::INVAL);
    }
    let bnxt_re = session.family() == Family::BnxtRe;
    let ring = |id| if bnxt_re { buffer(bundle, id) } else { Ok(None) };
    let asked = QpRequest {
        qp_type,
        pd,
        send_cq,
        recv_cq,
        srq: bundle.handle(3),
        cap,
        signal_all: flags & SIGNAL_ALL != 0,
        flags: other,
        user_handle: bundle.number(7)?,
        events: session.events_file(bundle.handle(12)),
        rq_buffer: ring(16)?,
        sq_buffer: ring(17)?,
        dbr: bundle.handle(DBR),
        udata: udata(bundle)?,
    };
    let (handle, number, granted, reply) = lifecycle::create_qp(session, &asked)?;
    bundle.made(handle)?;
    bundle.put(13, granted.as_bytes())?;
    bundle.put(14, number.as_bytes())?;
    bundle.put(UHW_OUT, &reply)
}

/// SRQ_CREATE.
pub fn create_srq(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    match bundle.number(9)? {
        0 => {}
        1 | 2 => return Err(Errno::OPNOTSUPP),
        _ => return Err(Errno::INVAL),
    }
    let asked = SrqRequest {
        pd: bundle.needed(1)?,
        max_wr: bundle.word(5)?,
        max_sge: bundle.word(6)?,
        limit: bundle.word(7)?,
        user_handle: bundle.number(4)?,
        events: session.events_file(bundle.handle(10)),
        udata: udata(bundle)?,
    };
    // 7.3 takes ring memory by this attribute, but no driver looks at it.
    let _ = buffer(bundle, 14)?;
    let (handle, reply) = lifecycle::create_srq(session, &asked)?;
    let objects = session.objects()?;
    let (max_wr, max_sge, id) = {
        let srq = objects.srq(handle)?;
        (srq.max_wr, srq.max_sge, srq.id.get())
    };
    bundle.made(handle)?;
    bundle.put(11, max_wr.as_bytes())?;
    bundle.put(12, max_sge.as_bytes())?;
    bundle.put(13, id.as_bytes())?;
    bundle.put(UHW_OUT, &reply)
}

/// All access flags that the core knows.
const ACCESS: u32 = 0xff | 0x3ff0_0000;

/// Access flags that a dma-buf may have: local write, the three remote ones, relaxed ordering.
const DMABUF_ACCESS: u32 = 0xf | 1 << 20;

/// REG_MR.
pub fn reg_mr(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    const ADDR: u16 = 4;
    const FD: u16 = 7;
    const FD_OFFSET: u16 = 8;
    let flags = bundle.flags(6, ACCESS)?;
    let (iova, length) = (bundle.number(3)?, bundle.number(5)?);
    let buffer = match [ADDR, FD, FD_OFFSET].map(|id| bundle.has(id)) {
        [true, false, false] => Buffer::va(bundle.number(ADDR)?, length),
        [false, true, true] => {
            let fd = bundle.handle(FD).ok_or(Errno::INVAL)?.cast_signed();
            Buffer::dmabuf(fd, bundle.number(FD_OFFSET)?, length)
        }
        _ => return Err(Errno::INVAL),
    };
    let (handle, key) = lifecycle::reg_mr(session, bundle.needed(1)?, &buffer, iova, flags)?;
    bundle.made(handle)?;
    bundle.put(9, key.as_bytes())?;
    bundle.put(10, key.as_bytes())
}

/// REG_DMABUF_MR.
pub fn reg_dmabuf_mr(session: &mut Session<'_>, bundle: &mut Bundle<'_>) -> Result<(), Errno> {
    let flags = bundle.flags(6, DMABUF_ACCESS)?;
    let part = Buffer::dmabuf(bundle.word(5)?.cast_signed(), bundle.number(2)?, bundle.number(3)?);
    let (handle, key) = lifecycle::reg_mr(session, bundle.needed(1)?, &part, bundle.number(4)?, flags)?;
    bundle.made(handle)?;
    bundle.put(7, key.as_bytes())?;
    bundle.put(8, key.as_bytes())
}

/// A structure at the beginning of a request.
///
/// # Errors
/// ENOSPC: the request is shorter.
pub fn parse<T: FromBytes>(request: &[u8]) -> Result<T, Errno> {
    T::read_from_prefix(request).map(|(value, _)| value).map_err(|_| Errno::NOSPC)
}
