//! A loom model of real bnxt_re queues in the shared form: two posters, and a poller beside a device that completes.
//!
//! Loom follows the locks and the table's counter. Ring memory is only touched with a lock held; the device here acts in
//! the poller's turn.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p directverbs --test loom_bnxt_re`.
#![cfg(loom)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use directverbs::bnxt_re::attached::{AttachedCq, AttachedQp, AttachedSrq, Page};
use directverbs::bnxt_re::caps::{ContextReply, DeviceCaps, Limits, context_bits};
use directverbs::bnxt_re::cq::CompletionQueue;
use directverbs::bnxt_re::cqe::{CQE_BYTES, CqReq};
use directverbs::bnxt_re::plan::{CqPlan, SendPlan};
use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
use directverbs::bnxt_re::send::{SendInit, SendQueue, SendRecord};
use directverbs::queue::{Borrowed, Doorbell, RingMemory, Shared, SharedTable};
use directverbs::verbs::{
    self, CqId, LKey, QpCapabilities, QpId, QpState, QpType, RKey, SendRequest, Sge, WcStatus, WorkCompletion,
};
use loom::sync::Arc;
use loom::thread;
use zerocopy::IntoBytes;

const HANDLE: u32 = 5;
/// What the two posters post.
const FIRST: &[u64] = &[10, 11];
const SECOND: &[u64] = &[20];

type Store = Borrowed<'static>;
type Qp = AttachedQp<'static, Store, Bell>;
type Srq = AttachedSrq<'static, Store, Bell>;
type Cq = AttachedCq<'static, Store, Bell>;
type Table = SharedTable<'static, Qp, Srq>;

/// Nobody listens: the device counts requests itself.
#[derive(Clone, Copy, Debug)]
struct Bell;

impl Doorbell for Bell {
    fn store(&self, _: usize, _: u64) {}
}

impl Page for Bell {}

/// Memory that all executions of a model use, one after the other.
#[derive(Clone, Copy)]
struct Memory(NonNull<u8>, usize);

// SAFETY: each execution uses it under its locks, and executions follow each other.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new() -> Self {
        #[repr(align(4096))]
        struct Pages([u8; 1 << 17]);
        let pages = Box::leak(Box::new(Pages([0; 1 << 17])));
        Self(NonNull::from(&mut pages.0).cast(), 1 << 17)
    }

    fn ring(&self) -> RingMemory<'static> {
        // SAFETY: never freed; the queue of the execution before has ended.
        unsafe { RingMemory::from_raw(self.0, self.1) }
    }
}

struct Rig {
    table: &'static Table,
    cq: Arc<Shared<Cq>>,
    ring: Memory,
    /// Requests posted, as the device would learn from doorbells.
    posted: Arc<AtomicU32>,
    /// Requests that the device has completed, and CQEs that it has written.
    completed: AtomicU32,
    entries: AtomicU32,
}

impl Rig {
    fn new(memory: [Memory; 2]) -> Self {
        let reply = ContextReply {
            comp_mask: context_bits::HAVE_CCTX | context_bits::HAVE_MODE | context_bits::MSN_TABLE_ENABLED,
            chip_id0: 0x1760,
            mode: 1,
            pg_size: 4096,
            cqe_sz: 32,
            max_cqd: 65535,
        };
        let caps =
            DeviceCaps::from_context(&reply, Limits { max_qp_wr: 64, max_sge: 6, ..Limits::default() });
        let asked = QpCapabilities { max_send_wr: 4, max_send_sge: 1, ..QpCapabilities::default() };
        let plan = SendPlan::new(&caps, &asked).unwrap();
        let cq_plan = CqPlan::new(&caps, 8).unwrap();
        let [sq_memory, cq_memory] = memory;

        let id = QpId::truncated(9);
        let cq = CqId::truncated(3);
        let init = SendInit { plan, qp: id, qp_type: QpType::Rc, signal_all: true, atomics: false };
        let records = Vec::leak(vec![SendRecord::default(); plan.records.next_power_of_two() as usize]);
        let send = SendQueue::<Store>::new(sq_memory.ring(), records, &init).unwrap();
        let init = QueuePairInit {
            id,
            handle: HANDLE,
            qp_type: QpType::Rc,
            send_cq: cq,
            recv_cq: cq,
            srq: None,
            capabilities: asked,
        };
        let mut qp = QueuePair::new(&init, send, None).unwrap();
        let mut state = qp.save();
        state.state = QpState::Rts;
        qp.restore(&state).unwrap();

        let slots: &'static [Shared<Option<Qp>>] = Vec::leak(vec![Shared::new(None)]);
        let table: &'static Table = Box::leak(Box::new(SharedTable::new(slots, &[])));
        assert!(table.insert(AttachedQp { qp, page: Bell }).is_ok());
        let cq = CompletionQueue::new(cq_memory.ring(), &cq_plan, cq).unwrap();
        let cq = Arc::new(Shared::new(AttachedCq::new(cq, Bell)));
        let zero = || AtomicU32::new(0);
        Self { table, cq, ring: cq_memory, posted: Arc::new(zero()), completed: zero(), entries: zero() }
    }

    fn poster(&self, wr_ids: &'static [u64]) -> thread::JoinHandle<()> {
        let (table, posted) = (self.table, Arc::clone(&self.posted));
        thread::spawn(move || {
            let sges = [Sge::new(0x1000, 64, LKey::truncated(0x11))];
            for &wr_id in wr_ids {
                let request = SendRequest::write(0x2000, RKey::truncated(0x22)).sges(&sges).wr_id(wr_id);
                let outcome = table.with_qp(HANDLE, |qp| {
                    let outcome = qp.qp.post_send(&Bell, &[request]);
                    posted.fetch_add(1, Relaxed);
                    outcome
                });
                assert_eq!(outcome, Some(Ok(())));
            }
        })
    }

    /// The device completes what is posted since it did so last, with one CQE.
    fn complete(&self) {
        let posted = self.posted.load(Relaxed);
        if self.completed.swap(posted, Relaxed) == posted {
            return;
        }
        let mut cqe = CqReq::ZERO;
        cqe.qp_handle = u64::from(HANDLE).into();
        cqe.sq_cons_idx = (posted as u16).into();
        // The first pass has phase 1.
        cqe.cqe_type_toggle = 1;
        let entry = self.entries.fetch_add(1, Relaxed);
        assert!(self.ring.ring().store_bytes((entry * CQE_BYTES) as usize, cqe.as_bytes()));
    }

    /// Polls, after the device has acted if it works.
    fn poll(&self, works: bool) -> Vec<(u64, WcStatus)> {
        self.cq.with(|cq| {
            if works {
                self.complete();
            }
            let mut out = [WorkCompletion::default(); 8];
            let mut table = self.table;
            let count = verbs::CompletionQueue::poll(cq, &mut table, &mut out).unwrap();
            out[..count].iter().map(|wc| (wc.wr_id, wc.status)).collect()
        })
    }
}

/// Each request once, and those of each poster in order.
fn check(done: &[(u64, WcStatus)], status: WcStatus) {
    assert!(done.iter().all(|d| d.1 == status), "{done:?}");
    for posted in [FIRST, SECOND] {
        let of_one: Vec<u64> = done.iter().map(|d| d.0).filter(|id| posted.contains(id)).collect();
        assert_eq!(of_one, posted, "{done:?}");
    }
    assert_eq!(done.len(), FIRST.len() + SECOND.len());
}

#[test]
fn posters_and_a_poller_complete_every_request_once_and_each_posters_in_order() {
    let memory = [Memory::new(), Memory::new()];
    loom::model(move || {
        let rig = Rig::new(memory);
        let posters = [rig.poster(FIRST), rig.poster(SECOND)];
        let mut done = rig.poll(true);
        for poster in posters {
            poster.join().unwrap();
        }
        done.extend(rig.poll(true));
        check(&done, WcStatus::Success);
    });
}

#[test]
fn posters_on_a_failed_queue_pair_leave_nothing_unflushed() {
    let memory = [Memory::new(), Memory::new()];
    loom::model(move || {
        let rig = Rig::new(memory);
        rig.table.with_qp(HANDLE, |qp| qp.qp.set_error());
        let posters = [rig.poster(FIRST), rig.poster(SECOND)];
        let mut done = rig.poll(false);
        for poster in posters {
            poster.join().unwrap();
        }
        done.extend(rig.poll(false));
        check(&done, WcStatus::WrFlush);
    });
}
