//! The straight-line paths of posting: a message of a connection whose WQE does not reach the ring's end, and what all paths
//! do when a WQE was written.
//!
//! They write what the general path in [`super::batch`] would write, and leave to it what is rare, and what is wrong.

use super::doorbell::DbWord;
use super::payload::{HEADER_WORDS, Payload, put_sge};
use super::psn::{Retransmit, SqMsnSearch, SqPsnSearch, SqPsnSearchExt};
use super::recv::ring;
use super::request::{Message, Op};
use super::send::{Book, Cursor, SendQueue, SendRecord, Shape, SqRun, USUAL_WORDS};
use super::wqe::{HEADER_SLOTS, MAX_MESSAGE, STATIC_SLOTS, WqeType};
use crate::queue::{Doorbell, Room, Store};
use crate::verbs::{Data, SendOp, SendRequest, Sge};

impl<S: Store> SendQueue<'_, S> {
    /// Posts one request and rings the doorbell, if it is what most are, and the queue is open. It does what a batch of one
    /// does, but on the queue's own indices: they move when nothing is left to go wrong. `false`, and nothing was done, if
    /// it is something else, or wrong.
    #[inline(always)]
    pub(super) fn post_one(&mut self, doorbell: &impl Doorbell, request: &SendRequest<'_>) -> bool {
        let word = match self.book.path {
            Shape::VariableMsn => self.enter_one::<true>(request),
            Shape::StaticPsn => self.enter_one::<false>(request),
            Shape::General => None,
        };
        word.map(|word| ring(doorbell, word)).is_some()
    }

    #[inline(always)]
    fn enter_one<const VARIABLE: bool>(&mut self, request: &SendRequest<'_>) -> Option<DbWord> {
        let Self { ring, cursor, book } = self;
        book.usual::<VARIABLE>(ring, cursor, request)?;
        let index = if VARIABLE { ring.tail() } else { cursor.start };
        Some(book.doorbell(index, ring.epoch()))
    }
}

/// Slots that a WQE takes of which `used` are used.
const fn taken<const VARIABLE: bool>(used: u32) -> u8 {
    if VARIABLE { used as u8 } else { STATIC_SLOTS as u8 }
}

/// What [`Book::enter`] needs to know of a WQE.
pub(super) struct Wqe {
    pub record: SendRecord,
    /// Its first slot.
    pub tail: u32,
    pub op: Op,
    /// Packets that its message takes, if it is one of a connection.
    pub packets: Option<u32>,
}

impl<S: Store> Book<'_, S> {
    /// Posts a request of one SGE with one of the operations that most have, in `room`. Each operation has a path of its
    /// own, in which the compiler knows it. `None`, and nothing was done, if it is something else, or as with
    /// [`Book::straight`].
    #[inline(always)]
    pub(super) fn usual<const VARIABLE: bool>(
        &mut self,
        room: &mut impl Room<USUAL_WORDS>,
        cursor: &mut Cursor,
        request: &SendRequest<'_>,
    ) -> Option<()> {
        let Data::Sges([sge]) = request.data else { return None };
        match &request.op {
            SendOp::Write(to) => self.one_sge::<VARIABLE>(room, cursor, request, Message::write(to), sge),
            SendOp::Send => self.one_sge::<VARIABLE>(room, cursor, request, Message::SEND, sge),
            SendOp::Read(from) => self.one_sge::<VARIABLE>(room, cursor, request, Message::read(from), sge),
            _ => None,
        }
    }

    #[inline(always)]
    fn one_sge<const VARIABLE: bool>(
        &mut self,
        room: &mut impl Room<USUAL_WORDS>,
        cursor: &mut Cursor,
        request: &SendRequest<'_>,
        message: Message<'_>,
        sge: &Sge,
    ) -> Option<()> {
        let (length, used) = (sge.length, HEADER_SLOTS + 1);
        let packets = self.packets(length)?;
        let slots = taken::<VARIABLE>(used);
        let tail = room.tail();
        let mut wqe = room.take_usual(slots)?;
        let word = self.flags.word_of(request.flags).wrapping_add(message.op.first_word(used));
        message.put(&mut wqe.first(), word, length);
        put_sge::<HEADER_WORDS, USUAL_WORDS>(&mut wqe, sge);
        let record = SendRecord::new(request.wr_id, length, word, slots);
        self.enter_message::<VARIABLE>(cursor, record, tail, message.op, packets);
        Some(())
    }

    /// Posts a message that carries whatever it may, see [`Book::straight`].
    #[inline(always)]
    pub(super) fn message<const VARIABLE: bool>(
        &mut self,
        run: &mut SqRun<'_, '_>,
        cursor: &mut Cursor,
        request: &SendRequest<'_>,
        message: Message<'_>,
    ) -> Option<()> {
        match request.data {
            Data::Sges(sges) => self.straight::<VARIABLE, _>(run, cursor, request, message, sges),
            Data::Inline(_) if message.op.wqe_type == WqeType::READ => None,
            Data::Inline(pieces) => self.straight::<VARIABLE, _>(run, cursor, request, message, pieces),
        }
    }

    /// Posts a message of a connection, whose WQE does not reach the ring's end. `None`, and nothing was done, if it does,
    /// or the request is wrong.
    #[inline(always)]
    fn straight<const VARIABLE: bool, P: Payload>(
        &mut self,
        run: &mut SqRun<'_, '_>,
        cursor: &mut Cursor,
        request: &SendRequest<'_>,
        message: Message<'_>,
        payload: P,
    ) -> Option<()> {
        let (length, used) = payload.measure(&self.limits)?;
        let packets = self.packets(length)?;
        let slots = taken::<VARIABLE>(used);
        let tail = run.tail();
        let mut wqe = run.take(slots)?;
        let put = payload.put(&mut wqe);
        let (Some(()), Some(mut header)) = (put, wqe.words(0)) else {
            run.resume(tail);
            return None;
        };
        let flags = self.flags.word_of(request.flags) | P::FLAGS.in_first_word();
        let word = flags.wrapping_add(message.op.first_word(used));
        message.put(&mut header, word, length);
        let record = SendRecord::new(request.wr_id, length, word, slots);
        self.enter_message::<VARIABLE>(cursor, record, tail, message.op, packets);
        Some(())
    }

    #[inline(always)]
    fn enter_message<const VARIABLE: bool>(
        &mut self,
        cursor: &mut Cursor,
        record: SendRecord,
        tail: u32,
        op: Op,
        packets: u32,
    ) {
        let wqe = Wqe { record, tail, op, packets: Some(packets) };
        self.enter(cursor, &wqe, VARIABLE, if VARIABLE { Retransmit::Msn } else { Retransmit::PsnExt });
    }

    /// Enters a WQE that was written: record, retransmit entry, indices. `variable` and `retransmit` are the queue's, and
    /// known to the compiler where it matters.
    #[inline(always)]
    pub(super) fn enter(&mut self, cursor: &mut Cursor, wqe: &Wqe, variable: bool, retransmit: Retransmit) {
        // One index after the other: each is in a register for a short time.
        let start = cursor.start;
        *self.shadow.get_mut(start as usize) = wqe.record;
        let mut behind = start.wrapping_add(1);
        if behind >= self.records {
            core::hint::cold_path();
            behind = 0;
        }
        cursor.start = behind;
        let index = if variable { wqe.tail } else { start };
        let first = cursor.psn;
        let next = first.add(wqe.packets.unwrap_or_default());
        cursor.psn = next;
        match retransmit {
            Retransmit::Msn if wqe.packets.is_some() => {
                let entry = SqMsnSearch::new(first, next, index).word().into_bits();
                self.table.store(cursor.msn, entry);
                cursor.msn = cursor.msn.wrapping_add(1);
            }
            Retransmit::Msn => {}
            Retransmit::PsnExt => {
                let entry = SqPsnSearchExt::new(wqe.op.psn_opcode, first, next, index as u16);
                self.table.memory_mut().store(index as usize * size_of::<SqPsnSearchExt>(), &entry);
            }
            Retransmit::Psn => {
                let entry = SqPsnSearch::new(wqe.op.psn_opcode, first, next);
                self.table.memory_mut().store(index as usize * size_of::<SqPsnSearch>(), &entry);
            }
        }
    }

    /// Packets of a message of `length` bytes: at least one. `None` if it is too long.
    #[inline(always)]
    pub(super) const fn packets(&self, length: u32) -> Option<u32> {
        if length <= self.mtu_mask {
            return Some(1);
        }
        core::hint::cold_path();
        if length > MAX_MESSAGE {
            return None;
        }
        Some(length.wrapping_add(self.mtu_mask) >> (self.mtu_log2 & 31))
    }
}
