//! A stream: the first side keeps requests outstanding towards the second, until a count or a time is reached.
//!
//! | operation | where the second side has the bytes | who verifies at the end |
//! |---|---|---|
//! | SEND | its receive buffers, each used again and again | the second side |
//! | WRITE | its exposed memory | the second side |
//! | READ | its exposed memory, read again and again | the first side |
//!
//! Message `n` uses slot `n` modulo the number of slots, and all that a slot may hold at the end follows from the seed. The
//! first side closes with an empty SEND whose immediate data is the number of messages: a queue pair delivers in order, so
//! all bytes are placed by then. The second side verifies, and answers with the same.

mod job;
mod step;

use directverbs::verbs::{
    AccessFlags, Device, MemoryRegion, QpAttributes, QpInit, QpType, QueuePair, RKey, RecvRequest, Sge,
};
use heapless::Vec;

use crate::buffers::Buffers;
use crate::connect::{first_psn, path, transitions};
use crate::patience::Patience;
use crate::side::{BATCH, QKEY, device};
use crate::{Contact, Error, Outstanding, Party, Role, Step, WrId, WrKind};

pub use job::{MAX_DEPTH, StreamJob};

/// How far a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages that are known to be through.
    pub messages: u64,
    /// Nanoseconds since the first post, by the device's clock.
    pub ns: u64,
}

/// What a side of a stream has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// Messages.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Nanoseconds from the first post to the completion behind the last message, by the device's clock; 0 at the second side.
    pub elapsed_ns: u64,
    /// Bytes that were compared at the end with what they had to be.
    pub verified_bytes: u64,
    /// Doorbells that were rung for messages.
    pub doorbells: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first side: messages are under way.
    Streaming,
    /// The first side: the closing SEND is under way, or its answer.
    Closing,
    /// The second side: takes messages.
    Serving,
    /// The second side: the answer is under way.
    Answering,
    /// All is verified.
    Done,
}

/// One end of a stream: made by [`Stream::setup`], and then a [`Party`].
pub struct Stream<D: Device> {
    job: StreamJob,
    role: Role,
    stage: Stage,
    peer: Option<Contact>,
    contact: Contact,
    pd: D::ProtectionDomain,
    /// For send and for receive requests.
    cqs: Vec<D::CompletionQueue, 2>,
    qps: Vec<D::QueuePair, 1>,
    buffers: Buffers<D::MemoryRegion>,
    /// Messages that were posted, and that are known to be through.
    posted: u64,
    completed: u64,
    /// The closing SEND, or the answer to it, has completed.
    closed: bool,
    /// The closing SEND, or the answer to it, has arrived.
    arrived: bool,
    /// Receive requests that are posted at once, were posted, and were consumed.
    receives: u32,
    receives_posted: u64,
    received: u64,
    began_ns: u64,
    patience: Patience,
    report: StreamReport,
}

impl<D: Device> Stream<D> {
    /// Creates all objects.
    ///
    /// # Errors
    /// The job, if the device cannot do it: nothing was created then. Or the control operation that failed.
    pub fn setup(dev: &mut D, job: &StreamJob, role: Role) -> Result<Self, Error<D::Error>> {
        let job = *job;
        let (attributes, port) = (dev.attributes(), dev.port());
        job.check_for(&attributes, &port)?;
        let capabilities = job.capabilities(role, &attributes);
        let pd = dev.alloc_pd().map_err(device("allocating a protection domain"))?;
        let access = match role {
            Role::First => AccessFlags::LOCAL_WRITE,
            Role::Second => AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE,
        };
        let buffers = Buffers::alloc(dev, &pd, job.slots(), job.size, 1, access)
            .map_err(device("registering memory"))?;
        let mut cqs = Vec::new();
        for depth in [capabilities.max_send_wr, capabilities.max_recv_wr] {
            let cq = dev.create_cq(depth).map_err(device("creating a completion queue"))?;
            let _ = cqs.push(cq);
        }
        let mut qps = Vec::new();
        if let [send_cq, recv_cq] = cqs.as_slice() {
            let qp_type = QpType::Rc;
            let init = QpInit { qp_type, capabilities, send_cq, recv_cq, srq: None, signal_all: false };
            let qp = dev.create_qp(&pd, &init).map_err(device("creating a queue pair"))?;
            let _ = qps.push(qp);
        }
        let contact = Contact {
            qp: qps.first().map(D::QueuePair::id).unwrap_or_default(),
            psn: first_psn(job.seed, role),
            qkey: QKEY,
            gid: port.gid,
            mac: port.mac,
            mtu: job.mtu.unwrap_or(port.mtu),
            rd_atomic: attributes.max_rd_atomic,
            addr: buffers.first().map_or(0, MemoryRegion::addr),
            stride: buffers.stride() as u64,
            rkey: buffers.first().map_or(RKey::default(), MemoryRegion::rkey),
            windows: [RKey::default(); BATCH],
        };
        Ok(Self {
            job,
            role,
            stage: if role == Role::First { Stage::Streaming } else { Stage::Serving },
            peer: None,
            contact,
            pd,
            cqs,
            qps,
            buffers,
            posted: 0,
            completed: 0,
            closed: false,
            arrived: false,
            receives: capabilities.max_recv_wr,
            receives_posted: 0,
            received: 0,
            began_ns: 0,
            patience: Patience::default(),
            report: StreamReport::default(),
        })
    }

    /// Whether the messages come from this side's memory; otherwise they go there, and this side verifies.
    fn is_source(&self) -> bool {
        (self.role == Role::First) != self.job.op.fetches()
    }

    fn modify(
        &mut self,
        dev: &mut D,
        attributes: &QpAttributes,
        doing: &'static str,
    ) -> Result<(), Error<D::Error>> {
        let mut cqs: Vec<&mut D::CompletionQueue, 2> = self.cqs.iter_mut().collect();
        match self.qps.first_mut() {
            Some(qp) => dev.modify_qp(qp, &mut cqs, attributes).map_err(device(doing)),
            None => Ok(()),
        }
    }

    /// Posts receive requests until as many are outstanding as there may be, a batch under each doorbell.
    fn post_receives(&mut self) -> Result<(), Error<D::Error>> {
        loop {
            let free = u64::from(self.receives) - (self.receives_posted - self.received);
            let count = free.min(BATCH as u64) as u32;
            // Posting less than a batch at a time would ring for almost every message.
            if count < self.job.batch.min(self.receives) {
                return Ok(());
            }
            let numbers = self.receives_posted..self.receives_posted + u64::from(count);
            let sges: Vec<Option<Sge>, BATCH> = numbers.clone().map(|n| self.receive_sge(n)).collect();
            let requests: Vec<RecvRequest<'_>, BATCH> = numbers
                .zip(&sges)
                .map(|(n, sge)| RecvRequest::new(WrId::new(WrKind::Receive, n, 0).0, sge.as_slice()))
                .collect();
            if let (Some(qp), Some(cq)) = (self.qps.first_mut(), self.cqs.last_mut()) {
                qp.post_recv(cq, &requests).map_err(|error| Error::Post {
                    qp: self.contact.qp,
                    wr: WrId(requests.get(error.index).map_or(0, |r| r.wr_id)),
                    error,
                })?;
            }
            self.receives_posted += u64::from(count);
        }
    }

    /// Where receive request `n` puts its message. What closes a stream is empty.
    fn receive_sge(&self, n: u64) -> Option<Sge> {
        let filled = self.role == Role::Second && self.job.op.fills_receive();
        let slot = self.job.slot(n);
        if filled { self.buffers.sges(slot).next() } else { None }
    }

    /// What the side waits for.
    pub fn outstanding(&self) -> Outstanding {
        let closing = matches!(self.stage, Stage::Closing | Stage::Answering) && !self.closed;
        let sends = (self.posted - self.completed) as usize + usize::from(closing);
        let receives = (self.receives_posted - self.received) as u32;
        let next = if self.posted > self.completed { WrKind::Operation } else { WrKind::HandOver };
        Outstanding {
            sends,
            first_send: (sends > 0).then(|| WrId::new(next, self.completed, 0)),
            receives,
            first_receive: (receives > 0).then(|| WrId::new(WrKind::Receive, self.received, 0)),
        }
    }
}

impl<D: Device> Party<D> for Stream<D> {
    type Event = Progress;
    type Report = StreamReport;

    fn contact(&self) -> Contact {
        self.contact
    }

    /// Connects, fills the source of the messages and posts receives.
    fn connect(&mut self, dev: &mut D, peer: &Contact) -> Result<(), Error<D::Error>> {
        self.peer = Some(*peer);
        let path = path(dev, peer);
        let [init, rtr, rts] = transitions(&self.contact, peer, path, self.job.timeout);
        self.modify(dev, &init, "moving the queue pair to INIT")?;
        self.post_receives()?;
        if self.is_source() {
            for slot in 0..self.job.slots() {
                let wr = WrId::new(WrKind::Operation, slot.into(), 0);
                let qp = self.contact.qp;
                let filled = self.buffers.fill(slot, self.job.pattern(slot));
                filled.map_err(|error| Error::Data { qp, wr, error })?;
            }
        }
        self.modify(dev, &rtr, "moving the queue pair to RTR")?;
        self.modify(dev, &rts, "moving the queue pair to RTS")?;
        self.patience.renew(dev.now_ns());
        Ok(())
    }

    fn is_ready(&self) -> bool {
        true
    }

    /// Takes what has completed and posts what may be posted. `observe` is called at the first side when messages are
    /// through.
    fn step(&mut self, dev: &mut D, observe: &mut impl FnMut(Progress)) -> Result<Step, Error<D::Error>> {
        self.advance_all(dev, observe)
    }

    fn stalled(&self) -> Error<D::Error> {
        Error::Stalled { qp: self.contact.qp, outstanding: self.outstanding() }
    }

    fn report(&self) -> StreamReport {
        self.report
    }

    fn teardown(self, dev: &mut D) -> Result<(), Error<D::Error>> {
        let mut cqs = self.cqs;
        for qp in self.qps {
            let mut refs: Vec<&mut D::CompletionQueue, 2> = cqs.iter_mut().collect();
            dev.destroy_qp(qp, &mut refs).map_err(device("destroying the queue pair"))?;
        }
        for cq in cqs {
            dev.destroy_cq(cq).map_err(device("destroying a completion queue"))?;
        }
        self.buffers.free(dev).map_err(device("deregistering memory"))?;
        dev.dealloc_pd(self.pd).map_err(device("deallocating the protection domain"))
    }
}
