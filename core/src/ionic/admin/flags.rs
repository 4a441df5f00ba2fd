//! What a queue pair is and allows, and its kind and state. Source: Linux `ionic_fw.h`.

use crate::layout::bits;
use crate::verbs::{AccessFlags, QpState, QpType};

bits! {
    /// What a queue pair is and allows, big-endian in memory.
    pub struct QpFlags(u32) {
        /// A peer may write.
        remote_write: bool = 1,
        /// A peer may read.
        remote_read: bool = 1,
        /// A peer may do atomics.
        remote_atomic: bool = 1,
        __: u8 = 5,
        /// WQEs of the send queue have lists of SGE lengths.
        sq_spec: bool = 1,
        /// WQEs of the receive queue have lists of SGE lengths.
        rq_spec: bool = 1,
        /// It may access memory without a key of its own.
        remote_privileged: bool = 1,
        __: u8 = 2,
        /// The send queue is in controller memory.
        sq_cmb: bool = 1,
        /// The receive queue is in controller memory.
        rq_cmb: bool = 1,
        /// It may use the reserved key.
        privileged: bool = 1,
        __: u16 = 16,
    }
}

impl QpFlags {
    /// The access part.
    pub const fn from_access(access: AccessFlags) -> Self {
        Self::new()
            .with_remote_write(access.contains(AccessFlags::REMOTE_WRITE))
            .with_remote_read(access.contains(AccessFlags::REMOTE_READ))
            .with_remote_atomic(access.contains(AccessFlags::REMOTE_ATOMIC))
    }

    /// The access part in the field's terms.
    pub fn access(self) -> AccessFlags {
        let pairs = [
            (self.remote_write(), AccessFlags::REMOTE_WRITE),
            (self.remote_read(), AccessFlags::REMOTE_READ),
            (self.remote_atomic(), AccessFlags::REMOTE_ATOMIC),
        ];
        pairs.iter().filter(|(set, _)| *set).fold(AccessFlags::empty(), |all, (_, flag)| all | *flag)
    }
}

bits! {
    /// Kind, or state, of a queue pair.
    pub struct QpTypeState(u8) {
        /// State to go to, or kind at creation.
        to: u8 = 4,
        /// State to come from.
        from: u8 = 4,
    }
}

/// Kind of a queue pair. Open: there are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QpKind(pub u8);

impl QpKind {
    /// Reliable connection.
    pub const RC: Self = Self(0);
    /// Unreliable datagram.
    pub const UD: Self = Self(3);

    /// The device's code, if it has the kind.
    pub const fn of(qp_type: QpType) -> Option<Self> {
        match qp_type {
            QpType::Rc => Some(Self::RC),
            QpType::Ud => Some(Self::UD),
            QpType::RawPacket => None,
        }
    }

    /// The field's kind, if it is one.
    pub const fn qp_type(self) -> Option<QpType> {
        match self {
            Self::RC => Some(QpType::Rc),
            Self::UD => Some(QpType::Ud),
            _ => None,
        }
    }
}

/// The state of a device's code: they are the field's.
pub const fn state(code: u8) -> Option<QpState> {
    Some(match code {
        0 => QpState::Reset,
        1 => QpState::Init,
        2 => QpState::Rtr,
        3 => QpState::Rts,
        4 => QpState::Sqd,
        5 => QpState::Sqe,
        6 => QpState::Err,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_where_the_kernel_has_them() {
        let all = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_ATOMIC;
        assert_eq!(QpFlags::from_access(all | AccessFlags::LOCAL_WRITE).into_bits(), 7);
        assert_eq!(QpFlags::from_bits(5).access(), AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC);
        assert_eq!(QpFlags::new().with_sq_spec(true).with_rq_spec(true).into_bits(), 3 << 8);
        assert_eq!(QpFlags::new().with_remote_privileged(true).into_bits(), 1 << 10);
        let cmb = QpFlags::new().with_sq_cmb(true).with_rq_cmb(true).with_privileged(true);
        assert_eq!(cmb.into_bits(), 7 << 13);
    }

    #[test]
    fn kinds_and_states_come_back_as_themselves() {
        for qp_type in [QpType::Rc, QpType::Ud] {
            assert_eq!(QpKind::of(qp_type).and_then(QpKind::qp_type), Some(qp_type));
        }
        assert_eq!((QpKind::of(QpType::RawPacket), QpKind(1).qp_type()), (None, None));
        for code in 0..=6 {
            assert_eq!(state(code).map(|s| s as u8), Some(code));
        }
        assert_eq!((state(7), state(255)), (None, None));
        assert_eq!(QpTypeState::new().with_to(3).with_from(2).into_bits(), 0x23);
    }
}
