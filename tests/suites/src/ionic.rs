//! Parts of an ionic device for tests: page-aligned rings that a fake device can write, a doorbell page and controller
//! memory that record what happens to them, and CQEs.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;

use directverbs::ionic::QueueMemory;
use directverbs::ionic::caps::{Caps, ContextReply, ExpressQueues, ExpressStrides};
use directverbs::ionic::cmb::{Cmb, CmbGrant, CmbPreference};
use directverbs::ionic::cq::{CompletionQueue, CqRing};
use directverbs::ionic::cqe::{CqeType, IdxTimestamp, QidTypeFlags, RecvCqe, SendCqe, Status};
use directverbs::ionic::plan::{CqPlan, Placement, QpPlan};
use directverbs::ionic::qp::{NoSharedReceiveQueue, QpConfig, QueuePair};
use directverbs::ionic::recv::RqRecord;
use directverbs::ionic::send::SqRecord;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::queue::{Boxed, DeviceMemory, Doorbell, RingMemory};
use directverbs::verbs::{CqFault, CqId, QpCapabilities, QpId, QpState, QpType, Slices, WorkCompletion};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Doorbell register of send queues.
pub const SQ: usize = 3;
/// Doorbell register of receive queues.
pub const RQ: usize = 4;
/// Doorbell register of completion queues.
pub const CQ: usize = 5;

#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Owns ring memory, so that rings can borrow it while a fake device writes it.
#[derive(Default)]
pub struct Arena(RefCell<Vec<Box<[Page]>>>);

impl Arena {
    /// Page-aligned memory full of `0xa5`, as a ring and as the device sees it.
    pub fn ring(&self, bytes: usize) -> (RingMemory<'_>, View<'_>) {
        let mut block: Box<[Page]> = (0..bytes.div_ceil(4096).max(1)).map(|_| Page([0xa5; 4096])).collect();
        let len = block.len() * 4096;
        let base = NonNull::new(block.as_mut_ptr().cast()).expect("a box has an address");
        self.0.borrow_mut().push(block);
        // SAFETY: the block lives as long as the arena; only the ring and the device's view access it, the latter raw.
        (unsafe { RingMemory::from_raw(base, len) }, View { base, len, arena: std::marker::PhantomData })
    }
}

/// Ring memory as the device sees it.
#[derive(Clone, Copy)]
pub struct View<'m> {
    base: NonNull<u8>,
    len: usize,
    arena: std::marker::PhantomData<&'m Arena>,
}

impl<'m> View<'m> {
    /// The ring again, for a queue that takes the place of one that is not used any more.
    pub fn ring(&self) -> RingMemory<'m> {
        // SAFETY: the arena outlives the ring; tests use one of the rings at a time.
        unsafe { RingMemory::from_raw(self.base, self.len) }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.len);
        // SAFETY: in bounds; the arena outlives the view.
        (0..len).map(|i| unsafe { self.base.as_ptr().add(offset + i).read_volatile() }).collect()
    }

    /// All bytes.
    pub fn all(&self) -> Vec<u8> {
        self.read(0, self.len)
    }

    /// Copies a value out.
    pub fn load<T: FromBytes>(&self, offset: usize) -> T {
        T::read_from_bytes(&self.read(offset, size_of::<T>())).expect("as many bytes as the type has")
    }

    /// Stores bytes in order.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: in bounds; the arena outlives the view.
            unsafe { self.base.as_ptr().add(offset + i).write_volatile(*byte) };
        }
    }

    /// Stores a value.
    pub fn store<T: IntoBytes + Immutable>(&self, offset: usize, value: &T) {
        self.write(offset, value.as_bytes());
    }
}

/// What the device sees of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A doorbell store.
    Store {
        /// Register.
        register: usize,
        /// Value.
        value: u64,
    },
    /// Barrier before a doorbell.
    ToDevice,
    /// Barrier after a color.
    FromDevice,
    /// Write-combined stores begin.
    WcStart,
    /// Write-combined stores are flushed.
    WcFlush,
    /// 64 bytes stored to controller memory.
    Copy {
        /// Where.
        offset: usize,
        /// What.
        block: Box<[u8; 64]>,
    },
}

/// Records what happens, in order; clones share the record.
#[derive(Clone, Default)]
pub struct Recorder {
    events: Rc<RefCell<Vec<Event>>>,
    quiet: Rc<Cell<bool>>,
}

impl Recorder {
    /// Takes the record.
    pub fn take(&self) -> Vec<Event> {
        self.events.take()
    }

    /// Takes the record and returns the doorbell stores.
    pub fn stores(&self) -> Vec<(usize, u64)> {
        let stores = self.take().into_iter().filter_map(|e| match e {
            Event::Store { register, value } => Some((register, value)),
            _ => None,
        });
        stores.collect()
    }

    fn record(&self, event: Event) {
        if !self.quiet.get() {
            self.events.borrow_mut().push(event);
        }
    }
}

impl Doorbell for Recorder {
    fn store(&self, register: usize, value: u64) {
        self.record(Event::Store { register, value });
    }

    fn to_device(&self) {
        self.record(Event::ToDevice);
    }

    fn from_device(&self) {
        self.record(Event::FromDevice);
    }

    fn wc_start(&self) {
        self.record(Event::WcStart);
    }

    fn wc_flush(&self) {
        self.record(Event::WcFlush);
    }
}

impl DeviceMemory for Recorder {
    fn store_16(&self, _: usize, _: &[u8; 16]) {
        unreachable!("ionic stores blocks of 64 bytes");
    }

    fn store_64(&self, offset: usize, block: &[u8; 64]) {
        self.record(Event::Copy { offset, block: Box::new(*block) });
    }
}

/// A context reply of a device that can do everything.
pub fn reply(version: RdmaVersion) -> ContextReply {
    ContextReply {
        page_shift: 12.into(),
        version: (version as u16).into(),
        qp_opcodes: 11,
        admin_opcodes: 19,
        sq_qtype: SQ as u8,
        rq_qtype: RQ as u8,
        cq_qtype: CQ as u8,
        max_stride: 9,
        max_spec: 8,
        udma_count: 2,
        expdb_mask: ExpressStrides::all().bits(),
        expdb_qtypes: ExpressQueues::all().bits(),
        ..ContextReply::ZERO
    }
}

/// What such a device can do.
pub fn caps(version: RdmaVersion) -> Caps {
    Caps::from_reply(&reply(version)).expect("a good reply")
}

/// What a [`Rig`] is made for.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The device.
    pub caps: Caps,
    /// Kind of queue pair.
    pub qp_type: QpType,
    /// Its capabilities.
    pub capabilities: QpCapabilities,
    /// Its number.
    pub qp: u32,
    /// Its pipeline.
    pub udma: u8,
    /// Pipelines that the completion queue has rings on.
    pub udma_mask: u8,
    /// CQEs.
    pub cqe: u32,
    /// Every send request produces a completion.
    pub signal_all: bool,
    /// Where the queues are.
    pub sq: CmbGrant,
    /// Where the queues are.
    pub rq: CmbGrant,
}

impl Setup {
    /// An RC queue pair in host memory.
    pub fn new(version: RdmaVersion) -> Self {
        Self {
            caps: caps(version),
            qp_type: QpType::Rc,
            capabilities: QpCapabilities {
                max_send_wr: 32,
                max_recv_wr: 32,
                max_send_sge: 2,
                max_recv_sge: 2,
                max_inline_data: 32,
            },
            qp: 5,
            udma: 0,
            udma_mask: 1,
            cqe: 64,
            signal_all: false,
            sq: CmbGrant::Host,
            rq: CmbGrant::Host,
        }
    }

    /// The plan.
    pub fn plan(&self) -> QpPlan {
        let preference = |grant: CmbGrant| CmbPreference {
            enable: grant != CmbGrant::Host,
            express: grant.express(),
            require: false,
        };
        let place = Placement { sq: preference(self.sq), rq: preference(self.rq) };
        QpPlan::new(&self.caps, &self.capabilities, place).expect("a good plan")
    }
}

/// A queue pair, its completion queue, and what a fake device sees of them.
pub struct Rig<'m> {
    /// Queue pair.
    pub qp: QueuePair<'m, Boxed, Recorder>,
    /// Completion queue.
    pub cq: CompletionQueue<'m>,
    /// Doorbell page.
    pub bell: Recorder,
    /// Send ring.
    pub sq: View<'m>,
    /// Receive ring.
    pub rq: View<'m>,
    /// The device's side of the completion rings.
    pub cqs: [Option<FakeCq<'m>>; 2],
    /// What it was made for.
    pub setup: Setup,
}

/// Number of the completion ring on pipeline `udma`.
pub fn cq_id(udma: usize) -> CqId {
    CqId::truncated(0x40 + udma as u32)
}

/// A completion queue and the device's side of it.
pub fn completion_queue<'m>(
    arena: &'m Arena,
    caps: &Caps,
    cqe: u32,
    udma_mask: u8,
) -> (CompletionQueue<'m>, [Option<FakeCq<'m>>; 2]) {
    let plan = CqPlan::new(caps, cqe).expect("a good plan");
    let mut sides = [None, None];
    let rings = [0, 1].map(|udma| {
        if udma_mask >> udma & 1 == 0 {
            return None;
        }
        let (memory, view) = arena.ring(plan.ring.bytes());
        sides[udma] = Some(FakeCq { view, mask: plan.ring.mask(), prod: 0, color: true });
        Some(CqRing::new(cq_id(udma), caps.cq_qtype, &plan, memory).expect("memory as planned"))
    });
    (CompletionQueue::new(caps.udma_count, rings).expect("good rings"), sides)
}

impl<'m> Rig<'m> {
    /// Makes it; the queue pair is in state RTS.
    pub fn new(arena: &'m Arena, setup: Setup) -> Self {
        let (cq, cqs) = completion_queue(arena, &setup.caps, setup.cqe, setup.udma_mask);
        let bell = Recorder::default();
        let (qp, sq, rq) = queue_pair(arena, &setup, &cq, &bell);
        Self { qp, cq, bell, sq, rq, cqs, setup }
    }

    /// The device's side of the queue pair's completion ring.
    pub fn device(&mut self) -> &mut FakeCq<'m> {
        self.cqs[usize::from(self.setup.udma)].as_mut().expect("a ring on the queue pair's pipeline")
    }

    /// Polls for at most `room` completions.
    pub fn poll(&mut self, room: usize) -> Result<Vec<WorkCompletion>, CqFault> {
        let mut out = vec![WorkCompletion::default(); room];
        let qps = std::slice::from_mut(&mut self.qp);
        let n = self.cq.poll(
            &mut Slices::<_, NoSharedReceiveQueue> { qps, srqs: &mut [] },
            &self.bell,
            &mut out,
        )?;
        out.truncate(n);
        Ok(out)
    }

    /// Bytes of the send WQE at `index`.
    pub fn send_wqe(&self, index: usize) -> Vec<u8> {
        let stride = self.setup.plan().sq.ring.stride() as usize;
        self.sq.read(index * stride, stride)
    }

    /// Bytes of the receive WQE at `index`.
    pub fn recv_wqe(&self, index: usize) -> Vec<u8> {
        let stride = self.setup.plan().rq.ring.stride() as usize;
        self.rq.read(index * stride, stride)
    }
}

/// A queue pair in state RTS, and its rings.
pub fn queue_pair<'m>(
    arena: &'m Arena,
    setup: &Setup,
    cq: &CompletionQueue<'_>,
    bell: &Recorder,
) -> (QueuePair<'m, Boxed, Recorder>, View<'m>, View<'m>) {
    let plan = setup.plan();
    let (sq_ring, sq) = arena.ring(plan.sq.ring.bytes());
    let (rq_ring, rq) = arena.ring(plan.rq.ring.bytes());
    let cmb = |grant| match grant {
        CmbGrant::Host => None,
        CmbGrant::Cmb { express, mapping } => Some(Cmb { memory: bell.clone(), express, mapping }),
    };
    let config = QpConfig {
        id: QpId::new(setup.qp).expect("24 bits"),
        qp_type: setup.qp_type,
        udma: setup.udma,
        signal_all: setup.signal_all,
        send_cq: cq,
        recv_cq: cq,
    };
    let records = vec![SqRecord::default(); plan.sq.records()].into_boxed_slice();
    let sq_memory = QueueMemory { ring: sq_ring, records, cmb: cmb(setup.sq) };
    let records = vec![RqRecord::default(); plan.rq.records()].into_boxed_slice();
    let rq_memory = QueueMemory { ring: rq_ring, records, cmb: cmb(setup.rq) };
    let mut qp =
        QueuePair::new(&setup.caps, &config, &plan, sq_memory, rq_memory).expect("memory as planned");
    qp.set_state(QpState::Rts);
    (qp, sq, rq)
}

/// The device's side of a completion ring.
#[derive(Clone, Copy)]
pub struct FakeCq<'m> {
    /// The ring.
    pub view: View<'m>,
    /// Largest index.
    pub mask: u16,
    /// Next entry.
    pub prod: u16,
    /// Its color.
    pub color: bool,
}

impl FakeCq<'_> {
    /// Where the next CQE goes.
    pub fn offset(&self) -> usize {
        usize::from(self.prod) * 32
    }

    /// Goes on to the next entry.
    pub fn advance(&mut self) {
        self.prod = self.prod.wrapping_add(1) & self.mask;
        self.color ^= self.prod == 0;
    }

    fn qtf(&self, qp: u32, kind: CqeType, error: bool) -> QidTypeFlags {
        QidTypeFlags::new().with_qid(qp).with_cqe_type(kind.0).with_error(error).with_color(self.color)
    }

    /// Produces a CQE; the color in it is replaced.
    pub fn push<T: IntoBytes + Immutable>(&mut self, cqe: &T) {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(cqe.as_bytes());
        bytes[31] = bytes[31] & !1 | u8::from(self.color);
        self.view.write(self.offset(), &bytes);
        self.advance();
    }

    /// A send CQE.
    pub fn send(&mut self, qp: u32, kind: CqeType, msn: u32, index: u16, error: Option<Status>) {
        let cqe = SendCqe {
            msg_msn: msn.into(),
            npg_wqe_idx_timestamp: stamp(index, u64::from(msn) + 1000).into(),
            status_length: error.map_or(0, |s| s.0).into(),
            qid_type_flags: self.qtf(qp, kind, error.is_some()).into_bits().into(),
            ..SendCqe::ZERO
        };
        self.push(&cqe);
    }

    /// Messages before `msn` have completed.
    pub fn msn(&mut self, qp: u32, msn: u32) {
        self.send(qp, CqeType::SEND_MSN, msn, 0, None);
    }

    /// The request at `index` has completed.
    pub fn npg(&mut self, qp: u32, index: u16) {
        self.send(qp, CqeType::SEND_NPG, 0, index, None);
    }

    /// A message of `length` bytes has arrived.
    pub fn recv(&mut self, qp: u32, index: u16, length: u32, edit: impl FnOnce(&mut RecvCqe)) {
        let mut cqe = RecvCqe {
            wqe_idx_timestamp: stamp(index, 77).into(),
            status_length: length.into(),
            qid_type_flags: self.qtf(qp, CqeType::RECV, false).into_bits().into(),
            ..RecvCqe::ZERO
        };
        edit(&mut cqe);
        self.push(&cqe);
    }

    /// A receive has failed.
    pub fn recv_error(&mut self, qp: u32, index: u16, status: Status) {
        let qtf = self.qtf(qp, CqeType::RECV, true);
        self.recv(qp, index, status.0, |cqe| cqe.qid_type_flags = qtf.into_bits().into());
    }
}

fn stamp(index: u16, timestamp: u64) -> u64 {
    IdxTimestamp::new().with_wqe_idx(index).with_timestamp(timestamp).into_bits()
}
