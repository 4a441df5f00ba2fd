//! The Ethernet admin queue and the queue of notifications.

use directverbs::ionic::devcmd::registers::{COMMAND_BYTES, COMPLETION_BYTES};
use directverbs::ionic::devcmd::{LinkChangeEvent, NotifyCode, NotifyEvent, Opcode, ResetEvent, Status};
use directverbs::ionic::doorbell::DoorbellWord;
use zerocopy::{FromBytes, IntoBytes};

use super::devcmd::{ADMINQ_ID, Way};
use super::function::IonicFunction;
use super::identity::link;
use super::refusal::Refusal;
use super::{QueueKind, Wrong};
use crate::pci::CommandFault;

/// Bytes of a notification.
const NOTIFY_BYTES: u64 = 64;

/// The admin queue.
#[derive(Debug)]
pub(super) struct AdminRing {
    base: u64,
    cq_base: u64,
    mask: u16,
    page: u32,
    intr: Option<u16>,
    /// Next command to fetch.
    next: u16,
    /// Completions written.
    written: u64,
}

impl AdminRing {
    pub const fn new(base: u64, cq_base: u64, depth_log2: u8, page: u32, intr: Option<u16>) -> Self {
        Self { base, cq_base, mask: (1 << depth_log2) - 1, page, intr, next: 0, written: 0 }
    }
}

/// The queue of notifications.
#[derive(Debug)]
pub(super) struct NotifyRing {
    base: u64,
    mask: u64,
    intr: Option<u16>,
    /// Number of the last notification.
    pub eid: u64,
}

impl NotifyRing {
    pub const fn new(base: u64, depth_log2: u8, intr: Option<u16>) -> Self {
        Self { base, mask: (1 << depth_log2) - 1, intr, eid: 0 }
    }
}

impl IonicFunction {
    pub(super) fn admin_doorbell(&mut self, page: u32, word: DoorbellWord) {
        let known = DoorbellWord::new().with_index(word.index()).with_qid(ADMINQ_ID);
        let checked = match &self.state.adminq {
            None => Err(Wrong { what: "admin queue before Q_INIT", got: word.qid().into(), want: 0 }),
            Some(ring) => Wrong::unless_equal("doorbell", word.into_bits(), known.into_bits())
                .and(Wrong::unless_equal("doorbell page", page.into(), ring.page.into()))
                .and(Wrong::if_over("doorbell index", word.index().into(), ring.mask.into())),
        };
        if let Err(wrong) = checked {
            return self.blame(QueueKind::Admin, word.qid(), word.index(), wrong);
        }
        // A command may reset the device, and with it the queue.
        while let Some(ring) = self.state.adminq.as_mut().filter(|ring| ring.next != word.index()) {
            let index = ring.next;
            ring.next = index.wrapping_add(1) & ring.mask;
            let at = ring.base + u64::from(index) * COMMAND_BYTES as u64;
            self.admin_command(index, at);
        }
    }

    fn admin_command(&mut self, index: u16, at: u64) {
        let mut command = [0; COMMAND_BYTES];
        let fetched = self.port.bus.read(at, &mut command);
        let fault = self.port.faults.next();
        if fault == Some(CommandFault::HotReset) {
            return self.hot_reset();
        }
        if fault == Some(CommandFault::Event) {
            self.unexpected_event();
        }
        let result = match (fetched, fault) {
            (Err(error), _) => Err(Refusal::from(error)),
            (_, Some(CommandFault::Refused)) => Err(Refusal::fate(Status::EPERM)),
            (_, Some(CommandFault::Busy)) => Err(Refusal::fate(Status::EAGAIN)),
            _ => self.execute(&command, Way::Admin),
        };
        self.trace("admin queue", Opcode(command[0]), &result);
        if let Err(refusal) = &result {
            self.refused(QueueKind::Admin, command[0], index, *refusal);
        }
        let mut completion = result.unwrap_or_else(|refusal| {
            let mut bytes = [0; COMPLETION_BYTES];
            bytes[0] = refusal.status.0;
            bytes
        });
        let mut told = index;
        match fault {
            Some(CommandFault::Silent) => return,
            Some(CommandFault::WrongSequence) => told = index.wrapping_add(1),
            Some(CommandFault::Garbage) => completion[4..15].fill(0xff),
            _ => {}
        }
        completion[2..4].copy_from_slice(&told.to_le_bytes());
        let Some(ring) = &mut self.state.adminq else { return };
        let lap = ring.written / (u64::from(ring.mask) + 1);
        let color = (lap & 1 == 0) ^ (fault == Some(CommandFault::NotValid));
        completion[15] = completion[15] & 0x7f | u8::from(color) << 7;
        let entry = ring.written & u64::from(ring.mask);
        ring.written += 1;
        let (to, intr) = (ring.cq_base + entry * COMPLETION_BYTES as u64, ring.intr);
        if let Err(error) = self.port.bus.publish(to, &completion) {
            return self.refused(QueueKind::Admin, command[0], index, error.into());
        }
        if let Some(intr) = intr {
            self.raise(intr);
        }
    }

    /// Tells that the link has changed.
    pub(super) fn link_event(&mut self) {
        let (status, speed) = link(self.state.up);
        let event = LinkChangeEvent {
            ecode: NotifyCode::LINK_CHANGE.0.into(),
            link_status: status.0.into(),
            link_speed: speed.into(),
            ..LinkChangeEvent::ZERO
        };
        self.notify(event.as_bytes());
    }

    /// Tells that the device is going to reset itself.
    pub(super) fn reset_event(&mut self) {
        self.notify(ResetEvent { ecode: NotifyCode::RESET.0.into(), ..ResetEvent::ZERO }.as_bytes());
    }

    /// Writes a notification, if there is a queue for them, and gives it its number.
    fn notify(&mut self, event: &[u8]) {
        let Ok(mut event) = NotifyEvent::read_from_bytes(event) else { return };
        let Some(ring) = &mut self.state.notifyq else { return };
        let at = ring.base + (ring.eid & ring.mask) * NOTIFY_BYTES;
        ring.eid += 1;
        event.eid = ring.eid.into();
        let intr = ring.intr;
        // Its number makes it new, so that comes last.
        let (number, rest) = event.as_bytes().split_at(8);
        let written = self.port.bus.write(at + 8, rest).and_then(|()| self.port.bus.write(at, number));
        if let Err(error) = written {
            return self.refused(QueueKind::Admin, 0, 0, error.into());
        }
        if let Some(intr) = intr {
            self.raise(intr);
        }
    }
}
