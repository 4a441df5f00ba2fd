//! A bnxt_re queue pair with its completion queue, in memory that the test plays the device in.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use directverbs::bnxt_re::attached::{AttachedSrq, Page};
use directverbs::bnxt_re::caps::{DeviceCaps, Generation, Limits};
use directverbs::bnxt_re::cq::CompletionQueue;
use directverbs::bnxt_re::cqe::CQE_BYTES;
use directverbs::bnxt_re::doorbell::{DbWord, Toggle};
use directverbs::bnxt_re::plan::{CqPlan, QpPlan};
use directverbs::bnxt_re::qp::{QueuePair, QueuePairInit};
use directverbs::bnxt_re::recv::RecvQueue;
use directverbs::bnxt_re::send::{SendInit, SendQueue, SendRecord};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::queue::{Boxed, Doorbell, RingMemory};
use directverbs::verbs::{
    AccessFlags, AddressVector, CqFault, CqId, Gid, Mac, Mtu, Psn, QKey, QpAttributes, QpCapabilities, QpId,
    QpState, QpType, Slices, WorkCompletion,
};

/// Handle of the rig's queue pair.
pub const HANDLE: u32 = 0x77;
/// Number of the rig's queue pair.
pub const QP: u32 = 9;
/// Number of the rig's completion queue.
pub const CQ: u32 = 7;
/// First PSN of the rig's connections.
pub const PSN: u32 = 0xff_fff0;

/// Page-aligned memory, shared with the "device" and never freed.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    base: NonNull<u8>,
    len: usize,
}

#[repr(C, align(4096))]
#[derive(Clone)]
struct Aligned([u8; 4096]);

impl Pages {
    /// `bytes` rounded up to pages, filled with `fill`.
    pub fn new(bytes: usize, fill: u8) -> Self {
        let pages = vec![Aligned([fill; 4096]); bytes.div_ceil(4096).max(1)].leak();
        Self { base: NonNull::from(&mut *pages).cast(), len: pages.len() * 4096 }
    }

    /// The driver's view. A test makes one for each memory.
    pub fn ring(&self) -> RingMemory<'static> {
        // SAFETY: the pages live for ever; the test, which plays the device, reaches them by raw accesses only.
        unsafe { RingMemory::from_raw(self.base, self.len) }
    }

    /// Copies `N` bytes out.
    pub fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset + N <= self.len);
        // SAFETY: in bounds; the driver in the same thread holds no reference.
        unsafe { self.base.as_ptr().add(offset).cast::<[u8; N]>().read_unaligned() }
    }

    /// Copies `bytes` in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        // SAFETY: as in `read`.
        unsafe { self.base.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Everything.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; self.len];
        // SAFETY: as in `read`.
        unsafe { self.base.as_ptr().copy_to_nonoverlapping(out.as_mut_ptr(), self.len) };
        out
    }
}

/// What happened at a doorbell page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store to a register.
    Store(usize, u64),
    /// `to_device`.
    ToDevice,
    /// `from_device`.
    FromDevice,
    /// `wc_start`.
    WcStart,
    /// `wc_flush`.
    WcFlush,
}

/// A doorbell page that records.
#[derive(Default)]
pub struct Spy {
    /// What happened, in order.
    pub events: RefCell<Vec<Event>>,
    /// What the toggle page holds.
    pub toggle: Cell<u32>,
    /// Runs inside `from_device`, as a device that is faster than the driver.
    pub hook: RefCell<Option<Box<dyn FnMut()>>>,
}

impl Spy {
    /// The doorbells stored to register 0 since the last call; everything recorded is dropped.
    pub fn take(&self) -> Vec<DbWord> {
        let events = self.events.take();
        let stored = events.iter().filter_map(|e| match e {
            Event::Store(0, word) => Some(DbWord::from_u64(*word)),
            _ => None,
        });
        stored.collect()
    }
}

impl Doorbell for Spy {
    fn store(&self, register: usize, value: u64) {
        self.events.borrow_mut().push(Event::Store(register, value));
    }
    fn to_device(&self) {
        self.events.borrow_mut().push(Event::ToDevice);
    }
    fn from_device(&self) {
        self.events.borrow_mut().push(Event::FromDevice);
        if let Some(hook) = self.hook.borrow_mut().as_mut() {
            hook();
        }
    }
    fn wc_start(&self) {
        self.events.borrow_mut().push(Event::WcStart);
    }
    fn wc_flush(&self) {
        self.events.borrow_mut().push(Event::WcFlush);
    }
}

impl Page for Spy {
    fn toggle(&self) -> Toggle {
        Toggle::truncated(self.toggle.get())
    }
}

/// One way that a device lays its queues out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// Generation.
    pub generation: Generation,
    /// WQE mode.
    pub mode: WqeMode,
    /// MSN table.
    pub msn: bool,
    /// Depths need not be powers of two.
    pub exact: bool,
}

impl Flavor {
    /// P7 in variable mode with the MSN table.
    pub const P7: Self = Self { generation: Generation::P7, mode: WqeMode::Variable, msn: true, exact: true };
    /// P5 in static mode with extended PSN entries.
    pub const P5: Self = Self { generation: Generation::P5, mode: WqeMode::Static, msn: false, exact: false };

    /// All that devices come in.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (generation, msn) in [(Generation::P5, false), (Generation::P7, true)] {
            for mode in [WqeMode::Static, WqeMode::Variable] {
                for exact in [false, true] {
                    all.push(Self { generation, mode, msn, exact });
                }
            }
        }
        all
    }

    /// What such a device says about itself.
    pub fn caps(self) -> DeviceCaps {
        DeviceCaps {
            generation: self.generation,
            wqe_mode: self.mode,
            msn_table: self.msn,
            pow2_disabled: self.exact,
            push: true,
            pacing: false,
            rate_limit: false,
            page_size: 4096,
            cqe_bytes: 32,
            max_cqe: 0x1_0000,
            limits: Limits {
                max_qp_wr: 0x8000,
                max_sge: if self.mode == WqeMode::Variable { 13 } else { 6 },
                max_srq_wr: 0x8000,
                max_srq_sge: 6,
                atomics: true,
            },
        }
    }
}

/// Capabilities that tests ask for when they do not care.
pub const SMALL: QpCapabilities =
    QpCapabilities { max_send_wr: 16, max_recv_wr: 8, max_send_sge: 4, max_recv_sge: 3, max_inline_data: 96 };

/// Where a "device" writes CQEs.
#[derive(Clone, Copy, Debug)]
pub struct Producer {
    /// The ring.
    pub memory: Pages,
    /// Entries of the ring.
    pub entries: u32,
    /// Index of the next CQE.
    pub index: u32,
    /// Its phase.
    pub phase: bool,
}

impl Producer {
    /// A producer at the start of a fresh ring.
    pub fn new(memory: Pages, entries: u32) -> Self {
        Self { memory, entries, index: 0, phase: true }
    }

    /// Writes a CQE; its phase bit is set here.
    pub fn push(&mut self, mut cqe: [u8; 32]) {
        cqe[24] = cqe[24] & !1 | u8::from(self.phase);
        self.memory.write((self.index * CQE_BYTES) as usize, &cqe);
        self.index += 1;
        if self.index == self.entries {
            self.index = 0;
            self.phase = !self.phase;
        }
    }
}

/// A CQE from its fields: two words, then type, status, flags and tag.
pub fn cqe(words: [u64; 3], cqe_type: u8, status: u8, flags: u16, opaque: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (i, word) in words.iter().enumerate() {
        bytes[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes[24] = cqe_type << 1;
    bytes[25] = status;
    bytes[26..28].copy_from_slice(&flags.to_le_bytes());
    bytes[28..].copy_from_slice(&opaque.to_le_bytes());
    bytes
}

/// A requester CQE of the rig's queue pair.
pub fn req(index: u32, status: u8) -> [u8; 32] {
    cqe([HANDLE.into(), index.into(), 0], 0, status, 0, 0)
}

/// A receive CQE of the rig's connection.
pub fn res_rc(length: u32, imm: u32, status: u8, flags: u16, tag: u32) -> [u8; 32] {
    cqe([u64::from(imm) << 32 | u64::from(length), HANDLE.into(), 0], 1, status, flags, tag)
}

/// The shared receive queues that a rig polls with.
pub type Srq = AttachedSrq<'static, Boxed, &'static Spy>;

/// A queue pair and its completion queue.
pub struct Rig {
    /// The device.
    pub caps: DeviceCaps,
    /// Sizes.
    pub plan: QpPlan,
    /// The queue pair.
    pub qp: QueuePair<'static, Boxed>,
    /// The completion queue of both directions.
    pub cq: CompletionQueue<'static>,
    /// Shared receive queues.
    pub srqs: Vec<Srq>,
    /// Memory of the send queue.
    pub sq_memory: Pages,
    /// Memory of the receive queue.
    pub rq_memory: Pages,
    /// The device's end of the completion queue.
    pub device: Producer,
    /// The doorbell page.
    pub spy: Spy,
}

impl Rig {
    /// A rig ready to send, with a completion queue for `cqe` completions.
    pub fn new(flavor: Flavor, qp_type: QpType, asked: &QpCapabilities, cqe: u32) -> Self {
        Self::with_caps(flavor.caps(), qp_type, asked, cqe)
    }

    /// A rig on another device.
    pub fn with_caps(caps: DeviceCaps, qp_type: QpType, asked: &QpCapabilities, cqe: u32) -> Self {
        let plan = QpPlan::new(&caps, asked, false).expect("plan");
        let cq_plan = CqPlan::new(&caps, cqe).expect("plan");
        let sq_memory = Pages::new(plan.send.bytes as usize, 0);
        let rq_memory = Pages::new(plan.recv.map_or(0, |r| r.bytes) as usize, 0);
        let cq_memory = Pages::new(cq_plan.bytes as usize, 0x5a);
        let init =
            SendInit { plan: plan.send, qp: QpId::truncated(QP), qp_type, signal_all: false, atomics: true };
        let records = vec![SendRecord::default(); plan.send.records.next_power_of_two() as usize];
        let send = SendQueue::new(sq_memory.ring(), records.into(), &init).expect("send queue");
        let recv = plan.recv.map(|r| {
            let records = vec![0; r.wqes.next_power_of_two() as usize];
            RecvQueue::new(rq_memory.ring(), records.into(), &r, init.qp).expect("receive queue")
        });
        let qp = QueuePair::new(
            &QueuePairInit {
                id: init.qp,
                handle: HANDLE,
                qp_type,
                send_cq: CqId::truncated(CQ),
                recv_cq: CqId::truncated(CQ),
                srq: None,
                capabilities: plan.granted(),
            },
            send,
            recv,
        );
        let cq = CompletionQueue::new(cq_memory.ring(), &cq_plan, CqId::truncated(CQ)).expect("cq");
        let device = Producer::new(cq_memory, cq_plan.entries);
        let mut rig = Self {
            caps,
            plan,
            qp: qp.expect("queue pair"),
            cq,
            srqs: Vec::new(),
            sq_memory,
            rq_memory,
            device,
            spy: Spy::default(),
        };
        rig.connect();
        rig
    }

    /// Makes the first of `srqs` the queue pair's receive queue.
    pub fn share_srq(&mut self) {
        let init = SendInit {
            plan: self.plan.send,
            qp: QpId::truncated(QP),
            qp_type: self.qp.qp_type(),
            signal_all: false,
            atomics: true,
        };
        let records = vec![SendRecord::default(); self.plan.send.records.next_power_of_two() as usize];
        let send = SendQueue::new(self.sq_memory.ring(), records.into(), &init).expect("send queue");
        let init = QueuePairInit {
            id: init.qp,
            handle: HANDLE,
            qp_type: init.qp_type,
            send_cq: CqId::truncated(CQ),
            recv_cq: CqId::truncated(CQ),
            srq: self.srqs.first().map(|s| s.srq.id()),
            capabilities: self.plan.granted(),
        };
        self.qp = QueuePair::new(&init, send, None).expect("queue pair");
        self.connect();
    }

    /// RESET to RTS.
    pub fn connect(&mut self) {
        for attributes in to_rts() {
            self.qp.modify(&attributes).expect("transition");
        }
    }

    /// Polls for at most `n` completions.
    pub fn poll(&mut self, n: usize) -> Result<Vec<WorkCompletion>, CqFault> {
        let mut out = vec![WorkCompletion::default(); n];
        let mut endpoints =
            Slices { qps: std::slice::from_mut(&mut self.qp), srqs: self.srqs.as_mut_slice() };
        let found = self.cq.poll(&mut endpoints, &self.spy, &mut out)?;
        out.truncate(found);
        Ok(out)
    }
}

/// The transitions from RESET to RTS, with what any kind needs.
pub fn to_rts() -> [QpAttributes; 3] {
    let path = AddressVector::new(Gid::default(), Mac::default());
    [
        QpAttributes {
            access: Some(AccessFlags::empty()),
            qkey: Some(QKey::default()),
            ..QpAttributes::to(QpState::Init)
        },
        QpAttributes {
            path: Some(path),
            mtu: Some(Mtu::B1024),
            dest_qp: Some(QpId::default()),
            rq_psn: Some(Psn::default()),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(1),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(Psn::truncated(PSN)),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(1),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}
