use std::collections::VecDeque;

use directverbs::bnxt_re::wqe::{SLOT_BYTES, STATIC_SLOTS};
use directverbs::verbs::{QpId, QpType, SendOp, WcStatus};

use super::position::{Position, Stray};
use super::retransmit::{Place, Table, TableError};
use super::wqe::{self, HEADER, Limits, WqeError};
use crate::bus::BusError;
use crate::device::{DeviceError, RingConfig};
use crate::nic::Hardware;
use crate::roce::{Payload, PsnRange, SendWork};

/// What a driver did wrong with a send queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqError {
    /// The producer index makes no sense. The doorbell was dropped.
    #[error("SQ doorbell dropped: {0}")]
    Stray(#[from] Stray),
    /// A WQE makes no sense. It was failed.
    #[error("WQE at {at}: {error}")]
    Wqe {
        /// Index of its first entry.
        at: u32,
        /// What is wrong.
        error: WqeError,
    },
    /// A WQE says that it is longer than what the doorbell gave, or has no size. All of it was failed.
    #[error("WQE at {at} of {entries} slots, the doorbell gave {given}")]
    Torn {
        /// Index of its first entry.
        at: u32,
        /// Its length in entries.
        entries: u32,
        /// Entries between it and the doorbell's index.
        given: u32,
    },
    /// The retransmit table would have misled the hardware. The queue pair was failed.
    #[error("WQE at {at}: {error}")]
    Table {
        /// Index of its first entry.
        at: u32,
        /// What is wrong.
        error: TableError,
    },
    /// A WQE that is not complete was changed. The queue pair was failed.
    #[error("WQE at {at} was changed before it completed")]
    Changed {
        /// Index of its first entry.
        at: u32,
    },
    /// The ring cannot be read.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The engine takes no work.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl SqError {
    /// Whether the queue pair cannot go on.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Table { .. } | Self::Changed { .. } | Self::Bus(_))
    }
}

/// A request that was fetched and is not complete.
#[derive(Debug)]
struct Posted {
    at: u32,
    entries: u32,
    wqe_idx: u32,
    header: [u8; HEADER],
    place: Option<Place>,
}

/// What completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Index of its first entry.
    pub at: u32,
    /// Index of the WQE behind it.
    pub cons_idx: u32,
}

/// A send queue as the device sees it. Entries are slots in variable mode and WQEs in static mode, like the doorbell's
/// index.
#[derive(Debug)]
pub struct SendQueue {
    ring: RingConfig,
    variable: bool,
    limits: Limits,
    table: Option<Table>,
    producer: Position,
    used: u32,
    next_wqe: u32,
    next_token: u64,
    posted: VecDeque<Posted>,
}

impl SendQueue {
    /// A fresh queue.
    pub fn new(ring: RingConfig, variable: bool, limits: Limits, table: Option<Table>) -> Self {
        Self {
            ring,
            variable,
            limits,
            table,
            producer: Position::default(),
            used: 0,
            next_wqe: 0,
            next_token: 0,
            posted: VecDeque::new(),
        }
    }

    /// Starts anew, as fresh.
    pub fn reset(&mut self) {
        self.producer = Position::default();
        (self.used, self.next_wqe, self.next_token) = (0, 0, 0);
        self.posted.clear();
        if let Some(table) = &mut self.table {
            table.reset();
        }
    }

    /// Where the next WQE begins.
    pub fn producer(&self) -> Position {
        self.producer
    }

    /// Entries of the ring.
    pub fn entries(&self) -> u32 {
        self.ring.entries
    }

    /// Whether the WQEs are laid out in slots.
    pub fn is_variable(&self) -> bool {
        self.variable
    }

    /// Takes a producer doorbell: fetches the WQEs up to `to` and gives them to the engine.
    ///
    /// # Errors
    /// What the driver did wrong, the first of it.
    pub fn produce(&mut self, hardware: &mut Hardware, qp: QpId, to: Position) -> Result<(), SqError> {
        let mut at = self.producer;
        let free = self.ring.entries - self.used;
        let mut given = self.producer.advance(to, self.ring.entries, free)?;
        let mut first_error = Ok(());
        while given != 0 {
            let (taken, result) = self.fetch(hardware, qp, at.index, given);
            given -= taken;
            at.step(taken, self.ring.entries);
            if let Err(error) = result {
                let fatal = error.is_fatal();
                first_error = first_error.and(Err(error));
                if fatal {
                    break;
                }
            }
        }
        first_error
    }

    /// Fetches the WQE at `at`, of which the driver has given `given` entries. Returns the entries it takes.
    fn fetch(
        &mut self,
        hardware: &mut Hardware,
        qp: QpId,
        at: u32,
        given: u32,
    ) -> (u32, Result<(), SqError>) {
        let mut header = [0; HEADER];
        if let Err(error) = self.read(hardware, at, &mut header) {
            return (given, Err(error.into()));
        }
        let slots = wqe::send_slots(&header);
        let entries = if self.variable { slots } else { 1 };
        let token = self.next_token;
        let mut result = Ok(());
        let (taken, work) = if entries == 0 || entries > given {
            result = Err(SqError::Torn { at, entries, given });
            (given, SendWork::failed(token))
        } else {
            match self.decode(hardware, at, slots, token) {
                Ok(work) => (entries, work),
                Err(error) => {
                    result = Err(error);
                    (entries, SendWork::failed(token))
                }
            }
        };
        let on_wire = work.op.as_ref().is_ok_and(on_wire);
        let psns = match hardware.post_send(qp, work) {
            Ok(psns) => psns,
            Err(error) => return (taken, Err(error.into())),
        };
        let place = match &mut self.table {
            Some(table) if result.is_ok() => place(table, at, on_wire, psns, self.variable),
            _ => None,
        };
        let wqe_idx = self.next_wqe;
        self.next_wqe = if wqe_idx + 1 < self.ring.entries { wqe_idx + 1 } else { 0 };
        self.next_token += 1;
        self.used += taken;
        self.posted.push_back(Posted { at, entries: taken, wqe_idx, header, place });
        if let (Some(place), Some(table)) = (place, &self.table) {
            result = table.check(hardware, &place).map_err(|error| SqError::Table { at, error });
        }
        (taken, result)
    }

    fn decode(&self, hardware: &Hardware, at: u32, slots: u32, token: u64) -> Result<SendWork, SqError> {
        let mut bytes = vec![0; (slots.clamp(2, 256) * SLOT_BYTES) as usize];
        if !self.variable {
            bytes.truncate((STATIC_SLOTS * SLOT_BYTES) as usize);
        }
        self.read(hardware, at, &mut bytes)?;
        let wrong = |error| SqError::Wqe { at, error };
        if slots > self.limits.max_slots || slots < 2 {
            let wqe_type = bytes.first().copied().unwrap_or(0);
            return Err(wrong(WqeError::Size { size: slots, wqe_type }));
        }
        let (op, flags, payload) = wqe::decode_send(&bytes, &self.limits).map_err(wrong)?;
        Ok(SendWork { token, op: Ok(op), flags, payload })
    }

    /// Copies bytes from entry `at` on, across the end of the ring.
    fn read(&self, hardware: &Hardware, at: u32, out: &mut [u8]) -> Result<(), BusError> {
        let offset = u64::from(at) * u64::from(self.ring.stride);
        let to_end = usize::try_from(self.ring.bytes() - offset).unwrap_or(usize::MAX);
        let (head, tail) = out.split_at_mut(to_end.min(out.len()));
        hardware.read_ring(&self.ring, offset, head)?;
        hardware.read_ring(&self.ring, 0, tail)
    }

    /// The oldest request has ended.
    pub fn complete(&mut self) -> Option<Done> {
        let posted = self.posted.pop_front()?;
        self.used -= posted.entries;
        let next = posted.wqe_idx + 1;
        let cons_idx = if next < self.ring.entries { next } else { 0 };
        Some(Done { at: posted.at, cons_idx })
    }

    /// The request with `token` is sent again: the hardware would fetch its entry and WQE once more.
    ///
    /// # Errors
    /// The driver has changed them.
    pub fn refetch(&self, hardware: &Hardware, token: u64) -> Result<(), SqError> {
        let oldest = self.next_token - self.posted.len() as u64;
        let index = token.checked_sub(oldest).and_then(|index| usize::try_from(index).ok());
        let Some(posted) = index.and_then(|index| self.posted.get(index)) else { return Ok(()) };
        let at = posted.at;
        if let (Some(place), Some(table)) = (&posted.place, &self.table) {
            table.check(hardware, place).map_err(|error| SqError::Table { at, error })?;
        }
        let mut header = [0; HEADER];
        self.read(hardware, at, &mut header)?;
        if header == posted.header { Ok(()) } else { Err(SqError::Changed { at }) }
    }

    /// Bytes of the WQE at the producer index, to compare a pushed one with.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn peek(&self, hardware: &Hardware, out: &mut [u8]) -> Result<(), BusError> {
        self.read(hardware, self.producer.index, out)
    }
}

fn place(table: &mut Table, at: u32, on_wire: bool, psns: PsnRange, variable: bool) -> Option<Place> {
    let index = table.take_index(at, on_wire)?;
    let start_slot = if variable { at } else { at * STATIC_SLOTS };
    Some(Place { index, start: at, start_slot, psns })
}

/// Whether an operation takes PSNs.
fn on_wire(op: &SendOp) -> bool {
    !matches!(op, SendOp::LocalInv(_) | SendOp::BindMw(_) | SendOp::FastRegister(_))
}

impl SendWork {
    /// Work in place of a WQE that makes no sense.
    fn failed(token: u64) -> Self {
        Self {
            token,
            op: Err(WcStatus::LocQpOp),
            flags: directverbs::verbs::SendFlags::empty(),
            payload: Payload::Inline(Vec::new()),
        }
    }
}

/// Whether a kind of queue pair has a retransmit table.
pub const fn has_table(qp_type: QpType) -> bool {
    matches!(qp_type, QpType::Rc)
}
