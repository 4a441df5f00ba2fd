//! Objects of the core, however the call came: what the core itself checks, and what it leaves to the drivers.

use std::os::fd::RawFd;

use directverbs::verbs::{AccessFlags, AddressVector, Gid, QpCapabilities, QpId, QpState, QpType};
use directverbs_softnic::device::{AhConfig, Memory, MrConfig, MrKind};
use zerocopy::IntoBytes;

use crate::abi::{CreateAh, QpCap, QpDest, QueryQpResp};
use crate::objects::{Cq, Events, Object, Qp, Srq, set_capabilities};
use crate::profile::{Family, resolve};
use crate::session::Session;
use crate::udata::Udata;
use crate::umem::Buffer;
use crate::user::Pin;
use crate::{Errno, bnxt_re, ionic};

/// A handle, and the driver's part of the reply.
pub type Made = (u32, Vec<u8>);

/// Opens the context: the driver's reply.
///
/// # Errors
/// EINVAL: it is open already.
pub fn get_context(session: &mut Session<'_>, udata: &Udata) -> Result<Vec<u8>, Errno> {
    if session.file.context.is_some() {
        return Err(Errno::INVAL);
    }
    session.file.context = Some(Default::default());
    let reply = match session.family() {
        Family::BnxtRe => bnxt_re::get_context(session, udata),
        Family::Ionic => ionic::get_context(session, udata),
    };
    if reply.is_err() {
        session.file.context = None;
    }
    reply
}

/// Creates a protection domain.
///
/// # Errors
/// What the driver answers.
pub fn alloc_pd(session: &mut Session<'_>) -> Result<Made, Errno> {
    session.context()?;
    let id = session.nic(|nic| nic.create_pd())?;
    let reply = match session.family() {
        Family::BnxtRe => bnxt_re::alloc_pd(session, id.get()),
        Family::Ionic => Ok(Vec::new()),
    };
    if reply.is_err() {
        session.nic(|nic| nic.destroy_pd(id))?;
    }
    let reply = reply?;
    Ok((session.objects()?.add(Object::Pd(id), &[]), reply))
}

/// The path that an address of a command stands for.
///
/// # Errors
/// EINVAL: a port or GID that there is not, or no GID at all. ENETUNREACH: no neighbour has the address.
pub fn path(session: &Session<'_>, to: &QpDest) -> Result<AddressVector, Errno> {
    let gids = session.device.profile.gids();
    if to.port_num != 1 || to.is_global == 0 || usize::from(to.sgid_index) >= gids.len() {
        return Err(Errno::INVAL);
    }
    let dgid = Gid(to.dgid);
    // Both are IPv4 addresses, or neither: no router translates.
    if gids[usize::from(to.sgid_index)].as_v4().is_some() != dgid.as_v4().is_some() {
        return Err(Errno::INVAL);
    }
    let dmac = resolve(dgid).ok_or(Errno::NETUNREACH)?;
    Ok(AddressVector {
        sgid_index: to.sgid_index,
        flow_label: to.flow_label & 0xf_ffff,
        traffic_class: to.traffic_class,
        hop_limit: to.hop_limit,
        ..AddressVector::new(dgid, dmac)
    })
}

/// Creates an address handle.
///
/// # Errors
/// As for [`path`], or what the driver answers.
pub fn create_ah(session: &mut Session<'_>, asked: &CreateAh) -> Result<Made, Errno> {
    let pd = session.objects()?.pd(asked.pd)?;
    let to = QpDest {
        dgid: asked.dgid,
        flow_label: asked.flow_label,
        sgid_index: asked.sgid_index,
        hop_limit: asked.hop_limit,
        traffic_class: asked.traffic_class,
        is_global: asked.is_global,
        port_num: asked.port_num,
        ..QpDest::default()
    };
    let path = path(session, &to)?;
    let id = session.nic(|nic| nic.create_ah(&AhConfig { id: None, pd, path }))?;
    let reply = match session.family() {
        Family::BnxtRe => bnxt_re::create_ah(session, id.get())?,
        Family::Ionic => ionic::create_ah(id.get()),
    };
    Ok((session.objects()?.add(Object::Ah(id), &[asked.pd]), reply))
}

/// Access flags that the kernel may ignore.
const OPTIONAL_ACCESS: u32 = 0x3ff0_0000;
/// On-demand paging, which neither NIC has.
const ON_DEMAND: u32 = 1 << 6;

/// Checks the access flags of a memory region.
fn access(flags: u32) -> Result<AccessFlags, Errno> {
    let standard = AccessFlags::all().bits() & !OPTIONAL_ACCESS;
    if flags & !(standard | OPTIONAL_ACCESS | ON_DEMAND | 1 << 7) != 0 {
        return Err(Errno::INVAL);
    }
    if flags & (ON_DEMAND | 1 << 7) != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let access = AccessFlags::from_bits_truncate(flags);
    let writes = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC;
    if access.intersects(writes) && !access.contains(AccessFlags::LOCAL_WRITE) {
        return Err(Errno::INVAL);
    }
    Ok(access)
}

/// Registers a buffer as a memory region that begins at `iova`: its handle and key.
///
/// # Errors
/// EINVAL: addresses at different places in a page, or access that there is not. EFAULT, ENOMEM: it cannot be pinned.
pub fn reg_mr(
    session: &mut Session<'_>,
    pd: u32,
    buffer: &Buffer,
    iova: u64,
    flags: u32,
) -> Result<(u32, u32), Errno> {
    let id = session.objects()?.pd(pd)?;
    let length = buffer.desc.length;
    let moved = (buffer.desc.addr ^ iova) & (crate::pages::PAGE as u64 - 1);
    if moved != 0 || length > session.device.limits.max_mr_size {
        return Err(Errno::INVAL);
    }
    let access = access(flags)?;
    let writable = access.intersects(
        AccessFlags::LOCAL_WRITE
            | AccessFlags::REMOTE_WRITE
            | AccessFlags::REMOTE_ATOMIC
            | AccessFlags::MW_BIND,
    );
    let pin = buffer.pin(session, length, writable)?;
    let addr = if access.contains(AccessFlags::ZERO_BASED) { 0 } else { iova };
    let kind = MrKind::Region(Memory::Host(pin.start()));
    let config = MrConfig { key: None, pd: id, kind, addr, length, access };
    let key = session.nic(|nic| nic.create_mr(&config))?;
    Ok((session.objects()?.add(Object::Mr(key, pin), &[pd]), key))
}

/// Creates a memory window: its handle and key.
///
/// # Errors
/// EOPNOTSUPP: the driver has none. EINVAL: a type that there is not.
pub fn alloc_mw(session: &mut Session<'_>, pd: u32, mw_type: u8) -> Result<(u32, u32), Errno> {
    let id = session.objects()?.pd(pd)?;
    if session.device.limits.max_mw == 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let kind = match mw_type {
        1 => MrKind::WindowType1,
        2 => MrKind::WindowType2,
        _ => return Err(Errno::INVAL),
    };
    let config = MrConfig { key: None, pd: id, kind, addr: 0, length: 0, access: AccessFlags::empty() };
    let key = session.nic(|nic| nic.create_mr(&config))?;
    Ok((session.objects()?.add(Object::Mw(key), &[pd]), key))
}

/// A completion queue that is asked for.
#[derive(Debug)]
pub struct CqRequest {
    /// Entries.
    pub cqe: u32,
    /// What events carry.
    pub user_handle: u64,
    /// File that completion events go to.
    pub channel: Option<RawFd>,
    /// Completion vector.
    pub vector: u32,
    /// Timestamps 1, overruns ignored 2.
    pub flags: u32,
    /// File that asynchronous events go to.
    pub events: Option<RawFd>,
    /// Ring memory, if the core was told of it.
    pub buffer: Option<Buffer>,
    /// The driver's part.
    pub udata: Udata,
}

/// Creates a completion queue: its handle, its entries, and the driver's reply.
///
/// # Errors
/// EINVAL: a vector that there is not. Others from the driver.
pub fn create_cq(session: &mut Session<'_>, asked: &CqRequest) -> Result<(u32, u32, Vec<u8>), Errno> {
    session.context()?;
    if asked.vector >= session.device.profile.vectors {
        return Err(Errno::INVAL);
    }
    let (cq, reply): (Cq, Vec<u8>) = match session.family() {
        Family::BnxtRe => bnxt_re::create_cq(session, asked)?,
        Family::Ionic => ionic::create_cq(session, asked)?,
    };
    let cqe = cq.cqe;
    Ok((session.objects()?.add(Object::Cq(cq), &[]), cqe, reply))
}

/// A shared receive queue that is asked for.
#[derive(Debug)]
pub struct SrqRequest {
    /// Protection domain.
    pub pd: u32,
    /// Requests.
    pub max_wr: u32,
    /// SGEs of a request.
    pub max_sge: u32,
    /// Limit to arm; 0 arms none.
    pub limit: u32,
    /// What events carry.
    pub user_handle: u64,
    /// File that asynchronous events go to.
    pub events: Option<RawFd>,
    /// The driver's part.
    pub udata: Udata,
}

/// Creates a shared receive queue: its handle, and the driver's reply.
///
/// # Errors
/// EOPNOTSUPP: the driver has none. Others from the driver.
pub fn create_srq(session: &mut Session<'_>, asked: &SrqRequest) -> Result<Made, Errno> {
    session.objects()?.pd(asked.pd)?;
    let (srq, reply): (Srq, Vec<u8>) = match session.family() {
        Family::BnxtRe => bnxt_re::create_srq(session, asked)?,
        Family::Ionic => return Err(Errno::OPNOTSUPP),
    };
    Ok((session.objects()?.add(Object::Srq(srq), &[asked.pd]), reply))
}

/// A queue pair that is asked for.
#[derive(Debug)]
pub struct QpRequest {
    /// Kind.
    pub qp_type: QpType,
    /// Protection domain.
    pub pd: u32,
    /// Completion queue of sends.
    pub send_cq: u32,
    /// Completion queue of receives.
    pub recv_cq: u32,
    /// Shared receive queue.
    pub srq: Option<u32>,
    /// Capabilities.
    pub cap: QpCap,
    /// Every send request completes.
    pub signal_all: bool,
    /// Other flags.
    pub flags: u32,
    /// What events carry.
    pub user_handle: u64,
    /// File that asynchronous events go to.
    pub events: Option<RawFd>,
    /// Memory of the send ring, if the core was told of it.
    pub sq_buffer: Option<Buffer>,
    /// Memory of the receive ring, likewise.
    pub rq_buffer: Option<Buffer>,
    /// bnxt_re: doorbell region.
    pub dbr: Option<u32>,
    /// The driver's part.
    pub udata: Udata,
}

impl QpRequest {
    /// The capabilities in the NIC's terms.
    pub const fn capabilities(&self) -> QpCapabilities {
        QpCapabilities {
            max_send_wr: self.cap.max_send_wr,
            max_recv_wr: self.cap.max_recv_wr,
            max_send_sge: self.cap.max_send_sge,
            max_recv_sge: self.cap.max_recv_sge,
            max_inline_data: self.cap.max_inline_data,
        }
    }

    /// The queue pair that has come of it.
    pub fn made(&self, id: QpId, granted: QpCap, pins: Vec<Pin>, cmb: Option<(u64, u64)>) -> Qp {
        let mut attributes = QueryQpResp { sq_sig_all: self.signal_all.into(), ..QueryQpResp::default() };
        set_capabilities(&mut attributes, &granted);
        Qp {
            id,
            qp_type: self.qp_type,
            state: QpState::Reset,
            attributes,
            events: Events { user_handle: self.user_handle, file: self.events, reported: 0 },
            pins,
            cmb,
        }
    }
}

/// The kind of queue pair that a number stands for.
///
/// # Errors
/// EOPNOTSUPP: one that the drivers do not have. EINVAL: none.
pub fn qp_type(number: u64) -> Result<QpType, Errno> {
    match number {
        2 => Ok(QpType::Rc),
        4 => Ok(QpType::Ud),
        8 => Ok(QpType::RawPacket),
        3 | 9 | 10 | 255 => Err(Errno::OPNOTSUPP),
        _ => Err(Errno::INVAL),
    }
}

/// Creates a queue pair: its handle, its number, the capabilities granted, and the driver's reply.
///
/// # Errors
/// What the driver answers.
pub fn create_qp(session: &mut Session<'_>, asked: &QpRequest) -> Result<(u32, u32, QpCap, Vec<u8>), Errno> {
    let (qp, reply): (Qp, Vec<u8>) = match session.family() {
        Family::BnxtRe => bnxt_re::create_qp(session, asked)?,
        Family::Ionic => ionic::create_qp(session, asked)?,
    };
    let (id, a) = (qp.id.get(), qp.attributes);
    let granted = QpCap {
        max_send_wr: a.max_send_wr,
        max_recv_wr: a.max_recv_wr,
        max_send_sge: a.max_send_sge,
        max_recv_sge: a.max_recv_sge,
        max_inline_data: a.max_inline_data,
    };
    let mut uses = vec![asked.pd, asked.send_cq, asked.recv_cq];
    uses.extend(asked.srq);
    uses.extend(asked.dbr);
    Ok((session.objects()?.add(Object::Qp(Box::new(qp)), &uses), id, granted, reply))
}

/// Bytes of a structure, for a reply.
pub fn reply<T: IntoBytes + zerocopy::Immutable>(of: &T) -> Vec<u8> {
    of.as_bytes().to_vec()
}
