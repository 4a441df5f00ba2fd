//! A loom model of the shared form: every interleaving of two posters and a poller on a [`SharedTable`].
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p directverbs --test loom_shared`.
#![cfg(loom)]

use directverbs::queue::{Shared, SharedTable};
use directverbs::verbs::{BatchError, Endpoints, Pollable, RecvRequest, SharedReceiveQueue, SrqId};
use loom::sync::Arc;
use loom::thread;

const KEY: u32 = 5;

/// The smallest queue pair: what was posted and not yet completed, in order.
#[derive(Debug, Default)]
struct Queue {
    key: u32,
    outstanding: Vec<u64>,
    failed: bool,
    flush_seq: u32,
}

impl Queue {
    fn new(key: u32) -> Self {
        Self { key, ..Self::default() }
    }

    fn post(&mut self, wr_id: u64) {
        self.outstanding.push(wr_id);
        self.flush_seq += u32::from(self.failed);
    }

    fn fail(&mut self) {
        self.failed = true;
        self.flush_seq += 1;
    }
}

impl Pollable for Queue {
    fn key(&self) -> u32 {
        self.key
    }

    fn flush_seq(&self) -> u32 {
        self.flush_seq
    }
}

#[derive(Debug)]
struct NoSrq;

impl SharedReceiveQueue for NoSrq {
    fn id(&self) -> SrqId {
        SrqId::truncated(0)
    }

    fn post_recv(&mut self, _: &[RecvRequest<'_>]) -> Result<(), BatchError> {
        Ok(())
    }

    fn arm_limit(&mut self, _: u32) {}
}

/// A completion queue whose device completes at once what a working queue pair has posted.
#[derive(Debug, Default)]
struct Completions {
    seen: u32,
    done: Vec<(u64, bool)>,
}

impl Completions {
    fn poll(&mut self, mut endpoints: impl Endpoints<Queue, NoSrq>) {
        endpoints.with_qp(KEY, |qp| {
            if !qp.failed {
                self.done.extend(qp.outstanding.drain(..).map(|wr_id| (wr_id, true)));
            }
        });
        // The count is read before the search: what moves it during the search is found by the next poll.
        let seq = endpoints.flush_seq();
        if seq != self.seen {
            self.seen = seq;
            endpoints.each_qp(|qp| {
                if qp.failed {
                    self.done.extend(qp.outstanding.drain(..).map(|wr_id| (wr_id, false)));
                }
                true
            });
        }
    }
}

/// Slots and table live as long as the model's threads, which want `'static`: each execution leaks a few hundred bytes.
fn table(slots: usize) -> &'static SharedTable<'static, Queue, NoSrq> {
    let slots: Vec<_> = (0..slots).map(|_| Shared::new(None)).collect();
    Box::leak(Box::new(SharedTable::new(Vec::leak(slots), &[])))
}

fn completed(cq: &Shared<Completions>) -> Vec<(u64, bool)> {
    cq.with(|cq| cq.done.clone())
}

#[test]
fn two_posters_and_a_poller_complete_every_request_once_and_each_posters_in_order() {
    loom::model(|| {
        let table = table(1);
        assert!(table.insert(Queue::new(KEY)).is_ok());
        let cq = Arc::new(Shared::new(Completions::default()));
        let posters: Vec<_> = [10, 20]
            .map(|first| {
                thread::spawn(move || {
                    for wr_id in [first, first + 1] {
                        assert!(table.with_qp(KEY, |qp| qp.post(wr_id)).is_some());
                    }
                })
            })
            .into();
        cq.with(|cq| cq.poll(table));
        for poster in posters {
            poster.join().unwrap();
        }
        cq.with(|cq| cq.poll(table));

        let done = completed(&cq);
        assert!(done.iter().all(|(_, success)| *success));
        for first in [10, 20] {
            let of_one: Vec<u64> =
                done.iter().map(|d| d.0).filter(|id| (first..first + 2).contains(id)).collect();
            assert_eq!(of_one, [first, first + 1]);
        }
        assert_eq!(done.len(), 4);
    });
}

#[test]
fn a_failure_beside_posters_and_a_poller_leaves_no_request_unflushed() {
    loom::model(|| {
        let table = table(1);
        assert!(table.insert(Queue::new(KEY)).is_ok());
        let cq = Arc::new(Shared::new(Completions::default()));
        let poster = thread::spawn(move || {
            for wr_id in [1, 2] {
                table.with_qp(KEY, |qp| qp.post(wr_id));
            }
        });
        let failer = thread::spawn(move || {
            table.with_qp(KEY, Queue::fail);
        });
        cq.with(|cq| cq.poll(table));
        poster.join().unwrap();
        failer.join().unwrap();
        cq.with(|cq| cq.poll(table));

        let done = completed(&cq);
        assert_eq!(done.iter().map(|d| d.0).collect::<Vec<_>>(), [1, 2]);
        let flushed = done.iter().position(|(_, success)| !success).unwrap_or(done.len());
        assert!(done.iter().skip(flushed).all(|(_, success)| !success), "a success after a flush: {done:?}");
    });
}

#[test]
fn two_pollers_share_a_completion_queue_and_flush_once() {
    loom::model(|| {
        let table = table(2);
        for key in [KEY, KEY + 1] {
            assert!(table.insert(Queue::new(key)).is_ok());
        }
        let cq = Arc::new(Shared::new(Completions::default()));
        let other = Arc::clone(&cq);
        let poller = thread::spawn(move || other.with(|cq| cq.poll(table)));
        for key in [KEY, KEY + 1] {
            table.with_qp(key, |qp| {
                qp.post(u64::from(key));
                qp.fail();
            });
        }
        cq.with(|cq| cq.poll(table));
        poller.join().unwrap();

        let mut done = completed(&cq);
        done.sort_unstable();
        assert_eq!(done, [(u64::from(KEY), false), (u64::from(KEY + 1), false)]);
    });
}

#[test]
fn the_documented_lock_order_does_not_deadlock() {
    loom::model(|| {
        let table = table(1);
        assert!(table.insert(Queue::new(KEY)).is_ok());
        let cq = Arc::new(Shared::new(Completions::default()));
        let posters: Vec<_> = [1, 2]
            .map(|wr_id| {
                let cq = Arc::clone(&cq);
                // A poster that spends the completion queue's credit locks it first.
                thread::spawn(move || cq.with(|_| table.with_qp(KEY, |qp| qp.post(wr_id))))
            })
            .into();
        cq.with(|cq| cq.poll(table));
        for poster in posters {
            assert!(poster.join().unwrap().is_some());
        }
        cq.with(|cq| cq.poll(table));
        let mut done = completed(&cq);
        done.sort_unstable();
        assert_eq!(done, [(1, true), (2, true)]);
    });
}

#[test]
fn a_queue_pair_that_is_put_in_failed_is_flushed() {
    loom::model(|| {
        let table = table(1);
        let cq = Arc::new(Shared::new(Completions::default()));
        let inserter = thread::spawn(move || {
            let mut qp = Queue::new(KEY);
            qp.post(1);
            qp.fail();
            assert!(table.insert(qp).is_ok());
        });
        cq.with(|cq| cq.poll(table));
        inserter.join().unwrap();
        cq.with(|cq| cq.poll(table));
        assert_eq!(completed(&cq), [(1, false)]);
    });
}

#[test]
fn of_two_queue_pairs_with_one_key_one_is_put_in_whatever_is_taken_out() {
    loom::model(|| {
        let table = table(2);
        // The neighbor sits where the key belongs, and leaves while the others come.
        assert!(table.insert(Queue::new(KEY + 2)).is_ok());
        let rivals: Vec<_> =
            [(), ()].map(|()| thread::spawn(move || table.insert(Queue::new(KEY)).is_ok())).into();
        assert!(table.remove(KEY + 2).is_some());
        let put: Vec<bool> = rivals.into_iter().map(|rival| rival.join().unwrap()).collect();
        assert_eq!(put.iter().filter(|put| **put).count(), 1, "{put:?}");
        assert!(table.remove(KEY).is_some());
        assert!(table.remove(KEY).is_none());
    });
}
