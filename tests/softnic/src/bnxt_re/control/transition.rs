//! MODIFY_QP and QUERY_QP.

use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::bnxt_re::rcfw::message::{
    CQ_ERROR, CreqCqErrorNotification, CreqQpErrorNotification, CreqType, QP_ERROR, QP_EVENT,
};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::qp::{CmdqModifyQp, CmdqQueryQp, mask};
use directverbs::verbs::{
    AccessFlags, AddressVector, CqId, Gid, Mac, Mtu, Psn, QKey, QpAttributes, QpId, QpState, QpType,
};
use zerocopy::{IntoBytes, little_endian as le};

use super::channel::{Outcome, Reply};
use super::function::BnxtFunction;
use super::keys::vlan;

const STATES: [QpState; 7] =
    [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd, QpState::Sqe, QpState::Err];

/// Partition of RoCE.
const DEFAULT_PKEY: u16 = 0xffff;
/// What a path consists of.
const PATH: u32 = mask::DGID
    | mask::FLOW_LABEL
    | mask::SGID_INDEX
    | mask::HOP_LIMIT
    | mask::TRAFFIC_CLASS
    | mask::DEST_MAC
    | mask::VLAN_ID;

impl BnxtFunction {
    pub(super) fn modify_qp(&mut self, command: &CmdqModifyQp) -> Outcome {
        let opcode = Opcode::MODIFY_QP;
        let qp = command.qp_cid.get();
        self.known_qp(opcode, qp)?;
        let attributes = self.attributes(command)?;
        let modified = self.nic.lock().modify_qp(QpId::truncated(qp), &attributes);
        modified.map_err(|error| self.refused(opcode, &error))?;
        self.remember(qp, command);
        Ok(Reply::xid(qp))
    }

    fn attributes(&self, command: &CmdqModifyQp) -> Result<QpAttributes, Status> {
        let bits = command.modify_mask.get();
        let has = |bit: u32| bits & bit != 0;
        let invalid = |what: &str| {
            self.violation(format_args!("MODIFY_QP: {what}"));
            Err(Status::INVALID_PARAMETER)
        };
        let word = command.network_type_en_sqd_async_notify_new_state;
        let state = STATES.get(usize::from(word & 0xf)).copied();
        if has(mask::STATE) && state.is_none() {
            return invalid("no such state");
        }
        if has(mask::PKEY) && command.pkey.get() != DEFAULT_PKEY {
            return invalid("another partition than that of RoCE");
        }
        let mtu = Mtu::ALL.get(usize::from(command.path_mtu_pingpong_push_enable >> 4)).copied();
        if has(mask::PATH_MTU) && mtu.is_none_or(|mtu| mtu > self.chip.mtu) {
            return invalid("a larger MTU than that of the port");
        }
        let outgoing = command.max_rd_atomic.checked_sub(1);
        let incoming = command.max_dest_rd_atomic.checked_sub(2).map(|entries| entries / 2);
        if has(mask::MAX_RD_ATOMIC) && outgoing.is_none()
            || has(mask::MAX_DEST_RD_ATOMIC) && incoming.is_none()
        {
            return invalid("tables of READs and atomics without entries");
        }
        let path = match bits & PATH {
            0 => None,
            PATH => Some(AddressVector {
                dgid: Gid(command.dgid.as_bytes().try_into().unwrap_or_default()),
                dmac: Mac(command.dest_mac.as_bytes().try_into().unwrap_or_default()),
                sgid_index: command.sgid_index.get() as u8,
                flow_label: command.flow_label.get(),
                traffic_class: command.traffic_class << 2,
                hop_limit: command.hop_limit,
                vlan: vlan(command.vlan_pcp_vlan_dei_vlan_id.get()),
            }),
            _ => return invalid("half a path"),
        };
        if let Some(path) = &path {
            self.check_network(Opcode::MODIFY_QP, word >> 6, path)?;
        }
        Ok(QpAttributes {
            state: state.filter(|_| has(mask::STATE)),
            access: has(mask::ACCESS).then(|| AccessFlags::from_bits_truncate((command.access & 0xf).into())),
            qkey: has(mask::QKEY).then(|| QKey::truncated(command.qkey.get())),
            path,
            mtu: mtu.filter(|_| has(mask::PATH_MTU)),
            dest_qp: has(mask::DEST_QP_ID).then(|| QpId::truncated(command.dest_qp_id.get())),
            rq_psn: has(mask::RQ_PSN).then(|| Psn::truncated(command.rq_psn.get())),
            sq_psn: has(mask::SQ_PSN).then(|| Psn::truncated(command.sq_psn.get())),
            max_rd_atomic: outgoing.filter(|_| has(mask::MAX_RD_ATOMIC)),
            max_dest_rd_atomic: incoming.filter(|_| has(mask::MAX_DEST_RD_ATOMIC)),
            min_rnr_timer: has(mask::MIN_RNR_TIMER).then_some(command.min_rnr_timer),
            timeout: has(mask::TIMEOUT).then_some(command.timeout),
            retry_count: has(mask::RETRY_CNT).then_some(command.retry_cnt),
            rnr_retry: has(mask::RNR_RETRY).then_some(command.rnr_retry),
        })
    }

    /// Keeps what a query shall tell.
    fn remember(&mut self, qp: u32, command: &CmdqModifyQp) {
        let Some(record) = self.state.objects.qps.get_mut(&qp) else { return };
        let (told, bits) = (&mut record.attributes, command.modify_mask.get());
        told.xid = le::U32::new(qp);
        let has = |bit: u32| bits & bit != 0;
        if has(mask::ACCESS) {
            told.access = command.access;
        }
        if has(mask::PKEY) {
            told.pkey = command.pkey;
        }
        if has(mask::QKEY) {
            told.qkey = command.qkey;
        }
        if has(mask::DGID) {
            (told.dgid, told.flow_label) = (command.dgid, command.flow_label);
            (told.sgid_index, told.hop_limit) = (command.sgid_index, command.hop_limit);
            (told.traffic_class, told.dest_mac) = (command.traffic_class, command.dest_mac);
            told.vlan_pcp_vlan_dei_vlan_id = command.vlan_pcp_vlan_dei_vlan_id;
        }
        if has(mask::PATH_MTU) {
            let code = u16::from(command.path_mtu_pingpong_push_enable >> 4);
            told.path_mtu_dest_vlan_id = le::U16::new(code << 12);
        }
        if has(mask::TIMEOUT) {
            told.timeout = command.timeout;
        }
        if has(mask::RETRY_CNT) {
            told.retry_cnt = command.retry_cnt;
        }
        if has(mask::RNR_RETRY) {
            told.rnr_retry = command.rnr_retry;
        }
        if has(mask::MIN_RNR_TIMER) {
            told.min_rnr_timer = command.min_rnr_timer;
        }
        if has(mask::MAX_RD_ATOMIC) {
            told.max_rd_atomic = command.max_rd_atomic;
        }
        if has(mask::MAX_DEST_RD_ATOMIC) {
            told.max_dest_rd_atomic = command.max_dest_rd_atomic;
        }
        if has(mask::DEST_QP_ID) {
            told.dest_qp_id = command.dest_qp_id;
        }
        (told.sq_size, told.rq_size) = (command.sq_size, command.rq_size);
        (told.sq_sge, told.rq_sge) = (command.sq_sge, command.rq_sge);
        told.max_inline_data = command.max_inline_data;
    }

    pub(super) fn query_qp(&mut self, command: &CmdqQueryQp) -> Outcome {
        let opcode = Opcode::QUERY_QP;
        let qp = command.qp_cid.get();
        let status = self.nic.lock().query_qp(QpId::truncated(qp));
        let status = status.map_err(|error| self.refused(opcode, &error))?;
        let Some(record) = self.state.objects.qps.get(&qp) else { return Err(Status::INVALID_PARAMETER) };
        let mut told = record.attributes;
        told.opcode = Opcode::QUERY_QP.0;
        told.xid = le::U32::new(qp);
        told.en_sqd_async_notify_state = status.state as u8;
        if record.qp_type == QpType::Rc {
            (told.sq_psn, told.rq_psn) = (le::U32::new(status.sq_psn), le::U32::new(status.rq_psn));
        }
        Ok(Reply::side(told.as_bytes()))
    }

    /// Tells the host that a queue pair went into error.
    pub(super) fn qp_error(&mut self, qp: QpId) {
        self.creq_event(|valid| {
            let entry = CreqQpErrorNotification {
                r#type: CreqType::new().with_kind(QP_EVENT).into_bits(),
                xid: le::U32::new(qp.get()),
                v: valid.into_bits(),
                event: QP_ERROR,
                ..CreqQpErrorNotification::ZERO
            };
            entry.as_bytes().try_into().unwrap_or_default()
        });
    }

    /// Tells the host that a completion queue went into error.
    pub(super) fn cq_error(&mut self, cq: CqId) {
        self.creq_event(|valid| {
            let entry = CreqCqErrorNotification {
                r#type: CreqType::new().with_kind(QP_EVENT).into_bits(),
                xid: le::U32::new(cq.get()),
                v: valid.into_bits(),
                event: CQ_ERROR,
                ..CreqCqErrorNotification::ZERO
            };
            entry.as_bytes().try_into().unwrap_or_default()
        });
    }
}
