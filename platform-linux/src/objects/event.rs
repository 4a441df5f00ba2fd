//! Asynchronous events.

use std::fmt;

use crate::uverbs::abi::packet::AsyncEventRecord;

/// The number by which events name an object. It is never an address: one that was destroyed is simply not known any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserHandle(pub u64);

/// What has happened. Open: any number is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKind(pub u32);

impl EventKind {
    /// A completion queue has overrun, or could not be written.
    pub const CQ_ERROR: Self = Self(0);
    /// A queue pair is in error.
    pub const QP_FATAL: Self = Self(1);
    /// A peer has sent a request that makes no sense.
    pub const QP_REQUEST_ERROR: Self = Self(2);
    /// A peer has asked for memory that it may not touch.
    pub const QP_ACCESS_ERROR: Self = Self(3);
    /// The first packet has come.
    pub const COMMUNICATION_ESTABLISHED: Self = Self(4);
    /// The send queue is drained.
    pub const SQ_DRAINED: Self = Self(5);
    /// The device has failed, or was removed. After a removal no other event comes.
    pub const DEVICE_FATAL: Self = Self(8);
    /// The port is up.
    pub const PORT_ACTIVE: Self = Self(9);
    /// The port is down.
    pub const PORT_ERROR: Self = Self(10);
    /// A shared receive queue is in error.
    pub const SRQ_ERROR: Self = Self(14);
    /// A shared receive queue has fewer requests than its limit.
    pub const SRQ_LIMIT_REACHED: Self = Self(15);
    /// A queue pair in error takes no more from its shared receive queue.
    pub const QP_LAST_WQE_REACHED: Self = Self(16);
    /// The GID table has changed.
    pub const GID_CHANGE: Self = Self(18);

    /// Name, if it is known.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 21] = [
            "completion queue error",
            "queue pair fatal error",
            "queue pair request error",
            "queue pair access error",
            "communication established",
            "send queue drained",
            "path migrated",
            "path migration failed",
            "device fatal error",
            "port active",
            "port down",
            "LID changed",
            "partition keys changed",
            "subnet manager changed",
            "shared receive queue error",
            "shared receive queue limit reached",
            "last request of the queue pair reached",
            "clients must register again",
            "GID table changed",
            "work queue fatal error",
            "link speed changed",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "event {}", self.0),
        }
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A completion queue.
    CompletionQueue(UserHandle),
    /// A queue pair.
    QueuePair(UserHandle),
    /// A shared receive queue.
    SharedReceiveQueue(UserHandle),
    /// A port, or 0 for all of the device.
    Port(u64),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What has happened.
    pub kind: EventKind,
    /// To what.
    pub element: Element,
}

impl AsyncEvent {
    pub(super) fn new(record: &AsyncEventRecord) -> Self {
        let (kind, element) = (record.event_type.get(), record.element.get());
        let handle = UserHandle(element);
        let element = match kind {
            0 => Element::CompletionQueue(handle),
            1..=7 | 16 => Element::QueuePair(handle),
            14 | 15 => Element::SharedReceiveQueue(handle),
            _ => Element::Port(element),
        };
        Self { kind: EventKind(kind), element }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_what_it_is_about() {
        let event = |kind: u32| {
            AsyncEvent::new(&AsyncEventRecord {
                element: 7.into(),
                event_type: kind.into(),
                ..AsyncEventRecord::ZERO
            })
        };
        assert_eq!(event(0).element, Element::CompletionQueue(UserHandle(7)));
        assert_eq!(event(16).element, Element::QueuePair(UserHandle(7)));
        assert_eq!(event(15).element, Element::SharedReceiveQueue(UserHandle(7)));
        assert_eq!(event(10).element, Element::Port(7));
        assert_eq!(event(10).kind.to_string(), "port down");
        assert_eq!(event(999).kind.to_string(), "event 999");
    }
}
