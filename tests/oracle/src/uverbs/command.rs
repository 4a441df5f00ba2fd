//! The commands of the uverbs core, however they came: by write() or inside of an ioctl.

use zerocopy::{FromBytes, IntoBytes};

use super::abi::{self, command};
use super::config::Model;
use super::device::State;
use super::objects::{Cq, Qp, QpCap, Srq, Udata};
use super::{Errno, bnxt_re, ionic, lifecycle};

/// A reply: the core's structure, and what the driver adds.
#[derive(Debug, Default)]
pub struct Reply {
    pub core: Vec<u8>,
    pub driver: Vec<u8>,
}

impl Reply {
    pub fn core(bytes: &[u8]) -> Self {
        Self { core: bytes.to_vec(), driver: Vec::new() }
    }
}

/// The core's part of a command's request and reply, in bytes, and whether the request begins with the reply's address.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub request: usize,
    pub reply: usize,
    pub address: bool,
}

/// Shape of a plain command.
pub fn shape(number: u32) -> Option<Shape> {
    let with_reply = |request, reply| Shape { request, reply, address: true };
    let without = |request| Shape { request, reply: 0, address: false };
    Some(match number {
        command::GET_CONTEXT => with_reply(8, 8),
        command::QUERY_DEVICE => with_reply(8, 176),
        command::QUERY_PORT => with_reply(16, 40),
        command::ALLOC_PD => with_reply(8, 4),
        command::CREATE_AH => with_reply(56, 4),
        command::REG_MR => with_reply(40, 12),
        command::ALLOC_MW => with_reply(16, 8),
        command::CREATE_COMP_CHANNEL => with_reply(8, 4),
        command::CREATE_CQ => with_reply(32, 8),
        command::RESIZE_CQ => with_reply(16, 8),
        command::DESTROY_CQ => with_reply(16, 8),
        command::POLL_CQ => with_reply(16, 8),
        command::CREATE_QP => with_reply(56, 32),
        command::QUERY_QP => with_reply(16, 128),
        command::DESTROY_QP | command::DESTROY_SRQ => with_reply(16, 4),
        command::CREATE_SRQ => with_reply(32, 16),
        command::QUERY_SRQ => with_reply(16, 16),
        command::MODIFY_QP => without(112),
        command::MODIFY_SRQ => without(16),
        command::DEALLOC_PD | command::DESTROY_AH | command::DEREG_MR | command::DEALLOC_MW => without(4),
        _ => return None,
    })
}

/// Carries out a command. `request` is the core's part, `driver` what the driver's library adds.
pub fn run(
    state: &mut State,
    number: u32,
    extended: bool,
    request: &[u8],
    driver: &[u8],
) -> Result<Reply, Errno> {
    if extended {
        return run_extended(state, number, request, driver);
    }
    match number {
        command::GET_CONTEXT => get_context(state).map(|driver| {
            // The descriptor is made last: a context that fails leaves none open.
            let events = state.open_events().unwrap_or(-1);
            Reply { core: [events, 1].as_bytes().to_vec(), driver }
        }),
        command::QUERY_DEVICE => Ok(Reply::core(query_device(state).as_bytes())),
        command::QUERY_PORT => Ok(Reply::core(query_port().as_bytes())),
        command::ALLOC_PD => lifecycle::alloc_pd(state),
        command::CREATE_AH => lifecycle::create_ah(state, &parse(request)?),
        command::REG_MR => lifecycle::reg_mr(state, &parse(request)?),
        command::ALLOC_MW => lifecycle::alloc_mw(state, &parse(request)?),
        command::CREATE_COMP_CHANNEL => state.open_channel().map(|fd| Reply::core(fd.as_bytes())),
        command::CREATE_CQ => {
            let asked: abi::CreateCq = parse(request)?;
            let cq = Cq {
                user_handle: asked.user_handle,
                cqe: asked.cqe,
                comp_vector: asked.comp_vector,
                channel: asked.comp_channel >= 0,
                udata: Udata(driver.to_vec()),
                ..Cq::default()
            };
            let (handle, driver) = lifecycle::create_cq(state, cq)?;
            Ok(Reply { core: [handle, asked.cqe].as_bytes().to_vec(), driver })
        }
        command::RESIZE_CQ => {
            let asked: abi::ResizeCq = parse(request)?;
            let cq = state.objects.cqs.get_mut(&asked.cq).ok_or(libc::EINVAL)?;
            bnxt_re::resize_cq(cq, asked.cqe, driver);
            Ok(Reply::core([asked.cqe, 0].as_bytes()))
        }
        command::DESTROY_CQ => lifecycle::destroy_cq(state, handle_after_address(request)?),
        command::POLL_CQ => Ok(Reply::core(&[0; 8])),
        command::CREATE_QP => create_qp(state, request.get(8..).ok_or(libc::EINVAL)?, driver),
        command::QUERY_QP => query_qp(state, handle_after_address(request)?),
        command::MODIFY_QP => lifecycle::modify_qp(state, &parse(request)?),
        command::DESTROY_QP => lifecycle::destroy_qp(state, handle_after_address(request)?),
        command::CREATE_SRQ => {
            let asked: abi::CreateSrq = parse(request)?;
            let srq = Srq {
                user_handle: asked.user_handle,
                pd: asked.pd,
                max_wr: asked.max_wr,
                max_sge: asked.max_sge,
                limit: asked.limit,
                udata: Udata(driver.to_vec()),
                ..Srq::default()
            };
            let (made, driver) = lifecycle::create_srq(state, srq)?;
            let core = [made.handle, made.max_wr, made.max_sge, made.id];
            Ok(Reply { core: core.as_bytes().to_vec(), driver })
        }
        command::MODIFY_SRQ => {
            let asked: abi::ModifySrq = parse(request)?;
            let srq = state.objects.srqs.get_mut(&asked.srq).ok_or(libc::EINVAL)?;
            srq.limit = asked.limit;
            Ok(Reply::default())
        }
        command::QUERY_SRQ => {
            let srq = state.objects.srqs.get(&handle_after_address(request)?).ok_or(libc::EINVAL)?;
            Ok(Reply::core([srq.max_wr, srq.max_sge, srq.limit, 0].as_bytes()))
        }
        command::DESTROY_SRQ => lifecycle::destroy_srq(state, handle_after_address(request)?),
        command::DEALLOC_PD => lifecycle::dealloc_pd(state, parse(request)?),
        command::DESTROY_AH => lifecycle::destroy_ah(state, parse(request)?),
        command::DEREG_MR => lifecycle::dereg_mr(state, parse(request)?),
        command::DEALLOC_MW => lifecycle::dealloc_mw(state, parse(request)?),
        _ => Err(libc::EOPNOTSUPP),
    }
}

fn run_extended(state: &mut State, number: u32, request: &[u8], driver: &[u8]) -> Result<Reply, Errno> {
    match number {
        command::QUERY_DEVICE => {
            const LENGTH: usize = 304;
            let mut core = query_device(state).as_bytes().to_vec();
            core.extend_from_slice([0u32, LENGTH as u32].as_bytes());
            core.resize(LENGTH, 0);
            Ok(Reply { core, driver: Vec::new() })
        }
        command::CREATE_CQ => {
            let asked: abi::CreateCqEx = parse(request)?;
            let cq = Cq {
                user_handle: asked.user_handle,
                cqe: asked.cqe,
                comp_vector: asked.comp_vector,
                channel: asked.comp_channel >= 0,
                flags: asked.flags,
                udata: Udata(driver.to_vec()),
                ..Cq::default()
            };
            let (handle, driver) = lifecycle::create_cq(state, cq)?;
            Ok(Reply { core: [handle, asked.cqe, 0, 16].as_bytes().to_vec(), driver })
        }
        command::CREATE_QP => {
            let mut reply = create_qp(state, request, driver)?;
            reply.core.extend_from_slice([0u32, 40].as_bytes());
            Ok(reply)
        }
        command::MODIFY_QP => {
            lifecycle::modify_qp(state, &parse(request)?)?;
            Ok(Reply::core([0u32, 8].as_bytes()))
        }
        _ => Err(libc::EOPNOTSUPP),
    }
}

fn parse<T: FromBytes>(request: &[u8]) -> Result<T, Errno> {
    T::read_from_prefix(request).map(|(value, _)| value).map_err(|_| libc::EINVAL)
}

fn handle_after_address(request: &[u8]) -> Result<u32, Errno> {
    parse(request.get(8..).ok_or(libc::EINVAL)?)
}

pub fn get_context(state: &mut State) -> Result<Vec<u8>, Errno> {
    match state.config.model.clone() {
        Model::BnxtRe(config) => bnxt_re::get_context(state, &config),
        Model::Ionic(config) => ionic::get_context(state, &config),
    }
}

fn query_device(state: &State) -> abi::QueryDevice {
    let limits = state.limits();
    abi::QueryDevice {
        node_guid: 0x0200_0000_0000_0001u64.to_be(),
        sys_image_guid: 0x0200_0000_0000_0001u64.to_be(),
        max_mr_size: 1 << 40,
        page_size_cap: 4096,
        vendor_id: if matches!(state.config.model, Model::BnxtRe(_)) { 0x14e4 } else { 0x1dd8 },
        max_qp: limits.max_qp,
        max_qp_wr: limits.max_qp_wr,
        max_sge: limits.max_sge,
        max_sge_rd: limits.max_sge,
        max_cq: limits.max_cq,
        max_cqe: limits.max_cqe,
        max_mr: 1 << 16,
        max_pd: 1 << 10,
        max_qp_rd_atom: 16,
        max_qp_init_rd_atom: 16,
        atomic_cap: limits.atomic_cap,
        max_mw: 1 << 16,
        max_ah: 1 << 16,
        max_srq: 1 << 10,
        max_srq_wr: limits.max_srq_wr,
        max_srq_sge: limits.max_srq_sge,
        max_pkeys: 1,
        phys_port_cnt: 1,
        ..abi::QueryDevice::default()
    }
}

/// An active Ethernet port with an MTU of 4096 bytes.
pub fn query_port() -> abi::QueryPort {
    const ACTIVE: u8 = 4;
    const MTU_4096: u8 = 5;
    const LINK_UP: u8 = 5;
    const ETHERNET: u8 = 2;
    abi::QueryPort {
        max_msg_sz: 1 << 30,
        gid_tbl_len: 1,
        pkey_tbl_len: 1,
        state: ACTIVE,
        max_mtu: MTU_4096,
        active_mtu: MTU_4096,
        active_width: 2,
        active_speed: 32,
        phys_state: LINK_UP,
        link_layer: ETHERNET,
        ..abi::QueryPort::default()
    }
}

fn create_qp(state: &mut State, request: &[u8], driver: &[u8]) -> Result<Reply, Errno> {
    let asked: abi::CreateQp = parse(request)?;
    let qp = Qp {
        user_handle: asked.user_handle,
        pd: asked.pd,
        send_cq: asked.send_cq,
        recv_cq: asked.recv_cq,
        srq: (asked.is_srq != 0).then_some(asked.srq),
        qp_type: asked.qp_type.into(),
        signal_all: asked.sq_sig_all != 0,
        cap: QpCap {
            max_send_wr: asked.max_send_wr,
            max_recv_wr: asked.max_recv_wr,
            max_send_sge: asked.max_send_sge,
            max_recv_sge: asked.max_recv_sge,
            max_inline_data: asked.max_inline_data,
        },
        udata: Udata(driver.to_vec()),
        ..Qp::default()
    };
    let made = lifecycle::make_qp(state, qp)?;
    let core = abi::CreateQpResp {
        handle: made.handle,
        qpn: made.id,
        max_send_wr: made.cap.max_send_wr,
        max_recv_wr: made.cap.max_recv_wr,
        max_send_sge: made.cap.max_send_sge,
        max_recv_sge: made.cap.max_recv_sge,
        max_inline_data: made.cap.max_inline_data,
        reserved: 0,
    };
    Ok(Reply { core: core.as_bytes().to_vec(), driver: made.reply.0 })
}

fn query_qp(state: &State, handle: u32) -> Result<Reply, Errno> {
    let qp = state.objects.qps.get(&handle).ok_or(libc::EINVAL)?;
    let reply = abi::QueryQpResp {
        max_send_wr: qp.cap.max_send_wr,
        max_recv_wr: qp.cap.max_recv_wr,
        max_send_sge: qp.cap.max_send_sge,
        max_recv_sge: qp.cap.max_recv_sge,
        max_inline_data: qp.cap.max_inline_data,
        sq_psn: qp.sq_psn,
        qp_state: qp.state as u8,
        cur_qp_state: qp.state as u8,
        path_mtu: qp.path_mtu as u8,
        port_num: 1,
        sq_sig_all: qp.signal_all.into(),
        ..abi::QueryQpResp::default()
    };
    Ok(Reply::core(reply.as_bytes()))
}
