//! The way of a reliable queue pair to RTS, below the workload.

use directverbs::verbs::{AccessFlags, AddressVector, Psn, QpAttributes, QpId, QpState};

/// Attributes of the three transitions, for a peer that is not there.
pub fn transitions(path: AddressVector) -> [QpAttributes; 3] {
    [
        QpAttributes { access: Some(AccessFlags::REMOTE_READ), ..QpAttributes::to(QpState::Init) },
        QpAttributes {
            path: Some(path),
            mtu: Some(Default::default()),
            dest_qp: Some(QpId::truncated(7)),
            rq_psn: Some(Psn::truncated(1)),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(Psn::truncated(1)),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(1),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}
