use std::collections::HashMap;

use directverbs::bnxt_re::doorbell::DbWord;
use directverbs::bnxt_re::wqe::SLOT_BYTES;
use directverbs::verbs::QpId;

use super::position::Position;
use super::sq::SendQueue;
use crate::bus::BusError;
use crate::nic::Hardware;

/// Bytes of a push buffer. A push page has one for each control register.
pub const BUFFER_BYTES: u64 = 256;
const BUFFER: usize = BUFFER_BYTES as usize;
/// Bytes of a push page.
pub const PAGE_BYTES: u64 = 4096;

/// Why a pushed WQE was dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// An end without a start on the same register for the same queue pair.
    #[error("push end without its start")]
    NoStart,
    /// The index where it starts is not where the queue's next WQE begins.
    #[error("push at index {given}, the next WQE begins at {expected}")]
    Start {
        /// Index of the doorbell.
        given: u32,
        /// Index of the queue.
        expected: u32,
    },
    /// The index where it ends makes no sense.
    #[error("push from index {from} to {to}")]
    End {
        /// Index where it starts.
        from: u32,
        /// Index where it ends.
        to: u32,
    },
    /// The page or the register names no buffer.
    #[error("no push buffer at {0:#x}")]
    NoBuffer(u64),
    /// The bytes pushed are not those in the ring.
    #[error("the pushed WQE is not the one in the ring")]
    Different,
    /// The ring or the push page cannot be read.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Push control registers: what each one has started.
#[derive(Debug, Default)]
pub struct Push {
    started: HashMap<(u32, usize), Started>,
}

/// A push that has begun.
#[derive(Clone, Copy, Debug)]
struct Started {
    qp: QpId,
    /// Index where it starts.
    from: u32,
    /// Its buffer, in the device's memory.
    buffer: u64,
}

impl Push {
    /// A push begins.
    ///
    /// # Errors
    /// Why it is dropped.
    pub fn start(
        &mut self,
        hardware: &mut Hardware,
        page: u32,
        register: usize,
        word: DbWord,
        qp: QpId,
        sq: &SendQueue,
        buffer: u64,
    ) -> Result<(), PushError> {
        let (given, expected) = (word.index().get(), sq.producer().index);
        if given != expected {
            return Err(PushError::Start { given, expected });
        }
        // What was there before is no part of it.
        let start = usize::try_from(buffer).unwrap_or(usize::MAX);
        let stale = hardware.device_memory().get_mut(start..).and_then(|rest| rest.get_mut(..BUFFER));
        stale.ok_or(PushError::NoBuffer(buffer))?.fill(0xff);
        self.started.insert((page, register), Started { qp, from: given, buffer });
        Ok(())
    }

    /// Whether a store to this offset of the device's memory is one of a push that has begun.
    pub fn takes(&self, offset: u64) -> bool {
        self.started.values().any(|push| offset.checked_sub(push.buffer).is_some_and(|at| at < BUFFER_BYTES))
    }

    /// A push ends: compares the WQE in its buffer with the one in the ring, and returns where the queue's producer
    /// moves.
    ///
    /// # Errors
    /// Why it is dropped.
    pub fn end(
        &mut self,
        hardware: &mut Hardware,
        page: u32,
        register: usize,
        word: DbWord,
        qp: QpId,
        sq: &SendQueue,
    ) -> Result<Position, PushError> {
        let started = self.started.remove(&(page, register));
        let Started { from, buffer, .. } =
            started.filter(|started| started.qp == qp).ok_or(PushError::NoStart)?;
        let to = word.index().get();
        let moved = if to > from { to - from } else { to + sq.entries() - from };
        if to >= sq.entries() || moved == 0 {
            return Err(PushError::End { from, to });
        }
        let mut header = [0; super::wqe::HEADER];
        sq.peek(hardware, &mut header)?;
        let slots = super::wqe::send_slots(&header);
        if sq.is_variable() && slots != moved || !sq.is_variable() && moved != 1 {
            return Err(PushError::End { from, to });
        }
        let len = (slots * SLOT_BYTES) as usize;
        let mut ring = vec![0; len];
        sq.peek(hardware, &mut ring)?;
        let start = usize::try_from(buffer).unwrap_or(usize::MAX);
        let pushed = start.checked_add(len).and_then(|end| hardware.device_memory().get(start..end));
        if len as u64 > BUFFER_BYTES || pushed != Some(ring.as_slice()) {
            return Err(PushError::Different);
        }
        let mut producer = sq.producer();
        producer.step(moved, sq.entries());
        Ok(producer)
    }
}
