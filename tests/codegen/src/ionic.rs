use directverbs::ionic::cq::CompletionQueue;
use directverbs::ionic::qp::{NoSharedReceiveQueue, QueuePair};
use directverbs::queue::{Borrowed, Fixed, QpTable, SharedTable};
use directverbs::verbs::{BatchError, CqFault, PostError, RecvRequest, SendRequest, Slices, WorkCompletion};

use crate::page::Mapped;

type Store<'m> = Borrowed<'m>;
/// In the host's memory.
type HostQp<'m> = QueuePair<'m, Store<'m>>;
/// Perhaps in controller memory.
type CmbQp<'m> = QueuePair<'m, Store<'m>, Mapped>;
type Srq = NoSharedReceiveQueue;

/// One request.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_post_send_one(
    qp: &mut HostQp<'_>,
    cq: &mut CompletionQueue<'_>,
    page: &Mapped,
    request: &SendRequest<'_>,
) -> Result<(), PostError> {
    let mut batch = qp.send_batch(cq)?;
    batch.post(request)?;
    batch.commit(page);
    Ok(())
}

/// Requests under one doorbell.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_post_send(
    qp: &mut HostQp<'_>,
    cq: &mut CompletionQueue<'_>,
    page: &Mapped,
    requests: &[SendRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_send(cq, requests, page)
}

/// Requests under one doorbell, with the bookkeeping inside the queue.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_post_send_fixed(
    qp: &mut QueuePair<'_, Fixed<64>>,
    cq: &mut CompletionQueue<'_>,
    page: &Mapped,
    requests: &[SendRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_send(cq, requests, page)
}

/// Requests to a queue in controller memory: write-combined or uncached, express doorbells or not.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_post_send_cmb(
    qp: &mut CmbQp<'_>,
    cq: &mut CompletionQueue<'_>,
    page: &Mapped,
    requests: &[SendRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_send(cq, requests, page)
}

/// Receive requests under one doorbell.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_post_recv(
    qp: &mut HostQp<'_>,
    cq: &mut CompletionQueue<'_>,
    page: &Mapped,
    requests: &[RecvRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_recv(cq, requests, page)
}

/// Receive requests to a queue in controller memory.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_post_recv_cmb(
    qp: &mut CmbQp<'_>,
    cq: &mut CompletionQueue<'_>,
    page: &Mapped,
    requests: &[RecvRequest<'_>],
) -> Result<(), BatchError> {
    qp.post_recv(cq, requests, page)
}

/// Completions of queue pairs in a slice.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_poll_slices<'m>(
    cq: &mut CompletionQueue<'m>,
    queues: &mut Slices<'_, HostQp<'m>, Srq>,
    page: &Mapped,
    out: &mut [WorkCompletion],
) -> Result<usize, CqFault> {
    cq.poll(queues, page, out)
}

/// Completions of queue pairs in a table.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_poll_table<'m>(
    cq: &mut CompletionQueue<'m>,
    queues: &mut QpTable<'_, CmbQp<'m>, Srq>,
    page: &Mapped,
    out: &mut [WorkCompletion],
) -> Result<usize, CqFault> {
    cq.poll(queues, page, out)
}

/// Completions of queue pairs that other cores post to.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_poll_shared<'m>(
    cq: &mut CompletionQueue<'m>,
    mut queues: &SharedTable<'_, HostQp<'m>, Srq>,
    page: &Mapped,
    out: &mut [WorkCompletion],
) -> Result<usize, CqFault> {
    cq.poll(&mut queues, page, out)
}

/// Asks for an event.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn fast_ionic_arm(cq: &mut CompletionQueue<'_>, solicited_only: bool) {
    cq.arm(solicited_only);
}
