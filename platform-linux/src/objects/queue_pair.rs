//! Queue pairs, as the kernel knows them. Posting is the driver's.

use directverbs::verbs::{
    AccessFlags, AddressVector, Gid, Mac, Mtu, Psn, QKey, QpAttributes, QpCapabilities, QpId, QpInit,
    QpState, QpType,
};
use zerocopy::little_endian::{U32, U64};

use super::address_handle::destination;
use super::buffer::Buffer;
use super::completion_queue::{CompletionQueue, descriptor};
use super::event::UserHandle;
use super::handle::{Handle, within};
use super::protection_domain::ProtectionDomain;
use super::shared_receive_queue::SharedReceiveQueue;
use crate::error::{Error, Result};
use crate::uverbs::abi::attribute::{self, Attribute};
use crate::uverbs::abi::command::{MODIFY_QP, MODIFY_QP_EX, QUERY_QP};
use crate::uverbs::abi::methods::{create_qp, destroy};
use crate::uverbs::abi::query::QueryDeviceReply;
use crate::uverbs::abi::queue_pair::{
    ModifyQp, ModifyQpEx, ModifyQpExReply, QpCap, QpDestination, QueryQp, QueryQpReply, mask,
};
use crate::uverbs::{Call, Uhw};

const OBJECT: &str = "queue pair";

/// Memory that the application gives for the rings.
#[derive(Clone, Debug, Default)]
pub struct QpBuffers {
    /// For the send queue.
    pub send: Option<Buffer>,
    /// For the receive queue.
    pub receive: Option<Buffer>,
}

/// A queue pair. It holds its protection domain, completion queues, shared receive queue and ring memory.
#[derive(Debug)]
pub struct QueuePair {
    handle: Handle,
    pd: ProtectionDomain,
    _cqs: [CompletionQueue; 2],
    _srq: Option<SharedReceiveQueue>,
    _buffers: QpBuffers,
    user_handle: UserHandle,
    id: QpId,
    qp_type: QpType,
    state: QpState,
    granted: QpCapabilities,
}

impl QueuePair {
    /// Creates one. `uhw` is the driver's part, and `driver` names objects of the driver's that the queue pair shall use;
    /// the driver's object that belongs to it must outlive the queue pair.
    ///
    /// # Errors
    /// A number that the device does not have, objects of another context, a buffer that is not whole pages, a kernel that
    /// takes no buffers, or the kernel refuses.
    pub fn create(
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, SharedReceiveQueue>,
        buffers: &QpBuffers,
        driver: &[(Attribute<attribute::Handle>, u32)],
        uhw: Uhw<'_>,
    ) -> Result<Self> {
        let shared = pd.handle.context();
        check_capabilities(&init.capabilities, init.srq.is_some(), shared.limits())?;
        for cq in [init.send_cq, init.recv_cq] {
            pd.handle.check_context(cq.object(), OBJECT)?;
        }
        if let Some(srq) = init.srq {
            pd.handle.check_context(srq.object(), OBJECT)?;
        }
        let context = pd.context();
        let ring = |b: &Option<Buffer>| b.as_ref().map(|b| descriptor(&context, OBJECT, b)).transpose();
        // Receives of a shared queue need no ring here, whatever was given.
        let (send, receive) =
            (ring(&buffers.send)?, if init.srq.is_some() { None } else { ring(&buffers.receive)? });
        let user_handle = shared.user_handle();
        let cap = capabilities_to_abi(&init.capabilities);
        let (mut granted, mut id) = (QpCap::ZERO, U32::ZERO);
        let mut call = Call::new(&create_qp::METHOD);
        call.new_handle(create_qp::HANDLE)
            .handle(create_qp::PD_HANDLE, pd.handle())
            .handle(create_qp::SEND_CQ_HANDLE, init.send_cq.handle())
            .handle(create_qp::RECV_CQ_HANDLE, init.recv_cq.handle())
            .value(create_qp::USER_HANDLE, U64::new(user_handle.0))
            .input(create_qp::CAP, &cap)
            .constant(create_qp::TYPE, init.qp_type as u64)
            .file(create_qp::EVENT_FD, shared.events())
            .output(create_qp::RESP_CAP, &mut granted)
            .output(create_qp::RESP_QP_NUM, &mut id);
        if let Some(srq) = init.srq {
            call.handle(create_qp::SRQ_HANDLE, srq.handle());
        }
        if init.signal_all {
            call.value(create_qp::FLAGS, create_qp::SIGNAL_ALL.into());
        }
        if let Some(send) = &send {
            call.input(create_qp::SQ_BUF_UMEM, send);
        }
        if let Some(receive) = &receive {
            call.input(create_qp::RQ_BUF_UMEM, receive);
        }
        for (attribute, number) in driver {
            call.handle(*attribute, *number);
        }
        uhw.add(&mut call);
        let number = shared.file().call(call)?.handle(create_qp::HANDLE)?;
        let handle = Handle::new(shared, number, &destroy::QP);
        let id = QpId::new(id.get()).ok_or(Error::Reply {
            object: OBJECT,
            method: create_qp::METHOD.name,
            what: "a number of more than 24 bits",
        })?;
        Ok(Self {
            handle,
            pd: pd.clone(),
            _cqs: [init.send_cq.clone(), init.recv_cq.clone()],
            _srq: init.srq.cloned(),
            _buffers: buffers.clone(),
            user_handle,
            id,
            qp_type: init.qp_type,
            state: QpState::Reset,
            granted: capabilities_from_abi(&granted),
        })
    }

    /// Number on the wire.
    pub fn id(&self) -> QpId {
        self.id
    }

    /// The kernel's handle.
    pub fn handle(&self) -> u32 {
        self.handle.number()
    }

    /// The number that its events carry.
    pub fn user_handle(&self) -> UserHandle {
        self.user_handle
    }

    /// Kind.
    pub fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// State that it was brought to. A device may have moved it to [`QpState::Err`] since: see [`QueuePair::query`].
    pub fn state(&self) -> QpState {
        self.state
    }

    /// Capabilities that the kernel has granted.
    pub fn granted(&self) -> QpCapabilities {
        self.granted
    }

    /// Changes attributes. On the way to INIT it is bound to `port`, and to the first partition key.
    ///
    /// # Errors
    /// The state diagram has no such edge, an attribute is missing or out of range, the path MTU is larger than the
    /// port's, or the kernel refuses. The state is then what it was.
    pub fn modify(&mut self, attributes: &QpAttributes, port: u8) -> Result<()> {
        let to = attributes.check(self.qp_type, self.state)?;
        let shared = self.handle.context();
        if let Some(mtu) = attributes.mtu {
            let active = shared.query_port(port)?.active_mtu.unwrap_or(Mtu::B4096);
            within(OBJECT, "path MTU", mtu.bytes().into(), Mtu::B256.bytes().into(), active.bytes().into())?;
        }
        let ports = shared.limits().phys_port_cnt;
        let core = modify_to_abi(self.handle(), self.qp_type, self.state, attributes, port, ports)?;
        shared.file().ask(&MODIFY_QP, &core, &mut (), Uhw::none())?;
        self.state = to;
        Ok(())
    }

    /// Takes over the state that a completion has told.
    pub(crate) fn follow(&mut self, state: QpState) {
        self.state = state;
    }

    /// Limits the rate of the send queue to `kbps` kbit/s; 0 takes the limit off.
    ///
    /// # Errors
    /// The queue pair is not ready to send, or the kernel refuses: the device may have no limits.
    pub fn set_rate_limit(&mut self, kbps: u32) -> Result<()> {
        if self.state != QpState::Rts {
            return Err(Error::Value {
                object: OBJECT,
                attribute: "rate limit",
                what: "needs the state RTS",
            });
        }
        let base = ModifyQp {
            qp_handle: self.handle().into(),
            attr_mask: (mask::STATE | mask::RATE_LIMIT).into(),
            qp_state: QpState::Rts as u8,
            ..ModifyQp::ZERO
        };
        let core = ModifyQpEx { base, rate_limit: kbps.into(), ..ModifyQpEx::ZERO };
        let mut reply = ModifyQpExReply::ZERO;
        self.handle.context().file().ask(&MODIFY_QP_EX, &core, &mut reply, Uhw::none())
    }

    /// Reads attributes, and the state as the device has it.
    ///
    /// # Errors
    /// The kernel refuses, or answers with a state that there is not.
    pub fn query(&mut self) -> Result<QueriedQp> {
        let asked = mask::STATE | mask::CAP | mask::AV | mask::ACCESS_FLAGS | mask::QKEY;
        let core = QueryQp { qp_handle: self.handle().into(), attr_mask: asked.into(), ..QueryQp::ZERO };
        let mut reply = QueryQpReply::ZERO;
        self.handle.context().file().ask(&QUERY_QP, &core, &mut reply, Uhw::none())?;
        let state = state_from_abi(reply.qp_state).ok_or(Error::Reply {
            object: OBJECT,
            method: QUERY_QP.name,
            what: "a state that there is not",
        })?;
        self.state = state;
        Ok(QueriedQp {
            attributes: attributes_from_abi(&reply, state),
            capabilities: capabilities_from_abi(&reply.cap),
            signal_all: reply.sq_sig_all != 0,
            draining: reply.sq_draining != 0,
        })
    }

    /// The protection domain.
    pub fn pd(&self) -> &ProtectionDomain {
        &self.pd
    }

    /// Destroys it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn destroy(mut self) -> Result<()> {
        self.handle.destroy()
    }
}

/// What a query tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueriedQp {
    /// Attributes. The Ethernet address and the VLAN of the path are not among what the kernel tells.
    pub attributes: QpAttributes,
    /// Capabilities.
    pub capabilities: QpCapabilities,
    /// Every send request produces a completion.
    pub signal_all: bool,
    /// The send queue is draining.
    pub draining: bool,
}

fn check_capabilities(asked: &QpCapabilities, srq: bool, limits: &QueryDeviceReply) -> Result<()> {
    let (wr, sge) = (limits.max_qp_wr.get().into(), limits.max_sge.get().into());
    within(OBJECT, "max_send_wr", asked.max_send_wr.into(), 0, wr)?;
    within(OBJECT, "max_send_sge", asked.max_send_sge.into(), 0, sge)?;
    if srq {
        return Ok(());
    }
    within(OBJECT, "max_recv_wr", asked.max_recv_wr.into(), 0, wr)?;
    within(OBJECT, "max_recv_sge", asked.max_recv_sge.into(), 0, sge)
}

fn capabilities_to_abi(caps: &QpCapabilities) -> QpCap {
    QpCap {
        max_send_wr: caps.max_send_wr.into(),
        max_recv_wr: caps.max_recv_wr.into(),
        max_send_sge: caps.max_send_sge.into(),
        max_recv_sge: caps.max_recv_sge.into(),
        max_inline_data: caps.max_inline_data.into(),
    }
}

fn capabilities_from_abi(cap: &QpCap) -> QpCapabilities {
    QpCapabilities {
        max_send_wr: cap.max_send_wr.get(),
        max_recv_wr: cap.max_recv_wr.get(),
        max_send_sge: cap.max_send_sge.get(),
        max_recv_sge: cap.max_recv_sge.get(),
        max_inline_data: cap.max_inline_data.get(),
    }
}

fn state_from_abi(code: u8) -> Option<QpState> {
    use QpState::*;
    [Reset, Init, Rtr, Rts, Sqd, Sqe, Err].into_iter().find(|s| *s as u8 == code)
}

/// The command that makes a transition. Its mask has a bit for each attribute that is given.
fn modify_to_abi(
    handle: u32,
    qp_type: QpType,
    from: QpState,
    attributes: &QpAttributes,
    port: u8,
    ports: u8,
) -> Result<ModifyQp> {
    let mut core = ModifyQp { qp_handle: handle.into(), ..ModifyQp::ZERO };
    let mut given = 0;
    let mut number = |bit: u32, value: Option<u32>| {
        given |= if value.is_some() { bit } else { 0 };
        U32::new(value.unwrap_or(0))
    };
    core.qp_access_flags = number(mask::ACCESS_FLAGS, attributes.access.map(|a| a.bits()));
    core.qkey = number(mask::QKEY, attributes.qkey.map(QKey::get));
    core.dest_qp_num = number(mask::DEST_QPN, attributes.dest_qp.map(QpId::get));
    core.rq_psn = number(mask::RQ_PSN, attributes.rq_psn.map(Psn::get));
    core.sq_psn = number(mask::SQ_PSN, attributes.sq_psn.map(Psn::get));
    let mut byte = |bit: u32, value: Option<u8>| {
        given |= if value.is_some() { bit } else { 0 };
        value.unwrap_or(0)
    };
    core.qp_state = byte(mask::STATE, attributes.state.map(|s| s as u8));
    core.path_mtu = byte(mask::PATH_MTU, attributes.mtu.map(|m| m as u8));
    core.max_rd_atomic = byte(mask::MAX_QP_RD_ATOMIC, attributes.max_rd_atomic);
    core.max_dest_rd_atomic = byte(mask::MAX_DEST_RD_ATOMIC, attributes.max_dest_rd_atomic);
    core.min_rnr_timer = byte(mask::MIN_RNR_TIMER, attributes.min_rnr_timer);
    core.timeout = byte(mask::TIMEOUT, attributes.timeout);
    core.retry_cnt = byte(mask::RETRY_CNT, attributes.retry_count);
    core.rnr_retry = byte(mask::RNR_RETRY, attributes.rnr_retry);
    if from == QpState::Reset && attributes.state == Some(QpState::Init) {
        within(OBJECT, "port", port.into(), 1, ports.into())?;
        core.port_num = byte(mask::PORT, Some(port));
        // Frames have no partition.
        if qp_type != QpType::RawPacket {
            given |= mask::PKEY_INDEX;
        }
    }
    if let Some(path) = &attributes.path {
        core.dest = destination(OBJECT, path, port, ports)?;
        given |= mask::AV;
    }
    core.attr_mask = given.into();
    Ok(core)
}

fn attributes_from_abi(reply: &QueryQpReply, state: QpState) -> QpAttributes {
    let QpDestination { dgid, flow_label, sgid_index, hop_limit, traffic_class, is_global, .. } = reply.dest;
    QpAttributes {
        state: Some(state),
        access: Some(AccessFlags::from_bits_truncate(reply.qp_access_flags.get())),
        qkey: Some(QKey::truncated(reply.qkey.get())),
        path: (is_global != 0).then(|| AddressVector {
            sgid_index,
            flow_label: flow_label.get(),
            traffic_class,
            hop_limit,
            ..AddressVector::new(Gid(dgid), Mac::default())
        }),
        mtu: Mtu::ALL.into_iter().find(|m| *m as u8 == reply.path_mtu),
        dest_qp: Some(QpId::truncated(reply.dest_qp_num.get())),
        rq_psn: Some(Psn::truncated(reply.rq_psn.get())),
        sq_psn: Some(Psn::truncated(reply.sq_psn.get())),
        max_rd_atomic: Some(reply.max_rd_atomic),
        max_dest_rd_atomic: Some(reply.max_dest_rd_atomic),
        min_rnr_timer: Some(reply.min_rnr_timer),
        timeout: Some(reply.timeout),
        retry_count: Some(reply.retry_cnt),
        rnr_retry: Some(reply.rnr_retry),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn path() -> AddressVector {
        AddressVector {
            sgid_index: 3,
            flow_label: 0xf_1234,
            traffic_class: 0x20,
            vlan: Some(5 << 13 | 100),
            ..AddressVector::new(Gid::v4(Ipv4Addr::new(10, 0, 0, 2)), Mac([2; 6]))
        }
    }

    #[test]
    fn init_binds_to_the_port_and_the_first_partition_key() {
        let rc = QpAttributes { access: Some(AccessFlags::REMOTE_WRITE), ..QpAttributes::to(QpState::Init) };
        let core = modify_to_abi(7, QpType::Rc, QpState::Reset, &rc, 1, 1).expect("a port");
        assert_eq!(core.attr_mask.get(), mask::STATE | mask::ACCESS_FLAGS | mask::PORT | mask::PKEY_INDEX);
        assert_eq!((core.qp_handle.get(), core.qp_state, core.port_num), (7, 1, 1));
        assert_eq!(core.qp_access_flags.get(), 2);
        let raw = modify_to_abi(7, QpType::RawPacket, QpState::Reset, &QpAttributes::to(QpState::Init), 1, 1);
        assert_eq!(raw.expect("a port").attr_mask.get(), mask::STATE | mask::PORT);
        let error = modify_to_abi(7, QpType::Rc, QpState::Reset, &rc, 2, 1).expect_err("one port");
        assert_eq!(error.to_string(), "queue pair: port 2, the device has 1 to 1");
    }

    #[test]
    fn rtr_carries_the_path_with_the_priority_of_its_vlan() {
        let attributes = QpAttributes {
            path: Some(path()),
            mtu: Some(Mtu::B1024),
            dest_qp: QpId::new(0x123),
            rq_psn: Psn::new(0x456),
            max_dest_rd_atomic: Some(4),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        };
        let core = modify_to_abi(7, QpType::Rc, QpState::Init, &attributes, 1, 1).expect("a path");
        // STATE, AV, PATH_MTU, RQ_PSN, MIN_RNR_TIMER, MAX_DEST_RD_ATOMIC, DEST_QPN: as the kernel wants for this edge.
        assert_eq!(core.attr_mask.get(), 0x12_9181);
        assert_eq!((core.path_mtu, core.dest_qp_num.get(), core.rq_psn.get()), (3, 0x123, 0x456));
        assert_eq!((core.dest.sgid_index, core.dest.hop_limit, core.dest.sl), (3, 64, 5));
        assert_eq!((core.dest.is_global, core.dest.port_num), (1, 1));
        let wide = QpAttributes { path: Some(AddressVector { flow_label: 1 << 20, ..path() }), ..attributes };
        assert!(matches!(
            modify_to_abi(7, QpType::Rc, QpState::Init, &wide, 1, 1),
            Err(Error::Limit { attribute: "flow label", .. })
        ));
    }

    #[test]
    fn rts_carries_the_requester_attributes() {
        let attributes = QpAttributes {
            sq_psn: Psn::new(1),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(1),
            ..QpAttributes::to(QpState::Rts)
        };
        let core = modify_to_abi(7, QpType::Rc, QpState::Rtr, &attributes, 1, 1).expect("no path");
        // STATE, TIMEOUT, RETRY_CNT, RNR_RETRY, MAX_QP_RD_ATOMIC, SQ_PSN.
        assert_eq!(core.attr_mask.get(), 0x1_2e01);
    }
}
