//! Methods by ioctl(): an object, a method, and attributes. Source: kernel `rdma/ib_user_ioctl_cmds.h`.

use zerocopy::{FromBytes, IntoBytes};

use super::abi::{EXTENDED, IoctlAttribute, IoctlHeader, NUMBER, RDMA_VERBS_IOCTL};
use super::command::{self, Reply};
use super::config::{Model, Transport};
use super::device::State;
use super::objects::{Cq, Qp, QpCap, Srq, Udata};
use super::sysfs::GID;
use super::{Errno, abi, bnxt_re, lifecycle};

/// Attributes of the driver's library on a method of the core.
const UHW_IN: u16 = 0x1000;
const UHW_OUT: u16 = 0x1001;
/// Objects from here on are the driver's.
const DRIVER: u16 = 0x1000;

/// `enum uverbs_default_objects`.
mod object {
    pub const DEVICE: u16 = 0;
    pub const PD: u16 = 1;
    pub const CQ: u16 = 3;
    pub const QP: u16 = 4;
    pub const SRQ: u16 = 5;
    pub const AH: u16 = 6;
    pub const MR: u16 = 7;
    pub const MW: u16 = 8;
    pub const ASYNC_EVENT: u16 = 16;
}

/// Attributes of a method.
#[derive(Debug)]
pub struct Attributes<'a>(&'a mut [IoctlAttribute]);

impl Attributes<'_> {
    fn find(&self, id: u16) -> Option<&IoctlAttribute> {
        self.0.iter().find(|attribute| attribute.id == id)
    }

    fn has(&self, id: u16) -> bool {
        self.find(id).is_some()
    }

    /// A number, handle or descriptor that goes in.
    pub fn value(&self, id: u16) -> Result<u64, Errno> {
        self.find(id).map(|attribute| attribute.data).ok_or(libc::EINVAL)
    }

    fn word(&self, id: u16) -> Result<u32, Errno> {
        self.value(id).map(|value| value as u32)
    }

    /// Bytes that go in; none if the attribute is missing.
    ///
    /// # Safety
    /// The attribute's address is memory.
    unsafe fn input(&self, id: u16) -> Vec<u8> {
        let Some(attribute) = self.find(id) else { return Vec::new() };
        let len = attribute.len.into();
        if len <= size_of::<u64>() {
            return attribute.data.to_ne_bytes()[..len].to_vec();
        }
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(attribute.data as *const u8, len) }.to_vec()
    }

    /// Gives the handle of a new object.
    pub fn set_handle(&mut self, id: u16, handle: u32) -> Result<(), Errno> {
        let attribute = self.0.iter_mut().find(|attribute| attribute.id == id).ok_or(libc::EINVAL)?;
        attribute.data = handle.into();
        Ok(())
    }

    /// Gives bytes; as many as there is room for. Nothing happens if the attribute is missing.
    ///
    /// # Safety
    /// The attribute's address is memory.
    pub unsafe fn output(&mut self, id: u16, bytes: &[u8]) -> Result<(), Errno> {
        const VALID_OUTPUT: u16 = 2;
        if let Some(attribute) = self.0.iter_mut().find(|attribute| attribute.id == id) {
            let mut whole = bytes.to_vec();
            whole.resize(attribute.len.into(), 0);
            let to = attribute.data as *mut u8;
            // SAFETY: the caller's.
            unsafe { to.copy_from_nonoverlapping(whole.as_ptr(), whole.len()) };
            attribute.flags |= VALID_OUTPUT;
        }
        Ok(())
    }
}

/// Carries out the method at `argument`.
///
/// # Safety
/// `argument` is a header with as many attributes as it tells, whose addresses are memory.
pub unsafe fn run(state: &mut State, request: u64, argument: *mut u8) -> Result<(), Errno> {
    if request != RDMA_VERBS_IOCTL {
        return Err(libc::ENOTTY);
    }
    // SAFETY: the caller's.
    let header = unsafe { argument.cast::<IoctlHeader>().read_unaligned() };
    let whole = size_of::<IoctlHeader>() + usize::from(header.attributes) * size_of::<IoctlAttribute>();
    if usize::from(header.length) != whole {
        return Err(libc::EINVAL);
    }
    if header.driver != state.config.family().driver_id() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's; the library's header is as aligned as its 64-bit fields.
    let attributes = unsafe {
        let first = argument.add(size_of::<IoctlHeader>()).cast::<IoctlAttribute>();
        std::slice::from_raw_parts_mut(first, header.attributes.into())
    };
    let mut attributes = Attributes(attributes);
    // SAFETY: the caller's.
    unsafe { method(state, header.object, header.method, &mut attributes) }
}

unsafe fn method(
    state: &mut State,
    object: u16,
    method: u16,
    attributes: &mut Attributes<'_>,
) -> Result<(), Errno> {
    if object >= DRIVER {
        let Model::BnxtRe(config) = state.config.model.clone() else { return Err(libc::EPROTONOSUPPORT) };
        // SAFETY: the caller's.
        return unsafe { bnxt_re::method(state, &config, object, method, attributes) };
    }
    if state.config.transport == Transport::Write {
        return Err(libc::ENOTTY);
    }
    // SAFETY: the caller's, of all below.
    unsafe {
        match (object, method) {
            (object::DEVICE, 0) => invoke_write(state, attributes),
            (object::DEVICE, 2) => attributes.output(1, command::query_port().as_bytes()),
            (object::DEVICE, 3) => {
                let driver = command::get_context(state)?;
                attributes.output(0, 1u32.as_bytes())?;
                // Unknown trailing bytes of requests are refused, missing ones of replies are zero.
                const ROBUST_UDATA: u64 = 2;
                attributes.output(1, ROBUST_UDATA.as_bytes())?;
                attributes.output(UHW_OUT, &driver)
            }
            (object::DEVICE, 6) => query_gid(attributes),
            (object::PD, 0) => lifecycle::dealloc_pd(state, attributes.word(0)?).map(drop),
            (object::CQ, 0) => create_cq(state, attributes),
            (object::CQ, 1) => {
                let reply = lifecycle::destroy_cq(state, attributes.word(0)?)?;
                attributes.output(1, &reply.core)
            }
            (object::QP, 0) => create_qp(state, attributes),
            (object::QP, 1) => {
                let reply = lifecycle::destroy_qp(state, attributes.word(0)?)?;
                attributes.output(1, &reply.core)
            }
            (object::SRQ, 0) => create_srq(state, attributes),
            (object::SRQ, 1) => {
                let reply = lifecycle::destroy_srq(state, attributes.word(0)?)?;
                attributes.output(1, &reply.core)
            }
            (object::AH, 0) => lifecycle::destroy_ah(state, attributes.word(0)?).map(drop),
            (object::MR, 1) => lifecycle::dereg_mr(state, attributes.word(0)?).map(drop),
            (object::MW, 0) => lifecycle::dealloc_mw(state, attributes.word(0)?).map(drop),
            (object::ASYNC_EVENT, 0) => {
                let fd = state.open_events()?;
                attributes.set_handle(0, fd as u32)
            }
            _ => Err(libc::EPROTONOSUPPORT),
        }
    }
}

/// A command of the write interface inside of a method. libibverbs asks with a request that is too short, to see whether
/// the kernel can do this.
unsafe fn invoke_write(state: &mut State, attributes: &mut Attributes<'_>) -> Result<(), Errno> {
    const CORE_IN: u16 = 0;
    const CORE_OUT: u16 = 1;
    const WRITE_CMD: u16 = 2;
    let number = attributes.word(WRITE_CMD)?;
    let extended = number & EXTENDED != 0;
    // SAFETY: the caller's.
    let (request, driver) = unsafe { (attributes.input(CORE_IN), attributes.input(UHW_IN)) };
    if !extended && command::shape(number & NUMBER).is_some_and(|shape| request.len() < shape.request) {
        return Err(libc::ENOSPC);
    }
    let Reply { core, driver } = command::run(state, number & NUMBER, extended, &request, &driver)?;
    // SAFETY: the caller's.
    unsafe {
        attributes.output(CORE_OUT, &core)?;
        attributes.output(UHW_OUT, &driver)
    }
}

/// One GID, RoCE version 2.
unsafe fn query_gid(attributes: &mut Attributes<'_>) -> Result<(), Errno> {
    const ROCE_V2: u32 = 2;
    let (port, index) = (attributes.word(0)?, attributes.word(1)?);
    if (port, index) != (1, 0) {
        return Err(libc::ENODATA);
    }
    let entry =
        abi::GidEntry { gid: GID, gid_index: index, port_num: port, gid_type: ROCE_V2, netdev_ifindex: 0 };
    // SAFETY: the caller's.
    unsafe { attributes.output(3, entry.as_bytes()) }
}

unsafe fn create_cq(state: &mut State, attributes: &mut Attributes<'_>) -> Result<(), Errno> {
    let cqe = attributes.word(1)?;
    let cq = Cq {
        user_handle: attributes.value(2)?,
        cqe,
        comp_vector: attributes.word(4)?,
        channel: attributes.has(3),
        flags: attributes.word(5).unwrap_or(0),
        // SAFETY: the caller's.
        udata: Udata(unsafe { attributes.input(UHW_IN) }),
        ..Cq::default()
    };
    let (handle, driver) = lifecycle::create_cq(state, cq)?;
    attributes.set_handle(0, handle)?;
    // SAFETY: the caller's.
    unsafe {
        attributes.output(6, cqe.as_bytes())?;
        attributes.output(UHW_OUT, &driver)
    }
}

unsafe fn create_qp(state: &mut State, attributes: &mut Attributes<'_>) -> Result<(), Errno> {
    const SIGNAL_ALL: u32 = 1 << 12;
    // SAFETY: the caller's.
    let (cap, udata) = unsafe { (attributes.input(8), attributes.input(UHW_IN)) };
    let [max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data] =
        <[u32; 5]>::read_from_bytes(&cap).map_err(|_| libc::EINVAL)?;
    let qp = Qp {
        user_handle: attributes.value(7)?,
        pd: attributes.word(2)?,
        send_cq: attributes.word(4)?,
        recv_cq: attributes.word(5)?,
        srq: attributes.word(3).ok(),
        qp_type: attributes.word(9)?,
        signal_all: attributes.word(10).unwrap_or(0) & SIGNAL_ALL != 0,
        cap: QpCap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data },
        udata: Udata(udata),
        ..Qp::default()
    };
    let made = lifecycle::make_qp(state, qp)?;
    attributes.set_handle(0, made.handle)?;
    // SAFETY: the caller's.
    unsafe {
        attributes.output(13, &cap)?;
        attributes.output(14, made.id.as_bytes())?;
        attributes.output(UHW_OUT, &made.reply.0)
    }
}

unsafe fn create_srq(state: &mut State, attributes: &mut Attributes<'_>) -> Result<(), Errno> {
    let srq = Srq {
        pd: attributes.word(1)?,
        user_handle: attributes.value(4)?,
        max_wr: attributes.word(5)?,
        max_sge: attributes.word(6)?,
        limit: attributes.word(7)?,
        // SAFETY: the caller's.
        udata: Udata(unsafe { attributes.input(UHW_IN) }),
        ..Srq::default()
    };
    let (made, driver) = lifecycle::create_srq(state, srq)?;
    attributes.set_handle(0, made.handle)?;
    // SAFETY: the caller's.
    unsafe {
        attributes.output(11, made.max_wr.as_bytes())?;
        attributes.output(12, made.max_sge.as_bytes())?;
        attributes.output(13, made.id.as_bytes())?;
        attributes.output(UHW_OUT, &driver)
    }
}
