//! Queues of whichever family.

use directverbs::ionic::qp::NoSharedReceiveQueue;
use directverbs::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, PostError, QpCapabilities, QpId, QpState, QpType,
    RecvRequest, SendRequest, SrqId, Unwrapped, WorkCompletion, Wrapper,
};
use directverbs_bare::{Host, bnxt_re, ionic};
use heapless::Vec;

use crate::nics::Error;

/// A queue pair.
#[expect(clippy::large_enum_variant, reason = "there is no heap")]
pub enum QueuePair<'n, H: Host> {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::QueuePair<'n, H>),
    /// Of an AMD Pensando device.
    Ionic(ionic::QueuePair<'n, H>),
}

/// A completion queue.
#[expect(clippy::large_enum_variant, reason = "there is no heap")]
pub enum CompletionQueue<'n, H: Host> {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::CompletionQueue<'n, H>),
    /// Of an AMD Pensando device.
    Ionic(ionic::CompletionQueue<'n, H>),
}

/// A shared receive queue.
pub enum SharedReceiveQueue<'n, H: Host> {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::SharedReceiveQueue<'n, H>),
    /// There is none of an AMD Pensando device.
    Ionic(NoSharedReceiveQueue),
}

/// The completion queues of a queue pair.
type Own<'a, C> = Vec<&'a mut C, 2>;

/// The same queues as bnxt_re has them.
pub fn bnxt_re<'a, 'n, H: Host>(
    cqs: &'a mut [&mut CompletionQueue<'n, H>],
) -> Result<Own<'a, bnxt_re::CompletionQueue<'n, H>>, Error> {
    own(cqs, |cq| match cq {
        CompletionQueue::BnxtRe(cq) => Some(cq),
        CompletionQueue::Ionic(_) => None,
    })
}

/// The same queues as ionic has them.
pub fn ionic<'a, 'n, H: Host>(
    cqs: &'a mut [&mut CompletionQueue<'n, H>],
) -> Result<Own<'a, ionic::CompletionQueue<'n, H>>, Error> {
    own(cqs, |cq| match cq {
        CompletionQueue::Ionic(cq) => Some(cq),
        CompletionQueue::BnxtRe(_) => None,
    })
}

/// A queue of the other family, and a third one, are none of the queue pair's.
fn own<'a, C, T>(
    cqs: &'a mut [&mut C],
    of: impl Fn(&'a mut C) -> Option<&'a mut T>,
) -> Result<Own<'a, T>, Error> {
    let mut all = Vec::new();
    for cq in cqs {
        all.push(of(cq).ok_or(Error::Foreign)?).map_err(|_| Error::Foreign)?;
    }
    Ok(all)
}

impl<'n, H: Host> Wrapper<bnxt_re::QueuePair<'n, H>> for QueuePair<'n, H> {
    fn queue(&mut self) -> Option<&mut bnxt_re::QueuePair<'n, H>> {
        match self {
            Self::BnxtRe(qp) => Some(qp),
            Self::Ionic(_) => None,
        }
    }
}

impl<'n, H: Host> Wrapper<ionic::QueuePair<'n, H>> for QueuePair<'n, H> {
    fn queue(&mut self) -> Option<&mut ionic::QueuePair<'n, H>> {
        match self {
            Self::Ionic(qp) => Some(qp),
            Self::BnxtRe(_) => None,
        }
    }
}

impl<'n, H: Host> Wrapper<bnxt_re::SharedReceiveQueue<'n, H>> for SharedReceiveQueue<'n, H> {
    fn queue(&mut self) -> Option<&mut bnxt_re::SharedReceiveQueue<'n, H>> {
        match self {
            Self::BnxtRe(srq) => Some(srq),
            Self::Ionic(none) => match *none {},
        }
    }
}

impl<H: Host> Wrapper<NoSharedReceiveQueue> for SharedReceiveQueue<'_, H> {
    fn queue(&mut self) -> Option<&mut NoSharedReceiveQueue> {
        match self {
            Self::BnxtRe(_) => None,
            Self::Ionic(none) => match *none {},
        }
    }
}

impl<H: Host> Pollable for QueuePair<'_, H> {
    fn key(&self) -> u32 {
        match self {
            Self::BnxtRe(qp) => qp.key(),
            Self::Ionic(qp) => qp.key(),
        }
    }

    fn flush_seq(&self) -> u32 {
        match self {
            Self::BnxtRe(qp) => qp.flush_seq(),
            Self::Ionic(qp) => qp.flush_seq(),
        }
    }
}

impl<H: Host> QueuePair<'_, H> {
    /// The error of a post with a completion queue of the other family.
    #[cold]
    fn wrong(&self, cq: &CompletionQueue<'_, H>, receive: bool) -> BatchError {
        let cqs = match self {
            Self::BnxtRe(qp) => qp.cqs(),
            Self::Ionic(qp) => qp.cqs(),
        };
        let attached = cqs[usize::from(receive)];
        BatchError { index: 0, error: PostError::WrongCq { given: verbs::CompletionQueue::id(cq), attached } }
    }
}

impl<'n, H: Host> verbs::QueuePair for QueuePair<'n, H> {
    type CompletionQueue = CompletionQueue<'n, H>;

    fn id(&self) -> QpId {
        match self {
            Self::BnxtRe(qp) => qp.id(),
            Self::Ionic(qp) => qp.id(),
        }
    }

    fn qp_type(&self) -> QpType {
        match self {
            Self::BnxtRe(qp) => qp.qp_type(),
            Self::Ionic(qp) => qp.qp_type(),
        }
    }

    fn state(&self) -> QpState {
        match self {
            Self::BnxtRe(qp) => qp.state(),
            Self::Ionic(qp) => qp.state(),
        }
    }

    fn capabilities(&self) -> QpCapabilities {
        match self {
            Self::BnxtRe(qp) => qp.capabilities(),
            Self::Ionic(qp) => qp.capabilities(),
        }
    }

    fn post_send(
        &mut self,
        cq: &mut CompletionQueue<'n, H>,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        match (&mut *self, &mut *cq) {
            (Self::BnxtRe(qp), CompletionQueue::BnxtRe(cq)) => qp.post_send(cq, requests),
            (Self::Ionic(qp), CompletionQueue::Ionic(cq)) => qp.post_send(cq, requests),
            _ => Err(self.wrong(cq, false)),
        }
    }

    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue<'n, H>,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        match (&mut *self, &mut *cq) {
            (Self::BnxtRe(qp), CompletionQueue::BnxtRe(cq)) => qp.post_recv(cq, requests),
            (Self::Ionic(qp), CompletionQueue::Ionic(cq)) => qp.post_recv(cq, requests),
            _ => Err(self.wrong(cq, true)),
        }
    }
}

impl<'n, H: Host> verbs::CompletionQueue for CompletionQueue<'n, H> {
    type QueuePair = QueuePair<'n, H>;
    type SharedReceiveQueue = SharedReceiveQueue<'n, H>;

    fn id(&self) -> CqId {
        match self {
            Self::BnxtRe(cq) => cq.id(),
            Self::Ionic(cq) => cq.id(),
        }
    }

    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair<'n, H>, SharedReceiveQueue<'n, H>>,
    {
        let mut endpoints = Unwrapped::<E, QueuePair<'n, H>, SharedReceiveQueue<'n, H>>::new(endpoints);
        match self {
            Self::BnxtRe(cq) => cq.poll(&mut endpoints, out),
            Self::Ionic(cq) => cq.poll(&mut endpoints, out),
        }
    }

    fn arm(&mut self, solicited_only: bool) {
        match self {
            Self::BnxtRe(cq) => cq.arm(solicited_only),
            Self::Ionic(cq) => cq.arm(solicited_only),
        }
    }
}

impl<H: Host> verbs::SharedReceiveQueue for SharedReceiveQueue<'_, H> {
    fn id(&self) -> SrqId {
        match self {
            Self::BnxtRe(srq) => srq.id(),
            Self::Ionic(none) => match *none {},
        }
    }

    fn post_recv(&mut self, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        match self {
            Self::BnxtRe(srq) => srq.post_recv(requests),
            Self::Ionic(none) => match *none {},
        }
    }

    fn arm_limit(&mut self, limit: u32) {
        match self {
            Self::BnxtRe(srq) => srq.arm_limit(limit),
            Self::Ionic(none) => match *none {},
        }
    }
}
