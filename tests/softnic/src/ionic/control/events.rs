//! Event queues, and what the NIC has to tell.

use directverbs::ionic::admin::{EQE_BYTES, Eqe, Event, EventCode, EventType};
use zerocopy::IntoBytes;

use super::function::IonicFunction;
use super::rdma::Rdma;
use super::{QueueKind, Wrong};
use crate::device::Notification;
use crate::ionic::PIPELINE_SHIFT;

/// An event queue.
#[derive(Debug)]
pub(super) struct EventRing {
    pub base: u64,
    pub depth_log2: u8,
    pub intr: u16,
    /// Events written.
    pub written: u64,
}

/// An event that no driver knows.
const UNKNOWN: (EventType, EventCode) = (EventType(5), EventCode(15));

impl Rdma {
    /// The event queue that asynchronous events of a pipeline go to: the first ones are for them.
    fn async_eq(&self, qid: u32) -> Option<u32> {
        let pipeline = qid >> PIPELINE_SHIFT & 1;
        if self.eqs.contains_key(&pipeline) { Some(pipeline) } else { self.eqs.keys().next().copied() }
    }
}

impl IonicFunction {
    /// Hands the NIC's notifications to event queues; `true` if there were any.
    pub(super) fn hand_out_events(&mut self) -> bool {
        let mut any = false;
        loop {
            let Some(notification) = ({ self.nic.lock().take_notification() }) else { return any };
            any = true;
            let Some(rdma) = &self.state.rdma else { continue };
            let of_cq = |id: u32| rdma.cqs.get(&id).map(|cq| cq.eq);
            let (eq, kind, code, qid) = match notification {
                Notification::Cq(id) => (of_cq(id.get()), EventType::CQ, EventCode::CQ_NOTIFY, id.get()),
                Notification::CqError(id) => (of_cq(id.get()), EventType::CQ, EventCode::CQ_ERROR, id.get()),
                Notification::QpError(id) => {
                    (rdma.async_eq(id.get()), EventType::QP, EventCode::QP_ERROR, id.get())
                }
                Notification::QpAccess(id) => {
                    (rdma.async_eq(id.get()), EventType::QP, EventCode::QP_ACCESS, id.get())
                }
                Notification::SqDrained(id) => {
                    (rdma.async_eq(id.get()), EventType::QP, EventCode::QP_DRAINED, id.get())
                }
                // There are no shared receive queues.
                Notification::SrqLimit(_) => continue,
            };
            if let Some(eq) = eq {
                self.event(eq, (kind, code), qid);
            }
        }
    }

    /// An event that nobody asked for.
    pub(super) fn unexpected_event(&mut self) {
        if self.state.notifyq.is_some() {
            self.link_event();
        }
        let eq = self.state.rdma.as_ref().and_then(|rdma| rdma.async_eq(0));
        if let Some(eq) = eq {
            self.event(eq, UNKNOWN, 0xff_ffff);
        }
    }

    /// Writes an event, unless the queue is full of ones that the host has not taken.
    pub(super) fn event(&mut self, eq: u32, what: (EventType, EventCode), qid: u32) {
        let Some(ring) = self.state.rdma.as_mut().and_then(|rdma| rdma.eqs.get_mut(&eq)) else { return };
        let depth = 1u64 << ring.depth_log2;
        let pending = u64::from(self.interrupts.pending(ring.intr));
        if pending >= depth {
            let wrong = Wrong { what: "events not taken", got: pending, want: depth - 1 };
            return self.blame(QueueKind::Event, eq, 0, wrong);
        }
        let color = ring.written >> ring.depth_log2 & 1 == 0;
        let word = Event::new().with_color(color).with_event_type(what.0.0).with_code(what.1.0).with_qid(qid);
        let at = ring.base + (ring.written & (depth - 1)) * EQE_BYTES as u64;
        ring.written += 1;
        let intr = ring.intr;
        let entry = Eqe { evt: word.into_bits().into() };
        match self.port.bus.write(at, entry.as_bytes()) {
            Ok(()) => self.raise(intr),
            Err(error) => self.refused(QueueKind::Event, 0, 0, error.into()),
        }
    }
}
