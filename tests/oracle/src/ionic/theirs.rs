//! libionic's side: its queues over the made-up device.

use std::ptr::NonNull;

use directverbs::ionic::plan::Placement;
use directverbs::verbs::{
    AddressVector, AhId, Gid, Mac, MemoryError, Mtu, PlanError, Psn, QpAttributes, QpCapabilities, QpInit,
    QpState, QpType,
};

use super::device::Cqe;
use super::memory::{DOORBELL, words};
use super::ours::{RECV_CMB, SEND_CMB};
use crate::case::observed::Fields;
use crate::case::{Access, Completion, Interface, Outcome, Recv, Send, with_all};
use crate::ibv::{
    self, ALL_SEND_OPS, Ah, Channel, Context, Cq, CqInit, Library, Pd, Pieces, Qp, RecvList, SendList, Srq,
    sys,
};
use crate::uverbs::ionic::{Config, CqReq, Qdesc, QpReq, QpResp};
use crate::uverbs::{self, Device, Ids, Page};

/// What can go wrong with the test itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The C library fails where it must not.
    #[error(transparent)]
    Ibv(#[from] ibv::Error),
    /// A request that the C library cannot express.
    #[error(transparent)]
    Unsupported(#[from] ibv::Unsupported),
    /// The core does not plan what the provider has created.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The core does not take the memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Fields of extended completions that tell the time.
const TIMES: u64 = sys::wc_ex::COMPLETION_TIMESTAMP | sys::wc_ex::COMPLETION_TIMESTAMP_WALLCLOCK;

/// What the provider's queues are created from.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The device.
    pub config: Config,
    /// First numbers.
    pub ids: Ids,
    /// Stores to controller memory are trapped.
    pub trap_cmb: bool,
    /// Pipelines that the protection domain allows.
    pub udma_mask: u8,
    /// Where the queues shall be.
    pub place: Placement,
    /// Queues take no locks.
    pub lock_free: bool,
    /// Completion queues are extended ones, with timestamps.
    pub extended: bool,
    /// Kind of queue pairs.
    pub qp_type: QpType,
    /// Their capabilities.
    pub capabilities: QpCapabilities,
    /// Every send request produces a completion.
    pub signal_all: bool,
    /// Queue pairs.
    pub qps: usize,
    /// Entries of a completion queue.
    pub cqe: u32,
    /// Receives complete to a completion queue of their own.
    pub two_cqs: bool,
}

/// A ring of the provider.
#[derive(Clone, Copy, Debug)]
struct Ring {
    base: NonNull<u8>,
    len: usize,
}

impl Ring {
    fn new(described: &Qdesc) -> Option<Self> {
        let base = NonNull::new(described.addr as *mut u8)?;
        Some(Self { base, len: described.size as usize })
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        // SAFETY: the provider has told that the ring is there, and it is not running.
        unsafe { self.base.as_ptr().copy_to_nonoverlapping(bytes.as_mut_ptr(), self.len) };
        bytes
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        // SAFETY: as in `read`.
        unsafe { self.base.add(offset).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// The provider's queues.
pub(super) struct Theirs {
    rings: Vec<[Option<Ring>; 2]>,
    cq_rings: Vec<[Option<Ring>; 2]>,
    pub qps: Vec<Qp>,
    pub ahs: Vec<Ah>,
    qp_type: QpType,
    cqs: Vec<Cq>,
    device: Device,
}

impl Theirs {
    /// Creates the queues; the queue pairs are in state RTS.
    pub fn new(library: &Library, wanted: &Wanted) -> Result<Self, ibv::Error> {
        let mut config = uverbs::Config::from(wanted.config.clone());
        config.ids = wanted.ids;
        config.traps.cmb = wanted.trap_cmb;
        let context = Context::open(library, config)?;
        let root = Pd::new(&context)?;
        let full = (1 << wanted.config.udma_count) - 1;
        if wanted.udma_mask != full {
            root.set_udma_mask(wanted.udma_mask)?;
        }
        let (sq, rq) = (wanted.place.sq, wanted.place.rq);
        root.set_send_cmb(sq.enable, sq.express, sq.require)?;
        root.set_recv_cmb(rq.enable, rq.express, rq.require)?;
        let pd = if wanted.lock_free { root.lock_free()? } else { root };
        let cq_init = CqInit {
            cqe: wanted.cqe,
            channel: Some(Channel::new(&context)?),
            extended: wanted.extended.then_some(sys::wc_ex::STANDARD | TIMES),
            pd: (wanted.udma_mask != full || wanted.lock_free).then(|| pd.clone()),
        };
        let mut cqs = vec![Cq::new(&context, &cq_init)?];
        if wanted.two_cqs {
            cqs.push(Cq::new(&context, &cq_init)?);
        }
        let init = QpInit::<_, Srq> {
            qp_type: wanted.qp_type,
            capabilities: wanted.capabilities,
            send_cq: &cqs[0],
            recv_cq: &cqs[cqs.len() - 1],
            srq: None,
            signal_all: wanted.signal_all,
        };
        let mut qps = Vec::new();
        for _ in 0..wanted.qps {
            let qp = if wanted.qp_type == QpType::Ud {
                Qp::new(&pd, &init)?
            } else {
                Qp::new_extended(&pd, &init, ALL_SEND_OPS)?
            };
            qp.to_rts(wanted.qp_type, Mtu::B1024, Psn::truncated(1))?;
            qps.push(qp);
        }
        let mut ahs = Vec::new();
        if wanted.qp_type == QpType::Ud {
            for last in 0..3 {
                ahs.push(Ah::new(&pd, &AddressVector::new(Gid([last; 16]), Mac([2; 6])))?);
            }
        }
        let device = context.device().clone();
        let mut theirs =
            Self { rings: Vec::new(), cq_rings: Vec::new(), qps, ahs, qp_type: wanted.qp_type, cqs, device };
        for cq in 0..theirs.cqs.len() {
            let request = theirs.cq_request(cq);
            let there = |udma: usize| request.udma_mask >> udma & 1 != 0;
            theirs.cq_rings.push([0, 1].map(
                |udma| {
                    if there(udma) { Ring::new(&request.cq[udma]) } else { None }
                },
            ));
        }
        for qp in 0..theirs.qps.len() {
            let request = theirs.qp_request(qp);
            theirs.rings.push([Ring::new(&request.sq), Ring::new(&request.rq)]);
        }
        Ok(theirs)
    }

    /// What the provider asked of the kernel for a completion queue.
    pub fn cq_request(&self, cq: usize) -> CqReq {
        self.device.cq(self.cqs[cq].handle()).udata.get()
    }

    /// Numbers of the completion rings, by completion queue and pipeline.
    pub fn cq_ids(&self) -> Vec<[u32; 2]> {
        self.cqs.iter().map(|cq| self.device.cq(cq.handle()).ids).collect()
    }

    /// What the provider asked of the kernel for a queue pair.
    pub fn qp_request(&self, qp: usize) -> QpReq {
        self.device.qp(self.qps[qp].handle()).udata.get()
    }

    /// What the kernel answered.
    pub fn qp_reply(&self, qp: usize) -> QpResp {
        self.device.qp(self.qps[qp].handle()).reply.get()
    }

    /// Numbers of the address handles.
    pub fn handles(&self) -> Vec<AhId> {
        self.ahs.iter().map(Ah::id).collect()
    }

    /// Posts with `ibv_post_send`, or one memory window of type 1 with `ibv_bind_mw`.
    pub fn post_send(&self, qp: usize, requests: &[Send]) -> Result<Outcome, Error> {
        with_all(requests, |list| {
            if let [one] = list
                && let Some(result) = self.qps[qp].bind_mw(one)
            {
                return Ok(result.map_or(Outcome::Refused(0), |()| Outcome::Done));
            }
            let mut list = SendList::new(list, &self.ahs)?;
            let posted = self.qps[qp].post_send(&mut list);
            Ok(posted.map_or_else(|error| Outcome::Refused(error.index), |()| Outcome::Done))
        })
    }

    /// Posts with the builder functions, or gives up; `true` if they did not fail.
    pub fn build(
        &self,
        qp: usize,
        requests: &[Send],
        interface: Interface,
        pieces: Pieces,
    ) -> Result<bool, Error> {
        with_all(requests, |list| {
            let result = match interface {
                Interface::Abort => self.qps[qp].abort_wr(list, &self.ahs, pieces),
                _ => self.qps[qp].post_wr(list, &self.ahs, pieces),
            };
            match result {
                Ok(()) => Ok(true),
                Err(ibv::Error::Verb { .. }) => Ok(false),
                Err(other) => Err(other.into()),
            }
        })
    }

    /// Posts receive requests.
    pub fn post_recv(&self, qp: usize, requests: &[Recv]) -> Outcome {
        let list: Vec<_> = requests.iter().map(Recv::request).collect();
        let posted = self.qps[qp].post_recv(&mut RecvList::new(&list));
        posted.map_or_else(|error| Outcome::Refused(error.index), |()| Outcome::Done)
    }

    /// Polls a completion queue with `ibv_poll_cq`.
    pub fn poll(&self, cq: usize, room: usize) -> (Outcome, Vec<Completion>) {
        match self.cqs[cq].poll(room) {
            Ok(found) => (Outcome::Done, found.iter().map(|wc| self.completion(wc)).collect()),
            Err(_) => (Outcome::Failed, Vec::new()),
        }
    }

    /// Polls a completion queue with `ibv_start_poll` and so on.
    pub fn poll_each(&self, cq: usize, room: usize) -> (Outcome, Vec<Completion>) {
        match self.cqs[cq].poll_extended(room) {
            Ok(found) => {
                let one = |wc: &ibv::Extended| Completion {
                    timestamp: wc.timestamp,
                    wallclock: wc.wallclock,
                    ..self.completion(&wc.completion)
                };
                (Outcome::Done, found.iter().map(one).collect())
            }
            Err(_) => (Outcome::Failed, Vec::new()),
        }
    }

    fn completion(&self, wc: &ibv::Completion) -> Completion {
        let fields = Fields {
            wr_id: wc.wr_id,
            status: wc.status,
            opcode: wc.opcode,
            vendor_err: wc.vendor_err,
            byte_len: wc.byte_len,
            // Host order here, wire order there.
            imm_or_rkey: if wc.flags & 2 != 0 { wc.imm_or_rkey.to_be() } else { wc.imm_or_rkey },
            qp: wc.qp,
            src_qp: wc.src_qp,
            flags: wc.flags,
            sl: wc.sl.into(),
        };
        Completion::theirs(&fields, self.qp_type == QpType::Ud)
    }

    /// Asks for an event of each completion queue.
    pub fn arm(&self, solicited: bool) -> Result<(), Error> {
        for cq in &self.cqs {
            cq.req_notify(solicited)?;
        }
        Ok(())
    }

    /// The queue pair goes to ERR.
    pub fn fail(&self, qp: usize) -> Result<(), Error> {
        Ok(self.qps[qp].modify(&QpAttributes::to(QpState::Err))?)
    }

    /// The queue pair goes to RESET and back to RTS.
    pub fn reset(&self, qp: usize, psn: u32) -> Result<(), Error> {
        self.qps[qp].modify(&QpAttributes::to(QpState::Reset))?;
        Ok(self.qps[qp].to_rts(self.qp_type, Mtu::B1024, Psn::truncated(psn))?)
    }

    /// Takes the stores to the device so far.
    pub fn accesses(&self) -> Vec<Access> {
        let place = |id: u32| self.qps.iter().position(|qp| qp.id().get() == id);
        let mut accesses = Vec::new();
        for store in self.device.take_stores() {
            let name = match store.page {
                Page::SendCmb(id) => place(id).map(|qp| SEND_CMB[qp]),
                Page::RecvCmb(id) => place(id).map(|qp| RECV_CMB[qp]),
                _ => Some(DOORBELL),
            };
            accesses.extend(words(name.unwrap_or("another queue"), store.offset, store.bytes()));
        }
        accesses
    }

    fn ring(&self, qp: usize, which: usize) -> Vec<u8> {
        self.rings[qp][which].map_or_else(Vec::new, |ring| ring.read())
    }

    /// Bytes of a send ring.
    pub fn send_ring(&self, qp: usize) -> Vec<u8> {
        self.ring(qp, 0)
    }

    /// Bytes of a receive ring.
    pub fn recv_ring(&self, qp: usize) -> Vec<u8> {
        self.ring(qp, 1)
    }

    /// Bytes of a completion ring.
    pub fn completion_ring(&self, cq: usize, udma: usize) -> Vec<u8> {
        self.cq_rings[cq][udma].map_or_else(Vec::new, |ring| ring.read())
    }

    /// Bytes of a send ring in controller memory.
    pub fn send_cmb(&self, qp: usize, len: usize) -> Vec<u8> {
        self.device.read(Page::SendCmb(self.qps[qp].id().get()), 0, len)
    }

    /// Bytes of a receive ring in controller memory.
    pub fn recv_cmb(&self, qp: usize, len: usize) -> Vec<u8> {
        self.device.read(Page::RecvCmb(self.qps[qp].id().get()), 0, len)
    }

    /// Writes a CQE, as the device.
    pub fn write_cqe(&self, cq: usize, udma: u8, offset: usize, cqe: &Cqe) {
        if let Some(ring) = &self.cq_rings[cq][usize::from(udma)] {
            ring.write(offset, cqe);
        }
    }

    /// Corrects bytes of a send ring.
    pub fn mend_send(&self, qp: usize, offset: usize, bytes: &[u8]) {
        if let Some(ring) = &self.rings[qp][0] {
            ring.write(offset, bytes);
        }
    }

    /// Corrects bytes of a receive ring.
    pub fn mend_recv(&self, qp: usize, offset: usize, bytes: &[u8]) {
        if let Some(ring) = &self.rings[qp][1] {
            ring.write(offset, bytes);
        }
    }

    /// Corrects bytes of a send ring in controller memory.
    pub fn mend_send_cmb(&self, qp: usize, offset: usize, bytes: &[u8]) {
        self.device.write_page(Page::SendCmb(self.qps[qp].id().get()), offset, bytes);
    }
}
