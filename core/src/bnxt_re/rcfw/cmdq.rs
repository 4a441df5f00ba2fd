//! The command ring: commands out. It writes no register and waits for nothing: that is the platform's.

use zerocopy::{IntoBytes, little_endian as le};

use super::event::Ticket;
use super::message::{CmdqBase, CmdqInit, Command, UNIT};
use super::opcode::Opcode;
use crate::queue::RingMemory;
use crate::verbs::MemoryError;

/// Offset of the mailbox in the register BAR: a [`CmdqInit`] starts the channel.
pub const MAILBOX: usize = 0x600;
/// Offset of the producer's register in the register BAR.
pub const PRODUCER: usize = 0x60c;
/// Offset of the trigger in the register BAR: a 1 is written after the producer.
pub const TRIGGER: usize = 0x700;
/// Bit of the producer that the first command has.
pub const FIRST: u32 = 1 << 31;
/// Most slots of the ring: its size has 14 bits.
pub const MAX_SLOTS: u32 = 8192;
/// First half-word of a command in parts: a list of type, length and value, whose first part is the command.
pub const PARTS: u16 = 0x8000;
/// Bits of a cookie.
const COOKIE: u16 = 0x1fff;

/// A side buffer: what a query writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Its address.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: usize,
}

/// A command that cannot be sent. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no room: commands that were sent are not complete.
    #[error("{opcode}: {needed} slots needed, {free} are free")]
    Full {
        /// Opcode of the command.
        opcode: Opcode,
        /// Slots that it needs.
        needed: u16,
        /// Slots that are free.
        free: u16,
    },
    /// A command or side buffer that has no whole units, or too many.
    #[error("{opcode}: {bytes} bytes are no 1 to 255 units of 16")]
    Units {
        /// Opcode of the command.
        opcode: Opcode,
        /// Its length, or that of the side buffer.
        bytes: usize,
    },
}

/// The command ring.
#[derive(Debug)]
pub struct Cmdq<'m> {
    memory: RingMemory<'m>,
    slots: u16,
    /// Slots written since the start. It runs freely.
    prod: u16,
    used: u16,
    cookie: u16,
    first: u32,
}

impl<'m> Cmdq<'m> {
    /// A ring of `slots` in `memory`.
    ///
    /// # Errors
    /// Memory that is too short or not aligned, or slots that are no power of two or too many.
    pub fn new(memory: RingMemory<'m>, slots: u32) -> Result<Self, MemoryError> {
        if !slots.is_power_of_two() || slots > MAX_SLOTS {
            return Err(MemoryError::Mismatch(text!(
                "a command ring has a power of two of slots, at most 8192"
            )));
        }
        let mut memory = memory;
        memory.check(text!("command ring"), slots as usize * UNIT, UNIT)?;
        memory.zero();
        Ok(Self { memory, slots: slots as u16, prod: 0, used: 0, cookie: 0, first: FIRST })
    }

    /// What starts the channel: the ring is at `address`, in one piece.
    pub fn init(&self, address: u64, creq_ring_id: u16) -> CmdqInit {
        CmdqInit {
            cmdq_pbl: le::U64::new(address),
            cmdq_size_cmdq_lvl: le::U16::new(self.slots << 2),
            creq_ring_id: le::U16::new(creq_ring_id),
            prod_idx: le::U32::new(0),
        }
    }

    /// Writes a command into the ring. Gives the value for [`PRODUCER`].
    ///
    /// # Errors
    /// There is no room, or the command or its side buffer has no proper length.
    pub fn send<C: Command>(&mut self, command: &C, side: Option<Side>) -> Result<(Ticket, u32), SendError> {
        self.send_bytes(C::OPCODE, command.as_bytes(), side)
    }

    /// [`Cmdq::send`] with the command as bytes.
    ///
    /// # Errors
    /// The same.
    pub fn send_bytes(
        &mut self,
        opcode: Opcode,
        command: &[u8],
        side: Option<Side>,
    ) -> Result<(Ticket, u32), SendError> {
        let units = |bytes: usize| match bytes.div_ceil(UNIT) {
            units @ 1..=255 => Ok(units as u8),
            _ => Err(SendError::Units { opcode, bytes }),
        };
        let needed = units(command.len())?;
        let resp_size = side.map_or(Ok(0), |side| units(side.bytes))?;
        let free = self.slots - self.used;
        if u16::from(needed) > free {
            return Err(SendError::Full { opcode, needed: needed.into(), free });
        }
        let ticket = Ticket { opcode, cookie: self.cookie, units: needed.into() };
        self.write(command, &ticket, needed, resp_size, side.map_or(0, |side| side.address));
        self.used += u16::from(needed);
        self.prod = self.prod.wrapping_add(needed.into());
        self.cookie = (self.cookie + 1) & COOKIE;
        let producer = u32::from(self.prod) | core::mem::take(&mut self.first);
        Ok((ticket, producer))
    }

    /// The command is complete: its slots are free.
    pub const fn complete(&mut self, ticket: &Ticket) {
        self.used = self.used.saturating_sub(ticket.units);
    }

    fn write(&mut self, bytes: &[u8], ticket: &Ticket, units: u8, resp_size: u8, resp_addr: u64) {
        // The header of a command in parts is that of its first part, behind that of the list.
        let in_parts = bytes.first_chunk() == Some(&PARTS.to_le_bytes());
        for unit in 0..units {
            let from = usize::from(unit) * UNIT;
            let mut slot: [u8; UNIT] = core::array::from_fn(|i| bytes.get(from + i).copied().unwrap_or(0));
            if unit == u8::from(in_parts) {
                // What the caller may set in the header: flags, and the eighth byte.
                let header = CmdqBase {
                    opcode: ticket.opcode.0,
                    cmd_size: if in_parts { slot[1] } else { units },
                    flags: le::U16::new(u16::from_le_bytes([slot[2], slot[3]])),
                    cookie: le::U16::new(ticket.cookie),
                    resp_size,
                    reserved8: slot[7],
                    resp_addr: le::U64::new(resp_addr),
                };
                slot.copy_from_slice(header.as_bytes());
            }
            let index = self.prod.wrapping_add(unit.into()) & (self.slots - 1);
            self.memory.store_bytes(usize::from(index) * UNIT, &slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{CompletionError, CreqEvent, Status};
    use super::super::function::CmdqQueryFunc;
    use super::super::qp::CmdqCreateQp;
    use super::*;

    #[repr(align(16))]
    struct Slots([u8; 128]);

    fn completion(opcode: u8, cookie: u8, status: u8) -> super::super::event::Completion {
        let entry = [0x38, status, cookie, 0, 9, 0, 0, 0, 1, opcode, 0, 0, 0, 0, 0, 0];
        match CreqEvent::decode(entry) {
            CreqEvent::Completion(completion) => completion,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_is_written_with_its_header() {
        let mut slots = Slots([0; 128]);
        let mut cmdq = Cmdq::new(RingMemory::new(&mut slots.0), 8).unwrap();
        let init = cmdq.init(0x1000, 5);
        assert_eq!(init.as_bytes(), [0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0, 5, 0, 0, 0, 0, 0]);
        let side = Side { address: 0x2000, bytes: 160 };
        let (first, producer) = cmdq.send(&CmdqQueryFunc::ZERO, Some(side)).unwrap();
        assert_eq!(producer, 0x8000_0001);
        cmdq.complete(&first);
        let mut create = CmdqCreateQp::ZERO;
        create.flags = le::U16::new(0x0102);
        create.steering_tag = le::U16::new(0x3344);
        let (second, producer) = cmdq.send(&create, None).unwrap();
        assert_eq!((producer, second.opcode()), (8, Opcode::CREATE_QP));
        let Err(full) = cmdq.send(&create, None) else { panic!("no room") };
        assert_eq!(full, SendError::Full { opcode: Opcode::CREATE_QP, needed: 7, free: 1 });
        cmdq.complete(&second);
        assert_eq!(cmdq.send(&create, None).unwrap().1, 15);
        assert_eq!(slots.0[..16], [1, 7, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], "the third one");
        let wrapped = 16 * (6 + 6) % 128;
        assert_eq!(slots.0[wrapped + 4..wrapped + 6], [0; 2]);
    }

    #[test]
    fn the_first_command_reads_as_it_was_sent() {
        let mut slots = Slots([0; 128]);
        let mut cmdq = Cmdq::new(RingMemory::new(&mut slots.0), 8).unwrap();
        let side = Side { address: 0x2000, bytes: 160 };
        cmdq.send(&CmdqQueryFunc::ZERO, Some(side)).unwrap();
        assert_eq!(slots.0[..16], [0x83, 1, 0, 0, 0, 0, 10, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_side_buffer_without_proper_length_is_refused_and_changes_nothing() {
        let mut slots = Slots([0; 128]);
        let mut cmdq = Cmdq::new(RingMemory::new(&mut slots.0), 8).unwrap();
        for bytes in [0, 256 * 16] {
            let side = Side { address: 0, bytes };
            let refused = cmdq.send(&CmdqQueryFunc::ZERO, Some(side));
            assert_eq!(refused, Err(SendError::Units { opcode: Opcode::QUERY_FUNC, bytes }));
        }
        assert_eq!(cmdq.send(&CmdqQueryFunc::ZERO, None).unwrap().1, 0x8000_0001);
    }

    #[test]
    fn a_completion_must_be_that_of_the_command() {
        let mut slots = Slots([0; 128]);
        let mut cmdq = Cmdq::new(RingMemory::new(&mut slots.0), 8).unwrap();
        let (ticket, _) = cmdq.send(&CmdqQueryFunc::ZERO, None).unwrap();
        let opcode = Opcode::QUERY_FUNC;
        let check = |c| ticket.check::<CmdqQueryFunc>(&c);
        assert_eq!(check(completion(0x83, 0, 0)).unwrap().size.get(), 9);
        let wrong = [
            (completion(0x83, 1, 0), CompletionError::Cookie { opcode, sent: 0, seen: 1 }),
            (completion(1, 0, 0), CompletionError::Opcode { opcode, seen: Opcode::CREATE_QP }),
            (completion(0x83, 0, 4), CompletionError::Refused { opcode, status: Status::NOT_IMPLEMENTED }),
        ];
        for (completion, error) in wrong {
            assert_eq!(check(completion), Err(error));
        }
    }

    #[test]
    fn every_kind_of_event_is_told_apart() {
        let entry = |kind: u8, event: u8| {
            let mut entry = [0; 16];
            (entry[0], entry[4], entry[9]) = (kind, 7, event);
            CreqEvent::decode(entry)
        };
        assert!(matches!(entry(0x38, 0xc0), CreqEvent::QpError(e) if e.xid.get() == 7));
        assert!(matches!(entry(0x38, 0xc1), CreqEvent::CqError(e) if e.xid.get() == 7));
        assert!(matches!(entry(0x3a, 0x81), CreqEvent::Function(e) if e.event == 0x81));
        assert!(matches!(entry(0x38, 0x83), CreqEvent::Completion(_)));
        for kind in [0, 0x30, 0x3f] {
            assert!(matches!(entry(kind, 0x83), CreqEvent::Unknown(_)), "{kind:#x}");
        }
    }
}
