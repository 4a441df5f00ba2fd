//! The C providers, used as a C program uses them: requests linked to lists, and calls through the context's table of
//! functions, which is what `ibv_post_send`, `ibv_post_recv` and `ibv_poll_cq` are in the header. Locks are the
//! providers' default.

use std::hint::black_box;
use std::ptr::{NonNull, null_mut};

use directverbs::verbs::{Mtu, Psn, QpInit, QpType, RecvRequest};
use oracle::ibv::sys::{ibv_recv_wr, ibv_send_wr, ibv_wc};
use oracle::ibv::{Context, Cq, CqInit, Library, Pd, Qp, RecvList, SendList};
use oracle::uverbs::{Device, bnxt_re, ionic};

use crate::cqe::Producer;
use crate::device::{self, Rings};
use crate::meter::Meter;
use crate::requests::{recv_requests, send_requests};
use crate::side::{ASKED, CQES, LANES, Side};
use crate::work::{Family, MANY, Sends};

#[derive(Debug)]
struct Lane {
    qp: Qp,
    cq: Cq,
    device: Producer,
    /// What CQEs name the queue pair by.
    key: u64,
    /// Send requests so far.
    sent: u32,
    /// Receive requests completed so far.
    received: u32,
}

/// The lanes.
#[derive(Debug)]
pub struct Theirs {
    family: Family,
    lanes: Vec<Lane>,
    /// First requests of lists, by the index in [`Sends::ALL`].
    sends: [*mut ibv_send_wr; Sends::ALL.len()],
    /// First requests of lists of 1 and of [`MANY`].
    recvs: [*mut ibv_recv_wr; 2],
    rings: Rings,
    done: [ibv_wc; MANY],
}

/// A context of a family, and a protection domain.
///
/// # Panics
/// libibverbs or a provider is missing, or does not see the device.
pub fn open(family: Family) -> Pd {
    let library = Library::load().unwrap_or_else(|error| panic!("{error}"));
    let context = Context::open(&library, device::config(family)).expect("a context");
    Pd::new(&context).expect("a protection domain")
}

/// A completion queue.
pub fn completion_queue(pd: &Pd, cqes: u32) -> Cq {
    Cq::new(pd.context(), &CqInit::entries(cqes)).expect("a completion queue")
}

/// A queue pair of a connection, in state RESET.
pub fn queue_pair(pd: &Pd, cq: &Cq, capabilities: directverbs::verbs::QpCapabilities) -> Qp {
    let init =
        QpInit { qp_type: QpType::Rc, capabilities, send_cq: cq, recv_cq: cq, srq: None, signal_all: false };
    Qp::new(pd, &init).expect("a queue pair")
}

impl Theirs {
    /// Makes the queues.
    pub fn new(family: Family) -> Self {
        let (pd, rings) = (open(family), Rings::new(family, &ASKED, CQES));
        let lane = |_| {
            let cq = completion_queue(&pd, CQES);
            let qp = queue_pair(&pd, &cq, ASKED);
            qp.to_rts(QpType::Rc, Mtu::B1024, Psn::default()).expect("a queue pair in state RTS");
            let (device, key) = seen_by_device(family, &rings, pd.context().device(), &cq, &qp);
            Lane { qp, cq, device, key, sent: 0, received: 0 }
        };
        let lanes = (0..LANES).map(lane).collect();
        let requests = recv_requests();
        let sends = send_requests().map(|requests| {
            let list = SendList::new(requests, &[]).expect("requests that the library has");
            Box::leak(Box::new(list)).first()
        });
        let recvs = [1, MANY].map(|count| {
            let requests: &[RecvRequest<'_>] = &requests[..count];
            Box::leak(Box::new(RecvList::new(requests))).first()
        });
        Self { family, lanes, sends, recvs, rings, done: [ibv_wc::default(); MANY] }
    }
}

/// Where the device writes CQEs, and what it names a queue pair by.
fn seen_by_device(family: Family, rings: &Rings, device: &Device, cq: &Cq, qp: &Qp) -> (Producer, u64) {
    let (cq, qp) = (device.cq(cq.handle()), device.qp(qp.handle()));
    let entries = rings.cqes as usize;
    let (ring, key) = match family {
        Family::BnxtRe => {
            let request: bnxt_re::CqReq = cq.udata.get();
            let key = qp.udata.get::<bnxt_re::QpReq>().qp_handle;
            (request.cq_va, key)
        }
        Family::Ionic => {
            let request: ionic::CqReq = cq.udata.get();
            (request.cq[0].addr, qp.id.into())
        }
    };
    let ring = NonNull::new(ring as *mut u8).expect("a ring");
    // SAFETY: the provider has mapped so many entries, and unmaps them when the queue is destroyed, after the last use.
    (unsafe { Producer::new(ring, entries) }, key)
}

impl Side for Theirs {
    #[inline(always)]
    fn post_send<M: Meter>(&mut self, lane: usize, index: usize, meter: &M) {
        let (qp, list) = (black_box(self.lanes[lane].qp.raw()), black_box(self.sends[index]));
        let mut bad = null_mut();
        let bad = black_box(&mut bad);
        // SAFETY: queue pair and list are there; every provider has the function.
        let code = meter.call(|| unsafe {
            let post = (*(*qp).context).ops.post_send.unwrap_unchecked();
            post(qp, list, bad)
        });
        assert_eq!(code, 0, "ibv_post_send");
    }

    #[inline(always)]
    fn post_recv<M: Meter>(&mut self, lane: usize, count: usize, meter: &M) {
        let (qp, list) =
            (black_box(self.lanes[lane].qp.raw()), black_box(self.recvs[usize::from(count > 1)]));
        let mut bad = null_mut();
        let bad = black_box(&mut bad);
        // SAFETY: queue pair and list are there; every provider has the function.
        let code = meter.call(|| unsafe {
            let post = (*(*qp).context).ops.post_recv.unwrap_unchecked();
            post(qp, list, bad)
        });
        assert_eq!(code, 0, "ibv_post_recv");
    }

    fn complete_sends(&mut self, lane: usize, index: usize) {
        let lane = &mut self.lanes[lane];
        lane.device.sends(self.family, lane.key, &mut lane.sent, self.rings.send_wqes, Sends::ALL[index]);
    }

    fn complete_recvs(&mut self, lane: usize, count: usize) {
        let lane = &mut self.lanes[lane];
        lane.device.recvs(self.family, lane.key, &mut lane.received, self.rings.recv_wqes, count);
    }

    #[inline(always)]
    fn poll<M: Meter>(&mut self, lane: usize, meter: &M) -> usize {
        let (cq, out) = (black_box(self.lanes[lane].cq.raw()), black_box(self.done.as_mut_ptr()));
        // SAFETY: the queue is there, and so many completions; every provider has the function.
        let code = meter.call(|| unsafe {
            let poll = (*(*cq).context).ops.poll_cq.unwrap_unchecked();
            poll(cq, MANY as i32, out)
        });
        usize::try_from(code).expect("ibv_poll_cq")
    }

    fn check(&self, completions: usize) {
        for (i, wc) in self.done.iter().take(completions).enumerate() {
            assert_eq!(wc.status, 0, "status of completion {i} of {completions}");
            if completions > 1 {
                assert_eq!(wc.wr_id, i as u64, "completion {i} of {completions}");
            }
        }
    }
}
