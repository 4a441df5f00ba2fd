//! Posting to the send queue: a batch of requests under one doorbell.
//!
//! The ring bytes are those of the vendor's provider, including the bytes of a header that an operation does not use:
//! they keep what an earlier WQE left there. Two exceptions: fetch and add clears the compare field, and SEND_INV has
//! its own opcode, which the provider lacks.

use zerocopy::little_endian as le;

use super::doorbell::DbWord;
use super::inline;
use super::psn::{Retransmit, SqMsnSearch, SqPsnSearch, SqPsnSearchExt};
use super::recv::ring;
use super::request::{Header, Op, header};
use super::send::{Cursor, EPOCH, SendQueue, SendRecord, Shape, distance};
use super::wqe::{HEADER_SLOTS, MAX_MESSAGE, SLOT_BYTES, STATIC_SLOTS, SqFlags, SqSge, inline_slots};
use crate::queue::{Doorbell, Slot, Store};
use crate::verbs::{Data, PostError, RemoteAddress, SendOp, SendRequest};

/// Requests that are posted under one doorbell. Dropped without [`SendBatch::commit`], it leaves no trace but the
/// bytes of free slots.
#[derive(Debug)]
#[must_use = "a batch that is not committed is undone"]
pub struct SendBatch<'b, 'm, S: Store> {
    pub(super) queue: &'b mut SendQueue<'m, S>,
    /// The queue's indices as they were.
    pub(super) before: Cursor,
}

impl<S: Store> Drop for SendBatch<'_, '_, S> {
    fn drop(&mut self) {
        self.queue.cursor = self.before;
    }
}

/// What [`SendQueue::book`] needs to know of a WQE.
struct Booking {
    wr_id: u64,
    length: u32,
    slots: u32,
    op: Op,
    /// 1 if a completion was asked for.
    signaled: u32,
    /// The message takes packets of a connection.
    packets: bool,
}

impl<S: Store> SendBatch<'_, '_, S> {
    /// Adds a request.
    ///
    /// # Errors
    /// Why it cannot be posted. Nothing was written, and the batch stays as it was.
    #[inline(always)]
    pub fn post(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let done = match self.queue.shape {
            Shape::VariableMsn => self.queue.post_one_sge::<true>(request),
            Shape::StaticPsn => self.queue.post_one_sge::<false>(request),
            Shape::General => false,
        };
        if done { Ok(()) } else { self.queue.post_any(request) }
    }

    /// Requests in the batch.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        distance(self.before.start, self.queue.cursor.start, self.queue.records)
    }

    /// The doorbell that [`SendBatch::commit`] will store.
    #[inline(always)]
    pub fn doorbell(&self) -> DbWord {
        self.queue.doorbell()
    }

    /// Makes the requests visible to the device: the only place of barriers and doorbell. An empty batch rings nothing.
    #[inline(always)]
    pub fn commit(self, doorbell: &impl Doorbell) {
        if self.before.start != self.queue.cursor.start {
            ring(doorbell, self.finish());
        }
    }

    /// Takes the requests over without a doorbell, and gives its value to the caller: for queues whose doorbell
    /// several posters share (see [`crate::queue::Publisher`]), and for push.
    #[inline(always)]
    pub fn finish(self) -> DbWord {
        let word = self.queue.doorbell();
        core::mem::forget(self);
        word
    }
}

#[inline(always)]
fn put_remote(wqe: &mut Slot<'_, 6>, remote: &RemoteAddress) {
    wqe.store::<2>(remote.addr);
    wqe.store_low::<3>(remote.rkey.get());
}

/// Writes what an operation with one SGE on a connection has in its header, and nothing for any other.
#[inline(never)]
fn put_operands(wqe: &mut Slot<'_, 6>, op: &SendOp) -> Option<Op> {
    Some(match op {
        SendOp::Write(remote) => {
            put_remote(wqe, remote);
            Op::WRITE
        }
        SendOp::Read(remote) => {
            put_remote(wqe, remote);
            Op::READ
        }
        SendOp::WriteImm(remote, imm) => {
            put_remote(wqe, remote);
            wqe.store_high::<0>(imm.get());
            Op::WRITE_IMM
        }
        SendOp::Send => Op::SEND,
        SendOp::SendImm(imm) => {
            wqe.store_high::<0>(imm.get());
            Op::SEND_IMM
        }
        SendOp::SendInv(key) => {
            wqe.store_high::<0>(key.get());
            Op::SEND_INV
        }
        _ => return None,
    })
}

fn low(word: le::U64) -> le::U32 {
    le::U32::new(word.get() as u32)
}

impl<S: Store> SendQueue<'_, S> {
    /// Posts what most requests are: one SGE on a connection, not across the ring's end. `false`, and nothing was done,
    /// if it is something else, or wrong.
    #[inline(always)]
    fn post_one_sge<const VARIABLE: bool>(&mut self, request: &SendRequest<'_>) -> bool {
        let Data::Sges([sge]) = request.data else { return false };
        let slots = if VARIABLE { HEADER_SLOTS + 1 } else { STATIC_SLOTS };
        let length = sge.length;
        if slots >= self.cursor.room || length >= MAX_MESSAGE {
            return false;
        }
        // The ring ends with its memory, so three slots that fit do not wrap.
        let Some(mut wqe) = self.memory.slot::<6>(self.cursor.tail as usize * SLOT_BYTES as usize) else {
            return false;
        };
        let op = match request.op {
            SendOp::Write(remote) => {
                put_remote(&mut wqe, &remote);
                Op::WRITE
            }
            _ => match put_operands(&mut wqe, &request.op) {
                Some(op) => op,
                None => return false,
            },
        };
        let flags = SqFlags::in_first_word(request.flags) | self.signal_all << 8;
        wqe.store_low::<0>(flags | op.first_word(HEADER_SLOTS + 1));
        wqe.store::<1>(length.into());
        wqe.store::<4>(sge.addr);
        wqe.store_low::<5>(sge.lkey.get());
        wqe.store_high::<5>(length);
        let (wr_id, signaled) = (request.wr_id, flags >> 8 & 1);
        let booking = Booking { wr_id, length, slots, op, signaled, packets: true };
        let retransmit = if VARIABLE { Retransmit::Msn } else { Retransmit::PsnExt };
        self.book(booking, VARIABLE, retransmit);
        true
    }

    /// Posts a request of any form, or says why it cannot be posted.
    #[inline(never)]
    fn post_any(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let (length, used) = self.measure(request)?;
        let header = header(request, &self.kind, self.signal_all, length, used)?;
        let slots = if self.variable { used } else { STATIC_SLOTS };
        let Cursor { tail, room, .. } = self.cursor;
        if slots >= room {
            return Err(PostError::QueueFull { needed: slots, free: room.saturating_sub(1) });
        }
        self.put(tail, &header, &request.data);
        self.posts = self.posts.saturating_add(1);
        let Header { op, packets, signaled, .. } = header;
        let booking = Booking { wr_id: request.wr_id, length, slots, op, signaled, packets };
        self.book(booking, self.variable, self.retransmit);
        Ok(())
    }

    /// Books a WQE that was written: record, retransmit entry, indices. `variable` and `retransmit` are the queue's, and
    /// known to the compiler where it matters.
    #[inline(always)]
    fn book(&mut self, wqe: Booking, variable: bool, retransmit: Retransmit) {
        let Cursor { tail, start, msn, psn: first, .. } = self.cursor;
        let index = if variable { tail } else { start };
        *self.shadow.get_mut(start as usize) =
            SendRecord::new(wqe.wr_id, wqe.length, index, wqe.slots, wqe.op.opcode, wqe.signaled);

        let next = if wqe.packets { first.add(self.packets(wqe.length)) } else { first };
        self.cursor.psn = next;
        match retransmit {
            Retransmit::Msn if wqe.packets => {
                let entry = SqMsnSearch::new(first, next, index);
                self.table.store(msn as usize * size_of::<SqMsnSearch>(), &entry);
                self.cursor.msn = msn.wrapping_add(1) & self.msn_mask;
            }
            Retransmit::Msn => {}
            Retransmit::PsnExt => {
                let entry = SqPsnSearchExt::new(wqe.op.psn_opcode, first, next, index as u16);
                self.table.store(index as usize * size_of::<SqPsnSearchExt>(), &entry);
            }
            Retransmit::Psn => {
                let entry = SqPsnSearch::new(wqe.op.psn_opcode, first, next);
                self.table.store(index as usize * size_of::<SqPsnSearch>(), &entry);
            }
        }
        let c = &mut self.cursor;
        c.room = c.room.wrapping_sub(wqe.slots);
        c.start = start.wrapping_add(1);
        if c.start >= self.records {
            core::hint::cold_path();
            c.start = 0;
        }
        c.tail = tail.wrapping_add(wqe.slots);
        if c.tail >= self.slots {
            core::hint::cold_path();
            c.tail = c.tail.wrapping_sub(self.slots);
            c.epoch ^= EPOCH;
        }
    }

    /// Packets of a message of `length` bytes, at most 2 GiB: at least one.
    #[inline(always)]
    const fn packets(&self, length: u32) -> u32 {
        if length <= self.mtu_mask {
            return 1;
        }
        core::hint::cold_path();
        length.wrapping_add(self.mtu_mask) >> (self.mtu_log2 & 31)
    }

    /// Length of the message, and slots that its WQE uses, header included.
    pub(super) fn measure(&self, request: &SendRequest<'_>) -> Result<(u32, u32), PostError> {
        let given = request.length();
        let length = match u32::try_from(given) {
            Ok(length) if length <= MAX_MESSAGE => length,
            _ => return Err(PostError::MessageTooLong { given, max: MAX_MESSAGE.into() }),
        };
        let used = match request.data {
            Data::Sges(sges) => {
                if sges.len() > self.max_sge as usize {
                    return Err(PostError::TooManySges { given: sges.len(), max: self.max_sge });
                }
                HEADER_SLOTS + sges.len() as u32
            }
            Data::Inline(_) => {
                if length > self.max_inline {
                    return Err(PostError::InlineTooLong { given, max: self.max_inline });
                }
                inline_slots(length)
            }
        };
        Ok((length, used))
    }

    /// Byte offset of the slot `ahead` of `tail`.
    fn slot(&self, tail: u32, ahead: u32) -> usize {
        let slot = tail.wrapping_add(ahead);
        let slot = if slot >= self.slots { slot.wrapping_sub(self.slots) } else { slot };
        slot as usize * SLOT_BYTES as usize
    }

    /// Writes a WQE of any form, across the ring's end too.
    fn put(&mut self, tail: u32, header: &Header, data: &Data<'_>) {
        let (first, second) = (self.slot(tail, 0), self.slot(tail, 1));
        let [word, lower, third, last] = header.words;
        if header.written.key() {
            self.memory.store(first, &word);
        } else {
            self.memory.store(first, &low(word));
        }
        self.memory.store(first + 8, &lower);
        if header.written.second() {
            self.memory.store(second, &third);
            if header.written.last() {
                self.memory.store(second + 8, &last);
            } else if header.written.last_low() {
                self.memory.store(second + 8, &low(last));
            }
        }
        match data {
            Data::Sges(sges) => {
                for (ahead, sge) in (HEADER_SLOTS..).zip(*sges) {
                    let at = self.slot(tail, ahead);
                    self.memory.store(at, &SqSge::new(sge));
                }
            }
            Data::Inline(pieces) => {
                let ring = self.slots as usize * SLOT_BYTES as usize;
                let at = self.slot(tail, HEADER_SLOTS);
                inline::copy(&mut self.memory, at, ring, pieces);
            }
        }
    }

    /// The slot `ahead` of `tail`, for a push copy.
    pub(super) fn load_slot(&self, tail: u32, ahead: u32) -> Option<[u8; 16]> {
        self.memory.load(self.slot(tail, ahead))
    }
}
