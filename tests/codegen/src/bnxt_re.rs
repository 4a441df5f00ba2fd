use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq};
use directverbs::bnxt_re::push::PushBuffer;
use directverbs::bnxt_re::qp::QueuePair;
use directverbs::bnxt_re::srq::SharedReceiveQueue;
use directverbs::queue::{Borrowed, Fixed, QpTable, SharedTable};
use directverbs::verbs::{
    self, BatchError, CqFault, PostError, RecvRequest, SendRequest, Slices, WorkCompletion,
};

use crate::page::Mapped;

type Store<'m> = Borrowed<'m>;
type Qp<'m> = AttachedQp<'m, Store<'m>, Mapped>;
type Srq<'m> = AttachedSrq<'m, Store<'m>, Mapped>;
type Cq<'m> = AttachedCq<'m, Store<'m>, Mapped>;

/// One request.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_post_send_one(
    qp: &mut QueuePair<'_, Store<'_>>,
    page: &Mapped,
    request: &SendRequest<'_>,
) -> Result<(), PostError> {
    let mut batch = qp.send_batch()?;
    batch.post(request)?;
    batch.commit(page);
    Ok(())
}

/// Requests under one doorbell.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_post_send(
    qp: &mut QueuePair<'_, Store<'_>>,
    page: &Mapped,
    requests: &[SendRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_send(page, requests)
}

/// Requests under one doorbell, with the bookkeeping inside the queue.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_post_send_fixed(
    qp: &mut QueuePair<'_, Fixed<64>>,
    page: &Mapped,
    requests: &[SendRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_send(page, requests)
}

/// Requests under one doorbell, through the traits.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_post_send_attached<'m>(
    qp: &mut Qp<'m>,
    cq: &mut Cq<'m>,
    requests: &[SendRequest<'_>],
) -> Result<(), BatchError> {
    verbs::QueuePair::post_send(qp, cq, requests)
}

/// A request by push.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_push(
    qp: &mut QueuePair<'_, Store<'_>>,
    request: &SendRequest<'_>,
    buffer: &PushBuffer<Mapped>,
    page: &Mapped,
) -> Result<(), PostError> {
    qp.send.push(request, buffer, page)
}

/// Receive requests under one doorbell.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_post_recv(
    qp: &mut QueuePair<'_, Store<'_>>,
    page: &Mapped,
    requests: &[RecvRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_recv(page, requests)
}

/// One receive request to a shared queue.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_post_srq_one(
    srq: &mut SharedReceiveQueue<'_, Store<'_>>,
    page: &Mapped,
    request: &RecvRequest<'_>,
) -> Result<(), PostError> {
    let mut batch = srq.batch();
    batch.post(request)?;
    batch.commit(page);
    Ok(())
}

/// Receive requests to a shared queue under one doorbell.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_post_srq(srq: &mut Srq<'_>, requests: &[RecvRequest<'_>]) -> Result<(), BatchError> {
    verbs::SharedReceiveQueue::post_recv(srq, requests)
}

/// Completions of queue pairs in a slice.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_poll_slices<'m>(
    cq: &mut Cq<'m>,
    queues: &mut Slices<'_, Qp<'m>, Srq<'m>>,
    out: &mut [WorkCompletion],
) -> Result<usize, CqFault> {
    verbs::CompletionQueue::poll(cq, queues, out)
}

/// Completions of queue pairs in a table.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_poll_table<'m>(
    cq: &mut Cq<'m>,
    queues: &mut QpTable<'_, Qp<'m>, Srq<'m>>,
    out: &mut [WorkCompletion],
) -> Result<usize, CqFault> {
    verbs::CompletionQueue::poll(cq, queues, out)
}

/// Completions of queue pairs that other cores post to.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_poll_shared<'m>(
    cq: &mut Cq<'m>,
    mut queues: &SharedTable<'_, Qp<'m>, Srq<'m>>,
    out: &mut [WorkCompletion],
) -> Result<usize, CqFault> {
    verbs::CompletionQueue::poll(cq, &mut queues, out)
}

/// Asks for an event.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_bnxt_re_arm(cq: &mut Cq<'_>, solicited_only: bool) {
    verbs::CompletionQueue::arm(cq, solicited_only);
}
