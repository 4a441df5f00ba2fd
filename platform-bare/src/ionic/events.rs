//! What the device tells apart from completions.

use directverbs::ionic::admin::{Event as Word, EventCode, EventType};
use directverbs::ionic::devcmd::{LinkChangeEvent, NotifyCode, NotifyEvent, PortOper, ResetEvent};
use directverbs::verbs::{CqId, QpId};
use zerocopy::{FromBytes, IntoBytes};

use super::error::Cause;

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
    /// The connection of a queue pair is established.
    Established(QpId),
    /// A queue pair takes no more receive requests from where it took them.
    LastWqe(QpId),
    /// The firmware is alive.
    Heartbeat,
    /// The firmware has written a log.
    Log,
    /// The transceiver has changed.
    Transceiver,
}

impl Event {
    /// What an entry of an event queue tells.
    ///
    /// # Errors
    /// Nothing that this driver knows.
    pub(super) fn of_word(word: Word) -> Result<Self, Cause> {
        let (cq, qp) = (CqId::truncated(word.qid()), QpId::truncated(word.qid()));
        Ok(match (EventType(word.event_type()), EventCode(word.code())) {
            (EventType::CQ, EventCode::CQ_NOTIFY) => Self::Completion(cq),
            (EventType::CQ, EventCode::CQ_ERROR) => Self::CqError(cq),
            (EventType::QP, EventCode::QP_ERROR | EventCode::QP_REQUEST) => Self::QpError(qp),
            (EventType::QP, EventCode::QP_ACCESS) => Self::QpAccess(qp),
            (EventType::QP, EventCode::QP_DRAINED) => Self::Drained(qp),
            (EventType::QP, EventCode::QP_ESTABLISHED) => Self::Established(qp),
            (EventType::QP, EventCode::QP_LAST_WQE) => Self::LastWqe(qp),
            (kind, code) => {
                return Err(Cause::UnexpectedEvent { kind: kind.0, code: code.0.into(), qid: word.qid() });
            }
        })
    }

    /// What a notification tells.
    ///
    /// # Errors
    /// Nothing that this driver knows, or that the device resets itself.
    pub(super) fn of_notification(event: &NotifyEvent) -> Result<Self, Cause> {
        Ok(match NotifyCode(event.ecode.get()) {
            NotifyCode::LINK_CHANGE => {
                let link =
                    LinkChangeEvent::read_from_bytes(event.as_bytes()).unwrap_or(LinkChangeEvent::ZERO);
                let up = PortOper(link.link_status.get()) == PortOper::UP;
                Self::Link { up, speed: link.link_speed.get() }
            }
            NotifyCode::RESET => {
                let reset = ResetEvent::read_from_bytes(event.as_bytes()).unwrap_or(ResetEvent::ZERO);
                return Err(Cause::ResetEvent { code: reset.reset_code, state: reset.state });
            }
            NotifyCode::HEARTBEAT => Self::Heartbeat,
            NotifyCode::LOG => Self::Log,
            NotifyCode::XCVR => Self::Transceiver,
            code => return Err(Cause::UnexpectedEvent { kind: u8::MAX, code: code.0, qid: 0 }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_a_queue_pair_is_told_as_what_it_is() {
        let of = |code| Event::of_word(Word::new().with_event_type(1).with_code(code).with_qid(7));
        let qp = QpId::truncated(7);
        assert_eq!([of(8), of(9)], [Ok(Event::QpError(qp)); 2]);
        assert_eq!([of(1), of(2)], [Ok(Event::Drained(qp)), Ok(Event::Established(qp))]);
        assert_eq!([of(3), of(10)], [Ok(Event::LastWqe(qp)), Ok(Event::QpAccess(qp))]);
        assert_eq!(of(4), Err(Cause::UnexpectedEvent { kind: 1, code: 4, qid: 7 }));
    }

    #[test]
    fn what_is_not_known_is_an_error_that_says_what_came() {
        let word = Word::new().with_event_type(5).with_code(15).with_qid(7);
        assert_eq!(Event::of_word(word), Err(Cause::UnexpectedEvent { kind: 5, code: 15, qid: 7 }));
        let event = |ecode: u16| NotifyEvent { ecode: ecode.into(), ..NotifyEvent::ZERO };
        let unexpected = Err(Cause::UnexpectedEvent { kind: 255, code: 9, qid: 0 });
        assert_eq!(Event::of_notification(&event(9)), unexpected);
        assert_eq!(Event::of_notification(&event(3)), Ok(Event::Heartbeat));
        assert_eq!(Event::of_notification(&event(2)), Err(Cause::ResetEvent { code: 0, state: 0 }));
    }
}
