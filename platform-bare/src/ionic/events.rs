//! What the device tells apart from completions.

use directverbs::ionic::admin::{Event as Word, EventCode, EventType};
use directverbs::ionic::devcmd::{LinkChangeEvent, NotifyCode, NotifyEvent, PortOper};
use directverbs::verbs::{CqId, QpId};
use zerocopy::{FromBytes, IntoBytes};

/// Something that the device tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An armed completion queue has a completion.
    Completion(CqId),
    /// A completion queue has failed.
    CqError(CqId),
    /// A queue pair has failed.
    QpError(QpId),
    /// A queue pair has failed because a peer's request was not allowed.
    QpAccess(QpId),
    /// A send queue is drained.
    Drained(QpId),
    /// The link is up, or down.
    Link {
        /// Up.
        up: bool,
        /// Speed in Mb/s.
        speed: u32,
    },
    /// The device is resetting itself: it must be opened again.
    Reset,
    /// One that this driver does not know.
    Unknown {
        /// Type, or 255 for a notification.
        kind: u8,
        /// Code.
        code: u16,
        /// Queue that it names.
        qid: u32,
    },
}

impl From<Word> for Event {
    fn from(word: Word) -> Self {
        let (cq, qp) = (CqId::truncated(word.qid()), QpId::truncated(word.qid()));
        match (EventType(word.event_type()), EventCode(word.code())) {
            (EventType::CQ, EventCode::CQ_NOTIFY) => Self::Completion(cq),
            (EventType::CQ, EventCode::CQ_ERROR) => Self::CqError(cq),
            (EventType::QP, EventCode::QP_ERROR | EventCode::QP_REQUEST) => Self::QpError(qp),
            (EventType::QP, EventCode::QP_ACCESS) => Self::QpAccess(qp),
            (EventType::QP, EventCode::QP_DRAINED) => Self::Drained(qp),
            (kind, code) => Self::Unknown { kind: kind.0, code: code.0.into(), qid: word.qid() },
        }
    }
}

impl From<NotifyEvent> for Event {
    fn from(event: NotifyEvent) -> Self {
        match NotifyCode(event.ecode.get()) {
            NotifyCode::LINK_CHANGE => {
                let link =
                    LinkChangeEvent::read_from_bytes(event.as_bytes()).unwrap_or(LinkChangeEvent::ZERO);
                let up = PortOper(link.link_status.get()) == PortOper::UP;
                Self::Link { up, speed: link.link_speed.get() }
            }
            NotifyCode::RESET => Self::Reset,
            code => Self::Unknown { kind: u8::MAX, code: code.0, qid: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_told_as_it_is() {
        let word = Word::new().with_event_type(1).with_code(8).with_qid(7);
        assert_eq!(Event::from(word), Event::QpError(QpId::truncated(7)));
        let word = Word::new().with_event_type(5).with_code(15).with_qid(7);
        assert_eq!(Event::from(word), Event::Unknown { kind: 5, code: 15, qid: 7 });
        let event = NotifyEvent { ecode: 9.into(), ..NotifyEvent::ZERO };
        assert_eq!(Event::from(event), Event::Unknown { kind: 255, code: 9, qid: 0 });
        let event = NotifyEvent { ecode: 2.into(), ..NotifyEvent::ZERO };
        assert_eq!(Event::from(event), Event::Reset);
    }
}
