use directverbs::verbs::{
    AccessFlags, AhId, Device, MemoryRegion, MwType, QKey, QpAttributes, QpInit, QpState, QpType, QueuePair,
    RKey, RecvRequest, Sge, SharedReceiveQueue, SrqInit, WcOpcode,
};
use heapless::{Deque, Vec};

use crate::buffers::Buffers;
use crate::connect::{first_psn, path, transitions};
use crate::patience::Patience;
use crate::turn::Stage;
use crate::{Contact, Error, Job, MAX_BATCH, MAX_INLINE, MAX_SGES, Op, Outstanding, Report, WrId, WrKind};

pub(crate) const BATCH: usize = MAX_BATCH as usize;
pub(crate) const SGES: usize = BATCH * MAX_SGES as usize;
/// Requests of a turn: binds, operations, hand-over.
pub(crate) const REQUESTS: usize = 2 * BATCH + 1;

/// Queue key that both sides use.
pub(crate) const QKEY: QKey = QKey::truncated(0x1122_3344);

/// Which side begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes the first turn.
    First,
    /// Answers.
    Second,
}

impl Role {
    /// The other side's.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// A send request whose completion is awaited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    pub(crate) wr: WrId,
    pub(crate) opcode: WcOpcode,
    /// Bytes that came back.
    pub(crate) fetched: Option<u32>,
}

/// One end of a job: its objects, and where in the job it is.
///
/// Made by [`Side::setup`], then [`Side::connect`], then [`Side::step`] until that says it is done, then
/// [`Side::teardown`]. The device is lent to each call. A side that failed is torn down too, or dropped with its device.
pub struct Side<D: Device> {
    pub(crate) job: Job,
    pub(crate) role: Role,
    pub(crate) stage: Stage,
    pub(crate) peer: Option<Contact>,
    contact: Contact,
    pd: D::ProtectionDomain,
    /// For send requests, and for receive requests; or one for both.
    pub(crate) cqs: Vec<D::CompletionQueue, 2>,
    pub(crate) srqs: Vec<D::SharedReceiveQueue, 1>,
    pub(crate) qps: Vec<D::QueuePair, 1>,
    pub(crate) ah: Option<AhId>,
    /// What messages are sent from.
    pub(crate) tx: Buffers<D::MemoryRegion>,
    /// What messages are received, read and fetched into.
    pub(crate) rx: Buffers<D::MemoryRegion>,
    /// What the peer writes to, reads from, and works on with atomics.
    pub(crate) exposed: Buffers<D::MemoryRegion>,
    pub(crate) windows: Vec<RKey, BATCH>,
    pub(crate) inline: [[u8; MAX_INLINE as usize]; BATCH],
    pub(crate) awaited: Deque<Awaited, { REQUESTS + 1 }>,
    /// Turns that this side has finished.
    pub(crate) sent_turns: u64,
    /// Turns of the peer that have arrived in full.
    pub(crate) received_turns: u64,
    /// Turns of the peer that memory windows were bound for.
    pub(crate) bound_turns: u64,
    /// Turns of the peer that exposed memory was filled for.
    pub(crate) filled_turns: u64,
    /// Messages of the peer's turn that have arrived.
    pub(crate) arrived: u32,
    /// Receive requests posted and not consumed, a bit for each position.
    pub(crate) receives: u32,
    pub(crate) turn_began_ns: u64,
    pub(crate) patience: Patience,
    pub(crate) report: Report,
}

pub(crate) fn device<E: core::error::Error>(doing: &'static str) -> impl FnOnce(E) -> Error<E> {
    move |error| Error::Device { doing, error }
}

impl<D: Device> Side<D> {
    /// Creates all objects.
    ///
    /// # Errors
    /// The job, if the device cannot do it: nothing was created then. Or the control operation that failed.
    pub fn setup(dev: &mut D, job: &Job, role: Role) -> Result<Self, Error<D::Error>> {
        let job = *job;
        let (attributes, port) = (dev.attributes(), dev.port());
        job.check_for(&attributes, &port)?;
        let capabilities = job.capabilities();
        let pd = dev.alloc_pd().map_err(device("allocating a protection domain"))?;

        let local = AccessFlags::LOCAL_WRITE;
        let remote =
            local | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC;
        let buffers = |dev: &mut D, length, access| {
            let pieces = if access == local { job.pieces(length) } else { 1 };
            Buffers::alloc(dev, &pd, job.batch, length, pieces, access).map_err(device("registering memory"))
        };
        let tx = buffers(dev, job.size, local)?;
        let rx = buffers(dev, job.received_size(), local)?;
        let exposed = buffers(dev, job.size, remote | AccessFlags::MW_BIND)?;

        let mut windows = Vec::new();
        if job.op == Op::SendInv {
            for _ in 0..job.batch {
                let mw = dev.alloc_mw(&pd, MwType::Type2).map_err(device("allocating a memory window"))?;
                let _ = windows.push(mw);
            }
        }

        let (sends, receives) = (capabilities.max_send_wr, capabilities.max_recv_wr);
        let depths: &[u32] = if job.one_cq { &[sends + receives] } else { &[sends, receives] };
        let mut cqs = Vec::new();
        for depth in depths {
            let cq = dev.create_cq(*depth).map_err(device("creating a completion queue"))?;
            let _ = cqs.push(cq);
        }
        let mut srqs = Vec::new();
        if job.srq {
            let init = SrqInit { max_wr: receives, max_sge: capabilities.max_recv_sge };
            let srq = dev.create_srq(&pd, init).map_err(device("creating a shared receive queue"))?;
            let _ = srqs.push(srq);
        }
        let mut qps = Vec::new();
        if let (Some(send_cq), Some(recv_cq)) = (cqs.first(), cqs.last()) {
            let init = QpInit {
                qp_type: job.op.qp_type(),
                capabilities,
                send_cq,
                recv_cq,
                srq: srqs.first(),
                signal_all: false,
            };
            let qp = dev.create_qp(&pd, &init).map_err(device("creating a queue pair"))?;
            let _ = qps.push(qp);
        }

        let mut keys = [RKey::default(); BATCH];
        keys.iter_mut().zip(&windows).for_each(|(key, window)| *key = *window);
        let qp = qps.first().map(D::QueuePair::id).unwrap_or_default();
        let contact = Contact {
            qp,
            psn: first_psn(job.seed, role),
            qkey: QKEY,
            gid: port.gid,
            mac: port.mac,
            mtu: job.mtu.unwrap_or(port.mtu),
            rd_atomic: attributes.max_rd_atomic,
            addr: exposed.first().map_or(0, MemoryRegion::addr),
            stride: exposed.stride() as u64,
            rkey: exposed.first().map_or(RKey::default(), MemoryRegion::rkey),
            windows: keys,
        };
        Ok(Self {
            job,
            role,
            stage: Stage::Idle,
            peer: None,
            contact,
            pd,
            cqs,
            srqs,
            qps,
            ah: None,
            tx,
            rx,
            exposed,
            windows,
            inline: [[0; MAX_INLINE as usize]; BATCH],
            awaited: Deque::new(),
            sent_turns: 0,
            received_turns: 0,
            bound_turns: 0,
            filled_turns: 0,
            arrived: 0,
            receives: 0,
            turn_began_ns: 0,
            patience: Patience::default(),
            report: Report::default(),
        })
    }

    /// What the other side needs for [`Side::connect`].
    pub fn contact(&self) -> Contact {
        self.contact
    }

    /// Connects to the peer, posts the first receives and fills what the peer reads first.
    ///
    /// With SEND with invalidate it also begins to bind memory windows; then the first side's first turn must not come
    /// before the second side is [ready](Side::is_ready).
    ///
    /// # Errors
    /// The control operation or request that failed.
    pub fn connect(&mut self, dev: &mut D, peer: &Contact) -> Result<(), Error<D::Error>> {
        self.peer = Some(*peer);
        let path = path(dev, peer);
        let [init, rtr, rts] = match self.job.op.qp_type() {
            QpType::Rc => transitions(&self.contact, peer, path, self.job.timeout),
            _ => {
                let ah = dev.create_ah(&self.pd, &path).map_err(device("creating an address handle"))?;
                self.ah = Some(ah);
                [
                    QpAttributes { qkey: Some(QKEY), ..QpAttributes::to(QpState::Init) },
                    QpAttributes::to(QpState::Rtr),
                    QpAttributes { sq_psn: Some(self.contact.psn), ..QpAttributes::to(QpState::Rts) },
                ]
            }
        };
        self.modify(dev, &init, "moving the queue pair to INIT")?;
        self.post_receives()?;
        self.fill_exposed()?;
        self.modify(dev, &rtr, "moving the queue pair to RTR")?;
        self.modify(dev, &rts, "moving the queue pair to RTS")?;
        self.patience.renew(dev.now_ns());
        self.bind_first()
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

    /// Posts the receive requests of the peer's next turn, all under one doorbell.
    pub(crate) fn post_receives(&mut self) -> Result<(), Error<D::Error>> {
        let count = self.job.receives();
        let mut sges: Vec<Sge, SGES> = Vec::new();
        if self.job.op.fills_receive() {
            (0..count).for_each(|slot| sges.extend(self.rx.sges(slot)));
        }
        let each = sges.len() / count as usize;
        let requests: Vec<RecvRequest<'_>, BATCH> = (0..count)
            .map(|slot| {
                let wr = WrId::new(WrKind::Receive, self.received_turns, slot);
                let start = slot as usize * each;
                RecvRequest::new(wr.0, sges.get(start..start + each).unwrap_or(&[]))
            })
            .collect();
        let posted = match (self.srqs.first_mut(), self.qps.first_mut(), self.cqs.last_mut()) {
            (Some(srq), ..) => srq.post_recv(&requests),
            (None, Some(qp), Some(cq)) => qp.post_recv(cq, &requests),
            _ => Ok(()),
        };
        posted.map_err(|error| Error::Post {
            qp: self.contact.qp,
            wr: WrId(requests.get(error.index).map_or(0, |r| r.wr_id)),
            error,
        })?;
        self.receives = u32::MAX >> (32 - count);
        Ok(())
    }

    /// What the side waits for.
    pub fn outstanding(&self) -> Outstanding {
        let position = self.receives.trailing_zeros();
        Outstanding {
            sends: self.awaited.len(),
            first_send: self.awaited.front().map(|a| a.wr),
            receives: self.receives.count_ones(),
            first_receive: (self.receives != 0)
                .then(|| WrId::new(WrKind::Receive, self.received_turns, position)),
        }
    }

    /// The error for a side whose devices have nothing under way.
    pub fn stalled(&self) -> Error<D::Error> {
        Error::Stalled { qp: self.contact.qp, outstanding: self.outstanding() }
    }

    /// Whether all that [`Side::connect`] began is done.
    pub fn is_ready(&self) -> bool {
        self.stage != Stage::Binding
    }

    /// What was done so far.
    pub fn report(&self) -> Report {
        self.report
    }

    /// Destroys all objects. The peer must be done too: it may still need acknowledgements.
    ///
    /// # Errors
    /// The first control operation that failed; what follows it is left to the device's end.
    pub fn teardown(self, dev: &mut D) -> Result<(), Error<D::Error>> {
        let mut cqs = self.cqs;
        for qp in self.qps {
            let mut refs: Vec<&mut D::CompletionQueue, 2> = cqs.iter_mut().collect();
            dev.destroy_qp(qp, &mut refs).map_err(device("destroying the queue pair"))?;
        }
        for srq in self.srqs {
            dev.destroy_srq(srq).map_err(device("destroying the shared receive queue"))?;
        }
        for cq in cqs {
            dev.destroy_cq(cq).map_err(device("destroying a completion queue"))?;
        }
        if let Some(ah) = self.ah {
            dev.destroy_ah(ah).map_err(device("destroying the address handle"))?;
        }
        for mw in self.windows {
            dev.dealloc_mw(mw).map_err(device("deallocating a memory window"))?;
        }
        for buffers in [self.tx, self.rx, self.exposed] {
            buffers.free(dev).map_err(device("deregistering memory"))?;
        }
        dev.dealloc_pd(self.pd).map_err(device("deallocating the protection domain"))
    }
}
