//! Changes of a queue pair, and what reading one gives back. Source: Linux `ionic_fw.h`, `ionic_controlpath.c`.

use zerocopy::big_endian as be;

use super::flags::{QpFlags, QpTypeState, state};
use super::template::HeaderTemplate;
use super::wqe::{ANY_TABLE, AhIdLen, ModifyQpCmd, Retries};
use crate::layout::{Layout, bits, layout};
use crate::verbs::{AhId, Mtu, Psn, QKey, QpAttributes, QpId, QpState, QpType, StateError};

bitflags::bitflags! {
    /// What is changed of a queue pair. The bit values are those of `ibv_qp_attr_mask`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AttrMask: u32 {
        /// State.
        const STATE = 1;
        /// State that it must be in.
        const CUR_STATE = 1 << 1;
        /// What the peer may do.
        const ACCESS_FLAGS = 1 << 3;
        /// Partition key.
        const PKEY_INDEX = 1 << 4;
        /// Port.
        const PORT = 1 << 5;
        /// Queue key.
        const QKEY = 1 << 6;
        /// Path.
        const AV = 1 << 7;
        /// Path MTU.
        const PATH_MTU = 1 << 8;
        /// Acknowledge time-out.
        const TIMEOUT = 1 << 9;
        /// Retries without an answer.
        const RETRY_CNT = 1 << 10;
        /// Retries after an RNR NAK.
        const RNR_RETRY = 1 << 11;
        /// First sequence number expected.
        const RQ_PSN = 1 << 12;
        /// READs and atomics as requester.
        const MAX_QP_RD_ATOMIC = 1 << 13;
        /// RNR NAK timer.
        const MIN_RNR_TIMER = 1 << 15;
        /// First sequence number sent.
        const SQ_PSN = 1 << 16;
        /// READs and atomics as responder.
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// The peer's queue pair.
        const DEST_QPN = 1 << 20;
    }
}

layout! {
    /// What the device knows of a send queue.
    pub struct QuerySq: "ionic" "ionic_v1_admin_query_qp_sq", 20 {
        /// RNR NAK timer code.
        rnr_timer: u8 = 0,
        /// Acknowledge time-out code.
        retry_timeout: u8 = 1,
        /// The low half of [`QpFlags`].
        access_perms_flags: be::U16 = 2,
        /// Reserved.
        rsvd: be::U16 = 4,
        /// Index of the partition key.
        pkey_id: be::U16 = 6,
        /// The peer's queue pair, or the queue key of a datagram one.
        qkey_dest_qpn: be::U32 = 8,
        /// Rate limit in kb/s; 0 is none.
        rate_limit_kbps: be::U32 = 12,
        /// Next sequence number expected.
        rq_psn: be::U32 = 16,
    }
}

bits! {
    /// `state_pmtu` of [`QueryRq`]. That the state is the upper half is assumed from the name.
    pub struct StatePmtu(u8) {
        /// Path MTU, base-two logarithm of its bytes.
        pmtu: u8 = 4,
        /// State.
        state: u8 = 4,
    }
}

layout! {
    /// What the device knows of a receive queue.
    pub struct QueryRq: "ionic" "ionic_v1_admin_query_qp_rq", 12 {
        /// State and path MTU.
        state_pmtu: u8 as StatePmtu = 0,
        /// Retries.
        retry_rnrtry: u8 as Retries = 1,
        /// READs and atomics as requester, as in [`ModifyQpCmd`].
        rrq_depth: u8 = 2,
        /// READs and atomics as responder, as in [`ModifyQpCmd`].
        rsq_depth: u8 = 3,
        /// Next sequence number to send.
        sq_psn: be::U32 = 4,
        /// The low half of [`QpFlags`].
        access_perms_flags: be::U16 = 8,
        /// Reserved.
        rsvd: be::U16 = 10,
    }
}

/// Layouts of this file.
pub(super) const LAYOUTS: [Layout; 2] = [QuerySq::LAYOUT, QueryRq::LAYOUT];

/// The queue pair that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpTarget {
    /// Its number.
    pub id: QpId,
    /// Its kind.
    pub qp_type: QpType,
    /// The state it is in.
    pub state: QpState,
    /// Its address handle: a connected queue pair takes one, too.
    pub ah: AhId,
}

/// Depth that the device is told for `count` READs and atomics as responder.
pub const fn responder_depth(count: u8) -> u8 {
    (count as u32 + 1).next_power_of_two().ilog2() as u8
}

/// Depth that the device is told for `count` READs and atomics as requester.
pub const fn requester_depth(count: u8) -> u8 {
    (count as u32 + 2).next_power_of_two().ilog2() as u8 - 1
}

/// READs and atomics that a responder's depth stands for.
pub const fn responder_count(depth: u8) -> u8 {
    if depth > 7 { u8::MAX } else { ((1u32 << depth) - 1) as u8 }
}

/// READs and atomics that a requester's depth stands for.
pub const fn requester_count(depth: u8) -> u8 {
    if depth > 7 { u8::MAX } else { ((2u32 << depth) - 2) as u8 }
}

impl ModifyQpCmd {
    /// The command for `attributes`, of which [`QpAttributes::check`] has been asked. A path goes with `headers` and the
    /// address that they are at.
    ///
    /// # Errors
    /// The transition is none, or lacks something.
    pub fn new(
        target: &QpTarget,
        attributes: &QpAttributes,
        headers: Option<(&HeaderTemplate, u64)>,
    ) -> Result<Self, StateError> {
        let (from, to) = (target.state, attributes.check(target.qp_type, target.state)?);
        if attributes.path.is_some() != headers.is_some() {
            return Err(StateError::Missing { from, to, attribute: text!("headers of the path") });
        }
        let a = attributes;
        let datagram = target.qp_type == QpType::Ud;
        let bits = [
            (true, AttrMask::STATE),
            // The port and its only partition key are fixed, but are part of this transition.
            ((from, to) == (QpState::Reset, QpState::Init), AttrMask::PORT.union(AttrMask::PKEY_INDEX)),
            (a.access.is_some(), AttrMask::ACCESS_FLAGS),
            (a.qkey.is_some(), AttrMask::QKEY),
            (a.path.is_some(), AttrMask::AV),
            (a.mtu.is_some(), AttrMask::PATH_MTU),
            (a.timeout.is_some(), AttrMask::TIMEOUT),
            (a.retry_count.is_some(), AttrMask::RETRY_CNT),
            (a.rnr_retry.is_some(), AttrMask::RNR_RETRY),
            (a.rq_psn.is_some(), AttrMask::RQ_PSN),
            (a.max_rd_atomic.is_some(), AttrMask::MAX_QP_RD_ATOMIC),
            (a.min_rnr_timer.is_some(), AttrMask::MIN_RNR_TIMER),
            (a.sq_psn.is_some(), AttrMask::SQ_PSN),
            (a.max_dest_rd_atomic.is_some(), AttrMask::MAX_DEST_RD_ATOMIC),
            (a.dest_qp.is_some(), AttrMask::DEST_QPN),
        ];
        let mask = bits.into_iter().filter(|(set, _)| *set).map(|(_, bit)| bit).collect::<AttrMask>();
        let access = a.access.map_or(0, |access| QpFlags::from_access(access).into_bits() as u16);
        let peer = if datagram { a.qkey.map_or(0, QKey::get) } else { a.dest_qp.map_or(0, QpId::get) };
        let (length, dma_addr) = headers.map_or((0, 0), |(headers, addr)| (headers.len(), addr));
        let path = a.path.unwrap_or(crate::verbs::AddressVector::new(Default::default(), Default::default()));
        Ok(Self {
            attr_mask: mask.bits().into(),
            tfp_csum_profile: headers.map_or(0, |(headers, _)| headers.profile() as u8),
            access_flags: access.into(),
            rq_psn: a.rq_psn.map_or(0, Psn::get).into(),
            sq_psn: a.sq_psn.map_or(0, Psn::get).into(),
            qkey_dest_qpn: peer.into(),
            pmtu: a.mtu.map_or(0, |mtu| mtu.log2() as u8),
            retry: Retries::new()
                .with_count(a.retry_count.unwrap_or(0) & 7)
                .with_rnr(a.rnr_retry.unwrap_or(0) & 7)
                .into_bits(),
            rnr_timer: a.min_rnr_timer.unwrap_or(0),
            retry_timeout: a.timeout.unwrap_or(0),
            rsq_depth: a.max_dest_rd_atomic.map_or(0, responder_depth),
            rrq_depth: a.max_rd_atomic.map_or(0, requester_depth),
            ah_id_len: AhIdLen::new().with_ah_id(target.ah.get()).with_length(length).into_bits().into(),
            en_pcp: path.vlan.is_some().into(),
            ip_dscp: path.traffic_class >> 2,
            type_state: QpTypeState::new().with_to(to as u8).with_from(from as u8).into_bits(),
            rrq_index: ANY_TABLE.into(),
            rsq_index: ANY_TABLE.into(),
            dma_addr: dma_addr.into(),
            id_ver: target.id.get().into(),
            ..Self::ZERO
        })
    }

    /// What the command changes, but for the path: what a device does with it.
    pub fn attributes(&self, qp_type: QpType) -> QpAttributes {
        let mask = AttrMask::from_bits_retain(self.attr_mask.get());
        let has = |bit: AttrMask| mask.contains(bit);
        let datagram = qp_type == QpType::Ud;
        let peer = self.qkey_dest_qpn.get();
        let retry = Retries::from_bits(self.retry);
        let to = state(QpTypeState::from_bits(self.type_state).to());
        QpAttributes {
            state: to.filter(|_| has(AttrMask::STATE)),
            access: has(AttrMask::ACCESS_FLAGS)
                .then(|| QpFlags::from_bits(self.access_flags.get().into()).access()),
            qkey: (datagram && has(AttrMask::QKEY)).then(|| QKey::truncated(peer)),
            path: None,
            mtu: mtu(self.pmtu).filter(|_| has(AttrMask::PATH_MTU)),
            dest_qp: (!datagram && has(AttrMask::DEST_QPN)).then(|| QpId::truncated(peer)),
            rq_psn: has(AttrMask::RQ_PSN).then(|| Psn::truncated(self.rq_psn.get())),
            sq_psn: has(AttrMask::SQ_PSN).then(|| Psn::truncated(self.sq_psn.get())),
            max_rd_atomic: has(AttrMask::MAX_QP_RD_ATOMIC).then(|| requester_count(self.rrq_depth)),
            max_dest_rd_atomic: has(AttrMask::MAX_DEST_RD_ATOMIC).then(|| responder_count(self.rsq_depth)),
            min_rnr_timer: has(AttrMask::MIN_RNR_TIMER).then_some(self.rnr_timer),
            timeout: has(AttrMask::TIMEOUT).then_some(self.retry_timeout),
            retry_count: has(AttrMask::RETRY_CNT).then_some(retry.count()),
            rnr_retry: has(AttrMask::RNR_RETRY).then_some(retry.rnr()),
        }
    }
}

/// The path MTU of a base-two logarithm.
fn mtu(log2: u8) -> Option<Mtu> {
    Mtu::ALL.into_iter().find(|mtu| mtu.log2() == log2.into())
}

/// What the device knows of a queue pair, but for its path; `None` if its state is none.
pub fn queried(qp_type: QpType, sq: &QuerySq, rq: &QueryRq) -> Option<QpAttributes> {
    let word = StatePmtu::from_bits(rq.state_pmtu);
    let retry = Retries::from_bits(rq.retry_rnrtry);
    let peer = sq.qkey_dest_qpn.get();
    let datagram = qp_type == QpType::Ud;
    Some(QpAttributes {
        state: Some(state(word.state())?),
        access: Some(QpFlags::from_bits(sq.access_perms_flags.get().into()).access()),
        qkey: datagram.then(|| QKey::truncated(peer)),
        path: None,
        mtu: mtu(word.pmtu()),
        dest_qp: (!datagram).then(|| QpId::truncated(peer)),
        rq_psn: Some(Psn::truncated(sq.rq_psn.get())),
        sq_psn: Some(Psn::truncated(rq.sq_psn.get())),
        max_rd_atomic: Some(requester_count(rq.rrq_depth)),
        max_dest_rd_atomic: Some(responder_count(rq.rsq_depth)),
        min_rnr_timer: Some(sq.rnr_timer),
        timeout: Some(sq.retry_timeout),
        retry_count: Some(retry.count()),
        rnr_retry: Some(retry.rnr()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::{AccessFlags, AddressVector, Gid, Mac};
    use core::net::Ipv4Addr;
    use zerocopy::IntoBytes;

    fn target(qp_type: QpType, state: QpState) -> QpTarget {
        QpTarget { id: QpId::truncated(0x1234), qp_type, state, ah: AhId::truncated(9) }
    }

    fn path() -> AddressVector {
        let gid = Gid::v4(Ipv4Addr::new(10, 0, 0, 2));
        AddressVector { traffic_class: 0x68, ..AddressVector::new(gid, Mac([2; 6])) }
    }

    #[test]
    fn ready_to_receive_byte_for_byte() {
        let attributes = QpAttributes {
            path: Some(path()),
            mtu: Some(Mtu::B4096),
            dest_qp: Some(QpId::truncated(0xabcdef)),
            rq_psn: Some(Psn::truncated(0x11)),
            max_dest_rd_atomic: Some(16),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        };
        let headers = HeaderTemplate::new(&path(), Mac([4; 6]), Gid::v4(Ipv4Addr::new(10, 0, 0, 1))).unwrap();
        let target = target(QpType::Rc, QpState::Init);
        let cmd = ModifyQpCmd::new(&target, &attributes, Some((&headers, 0x1_0000))).unwrap();
        let want = [
            0x00, 0x12, 0x91, 0x81, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0xef, 0xcd, 0xab, 0, 0, 0, 0, 0,
            12, 0, 12, 0, 5, 0, 0, 0, 9, 0, 0, 42, 0, 0x1a, 0, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0x34, 0x12, 0, 0,
        ];
        assert_eq!(cmd.as_bytes(), want);
        let back = cmd.attributes(QpType::Rc);
        assert_eq!(back, QpAttributes { path: None, max_dest_rd_atomic: Some(31), ..attributes });
    }

    #[test]
    fn every_transition_comes_back_as_itself() {
        let steps = [
            (
                QpType::Rc,
                QpState::Reset,
                QpAttributes { access: Some(AccessFlags::REMOTE_READ), ..QpAttributes::to(QpState::Init) },
            ),
            (
                QpType::Ud,
                QpState::Reset,
                QpAttributes { qkey: Some(QKey::truncated(0x8000_0001)), ..QpAttributes::to(QpState::Init) },
            ),
            (
                QpType::Rc,
                QpState::Rtr,
                QpAttributes {
                    sq_psn: Some(Psn::truncated(5)),
                    timeout: Some(14),
                    retry_count: Some(7),
                    rnr_retry: Some(6),
                    max_rd_atomic: Some(14),
                    ..QpAttributes::to(QpState::Rts)
                },
            ),
            (
                QpType::Ud,
                QpState::Rtr,
                QpAttributes { sq_psn: Some(Psn::truncated(5)), ..QpAttributes::to(QpState::Rts) },
            ),
            (QpType::Rc, QpState::Rts, QpAttributes::to(QpState::Err)),
        ];
        for (qp_type, from, attributes) in steps {
            let cmd = ModifyQpCmd::new(&target(qp_type, from), &attributes, None).unwrap();
            assert_eq!(cmd.attributes(qp_type), attributes);
            let code = QpTypeState::from_bits(cmd.type_state);
            assert_eq!((code.from(), code.to()), (from as u8, attributes.state.unwrap() as u8));
        }
    }

    #[test]
    fn a_transition_that_is_none_makes_no_command() {
        let attributes = QpAttributes::to(QpState::Rts);
        let error = ModifyQpCmd::new(&target(QpType::Rc, QpState::Init), &attributes, None).unwrap_err();
        assert!(matches!(error, StateError::NoSuchTransition { .. }));
        let lacking = QpAttributes::to(QpState::Init);
        let error = ModifyQpCmd::new(&target(QpType::Rc, QpState::Reset), &lacking, None).unwrap_err();
        assert!(matches!(error, StateError::Missing { attribute, .. } if attribute == "access"));
        let path = QpAttributes { path: Some(path()), ..QpAttributes::default() };
        let error = ModifyQpCmd::new(&target(QpType::Rc, QpState::Rts), &path, None).unwrap_err();
        assert!(matches!(error, StateError::Missing { attribute, .. } if attribute == "headers of the path"));
    }

    #[test]
    fn depths_hold_at_least_what_was_asked_for() {
        for count in 0..=u8::MAX {
            assert!(
                responder_count(responder_depth(count)) >= count.min(127)
                    && requester_count(requester_depth(count)) >= count.min(126)
            );
        }
        assert_eq!([0, 1, 16].map(responder_depth), [0, 1, 5]);
        assert_eq!([0, 2, 14, 16].map(requester_depth), [0, 1, 3, 4]);
        assert_eq!([responder_count(255), requester_count(255)], [255, 255]);
    }

    #[test]
    fn a_reply_is_read_and_a_state_that_is_none_is_refused() {
        let rq = QueryRq {
            state_pmtu: 0x3c,
            retry_rnrtry: 0x67,
            rsq_depth: 5,
            rrq_depth: 4,
            sq_psn: 9.into(),
            ..QueryRq::ZERO
        };
        let sq = QuerySq {
            rnr_timer: 12,
            retry_timeout: 14,
            access_perms_flags: 3.into(),
            qkey_dest_qpn: 7.into(),
            rq_psn: 8.into(),
            ..QuerySq::ZERO
        };
        let read = queried(QpType::Rc, &sq, &rq).unwrap();
        assert_eq!(
            (read.state, read.mtu, read.dest_qp),
            (Some(QpState::Rts), Some(Mtu::B4096), Some(QpId::truncated(7)))
        );
        assert_eq!(
            (read.retry_count, read.rnr_retry, read.sq_psn),
            (Some(7), Some(6), Some(Psn::truncated(9)))
        );
        assert_eq!(queried(QpType::Ud, &sq, &rq).unwrap().qkey, Some(QKey::truncated(7)));
        let none = QueryRq { state_pmtu: 0x7c, ..rq };
        assert_eq!(queried(QpType::Rc, &sq, &none), None);
    }
}
