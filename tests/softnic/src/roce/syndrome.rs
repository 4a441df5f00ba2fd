//! The syndrome of an acknowledgement.
//!
//! Source: InfiniBand Architecture Specification, volume 1, tables "AETH syndrome field" and "NAK codes".

use directverbs::verbs::WcStatus;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Nak {
    /// Packets are missing.
    Sequence = 0,
    /// The request makes no sense.
    InvalidRequest = 1,
    /// The key does not allow it.
    RemoteAccess = 2,
    /// The responder could not carry it out.
    RemoteOperation = 3,
}

impl Nak {
    /// All.
    const ALL: [Self; 4] = [Self::Sequence, Self::InvalidRequest, Self::RemoteAccess, Self::RemoteOperation];

    /// What the requester's completion says.
    pub const fn status(self) -> WcStatus {
        match self {
            Self::Sequence => WcStatus::RetryExceeded,
            Self::InvalidRequest => WcStatus::RemInvReq,
            Self::RemoteAccess => WcStatus::RemAccess,
            Self::RemoteOperation => WcStatus::RemOp,
        }
    }
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All is well.
    Ack,
    /// No receive request is ready; timer code.
    Rnr(u8),
    /// Refused.
    Nak(Nak),
}

/// Credit count that means that credits are not counted.
const NO_CREDITS: u8 = 0x1f;

impl Answer {
    /// Decodes a syndrome; `None` if it is reserved.
    pub fn from_syndrome(syndrome: u8) -> Option<Self> {
        let code = syndrome & 0x1f;
        match syndrome >> 5 {
            0 => Some(Self::Ack),
            1 => Some(Self::Rnr(code)),
            3 => Nak::ALL.into_iter().find(|nak| *nak as u8 == code).map(Self::Nak),
            _ => None,
        }
    }

    /// Encodes it.
    pub const fn syndrome(self) -> u8 {
        match self {
            Self::Ack => NO_CREDITS,
            Self::Rnr(code) => 1 << 5 | code & 0x1f,
            Self::Nak(nak) => 3 << 5 | nak as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_the_wire() {
        let naks = Nak::ALL.map(Answer::Nak);
        for answer in [Answer::Ack, Answer::Rnr(0), Answer::Rnr(31)].into_iter().chain(naks) {
            assert_eq!(Answer::from_syndrome(answer.syndrome()), Some(answer));
        }
        assert_eq!(Answer::from_syndrome(0x64), None);
        assert_eq!(Answer::from_syndrome(0x40), None);
    }
}
