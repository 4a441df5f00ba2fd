//! MODIFY_QP from attributes: the transition is checked before there is a command.

use zerocopy::little_endian as le;

use super::path::{Network, SourceGid, words_of};
use super::qp::{CmdqModifyQp, kind, mask};
use crate::verbs::{AccessFlags, QpAttributes, QpCapabilities, QpId, QpState, QpType, StateError, Text};

/// What the device grants in READs and atomics outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// As requester.
    pub initiator: u8,
    /// As responder.
    pub responder: u8,
}

impl Outstanding {
    /// Most that the tables' sizes in commands can tell.
    pub const MAX: u8 = 126;

    /// Entries of the table of outgoing READs and atomics, of 32 bytes.
    pub const fn orrq(self) -> u32 {
        self.initiator as u32 + 1
    }

    /// Entries of the table of incoming ones, of 32 bytes.
    pub const fn irrq(self) -> u32 {
        2 * self.responder as u32 + 2
    }
}

/// A transition of a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Transition<'a> {
    /// The queue pair.
    pub qp: QpId,
    /// Its kind.
    pub qp_type: QpType,
    /// Its state.
    pub from: QpState,
    /// What was allowed last.
    pub access: AccessFlags,
    /// What it was granted.
    pub capabilities: QpCapabilities,
    /// What changes.
    pub attributes: &'a QpAttributes,
    /// Our GID of the path that changes.
    pub source: Option<SourceGid>,
    /// What the device grants in READs and atomics.
    pub outstanding: Outstanding,
    /// The device wants the kind, and access flags on the way to RTR.
    pub optimized: bool,
}

/// Partition of RoCE.
const DEFAULT_PKEY: u16 = 0xffff;

/// The device's code for a kind of queue pair.
pub const fn qp_kind(qp_type: QpType) -> u8 {
    match qp_type {
        QpType::Rc => kind::RC,
        QpType::Ud => kind::UD,
        QpType::RawPacket => kind::RAW_ETHERTYPE,
    }
}

impl CmdqModifyQp {
    /// The command for a transition, and the state that it leads to.
    ///
    /// # Errors
    /// The state diagram has no such edge, an attribute is missing or out of range, or the path has no GID of ours.
    pub fn new(transition: &Transition<'_>) -> Result<(Self, QpState), StateError> {
        let Transition { qp_type, from, attributes, outstanding, .. } = *transition;
        let to = attributes.check(qp_type, from)?;
        let limits: [(Text, Option<u8>, u8); 2] = [
            (text!("max_rd_atomic"), attributes.max_rd_atomic, outstanding.initiator),
            (text!("max_dest_rd_atomic"), attributes.max_dest_rd_atomic, outstanding.responder),
        ];
        for (attribute, value, max) in limits {
            if let Some(value) = value.filter(|value| *value > max) {
                return Err(StateError::OutOfRange { attribute, value: value.into(), max: max.into() });
            }
        }
        let mut command = Self {
            qp_cid: le::U32::new(transition.qp.get()),
            sq_size: le::U32::new(transition.capabilities.max_send_wr),
            rq_size: le::U32::new(transition.capabilities.max_recv_wr),
            sq_sge: le::U16::new(transition.capabilities.max_send_sge as u16),
            rq_sge: le::U16::new(transition.capabilities.max_recv_sge as u16),
            max_inline_data: le::U32::new(transition.capabilities.max_inline_data),
            ..Self::ZERO
        };
        let mut bits = 0;
        if attributes.state.is_some() {
            bits |= mask::STATE;
            command.network_type_en_sqd_async_notify_new_state = to as u8;
        }
        let begins = from == QpState::Reset && to == QpState::Init;
        let receives = from == QpState::Init && to == QpState::Rtr;
        if begins || (receives && transition.optimized) {
            bits |= mask::PKEY;
            command.pkey = le::U16::new(DEFAULT_PKEY);
        }
        if attributes.access.is_some() || begins || (receives && transition.optimized) {
            bits |= mask::ACCESS;
            command.access = access_bits(attributes.access.unwrap_or(transition.access));
        }
        if transition.optimized {
            command.qp_type = qp_kind(qp_type);
        }
        bits |= command.set_numbers(attributes);
        if let Some(path) = &attributes.path {
            let missing = StateError::Missing { from, to, attribute: text!("GID") };
            let source = transition.source.ok_or(missing)?;
            bits |= command.set_path(path, source);
        }
        command.modify_mask = le::U32::new(bits);
        Ok((command, to))
    }

    /// Sets the attributes that are numbers; gives their bits of the mask.
    fn set_numbers(&mut self, attributes: &QpAttributes) -> u32 {
        let mut bits = 0;
        if let Some(qkey) = attributes.qkey {
            (self.qkey, bits) = (le::U32::new(qkey.get()), bits | mask::QKEY);
        }
        if let Some(mtu) = attributes.mtu {
            (self.path_mtu_pingpong_push_enable, bits) = ((mtu as u8 - 1) << 4, bits | mask::PATH_MTU);
        }
        if let Some(qp) = attributes.dest_qp {
            (self.dest_qp_id, bits) = (le::U32::new(qp.get()), bits | mask::DEST_QP_ID);
        }
        if let Some(psn) = attributes.rq_psn {
            (self.rq_psn, bits) = (le::U32::new(psn.get()), bits | mask::RQ_PSN);
        }
        if let Some(psn) = attributes.sq_psn {
            (self.sq_psn, bits) = (le::U32::new(psn.get()), bits | mask::SQ_PSN);
        }
        if let Some(n) = attributes.max_rd_atomic {
            let table = Outstanding { initiator: n.max(1), responder: 0 }.orrq();
            (self.max_rd_atomic, bits) = (table as u8, bits | mask::MAX_RD_ATOMIC);
        }
        if let Some(n) = attributes.max_dest_rd_atomic {
            let table = Outstanding { initiator: 0, responder: n.max(1) }.irrq();
            (self.max_dest_rd_atomic, bits) = (table as u8, bits | mask::MAX_DEST_RD_ATOMIC);
        }
        if let Some(timer) = attributes.min_rnr_timer {
            (self.min_rnr_timer, bits) = (timer, bits | mask::MIN_RNR_TIMER);
        }
        if let Some(timeout) = attributes.timeout {
            (self.timeout, bits) = (timeout, bits | mask::TIMEOUT);
        }
        if let Some(count) = attributes.retry_count {
            (self.retry_cnt, bits) = (count, bits | mask::RETRY_CNT);
        }
        if let Some(count) = attributes.rnr_retry {
            (self.rnr_retry, bits) = (count, bits | mask::RNR_RETRY);
        }
        bits
    }

    /// Sets the path; gives its bits of the mask.
    fn set_path(&mut self, path: &crate::verbs::AddressVector, source: SourceGid) -> u32 {
        let network = Network::of(path.dgid) as u8;
        self.network_type_en_sqd_async_notify_new_state |= network << 6;
        self.dgid = words_of(&path.dgid.0).map(le::U32::from_bytes);
        self.flow_label = le::U32::new(path.flow_label & 0xf_ffff);
        self.sgid_index = le::U16::new(source.index);
        self.hop_limit = path.hop_limit;
        // The device takes the code point alone: the lower two bits mark congestion.
        self.traffic_class = path.traffic_class >> 2;
        self.dest_mac = words_of(&path.dmac.0).map(le::U16::from_bytes);
        self.vlan_pcp_vlan_dei_vlan_id = le::U16::new(path.vlan.or(source.vlan).unwrap_or(NO_VLAN));
        mask::DGID
            | mask::FLOW_LABEL
            | mask::SGID_INDEX
            | mask::HOP_LIMIT
            | mask::TRAFFIC_CLASS
            | mask::DEST_MAC
            | mask::VLAN_ID
    }
}

/// VLAN id of an untagged path.
pub const NO_VLAN: u16 = 0xfff;

/// Access flags of a queue pair: the first four of `ibv_access_flags`.
const fn access_bits(access: AccessFlags) -> u8 {
    access.bits() as u8 & 0xf
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;
    use crate::verbs::{AddressVector, Gid, Mac, Mtu, Psn, QKey};

    fn transition(qp_type: QpType, from: QpState, attributes: &QpAttributes) -> Transition<'_> {
        Transition {
            qp: QpId::truncated(0x1234),
            qp_type,
            from,
            access: AccessFlags::REMOTE_READ,
            capabilities: QpCapabilities { max_send_wr: 10, ..QpCapabilities::default() },
            attributes,
            source: Some(SourceGid { index: 3, vlan: None }),
            outstanding: Outstanding { initiator: 16, responder: 16 },
            optimized: false,
        }
    }

    #[test]
    fn a_transition_that_cannot_be_makes_no_command() {
        let to_rts = QpAttributes::to(QpState::Rts);
        let error = CmdqModifyQp::new(&transition(QpType::Rc, QpState::Init, &to_rts)).unwrap_err();
        assert_eq!(error, StateError::NoSuchTransition { from: QpState::Init, to: QpState::Rts });
        let to_init = QpAttributes::to(QpState::Init);
        assert!(CmdqModifyQp::new(&transition(QpType::Rc, QpState::Reset, &to_init)).is_err());
        let too_many = QpAttributes {
            sq_psn: Some(Psn::truncated(0)),
            timeout: Some(1),
            retry_count: Some(1),
            rnr_retry: Some(1),
            max_rd_atomic: Some(17),
            ..to_rts
        };
        let error = CmdqModifyQp::new(&transition(QpType::Rc, QpState::Rtr, &too_many)).unwrap_err();
        assert_eq!(error, StateError::OutOfRange { attribute: text!("max_rd_atomic"), value: 17, max: 16 });
    }

    #[test]
    fn init_sets_access_partition_and_key() {
        let rc = QpAttributes { access: Some(AccessFlags::all()), ..QpAttributes::to(QpState::Init) };
        let (command, to) = CmdqModifyQp::new(&transition(QpType::Rc, QpState::Reset, &rc)).unwrap();
        assert_eq!(to, QpState::Init);
        assert_eq!(command.as_bytes()[16..28], [0xd, 0, 0, 0, 0x34, 0x12, 0, 0, 1, 0xf, 0xff, 0xff]);
        assert_eq!(command.sq_size.get(), 10);
        let ud = QpAttributes { qkey: Some(QKey::truncated(0x1111_1111)), ..QpAttributes::to(QpState::Init) };
        let (command, _) = CmdqModifyQp::new(&transition(QpType::Ud, QpState::Reset, &ud)).unwrap();
        assert_eq!((command.modify_mask.get(), command.qkey.get()), (0x1d, 0x1111_1111));
    }

    #[test]
    fn rtr_sets_the_path_in_the_order_of_the_wire() {
        let mut path = AddressVector::new(
            Gid::v4(core::net::Ipv4Addr::new(10, 0, 0, 2)),
            Mac([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]),
        );
        (path.traffic_class, path.flow_label) = (0xb8, 0x1_2345);
        let attributes = QpAttributes {
            path: Some(path),
            mtu: Some(Mtu::B4096),
            dest_qp: Some(QpId::truncated(9)),
            rq_psn: Some(Psn::truncated(0x65_4321)),
            max_dest_rd_atomic: Some(4),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        };
        let mut asked = transition(QpType::Rc, QpState::Init, &attributes);
        let (command, _) = CmdqModifyQp::new(&asked).unwrap();
        assert_eq!(command.modify_mask.get(), 0x1415_17e1, "no access, no source address");
        let bytes = command.as_bytes();
        assert_eq!(bytes[24], 2 | 2 << 6);
        assert_eq!(bytes[32..48], path.dgid.0);
        assert_eq!(bytes[48..56], [0x45, 0x23, 1, 0, 3, 0, 64, 0x2e]);
        assert_eq!(bytes[56..64], [0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0, 0x40]);
        assert_eq!((bytes[67], bytes[77]), (12, 10));
        assert_eq!(
            (bytes[68..72].to_vec(), bytes[110..112].to_vec()),
            (vec_of([0x21, 0x43, 0x65, 0]), vec_of([0xff, 0x0f]))
        );
        (asked.optimized, asked.access) = (true, AccessFlags::REMOTE_WRITE);
        let (command, _) = CmdqModifyQp::new(&asked).unwrap();
        assert_eq!((command.modify_mask.get() & 0xc, command.access, command.qp_type), (0xc, 2, 2));
        asked.source = None;
        assert!(CmdqModifyQp::new(&asked).is_err());
    }

    fn vec_of<const N: usize>(bytes: [u8; N]) -> std::vec::Vec<u8> {
        bytes.to_vec()
    }
}
