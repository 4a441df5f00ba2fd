//! Queue pairs.

use std::ffi::c_int;
use std::rc::Rc;

use directverbs::verbs::{
    AccessFlags, AddressVector, Gid, Mac, Mtu, Psn, QKey, QpAttributes, QpCapabilities, QpId, QpInit,
    QpState, QpType,
};

use super::ah;
use super::context::destroyed;
use super::cq::Cq;
use super::error::{Error, PostError, Result, check, last};
use super::pd::Pd;
use super::requests::{RecvList, SendList};
use super::srq::Srq;
use super::sys::{
    QP_INIT_PD, QP_INIT_SEND_OPS, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_init_attr_ex,
    qp_attr,
};

#[derive(Debug)]
struct Owned {
    pd: Pd,
    raw: *mut ibv_qp,
    granted: QpCapabilities,
    /// Kept alive.
    _queues: (Cq, Cq, Option<Srq>),
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: nothing uses it.
        destroyed("ibv_destroy_qp", unsafe { (self.pd.context().verbs().ibv_destroy_qp)(self.raw) });
    }
}

/// A queue pair.
#[derive(Clone, Debug)]
pub struct Qp(Rc<Owned>);

/// All operations of `enum ibv_qp_create_send_ops_flags` up to SEND_WITH_INV.
pub const ALL_SEND_OPS: u64 = (1 << 10) - 1;

impl Qp {
    /// Creates one with `ibv_create_qp`.
    ///
    /// # Errors
    /// The provider failed.
    pub fn new(pd: &Pd, init: &QpInit<'_, Cq, Srq>) -> Result<Self> {
        let mut attributes = ibv_qp_init_attr {
            qp_context: std::ptr::null_mut(),
            send_cq: init.send_cq.raw(),
            recv_cq: init.recv_cq.raw(),
            srq: init.srq.map_or(std::ptr::null_mut(), Srq::raw),
            cap: cap(&init.capabilities),
            qp_type: init.qp_type as u32,
            sq_sig_all: init.signal_all.into(),
        };
        // SAFETY: the domain and the queues are there.
        let raw = unsafe { (pd.context().verbs().ibv_create_qp)(pd.raw(), &mut attributes) };
        Self::made(pd, init, raw, &attributes.cap, "ibv_create_qp")
    }

    /// Creates one with `ibv_create_qp_ex`, for the operations `send_ops` of `ibv_wr_*` if that is not zero.
    ///
    /// # Errors
    /// The provider failed or has no extended form.
    pub fn new_extended(pd: &Pd, init: &QpInit<'_, Cq, Srq>, send_ops: u64) -> Result<Self> {
        let context = pd.context();
        let create = context.extended().create_qp_ex.ok_or(Error::Missing("ibv_create_qp_ex"))?;
        let mut attributes = ibv_qp_init_attr_ex {
            qp_context: std::ptr::null_mut(),
            send_cq: init.send_cq.raw(),
            recv_cq: init.recv_cq.raw(),
            srq: init.srq.map_or(std::ptr::null_mut(), Srq::raw),
            cap: cap(&init.capabilities),
            qp_type: init.qp_type as u32,
            sq_sig_all: init.signal_all.into(),
            comp_mask: QP_INIT_PD | if send_ops == 0 { 0 } else { QP_INIT_SEND_OPS },
            pd: pd.raw(),
            xrcd: std::ptr::null_mut(),
            create_flags: 0,
            max_tso_header: 0,
            rwq_ind_tbl: std::ptr::null_mut(),
            rx_hash_conf: [0; 3],
            source_qpn: 0,
            send_ops_flags: send_ops,
        };
        // SAFETY: the domain and the queues are there.
        let raw = unsafe { create(context.raw(), &mut attributes) };
        Self::made(pd, init, raw, &attributes.cap, "ibv_create_qp_ex")
    }

    fn made(
        pd: &Pd,
        init: &QpInit<'_, Cq, Srq>,
        raw: *mut ibv_qp,
        granted: &ibv_qp_cap,
        verb: &'static str,
    ) -> Result<Self> {
        if raw.is_null() {
            return Err(last(verb));
        }
        let granted = QpCapabilities {
            max_send_wr: granted.max_send_wr,
            max_recv_wr: granted.max_recv_wr,
            max_send_sge: granted.max_send_sge,
            max_recv_sge: granted.max_recv_sge,
            max_inline_data: granted.max_inline_data,
        };
        let queues = (init.send_cq.clone(), init.recv_cq.clone(), init.srq.cloned());
        Ok(Self(Rc::new(Owned { pd: pd.clone(), raw, granted, _queues: queues })))
    }

    /// Handle, as the device knows it.
    pub fn handle(&self) -> u32 {
        // SAFETY: it is there.
        unsafe { (*self.raw()).handle }
    }

    /// Number.
    pub fn id(&self) -> QpId {
        // SAFETY: it is there.
        QpId::truncated(unsafe { (*self.raw()).qp_num })
    }

    /// Capabilities that the provider says it has.
    pub fn capabilities(&self) -> QpCapabilities {
        self.0.granted
    }

    /// Changes attributes. Into the state INIT the port goes along.
    ///
    /// # Errors
    /// The provider failed.
    pub fn modify(&self, attributes: &QpAttributes) -> Result<()> {
        let (mut raw, mask) = modification(attributes);
        let verbs = self.0.pd.context().verbs();
        // SAFETY: it is there.
        check("ibv_modify_qp", unsafe { (verbs.ibv_modify_qp)(self.raw(), &mut raw, mask) })
    }

    /// Takes it from RESET to RTS, with a path MTU and the first sequence number that it sends.
    ///
    /// # Errors
    /// The provider failed.
    pub fn to_rts(&self, qp_type: QpType, mtu: Mtu, sq_psn: Psn) -> Result<()> {
        let datagram = qp_type != QpType::Rc;
        self.modify(&QpAttributes {
            access: (!datagram).then_some(AccessFlags::REMOTE_WRITE),
            qkey: datagram.then_some(QKey::truncated(0x1111)),
            ..QpAttributes::to(QpState::Init)
        })?;
        let path = AddressVector::new(Gid([0xfe; 16]), Mac([2; 6]));
        self.modify(&QpAttributes {
            path: (!datagram).then_some(path),
            mtu: (!datagram).then_some(mtu),
            dest_qp: (!datagram).then_some(QpId::truncated(0x77)),
            rq_psn: (!datagram).then_some(Psn::truncated(0x55)),
            max_dest_rd_atomic: (!datagram).then_some(1),
            min_rnr_timer: (!datagram).then_some(12),
            ..QpAttributes::to(QpState::Rtr)
        })?;
        self.modify(&QpAttributes {
            sq_psn: Some(sq_psn),
            timeout: (!datagram).then_some(14),
            retry_count: (!datagram).then_some(7),
            rnr_retry: (!datagram).then_some(7),
            max_rd_atomic: (!datagram).then_some(1),
            ..QpAttributes::to(QpState::Rts)
        })
    }

    /// Posts send requests with `ibv_post_send`.
    ///
    /// # Errors
    /// What the provider returned, and which request it refused.
    pub fn post_send(&self, list: &mut SendList<'_>) -> std::result::Result<(), PostError> {
        // SAFETY: the context is open.
        let post = unsafe { (*self.0.pd.context().raw()).ops.post_send }.expect("every provider posts");
        // SAFETY: the list is linked and lives on.
        list.post(|first, bad| unsafe { post(self.raw(), first, bad) })
    }

    /// Posts receive requests.
    ///
    /// # Errors
    /// What the provider returned, and which request it refused.
    pub fn post_recv(&self, list: &mut RecvList) -> std::result::Result<(), PostError> {
        // SAFETY: the context is open.
        let post = unsafe { (*self.0.pd.context().raw()).ops.post_recv }.expect("every provider posts");
        // SAFETY: the list is linked and lives on.
        list.post(|first, bad| unsafe { post(self.raw(), first, bad) })
    }

    /// The library's object, for calls of its functions without this wrapper.
    pub fn raw(&self) -> *mut ibv_qp {
        self.0.raw
    }
}

fn cap(asked: &QpCapabilities) -> ibv_qp_cap {
    ibv_qp_cap {
        max_send_wr: asked.max_send_wr,
        max_recv_wr: asked.max_recv_wr,
        max_send_sge: asked.max_send_sge,
        max_recv_sge: asked.max_recv_sge,
        max_inline_data: asked.max_inline_data,
    }
}

/// The library's form of a change, and its mask.
fn modification(attributes: &QpAttributes) -> (ibv_qp_attr, c_int) {
    let mut raw = ibv_qp_attr::default();
    let mut mask = 0;
    /// Puts a value, if there is one, and its bit.
    fn put<T, U>(value: Option<T>, to: &mut U, mask: &mut c_int, bit: c_int, convert: impl Fn(T) -> U) {
        if let Some(value) = value {
            *to = convert(value);
            *mask |= bit;
        }
    }
    put(attributes.state, &mut raw.qp_state, &mut mask, qp_attr::STATE, |v| v as u32);
    put(attributes.access, &mut raw.qp_access_flags, &mut mask, qp_attr::ACCESS_FLAGS, |v| v.bits());
    put(attributes.qkey, &mut raw.qkey, &mut mask, qp_attr::QKEY, QKey::get);
    put(attributes.path, &mut raw.ah_attr, &mut mask, qp_attr::AV, |v| ah::attributes(&v));
    put(attributes.mtu, &mut raw.path_mtu, &mut mask, qp_attr::PATH_MTU, |v| v as u32);
    put(attributes.dest_qp, &mut raw.dest_qp_num, &mut mask, qp_attr::DEST_QPN, QpId::get);
    put(attributes.rq_psn, &mut raw.rq_psn, &mut mask, qp_attr::RQ_PSN, Psn::get);
    put(attributes.sq_psn, &mut raw.sq_psn, &mut mask, qp_attr::SQ_PSN, Psn::get);
    put(attributes.max_rd_atomic, &mut raw.max_rd_atomic, &mut mask, qp_attr::MAX_QP_RD_ATOMIC, |v| v);
    let most = attributes.max_dest_rd_atomic;
    put(most, &mut raw.max_dest_rd_atomic, &mut mask, qp_attr::MAX_DEST_RD_ATOMIC, |v| v);
    put(attributes.min_rnr_timer, &mut raw.min_rnr_timer, &mut mask, qp_attr::MIN_RNR_TIMER, |v| v);
    put(attributes.timeout, &mut raw.timeout, &mut mask, qp_attr::TIMEOUT, |v| v);
    put(attributes.retry_count, &mut raw.retry_cnt, &mut mask, qp_attr::RETRY_CNT, |v| v);
    put(attributes.rnr_retry, &mut raw.rnr_retry, &mut mask, qp_attr::RNR_RETRY, |v| v);
    if attributes.state == Some(QpState::Init) {
        raw.port_num = 1;
        mask |= qp_attr::PORT | qp_attr::PKEY_INDEX;
    }
    (raw, mask)
}
