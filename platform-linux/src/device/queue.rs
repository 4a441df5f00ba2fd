//! Queues of whichever family.

use directverbs::ionic::qp::NoSharedReceiveQueue;
use directverbs::verbs::{
    self, BatchError, CqFault, CqId, Endpoints, Pollable, PostError, QpCapabilities, QpId, QpState, QpType,
    RecvRequest, SendRequest, SrqId, Unwrapped, WorkCompletion, Wrapper,
};

use crate::objects::UserHandle;
use crate::{bnxt_re, ionic};

/// A queue pair.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a post follows no pointer, and queues are moved once")]
pub enum QueuePair {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::datapath::QueuePair),
    /// Of an AMD Pensando device.
    Ionic(ionic::datapath::QueuePair),
}

/// A completion queue.
#[derive(Debug)]
pub enum CompletionQueue {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::datapath::CompletionQueue),
    /// Of an AMD Pensando device.
    Ionic(ionic::datapath::CompletionQueue),
}

/// A shared receive queue.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a post follows no pointer, and queues are moved once")]
pub enum SharedReceiveQueue {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::datapath::SharedReceiveQueue),
    /// There is none of an AMD Pensando device.
    Ionic(NoSharedReceiveQueue),
}

/// The queues among `cqs` that are of bnxt_re.
pub(super) fn bnxt_re<'a>(
    cqs: &'a mut [&mut CompletionQueue],
) -> Vec<&'a mut bnxt_re::datapath::CompletionQueue> {
    let own = cqs.iter_mut().map(|cq| match &mut **cq {
        CompletionQueue::BnxtRe(cq) => Some(cq),
        CompletionQueue::Ionic(_) => None,
    });
    own.flatten().collect()
}

/// The queues among `cqs` that are of ionic.
pub(super) fn ionic<'a>(
    cqs: &'a mut [&mut CompletionQueue],
) -> Vec<&'a mut ionic::datapath::CompletionQueue> {
    let own = cqs.iter_mut().map(|cq| match &mut **cq {
        CompletionQueue::Ionic(cq) => Some(cq),
        CompletionQueue::BnxtRe(_) => None,
    });
    own.flatten().collect()
}

impl Wrapper<bnxt_re::datapath::QueuePair> for QueuePair {
    #[inline]
    fn queue(&mut self) -> Option<&mut bnxt_re::datapath::QueuePair> {
        match self {
            Self::BnxtRe(qp) => Some(qp),
            Self::Ionic(_) => None,
        }
    }
}

impl Wrapper<ionic::datapath::QueuePair> for QueuePair {
    #[inline]
    fn queue(&mut self) -> Option<&mut ionic::datapath::QueuePair> {
        match self {
            Self::Ionic(qp) => Some(qp),
            Self::BnxtRe(_) => None,
        }
    }
}

impl Wrapper<bnxt_re::datapath::SharedReceiveQueue> for SharedReceiveQueue {
    #[inline]
    fn queue(&mut self) -> Option<&mut bnxt_re::datapath::SharedReceiveQueue> {
        match self {
            Self::BnxtRe(srq) => Some(srq),
            Self::Ionic(none) => match *none {},
        }
    }
}

impl Wrapper<NoSharedReceiveQueue> for SharedReceiveQueue {
    #[inline]
    fn queue(&mut self) -> Option<&mut NoSharedReceiveQueue> {
        match self {
            Self::BnxtRe(_) => None,
            Self::Ionic(none) => match *none {},
        }
    }
}

impl CompletionQueue {
    /// What its events carry.
    pub fn user_handle(&self) -> UserHandle {
        match self {
            Self::BnxtRe(cq) => cq.control().object().user_handle(),
            Self::Ionic(cq) => cq.control().object().user_handle(),
        }
    }
}

impl QueuePair {
    /// What its events carry.
    pub fn user_handle(&self) -> UserHandle {
        match self {
            Self::BnxtRe(qp) => qp.control().object().user_handle(),
            Self::Ionic(qp) => qp.control().object().user_handle(),
        }
    }

    /// The error of a post with a completion queue of another family.
    #[cold]
    fn wrong(&self, cq: &CompletionQueue, receive: bool) -> BatchError {
        let cqs = match self {
            Self::BnxtRe(qp) => qp.cqs(),
            Self::Ionic(qp) => qp.cqs(),
        };
        let attached = cqs[usize::from(receive)];
        BatchError { index: 0, error: PostError::WrongCq { given: verbs::CompletionQueue::id(cq), attached } }
    }
}

impl Pollable for QueuePair {
    #[inline]
    fn key(&self) -> u32 {
        match self {
            Self::BnxtRe(qp) => qp.key(),
            Self::Ionic(qp) => qp.key(),
        }
    }

    #[inline]
    fn flush_seq(&self) -> u32 {
        match self {
            Self::BnxtRe(qp) => qp.flush_seq(),
            Self::Ionic(qp) => qp.flush_seq(),
        }
    }
}

impl verbs::QueuePair for QueuePair {
    type CompletionQueue = CompletionQueue;

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

    #[inline]
    fn post_send(
        &mut self,
        cq: &mut CompletionQueue,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError> {
        match (&mut *self, &mut *cq) {
            (Self::BnxtRe(qp), CompletionQueue::BnxtRe(cq)) => qp.post_send(cq, requests),
            (Self::Ionic(qp), CompletionQueue::Ionic(cq)) => qp.post_send(cq, requests),
            _ => Err(self.wrong(cq, false)),
        }
    }

    #[inline]
    fn post_recv(
        &mut self,
        cq: &mut CompletionQueue,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError> {
        match (&mut *self, &mut *cq) {
            (Self::BnxtRe(qp), CompletionQueue::BnxtRe(cq)) => qp.post_recv(cq, requests),
            (Self::Ionic(qp), CompletionQueue::Ionic(cq)) => qp.post_recv(cq, requests),
            _ => Err(self.wrong(cq, true)),
        }
    }
}

impl verbs::CompletionQueue for CompletionQueue {
    type QueuePair = QueuePair;
    type SharedReceiveQueue = SharedReceiveQueue;

    fn id(&self) -> CqId {
        match self {
            Self::BnxtRe(cq) => cq.id(),
            Self::Ionic(cq) => cq.id(),
        }
    }

    #[inline]
    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<QueuePair, SharedReceiveQueue>,
    {
        let mut endpoints = Unwrapped::<E, QueuePair, SharedReceiveQueue>::new(endpoints);
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

impl verbs::SharedReceiveQueue for SharedReceiveQueue {
    fn id(&self) -> SrqId {
        match self {
            Self::BnxtRe(srq) => srq.id(),
            Self::Ionic(none) => match *none {},
        }
    }

    #[inline]
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
