//! Changing a queue pair: which attributes a transition needs and which it may bring, as the core checks it for all
//! drivers. Source: kernel `drivers/infiniband/core/verbs.c`.

use directverbs::verbs::{AccessFlags, Mtu, Psn, QKey, QpAttributes, QpId, QpState, QpType};

use crate::Errno;
use crate::abi::ModifyQp;
use crate::lifecycle::path;
use crate::profile::{Family, Release};
use crate::session::Session;

/// Bits of `attr_mask`.
mod mask {
    pub const STATE: u32 = 1;
    pub const CUR_STATE: u32 = 1 << 1;
    pub const EN_SQD_ASYNC_NOTIFY: u32 = 1 << 2;
    pub const ACCESS_FLAGS: u32 = 1 << 3;
    pub const PKEY_INDEX: u32 = 1 << 4;
    pub const PORT: u32 = 1 << 5;
    pub const QKEY: u32 = 1 << 6;
    pub const AV: u32 = 1 << 7;
    pub const PATH_MTU: u32 = 1 << 8;
    pub const TIMEOUT: u32 = 1 << 9;
    pub const RETRY_CNT: u32 = 1 << 10;
    pub const RNR_RETRY: u32 = 1 << 11;
    pub const RQ_PSN: u32 = 1 << 12;
    pub const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    pub const ALT_PATH: u32 = 1 << 14;
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    pub const SQ_PSN: u32 = 1 << 16;
    pub const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub const PATH_MIG_STATE: u32 = 1 << 18;
    pub const DEST_QPN: u32 = 1 << 20;
    pub const RATE_LIMIT: u32 = 1 << 25;
    /// All that the plain command takes.
    pub const STANDARD: u32 = (1 << 21) - 1;
}

/// Attributes that a transition must bring, and those that it may.
fn allowed(qp_type: QpType, from: QpState, to: QpState) -> Option<(u32, u32)> {
    use QpState::*;
    use mask::*;
    let (rc, raw) = (qp_type == QpType::Rc, qp_type == QpType::RawPacket);
    let of = |connected, datagram, packet| match () {
        () if rc => connected,
        () if raw => packet,
        () => datagram,
    };
    let initial = of(PKEY_INDEX | PORT | ACCESS_FLAGS, PKEY_INDEX | PORT | QKEY, PORT);
    let ready = of(
        CUR_STATE | ALT_PATH | ACCESS_FLAGS | MIN_RNR_TIMER | PATH_MIG_STATE,
        CUR_STATE | QKEY,
        RATE_LIMIT,
    );
    Some(match (from, to) {
        (_, Reset | Err) => (0, 0),
        (Reset, Init) => (initial, 0),
        (Init, Init) => (0, initial),
        (Init, Rtr) => (
            of(AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER, 0, 0),
            of(ALT_PATH | ACCESS_FLAGS | PKEY_INDEX, PKEY_INDEX | QKEY, 0),
        ),
        (Rtr, Rts) => (of(TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN | MAX_QP_RD_ATOMIC, SQ_PSN, 0), ready),
        (Rts, Rts) => (0, ready),
        (Rts, Sqd) => (0, EN_SQD_ASYNC_NOTIFY),
        (Sqd, Rts) => (0, ready),
        (Sqd, Sqd) => {
            let path = PORT | AV | TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC | MAX_DEST_RD_ATOMIC;
            let more = ALT_PATH | ACCESS_FLAGS | PKEY_INDEX | MIN_RNR_TIMER | PATH_MIG_STATE;
            (0, of(path | more, PKEY_INDEX | QKEY, 0))
        }
        (Sqe, Rts) => (0, of(0, CUR_STATE | QKEY, CUR_STATE)),
        _ => return None,
    })
}

/// The state that a number stands for.
fn state(number: u8) -> Result<QpState, Errno> {
    use QpState::*;
    [Reset, Init, Rtr, Rts, Sqd, Sqe, Err].into_iter().find(|s| *s as u8 == number).ok_or(Errno::INVAL)
}

/// MODIFY_QP, plain or extended; with `rate`, the latter's rate limit.
///
/// # Errors
/// EOPNOTSUPP: attributes that the command or driver does not know. EINVAL: a transition that there is not, or attributes
/// that it does not take, or lacks, or out of range. Others as for [`path`].
pub fn modify_qp(session: &mut Session<'_>, asked: &ModifyQp, extended: bool) -> Result<(), Errno> {
    let given = asked.attr_mask;
    let known = mask::STANDARD | if extended { mask::RATE_LIMIT } else { 0 };
    let qp = session.objects()?.qp(asked.qp)?;
    let (id, qp_type, from) = (qp.id, qp.qp_type, qp.state);
    let has = |bit: u32| given & bit != 0;
    if has(!known) {
        return Err(Errno::OPNOTSUPP);
    }
    if has(mask::PORT) && asked.port_num != 1 || has(mask::CUR_STATE) && asked.cur_qp_state > 6 {
        return Err(Errno::INVAL);
    }
    let rates = session.family() == Family::BnxtRe && session.release() >= Release::V7_2;
    if has(mask::RATE_LIMIT) && !rates {
        return Err(Errno::OPNOTSUPP);
    }
    let to = if has(mask::STATE) { state(asked.qp_state)? } else { from };
    let (required, optional) = allowed(qp_type, from, to).ok_or(Errno::INVAL)?;
    // bnxt_re takes a rate limit of any kind of queue pair that becomes or is ready to send.
    let limit = if rates && to == QpState::Rts { mask::RATE_LIMIT } else { 0 };
    if given & required != required || has(!(required | optional | limit | mask::STATE)) {
        return Err(Errno::INVAL);
    }
    let byte = |bit, value: u8| has(bit).then_some(value);
    let mtu = Mtu::ALL.into_iter().find(|mtu| *mtu as u8 == asked.path_mtu);
    if has(mask::PATH_MTU) && mtu.is_none_or(|mtu| mtu > session.device.profile.mtu) {
        return Err(Errno::INVAL);
    }
    let path = if has(mask::AV) { Some(path(session, &asked.dest)?) } else { None };
    let attributes = QpAttributes {
        state: Some(to),
        access: has(mask::ACCESS_FLAGS).then(|| AccessFlags::from_bits_truncate(asked.qp_access_flags)),
        qkey: has(mask::QKEY).then(|| QKey::truncated(asked.qkey)),
        path,
        mtu: mtu.filter(|_| has(mask::PATH_MTU)),
        dest_qp: has(mask::DEST_QPN).then(|| QpId::truncated(asked.dest_qp_num)),
        rq_psn: has(mask::RQ_PSN).then(|| Psn::truncated(asked.rq_psn)),
        sq_psn: has(mask::SQ_PSN).then(|| Psn::truncated(asked.sq_psn)),
        max_rd_atomic: byte(mask::MAX_QP_RD_ATOMIC, asked.max_rd_atomic),
        max_dest_rd_atomic: byte(mask::MAX_DEST_RD_ATOMIC, asked.max_dest_rd_atomic),
        min_rnr_timer: byte(mask::MIN_RNR_TIMER, asked.min_rnr_timer),
        timeout: byte(mask::TIMEOUT, asked.timeout),
        retry_count: byte(mask::RETRY_CNT, asked.retry_cnt),
        rnr_retry: byte(mask::RNR_RETRY, asked.rnr_retry),
    };
    let limit = session.device.limits.max_rd_atomic;
    let over = |value: Option<u8>| value.is_some_and(|value| u32::from(value) > limit);
    if over(attributes.max_rd_atomic) || over(attributes.max_dest_rd_atomic) {
        return Err(Errno::INVAL);
    }
    session.nic(|nic| nic.modify_qp(id, &attributes))?;
    let qp = session.objects()?.qp_mut(asked.qp)?;
    qp.state = to;
    remember(qp, asked);
    Ok(())
}

/// Keeps what a query will answer.
fn remember(qp: &mut crate::objects::Qp, asked: &ModifyQp) {
    use mask::*;
    let kept = &mut qp.attributes;
    let has = |bit| asked.attr_mask & bit != 0;
    let bytes: [(u32, &mut u8, u8); 9] = [
        (PATH_MTU, &mut kept.path_mtu, asked.path_mtu),
        (MAX_QP_RD_ATOMIC, &mut kept.max_rd_atomic, asked.max_rd_atomic),
        (MAX_DEST_RD_ATOMIC, &mut kept.max_dest_rd_atomic, asked.max_dest_rd_atomic),
        (MIN_RNR_TIMER, &mut kept.min_rnr_timer, asked.min_rnr_timer),
        (PORT, &mut kept.port_num, asked.port_num),
        (TIMEOUT, &mut kept.timeout, asked.timeout),
        (RETRY_CNT, &mut kept.retry_cnt, asked.retry_cnt),
        (RNR_RETRY, &mut kept.rnr_retry, asked.rnr_retry),
        (PATH_MIG_STATE, &mut kept.path_mig_state, asked.path_mig_state),
    ];
    for (_, to, from) in bytes.into_iter().filter(|(bit, ..)| has(*bit)) {
        *to = from;
    }
    let words: [(u32, &mut u32, u32); 5] = [
        (QKEY, &mut kept.qkey, asked.qkey),
        (RQ_PSN, &mut kept.rq_psn, asked.rq_psn & 0xff_ffff),
        (SQ_PSN, &mut kept.sq_psn, asked.sq_psn & 0xff_ffff),
        (DEST_QPN, &mut kept.dest_qp_num, asked.dest_qp_num),
        (ACCESS_FLAGS, &mut kept.qp_access_flags, asked.qp_access_flags),
    ];
    for (_, to, from) in words.into_iter().filter(|(bit, ..)| has(*bit)) {
        *to = from;
    }
    if has(AV) {
        kept.dest = asked.dest;
    }
    if has(PKEY_INDEX) {
        kept.pkey_index = asked.pkey_index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_way_takes_what_ibverbs_programs_bring() {
        use QpState::*;
        use mask::*;
        let rc = |from, to| allowed(QpType::Rc, from, to);
        assert_eq!(rc(Reset, Init), Some((PKEY_INDEX | PORT | ACCESS_FLAGS, 0)));
        assert_eq!(rc(Rtr, Rts).map(|(required, _)| required), Some(0x1_2e00));
        assert_eq!(rc(Reset, Rts), None);
        assert_eq!(rc(Err, Reset), Some((0, 0)));
        assert_eq!(allowed(QpType::Ud, Init, Rtr).map(|(required, _)| required), Some(0));
        assert_eq!(allowed(QpType::RawPacket, Reset, Init), Some((PORT, 0)));
    }
}
