//! The RDMA admin queue: commands of one or two strides, and CQEs.

use zerocopy::IntoBytes;

use super::opcode::{AdminError, AdminOp};
use super::wqe::{AdminCommand, PAYLOAD_MAX, STRIDE_BYTES, encode, strides};
use crate::ionic::cqe::{AdminCqe, CQE_BYTES, CQE_LOG2, CqeType, QTF_OFFSET, QidTypeFlags};
use crate::ionic::devcmd::{AdminFault, QueueFull};
use crate::ionic::doorbell::{DoorbellWord, QueueType};
use crate::queue::{Doorbell, PhaseRing, RingMemory};
use crate::verbs::MemoryError;

/// Most commands outstanding at once.
const OUTSTANDING: usize = 16;
/// Most strides, base-two logarithm.
const DEPTH_MAX_LOG2: u8 = 15;
/// Base-two logarithm of [`STRIDE_BYTES`].
pub const STRIDE_LOG2: u8 = STRIDE_BYTES.ilog2() as u8;
/// Base-two logarithm of a CQE's bytes.
pub const CQE_STRIDE_LOG2: u8 = CQE_LOG2 as u8;

/// What an admin queue is made of.
#[derive(Debug)]
pub struct RdmaAdminConfig<'m> {
    /// Ring of commands.
    pub commands: RingMemory<'m>,
    /// Its strides, base-two logarithm.
    pub depth_log2: u8,
    /// Ring of CQEs.
    pub completions: RingMemory<'m>,
    /// Its entries, base-two logarithm.
    pub cq_depth_log2: u8,
    /// Doorbell register of admin queues.
    pub qtype: QueueType,
    /// Number of the queue.
    pub id: u32,
    /// Doorbell register of completion queues.
    pub cq_qtype: QueueType,
    /// Number of the ring of CQEs.
    pub cq_id: u32,
}

/// A command that is not done yet.
#[derive(Clone, Copy, Debug)]
struct Posted {
    op: AdminOp,
    strides: u16,
}

/// A command that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminDone {
    /// The command.
    pub op: AdminOp,
    /// How it ended.
    pub result: Result<AdminCqe, AdminError>,
}

/// The admin queue of the RDMA part.
#[derive(Debug)]
pub struct RdmaAdminQueue<'m> {
    commands: RingMemory<'m>,
    completions: PhaseRing<'m, 4>,
    mask: u16,
    id: u32,
    qtype: QueueType,
    doorbell: DoorbellWord,
    cq_qtype: QueueType,
    cq_doorbell: DoorbellWord,
    /// Stride of the next command.
    head: u16,
    /// Stride of the oldest outstanding one.
    tail: u16,
    posted: heapless::Deque<Posted, OUTSTANDING>,
    failed: bool,
}

impl<'m> RdmaAdminQueue<'m> {
    /// A queue without commands. The memory of its CQEs is filled with zeros.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, a depth that the device does not have, or a number of more than 24 bits.
    pub fn new(config: RdmaAdminConfig<'m>) -> Result<Self, MemoryError> {
        for (what, depth) in
            [(text!("admin queue"), config.depth_log2), (text!("admin CQ"), config.cq_depth_log2)]
        {
            if !(2..=DEPTH_MAX_LOG2).contains(&depth) {
                return Err(MemoryError::OutOfRange { what, value: depth.into(), bits: 4 });
            }
        }
        for (what, id) in [(text!("admin queue id"), config.id), (text!("admin CQ id"), config.cq_id)] {
            if id >> 24 != 0 {
                return Err(MemoryError::OutOfRange { what, value: id, bits: 24 });
            }
        }
        config.commands.check(text!("admin queue"), STRIDE_BYTES << config.depth_log2, STRIDE_BYTES)?;
        if config.commands.overlaps(&config.completions) {
            return Err(MemoryError::Overlap(text!("admin commands"), text!("admin completions")));
        }
        let depth = 1u32 << config.depth_log2;
        Ok(Self {
            commands: config.commands,
            completions: PhaseRing::new(config.completions, 1 << config.cq_depth_log2)?,
            mask: (depth - 1) as u16,
            id: config.id,
            qtype: config.qtype,
            doorbell: DoorbellWord::new().with_qid(config.id),
            cq_qtype: config.cq_qtype,
            cq_doorbell: DoorbellWord::new().with_qid(config.cq_id),
            head: 0,
            tail: 0,
            posted: heapless::Deque::new(),
            failed: false,
        })
    }

    /// Commands that are not done.
    pub const fn outstanding(&self) -> usize {
        self.posted.len()
    }

    /// Strides that are free. One stays so.
    const fn free(&self) -> u16 {
        self.mask - (self.head.wrapping_sub(self.tail) & self.mask)
    }

    /// Posts a command and rings the doorbell. Returns its first stride.
    ///
    /// # Errors
    /// The queue is full, or has failed; nothing was written or rung.
    pub fn post<C: AdminCommand, D: Doorbell>(&mut self, cmd: &C, doorbell: &D) -> Result<u16, QueueFull> {
        const { assert!(size_of::<C>() <= PAYLOAD_MAX) };
        self.post_raw(C::OP, cmd.as_bytes(), doorbell)
    }

    /// [`RdmaAdminQueue::post`] with a payload as bytes, at most [`PAYLOAD_MAX`].
    ///
    /// # Errors
    /// The same.
    pub fn post_raw<D: Doorbell>(
        &mut self,
        op: AdminOp,
        payload: &[u8],
        doorbell: &D,
    ) -> Result<u16, QueueFull> {
        let taken = strides(payload.len()) as u16;
        // The ring of CQEs has room for all that can be outstanding.
        let room = usize::from(self.mask).min(self.completions.entries() as usize - 1);
        if self.failed || payload.len() > PAYLOAD_MAX || taken > self.free() || self.posted.len() >= room {
            return Err(QueueFull);
        }
        self.posted.push_back(Posted { op, strides: taken }).map_err(|_| QueueFull)?;
        let index = self.head;
        let wqe = encode(op, payload);
        let bytes = wqe.as_bytes().get(..4 + payload.len()).unwrap_or_default();
        for (nth, stride) in bytes.chunks(STRIDE_BYTES).enumerate() {
            let at = usize::from(index.wrapping_add(nth as u16) & self.mask) * STRIDE_BYTES;
            self.commands.store_bytes(at, stride);
        }
        self.head = index.wrapping_add(taken) & self.mask;
        doorbell.to_device();
        doorbell.store(self.qtype.register(), self.doorbell.with_index(self.head).into_bits());
        Ok(index)
    }

    /// The next command that is done; tells the device that its CQE is consumed.
    ///
    /// # Errors
    /// A CQE that makes no sense: the queue has failed.
    pub fn poll<D: Doorbell>(&mut self, doorbell: &D) -> Result<Option<AdminDone>, AdminFault> {
        if self.failed {
            return Err(AdminFault::Failed);
        }
        let entry = self.completions.entry();
        let last = entry.load_valid_high::<{ QTF_OFFSET / 8 }>().swap_bytes();
        if u32::from(QidTypeFlags::from_bits(last).color()) != self.completions.phase() {
            return Ok(None);
        }
        doorbell.from_device();
        let words: [u64; CQE_BYTES / 8] = entry.load();
        let cqe: AdminCqe = zerocopy::transmute!(words.map(u64::to_le_bytes));
        let qtf = QidTypeFlags::from_bits(cqe.qid_type_flags.get());
        let posted = match self.check(&cqe, qtf) {
            Ok(posted) => posted,
            Err(fault) => {
                self.failed = true;
                return Err(fault);
            }
        };
        self.posted.pop_front();
        self.tail = self.tail.wrapping_add(posted.strides) & self.mask;
        self.completions.advance();
        let consumed = self.cq_doorbell.with_index(self.completions.head() as u16);
        doorbell.store(self.cq_qtype.register(), consumed.into_bits());
        let error = AdminError { op: posted.op, status: cqe.status_length.get() };
        Ok(Some(AdminDone { op: posted.op, result: if qtf.error() { Err(error) } else { Ok(cqe) } }))
    }

    fn check(&self, cqe: &AdminCqe, qtf: QidTypeFlags) -> Result<Posted, AdminFault> {
        if qtf.cqe_type() != CqeType::ADMIN.0 || qtf.qid() != self.id {
            return Err(AdminFault::Foreign { cqe_type: qtf.cqe_type(), qid: qtf.qid() });
        }
        let given = cqe.cmd_idx.get();
        match self.posted.front() {
            None => Err(AdminFault::Unexpected(given)),
            Some(_) if given != self.tail => Err(AdminFault::OutOfOrder { given, expected: self.tail }),
            Some(posted) => Ok(*posted),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;
    use core::ptr::NonNull;
    use std::vec::Vec;

    use super::super::wqe::{CreateQpCmd, DestroyQpCmd};
    use super::*;

    #[derive(Default)]
    struct Recorder(RefCell<Vec<(usize, u64)>>);

    impl Doorbell for Recorder {
        fn store(&self, register: usize, value: u64) {
            self.0.borrow_mut().push((register, value));
        }
    }

    #[repr(align(4096))]
    struct Pages([u8; 4096]);

    struct Rig<'m> {
        queue: RdmaAdminQueue<'m>,
        commands: NonNull<u8>,
        cqes: NonNull<u8>,
        doorbell: Recorder,
    }

    /// A queue of eight strides and four CQEs.
    fn rig(memory: &mut [Pages; 2]) -> Rig<'_> {
        let [a, b] = memory;
        let (commands, cqes) = (NonNull::from(&mut a.0).cast(), NonNull::from(&mut b.0).cast());
        let config = RdmaAdminConfig {
            // SAFETY: borrowed for as long as the queue; only it and the test's device use the memory.
            commands: unsafe { RingMemory::from_raw(commands, 4096) },
            depth_log2: 3,
            // SAFETY: as above.
            completions: unsafe { RingMemory::from_raw(cqes, 4096) },
            cq_depth_log2: 2,
            qtype: QueueType::new(2).unwrap(),
            id: 1,
            cq_qtype: QueueType::new(5).unwrap(),
            cq_id: 9,
        };
        Rig { queue: RdmaAdminQueue::new(config).unwrap(), commands, cqes, doorbell: Recorder::default() }
    }

    impl Rig<'_> {
        /// The device's part.
        fn complete(
            &self,
            entry: usize,
            index: u16,
            color: bool,
            change: impl Fn(&mut QidTypeFlags, &mut AdminCqe),
        ) {
            let mut qtf = QidTypeFlags::new().with_color(color).with_qid(1);
            let mut cqe = AdminCqe { cmd_idx: index.into(), ..AdminCqe::ZERO };
            change(&mut qtf, &mut cqe);
            cqe.qid_type_flags = qtf.into_bits().into();
            // SAFETY: in the page of CQEs, in place of the device.
            unsafe { self.cqes.add(entry * CQE_BYTES).cast().write_unaligned(cqe) };
        }

        fn stride(&self, index: usize) -> [u8; STRIDE_BYTES] {
            // SAFETY: in the page of commands.
            unsafe { self.commands.add(index * STRIDE_BYTES).cast().read_unaligned() }
        }
    }

    #[test]
    fn a_long_command_goes_on_in_the_next_stride_also_at_the_end_of_the_ring() {
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let mut rig = rig(&mut memory);
        let cmd = CreateQpCmd {
            pd_id: 0x11.into(),
            id_ver: 0x0102_0304.into(),
            type_state: 3,
            rsvd: 0x77,
            ..CreateQpCmd::ZERO
        };
        let mut at = 0;
        for round in 0..9usize {
            let single = DestroyQpCmd { qp_id: 5.into() };
            let want = [
                usize::from(rig.queue.post(&cmd, &rig.doorbell).unwrap()),
                usize::from(rig.queue.post(&single, &rig.doorbell).unwrap()),
            ];
            assert_eq!(want, [at, (at + 2) % 8]);
            assert_eq!(
                (rig.stride(at)[0], rig.stride(at)[2], rig.stride(at)[60..].to_vec()),
                (2, 64, std::vec![4, 3, 2, 1])
            );
            assert_eq!(rig.stride((at + 1) % 8)[..4], [0, 0, 3, 0x77]);
            assert_eq!(rig.stride((at + 2) % 8)[..8], [11, 0, 4, 0, 5, 0, 0, 0]);
            assert_eq!(
                rig.doorbell.0.take(),
                [(2, 1 << 24 | (at as u64 + 2) % 8), (2, 1 << 24 | (at as u64 + 3) % 8)]
            );
            for (nth, index) in want.into_iter().enumerate() {
                let position = 2 * round + nth;
                rig.complete(position % 4, index as u16, (position / 4) % 2 == 0, |_, _| {});
                let done = rig.queue.poll(&rig.doorbell).unwrap().unwrap();
                assert!(done.result.is_ok() && done.op == [AdminOp::CREATE_QP, AdminOp::DESTROY_QP][nth]);
                assert_eq!(rig.doorbell.0.take(), [(5, 9 << 24 | (position as u64 + 1) % 4)]);
            }
            assert_eq!((rig.queue.poll(&rig.doorbell), rig.queue.outstanding()), (Ok(None), 0));
            at = (at + 3) % 8;
        }
    }

    #[test]
    fn the_error_bit_makes_a_status() {
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let mut rig = rig(&mut memory);
        rig.queue.post(&DestroyQpCmd::ZERO, &rig.doorbell).unwrap();
        rig.complete(0, 0, true, |qtf, cqe| {
            *qtf = qtf.with_error(true);
            cqe.status_length = 5.into();
        });
        let error = AdminError { op: AdminOp::DESTROY_QP, status: 5 };
        assert_eq!(rig.queue.poll(&rig.doorbell).unwrap().unwrap().result, Err(error));
    }

    #[test]
    fn a_cqe_that_makes_no_sense_fails_the_queue() {
        let faults: [(fn(&mut QidTypeFlags, &mut AdminCqe), AdminFault); 3] = [
            (|_, cqe| cqe.cmd_idx = 7.into(), AdminFault::OutOfOrder { given: 7, expected: 0 }),
            (|qtf, _| *qtf = qtf.with_qid(2), AdminFault::Foreign { cqe_type: 0, qid: 2 }),
            (|qtf, _| *qtf = qtf.with_cqe_type(3), AdminFault::Foreign { cqe_type: 3, qid: 1 }),
        ];
        for (change, fault) in faults {
            let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
            let mut rig = rig(&mut memory);
            rig.queue.post(&DestroyQpCmd::ZERO, &rig.doorbell).unwrap();
            rig.complete(0, 0, true, change);
            assert_eq!(rig.queue.poll(&rig.doorbell), Err(fault));
            assert_eq!(rig.queue.poll(&rig.doorbell), Err(AdminFault::Failed));
            assert_eq!(rig.queue.post(&DestroyQpCmd::ZERO, &rig.doorbell), Err(QueueFull));
        }
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let mut rig = rig(&mut memory);
        rig.complete(0, 0, true, |_, _| {});
        assert_eq!(rig.queue.poll(&rig.doorbell), Err(AdminFault::Unexpected(0)));
    }

    #[test]
    fn a_full_queue_takes_and_rings_nothing() {
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let mut rig = rig(&mut memory);
        for _ in 0..3 {
            rig.queue.post(&CreateQpCmd::ZERO, &rig.doorbell).unwrap();
        }
        rig.doorbell.0.take();
        // There is one stride left, and no CQE.
        assert_eq!(rig.queue.post(&CreateQpCmd::ZERO, &rig.doorbell), Err(QueueFull));
        assert_eq!(rig.queue.post(&DestroyQpCmd::ZERO, &rig.doorbell), Err(QueueFull));
        assert_eq!(rig.queue.post_raw(AdminOp::NOOP, &[0; 65], &rig.doorbell), Err(QueueFull));
        assert_eq!((rig.doorbell.0.take().len(), rig.queue.outstanding()), (0, 3));
    }

    #[test]
    fn any_bytes_in_the_ring_are_a_command_done_or_a_fault() {
        let mut x = 1u64;
        for _ in 0..500 {
            let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
            let mut rig = rig(&mut memory);
            rig.queue.post(&DestroyQpCmd::ZERO, &rig.doorbell).unwrap();
            for at in 0..CQE_BYTES {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // SAFETY: in the page of CQEs.
                unsafe { rig.cqes.add(at).write((x >> 33) as u8) };
            }
            let first = rig.queue.poll(&rig.doorbell);
            assert!(!matches!(first, Ok(Some(_))) || rig.queue.outstanding() == 0);
        }
    }
}
