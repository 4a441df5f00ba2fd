//! The Ethernet admin queue: a ring of commands, and a ring of completions with a color.

use zerocopy::FromBytes;

use super::command::{Command, Completion};
use super::registers::{COMMAND_BYTES, COMPLETION_BYTES};
use crate::ionic::doorbell::{DoorbellWord, QueueType};
use crate::queue::{Doorbell, PhaseRing, RingMemory};
use crate::verbs::MemoryError;

/// Most entries, base-two logarithm.
const DEPTH_MAX_LOG2: u8 = 15;
/// Bit of the high half of a completion's last word that is the color.
const COLOR: u32 = 31;

/// All entries are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the admin queue is full")]
pub struct QueueFull;

/// A completion that makes no sense. The queue takes no more commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminFault {
    /// It is for another command than the oldest.
    #[error("completion of command {given}, the oldest outstanding is {expected}")]
    OutOfOrder {
        /// Position that it names.
        given: u16,
        /// Position of the oldest command.
        expected: u16,
    },
    /// Nothing is outstanding.
    #[error("completion of command {0}, nothing is outstanding")]
    Unexpected(u16),
    /// It is of another kind, or another queue.
    #[error("completion of type {cqe_type} for queue {qid:#x}")]
    Foreign {
        /// Type that it has.
        cqe_type: u8,
        /// Queue that it names.
        qid: u32,
    },
    /// The queue failed earlier.
    #[error("the admin queue has failed")]
    Failed,
}

/// A command that is done; [`Command::completion`] takes its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Position of the command.
    pub index: u16,
    /// The completion.
    pub bytes: [u8; COMPLETION_BYTES],
}

/// What an admin queue is made of.
#[derive(Debug)]
pub struct AdminQueueConfig<'m> {
    /// Ring of commands.
    pub commands: RingMemory<'m>,
    /// Ring of completions.
    pub completions: RingMemory<'m>,
    /// Entries of both, base-two logarithm.
    pub depth_log2: u8,
}

/// The admin queue of a LIF.
#[derive(Debug)]
pub struct AdminQueue<'m> {
    commands: RingMemory<'m>,
    completions: PhaseRing<'m, 2>,
    mask: u16,
    /// Doorbell register, and the bits of its doorbells that never change; nothing before [`AdminQueue::attach`].
    doorbell: Option<(QueueType, DoorbellWord)>,
    /// Position of the next command.
    head: u16,
    /// Position of the oldest outstanding one.
    tail: u16,
    failed: bool,
}

impl<'m> AdminQueue<'m> {
    /// A queue that the device does not know yet, and that takes no commands. The memory of its completions is filled with
    /// zeros.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, fewer than two entries or more than 2^15.
    pub fn new(config: AdminQueueConfig<'m>) -> Result<Self, MemoryError> {
        let AdminQueueConfig { commands, completions, depth_log2 } = config;
        if !(1..=DEPTH_MAX_LOG2).contains(&depth_log2) {
            return Err(MemoryError::OutOfRange {
                what: text!("admin queue"),
                value: depth_log2.into(),
                bits: 4,
            });
        }
        let depth = 1u32 << depth_log2;
        commands.check(text!("admin queue"), COMMAND_BYTES << depth_log2, COMMAND_BYTES)?;
        if commands.overlaps(&completions) {
            return Err(MemoryError::Overlap(text!("admin commands"), text!("admin completions")));
        }
        Ok(Self {
            commands,
            completions: PhaseRing::new(completions, depth)?,
            mask: (depth - 1) as u16,
            doorbell: None,
            head: 0,
            tail: 0,
            failed: false,
        })
    }

    /// The device has created the queue, and answered with its doorbell register and its number in doorbells.
    ///
    /// # Errors
    /// A register that is none, or a number of more than 24 bits.
    pub fn attach(&mut self, hw_type: u8, hw_index: u32) -> Result<(), MemoryError> {
        let wide = |what, value: u32, bits| MemoryError::OutOfRange { what, value, bits };
        let qtype = QueueType::new(hw_type).ok_or(wide(text!("doorbell register"), hw_type.into(), 3))?;
        if hw_index >> 24 != 0 {
            return Err(wide(text!("admin queue number"), hw_index, 24));
        }
        self.doorbell = Some((qtype, DoorbellWord::new().with_qid(hw_index)));
        Ok(())
    }

    /// Commands that are not done.
    pub const fn outstanding(&self) -> u16 {
        self.head.wrapping_sub(self.tail) & self.mask
    }

    /// Posts a command and rings the doorbell. Returns its position.
    ///
    /// # Errors
    /// The queue is full, not attached, or has failed; nothing was written or rung.
    pub fn post<C: Command, D: Doorbell>(&mut self, cmd: &C, doorbell: &D) -> Result<u16, QueueFull> {
        self.post_bytes(&cmd.to_bytes(), doorbell)
    }

    /// [`AdminQueue::post`] with the command as bytes.
    ///
    /// # Errors
    /// The same.
    pub fn post_bytes<D: Doorbell>(
        &mut self,
        cmd: &[u8; COMMAND_BYTES],
        doorbell: &D,
    ) -> Result<u16, QueueFull> {
        let Some((qtype, word)) = self.doorbell else { return Err(QueueFull) };
        if self.failed || self.outstanding() == self.mask {
            return Err(QueueFull);
        }
        let index = self.head;
        if !self.commands.store_bytes(usize::from(index) * COMMAND_BYTES, cmd) {
            return Err(QueueFull);
        }
        self.head = index.wrapping_add(1) & self.mask;
        doorbell.to_device();
        doorbell.store(qtype.register(), word.with_index(self.head).into_bits());
        Ok(index)
    }

    /// The next command that is done.
    ///
    /// # Errors
    /// A completion that makes no sense: the queue has failed.
    pub fn poll<D: Doorbell>(&mut self, doorbell: &D) -> Result<Option<Completed>, AdminFault> {
        if self.failed {
            return Err(AdminFault::Failed);
        }
        let entry = self.completions.entry();
        if entry.load_valid_high::<1>() >> COLOR != self.completions.phase() {
            return Ok(None);
        }
        doorbell.from_device();
        let mut bytes = [0; COMPLETION_BYTES];
        for (to, from) in bytes.chunks_exact_mut(8).zip(entry.load()) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        let given = Completion::read_from_bytes(&bytes).map_or(0, |done| done.comp_index.get());
        let wrong = match (self.outstanding(), given == self.tail) {
            (0, _) => Some(AdminFault::Unexpected(given)),
            (_, false) => Some(AdminFault::OutOfOrder { given, expected: self.tail }),
            _ => None,
        };
        if let Some(fault) = wrong {
            self.failed = true;
            return Err(fault);
        }
        self.completions.advance();
        let index = self.tail;
        self.tail = index.wrapping_add(1) & self.mask;
        Ok(Some(Completed { index, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::ptr::NonNull;

    use super::*;
    use crate::ionic::devcmd::{LifAttr, LifGetAttrCmd, Opcode};

    struct Recorder(Cell<Option<(usize, u64)>>);

    impl Doorbell for Recorder {
        fn store(&self, register: usize, value: u64) {
            self.0.set(Some((register, value)));
        }
    }

    #[repr(align(4096))]
    struct Pages([u8; 4096]);

    /// A queue of four entries, where its completions are, and its doorbell.
    fn queue<'m>(memory: &'m mut [Pages; 2]) -> (AdminQueue<'m>, NonNull<u8>, Recorder) {
        let [a, b] = memory;
        let at = NonNull::from(&mut b.0).cast::<u8>();
        let config = AdminQueueConfig {
            commands: RingMemory::new(&mut a.0),
            // SAFETY: borrowed for as long as the queue; only it and the test's device use the memory.
            completions: unsafe { RingMemory::from_raw(at, 4096) },
            depth_log2: 2,
        };
        let mut queue = AdminQueue::new(config).unwrap();
        let doorbell = Recorder(Cell::new(None));
        assert_eq!(queue.post(&LifGetAttrCmd::new(0, LifAttr::MTU), &doorbell), Err(QueueFull));
        queue.attach(1, 0x12).unwrap();
        (queue, at, doorbell)
    }

    /// The device's part.
    fn complete(at: NonNull<u8>, entry: usize, status: u8, index: u16, color: bool) {
        let color = u8::from(color) << 7;
        let done = Completion { status, comp_index: index.into(), color, ..Completion::ZERO };
        // SAFETY: in the page of completions, in place of the device.
        unsafe { at.add(entry * 16).cast().write_unaligned(done) };
    }

    #[test]
    fn commands_complete_in_order_over_several_laps() {
        let mut memory = [Pages([0xff; 4096]), Pages([0xff; 4096])];
        let (mut queue, at, doorbell) = queue(&mut memory);
        for position in 0..13usize {
            let index = queue.post(&LifGetAttrCmd::new(0, LifAttr::MAC), &doorbell).unwrap();
            assert_eq!(usize::from(index), position % 4);
            let next = (position as u64 + 1) % 4;
            assert_eq!(doorbell.0.take(), Some((1, 0x12 << 24 | next)));
            assert_eq!(queue.poll(&doorbell), Ok(None));
            complete(at, position % 4, 0, index, (position / 4) % 2 == 0);
            let done = queue.poll(&doorbell).unwrap().unwrap();
            assert_eq!((done.index, queue.outstanding()), (index, 0));
            assert!(LifGetAttrCmd::completion(&done.bytes).is_ok());
        }
    }

    #[test]
    fn a_full_queue_takes_and_rings_nothing() {
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let (mut queue, _, doorbell) = queue(&mut memory);
        let cmd = LifGetAttrCmd::new(0, LifAttr::MTU);
        for _ in 0..3 {
            assert!(queue.post(&cmd, &doorbell).is_ok());
        }
        doorbell.0.take();
        assert_eq!((queue.post(&cmd, &doorbell), doorbell.0.take()), (Err(QueueFull), None));
        assert_eq!(queue.outstanding(), 3);
    }

    #[test]
    fn a_completion_out_of_order_fails_the_queue() {
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let (mut queue, at, doorbell) = queue(&mut memory);
        complete(at, 0, 0, 3, true);
        assert_eq!(queue.poll(&doorbell), Err(AdminFault::Unexpected(3)));
        assert_eq!(queue.poll(&doorbell), Err(AdminFault::Failed));
        assert_eq!(queue.post(&LifGetAttrCmd::new(0, LifAttr::MTU), &doorbell), Err(QueueFull));

        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let (mut queue, at, doorbell) = self::queue(&mut memory);
        queue.post(&LifGetAttrCmd::new(0, LifAttr::MTU), &doorbell).unwrap();
        complete(at, 0, 0, 1, true);
        assert_eq!(queue.poll(&doorbell), Err(AdminFault::OutOfOrder { given: 1, expected: 0 }));
    }

    #[test]
    fn a_failed_command_is_an_error_of_its_type() {
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let (mut queue, at, doorbell) = queue(&mut memory);
        queue.post(&LifGetAttrCmd::new(0, LifAttr::MTU), &doorbell).unwrap();
        complete(at, 0, 19, 0, true);
        let done = queue.poll(&doorbell).unwrap().unwrap();
        let error = LifGetAttrCmd::completion(&done.bytes).unwrap_err();
        assert_eq!((error.opcode, error.status.0), (Opcode::LIF_GETATTR, 19));
    }

    #[test]
    fn memory_and_numbers_that_do_not_fit_are_refused() {
        let mut memory = [Pages([0; 4096]), Pages([0; 4096])];
        let mut of = |depth_log2| {
            let [a, b] = &mut memory;
            let (commands, completions) = (RingMemory::new(&mut a.0), RingMemory::new(&mut b.0));
            AdminQueue::new(AdminQueueConfig { commands, completions, depth_log2 }).is_ok()
        };
        assert!(of(6) && !of(7) && !of(0) && !of(16));
        let (mut queue, ..) = queue(&mut memory);
        assert!(queue.attach(8, 0).is_err() && queue.attach(7, 1 << 24).is_err());
        assert!(queue.attach(7, 0xff_ffff).is_ok());
    }
}
