//! Queue pairs: kinds, states, capabilities, and the attributes of each transition.

use super::{AccessFlags, AddressVector, Mtu, Psn, QKey, QpId, StateError, Text};

/// Kind of queue pair. The discriminants are those of `ibv_qp_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QpType {
    /// Reliable connection.
    Rc = 2,
    /// Unreliable datagram.
    Ud = 4,
    /// Raw Ethernet frames.
    RawPacket = 8,
}

/// State of a queue pair. The discriminants are those of `ibv_qp_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum QpState {
    /// Fresh: nothing may be posted.
    #[default]
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// Ready to receive.
    Rtr = 2,
    /// Ready to send.
    Rts = 3,
    /// Send queue draining.
    Sqd = 4,
    /// Send queue in error (datagrams).
    Sqe = 5,
    /// In error: everything posted is flushed.
    Err = 6,
}

impl QpState {
    /// Whether the field's state diagram has an edge to `to`.
    pub const fn leads_to(self, to: Self) -> bool {
        use QpState::*;
        matches!(
            (self, to),
            (_, Reset | Err)
                | (Reset | Init, Init)
                | (Init, Rtr)
                | (Rtr | Rts | Sqd | Sqe, Rts)
                | (Rts | Sqd, Sqd)
        )
    }
}

/// What a queue pair shall be able to do, or what was granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpCapabilities {
    /// Send requests outstanding at once.
    pub max_send_wr: u32,
    /// Receive requests outstanding at once.
    pub max_recv_wr: u32,
    /// SGEs of one send request.
    pub max_send_sge: u32,
    /// SGEs of one receive request.
    pub max_recv_sge: u32,
    /// Inline bytes of one send request.
    pub max_inline_data: u32,
}

/// What a queue pair is created from.
#[derive(Debug)]
pub struct QpInit<'a, C, S> {
    /// Kind.
    pub qp_type: QpType,
    /// Capabilities asked for.
    pub capabilities: QpCapabilities,
    /// Where send requests complete.
    pub send_cq: &'a C,
    /// Where receive requests complete.
    pub recv_cq: &'a C,
    /// Receive requests come from here instead of a receive queue of its own.
    pub srq: Option<&'a S>,
    /// Every send request produces a completion.
    pub signal_all: bool,
}

/// What a shared receive queue is created from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqInit {
    /// Receive requests outstanding at once.
    pub max_wr: u32,
    /// SGEs of one request.
    pub max_sge: u32,
}

/// Attributes to change; those left `None` stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QpAttributes {
    /// New state.
    pub state: Option<QpState>,
    /// What the peer may do.
    pub access: Option<AccessFlags>,
    /// Queue key of a datagram queue pair.
    pub qkey: Option<QKey>,
    /// Path to the peer.
    pub path: Option<AddressVector>,
    /// Path MTU.
    pub mtu: Option<Mtu>,
    /// The peer's queue pair.
    pub dest_qp: Option<QpId>,
    /// First sequence number expected.
    pub rq_psn: Option<Psn>,
    /// First sequence number sent.
    pub sq_psn: Option<Psn>,
    /// READs and atomics outstanding as requester.
    pub max_rd_atomic: Option<u8>,
    /// READs and atomics outstanding as responder.
    pub max_dest_rd_atomic: Option<u8>,
    /// RNR NAK timer code, 5 bits.
    pub min_rnr_timer: Option<u8>,
    /// Acknowledge time-out: 4.096 us * 2^n; 0 waits for ever.
    pub timeout: Option<u8>,
    /// Retries without an answer, 3 bits.
    pub retry_count: Option<u8>,
    /// Retries after an RNR NAK, 3 bits; 7 retries for ever.
    pub rnr_retry: Option<u8>,
}

impl QpAttributes {
    /// Only the state.
    pub const fn to(state: QpState) -> Self {
        Self {
            state: Some(state),
            access: None,
            qkey: None,
            path: None,
            mtu: None,
            dest_qp: None,
            rq_psn: None,
            sq_psn: None,
            max_rd_atomic: None,
            max_dest_rd_atomic: None,
            min_rnr_timer: None,
            timeout: None,
            retry_count: None,
            rnr_retry: None,
        }
    }

    /// Checks the transition from `from` and that it brings all that `qp_type` needs for it.
    ///
    /// # Errors
    /// The edge that the state diagram lacks, or the attribute that is missing or out of range.
    pub fn check(&self, qp_type: QpType, from: QpState) -> Result<QpState, StateError> {
        let to = self.state.unwrap_or(from);
        if !from.leads_to(to) {
            return Err(StateError::NoSuchTransition { from, to });
        }
        let needs: &[(bool, Text)] = match (qp_type, from, to) {
            (QpType::Rc, QpState::Reset, QpState::Init) => &[(self.access.is_some(), text!("access"))],
            (QpType::Ud, QpState::Reset, QpState::Init) => &[(self.qkey.is_some(), text!("qkey"))],
            (QpType::Rc, QpState::Init, QpState::Rtr) => &[
                (self.path.is_some(), text!("path")),
                (self.mtu.is_some(), text!("mtu")),
                (self.dest_qp.is_some(), text!("dest_qp")),
                (self.rq_psn.is_some(), text!("rq_psn")),
                (self.max_dest_rd_atomic.is_some(), text!("max_dest_rd_atomic")),
                (self.min_rnr_timer.is_some(), text!("min_rnr_timer")),
            ],
            (QpType::Rc, QpState::Rtr, QpState::Rts) => &[
                (self.sq_psn.is_some(), text!("sq_psn")),
                (self.timeout.is_some(), text!("timeout")),
                (self.retry_count.is_some(), text!("retry_count")),
                (self.rnr_retry.is_some(), text!("rnr_retry")),
                (self.max_rd_atomic.is_some(), text!("max_rd_atomic")),
            ],
            (QpType::Ud, QpState::Rtr, QpState::Rts) => &[(self.sq_psn.is_some(), text!("sq_psn"))],
            _ => &[],
        };
        if let Some((_, name)) = needs.iter().find(|(given, _)| !given) {
            return Err(StateError::Missing { from, to, attribute: *name });
        }
        let limits: [(Text, Option<u8>, u8); 4] = [
            (text!("min_rnr_timer"), self.min_rnr_timer, 31),
            (text!("timeout"), self.timeout, 31),
            (text!("retry_count"), self.retry_count, 7),
            (text!("rnr_retry"), self.rnr_retry, 7),
        ];
        for (attribute, value, max) in limits {
            if let Some(value) = value.filter(|v| *v > max) {
                return Err(StateError::OutOfRange { attribute, value: value.into(), max: max.into() });
            }
        }
        Ok(to)
    }
}
