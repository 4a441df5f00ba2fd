//! The command ring: commands in, completions and events out.

use directverbs::bnxt_re::rcfw::cmdq::{FIRST, PARTS};
use directverbs::bnxt_re::rcfw::event::Status;
use directverbs::bnxt_re::rcfw::message::{
    CmdqBase, CmdqInit, CreqDone, CreqFuncEvent, CreqType, CreqValid, FUNC_EVENT, QP_EVENT, UNIT,
};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use zerocopy::{FromBytes, IntoBytes, little_endian as le};

use super::function::BnxtFunction;
use crate::pci::CommandFault;

/// Event of the function: resources are exhausted.
const RESOURCE_EXHAUSTED: u8 = 0x81;

/// State of the channel.
#[derive(Debug, Default)]
pub(super) struct Rcfw {
    mailbox: [u8; 16],
    running: Option<Running>,
    /// INITIALIZE_FW is done.
    pub initialized: bool,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    ring: u64,
    slots: u16,
    creq: u16,
    consumed: u16,
}

impl Rcfw {
    /// The host stores to the mailbox.
    pub fn store(&mut self, offset: usize, value: u32) {
        if let Some(word) = self.mailbox.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
            *word = value.to_le_bytes();
        }
    }

    /// Whether completions go to this ring.
    pub fn uses(&self, ring: u16) -> bool {
        self.initialized && self.running.is_some_and(|running| running.creq == ring)
    }
}

/// What a command is answered with: bytes 4 to 8 of the completion, bytes 10 to 16, and what goes to the side buffer.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Number of the object, or what else is there.
    pub word: u32,
    /// The rest of the completion.
    pub rest: [u8; 6],
    /// What goes to the side buffer.
    pub side: Option<Vec<u8>>,
}

impl Reply {
    /// The number of an object.
    pub fn xid(xid: u32) -> Self {
        Self { word: xid, ..Self::default() }
    }

    /// The answer to a query.
    pub fn side(bytes: &[u8]) -> Self {
        Self { side: Some(bytes.to_vec()), ..Self::default() }
    }
}

/// How a command ends.
pub(super) type Outcome = Result<Reply, Status>;

impl BnxtFunction {
    /// The host has stored to the trigger.
    pub(super) fn rcfw_commands(&mut self) {
        let producer = self.state.rcfw.mailbox.last_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        if producer & FIRST != 0 && !self.rcfw_start() {
            return;
        }
        let Some(running) = self.state.rcfw.running else {
            return self.violation(format_args!("RCFW: producer {producer:#x}, but the ring is not told"));
        };
        let ready = (producer as u16).wrapping_sub(running.consumed);
        if ready > running.slots {
            return self.violation(format_args!("RCFW: producer {producer:#x} is {ready} slots on"));
        }
        let mut left = ready;
        while left != 0 {
            let Some(command) = self.fetch(left) else { return };
            left -= command.len().div_ceil(UNIT) as u16;
            if !self.command(&command) {
                return;
            }
        }
    }

    fn rcfw_start(&mut self) -> bool {
        let init = CmdqInit::read_from_bytes(&self.state.rcfw.mailbox).unwrap_or(CmdqInit::ZERO);
        let size_and_level = init.cmdq_size_cmdq_lvl.get();
        let (slots, level, creq) = (size_and_level >> 2, size_and_level & 3, init.creq_ring_id.get());
        let ring = init.cmdq_pbl.get();
        let bytes = usize::from(slots) * UNIT;
        let reachable = self.bus().read(ring, &mut vec![0; bytes]).is_ok();
        if !slots.is_power_of_two() || level != 0 || !reachable || !self.state.rings.is_nq(creq) {
            self.violation(format_args!(
                "RCFW: ring of {slots} slots at {ring:#x}, level {level}, completions to ring {creq}"
            ));
            return false;
        }
        self.state.rcfw.running = Some(Running { ring, slots, creq, consumed: 0 });
        true
    }

    /// Takes a command from the ring.
    fn fetch(&mut self, ready: u16) -> Option<Vec<u8>> {
        let running = self.state.rcfw.running?;
        let slot = |n: u16| {
            let index = running.consumed.wrapping_add(n) & (running.slots - 1);
            let mut slot = [0; UNIT];
            let read = self.bus().read(running.ring + u64::from(index) * UNIT as u64, &mut slot);
            read.ok().map(|()| slot)
        };
        let first = slot(0)?;
        let units = if u16::from_le_bytes([first[0], first[1]]) == PARTS { first[8] } else { first[1] };
        if units == 0 || u16::from(units) > ready {
            self.violation(format_args!("RCFW: a command of {units} slots, {ready} are ready"));
            // Nobody can tell where the next one begins.
            self.state.rcfw.running = None;
            return None;
        }
        let slots: Option<Vec<[u8; UNIT]>> = (0..u16::from(units)).map(slot).collect();
        if let Some(running) = &mut self.state.rcfw.running {
            running.consumed = running.consumed.wrapping_add(units.into());
        }
        slots.map(|slots| slots.concat())
    }

    /// Carries out a command; `false` if the channel is gone then.
    fn command(&mut self, command: &[u8]) -> bool {
        let parts = u16::from_le_bytes([command[0], command[1]]) == PARTS;
        let inner = if parts { command.get(UNIT..).unwrap_or(&[]) } else { command };
        let Ok((base, _)) = CmdqBase::read_from_prefix(inner) else {
            self.violation("RCFW: a command without a header");
            return true;
        };
        let opcode = Opcode(base.opcode);
        let fault = self.faults.next();
        let outcome = match fault {
            Some(CommandFault::HotReset) => {
                self.hot_reset();
                return false;
            }
            Some(CommandFault::Refused) => Err(Status::FAIL),
            _ if parts => self.carry_out_parts(opcode, command),
            _ => self.carry_out(opcode, inner),
        };
        self.trace.say(|| {
            let cookie = base.cookie.get();
            match &outcome {
                Ok(reply) => format!("RCFW {cookie} {opcode}: {:#x}", reply.word),
                Err(status) => format!("RCFW {cookie} {opcode}: {status}"),
            }
        });
        if fault == Some(CommandFault::Event) {
            self.function_event(RESOURCE_EXHAUSTED);
        }
        if fault != Some(CommandFault::Silent) {
            self.complete_command(&base, outcome, fault);
        }
        true
    }

    fn complete_command(&mut self, base: &CmdqBase, outcome: Outcome, fault: Option<CommandFault>) {
        let (status, mut reply) = match outcome {
            Ok(reply) => (Status::SUCCESS, reply),
            Err(status) => (status, Reply::default()),
        };
        if fault == Some(CommandFault::Garbage) {
            (reply.word, reply.rest) = (u32::MAX, [0xff; 6]);
            reply.side = reply.side.map(|side| vec![0xff; side.len()]);
        }
        if let Some(side) = &reply.side {
            let room = usize::from(base.resp_size) * UNIT;
            let at = base.resp_addr.get();
            if side.len() > room || self.bus().write(at, side).is_err() {
                self.violation(format_args!(
                    "RCFW: side buffer of {room} bytes at {at:#x}, {} needed",
                    side.len()
                ));
            }
            if fault != Some(CommandFault::Garbage) {
                reply.word = side.len().div_ceil(UNIT) as u32;
            }
            if fault == Some(CommandFault::WrongLength) {
                reply.word = 0xffff;
            }
        }
        let cookie = match fault {
            Some(CommandFault::WrongSequence) => base.cookie.get() ^ 1,
            _ => base.cookie.get(),
        };
        let Some(creq) = self.state.rcfw.running.map(|running| running.creq) else { return };
        let opcode = base.opcode;
        let stale = fault == Some(CommandFault::NotValid);
        self.ring_write(creq, stale, |phase| {
            let done = CreqDone {
                r#type: CreqType::new().with_kind(QP_EVENT).into_bits(),
                status: status.0,
                cookie: le::U16::new(cookie),
                reserved32: le::U32::new(reply.word),
                v: CreqValid::new().with_v(phase).into_bits(),
                event: opcode,
                reserved48: reply.rest,
            };
            done.as_bytes().try_into().unwrap_or_default()
        });
    }

    /// Tells the host something that is about no command.
    pub(super) fn creq_event(&mut self, set: impl FnOnce(CreqValid) -> [u8; UNIT]) {
        if let Some(running) = self.state.rcfw.running {
            self.ring_write(running.creq, false, |phase| set(CreqValid::new().with_v(phase)));
        }
    }

    fn function_event(&mut self, event: u8) {
        self.creq_event(|valid| {
            let entry = CreqFuncEvent {
                r#type: CreqType::new().with_kind(FUNC_EVENT).into_bits(),
                v: valid.into_bits(),
                event,
                ..CreqFuncEvent::ZERO
            };
            entry.as_bytes().try_into().unwrap_or_default()
        });
    }
}
