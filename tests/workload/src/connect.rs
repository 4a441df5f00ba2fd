//! The way of a reliable queue pair to RTS.

use directverbs::verbs::{AccessFlags, AddressVector, Device, QpAttributes, QpState};

use crate::Contact;

/// The path to a peer.
pub(crate) fn path<D: Device>(dev: &D, peer: &Contact) -> AddressVector {
    AddressVector { sgid_index: dev.port().gid_index, ..AddressVector::new(peer.gid, peer.mac) }
}

/// Attributes of the three transitions. `timeout` is the code of the acknowledge time-out.
pub(crate) fn transitions(
    own: &Contact,
    peer: &Contact,
    path: AddressVector,
    timeout: u8,
) -> [QpAttributes; 3] {
    let access = AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC;
    let rd_atomic = own.rd_atomic.min(peer.rd_atomic);
    [
        QpAttributes { access: Some(access), ..QpAttributes::to(QpState::Init) },
        QpAttributes {
            path: Some(path),
            mtu: Some(own.mtu.min(peer.mtu)),
            dest_qp: Some(peer.qp),
            rq_psn: Some(peer.psn),
            max_dest_rd_atomic: Some(rd_atomic),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(own.psn),
            timeout: Some(timeout),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(rd_atomic),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}

/// First sequence number of a queue pair: near the end of the 24 bits, so that they wrap in every longer job.
pub(crate) fn first_psn(seed: u64, role: crate::Role) -> directverbs::verbs::Psn {
    let random = crate::Pattern::new(seed, role as u64, 0, 0).word(0) as u32;
    directverbs::verbs::Psn::MAX.add(0u32.wrapping_sub(random & 0xff))
}
