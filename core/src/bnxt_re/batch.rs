//! Posting to the send queue: a batch of requests under one doorbell.
//!
//! The ring bytes are those of the vendor's provider, including the bytes of a header that an operation does not use:
//! they keep what an earlier WQE left there. Two exceptions: fetch and add clears the compare field, and SEND_INV has
//! its own opcode, which the provider lacks.
//!
//! A batch works on a copy of the queue's indices, so undoing it is to forget the copy. Most requests take one
//! straight-line path, which leaves what is rare, and what is wrong, to another.

use core::slice;

use zerocopy::little_endian as le;

use super::doorbell::DbWord;
use super::inline;
use super::payload::{HEADER_WORDS, Payload, put_sge};
use super::psn::{Retransmit, SqMsnSearch, SqPsnSearch, SqPsnSearchExt};
use super::recv::ring;
use super::request::{Header, Message, Op, header};
use super::send::{Book, Cursor, SendQueue, SendRecord, Shape, SqRun, USUAL_WORDS, distance};
use super::wqe::{HEADER_SLOTS, MAX_MESSAGE, SLOT_BYTES, STATIC_SLOTS, SqSge, WqeType, inline_slots};
use crate::queue::{Doorbell, Room, Store};
use crate::verbs::{BatchError, Data, PostError, SendOp, SendRequest, Sge};

/// Requests that are posted under one doorbell. Dropped without [`SendBatch::commit`], it leaves no trace but the
/// bytes of free slots.
#[derive(Debug)]
#[must_use = "a batch that is not committed is undone"]
pub struct SendBatch<'b, 'm, S: Store> {
    pub(super) run: SqRun<'b, 'm>,
    pub(super) cursor: Cursor,
    /// Cursor of the queue.
    pub(super) committed: &'b mut Cursor,
    pub(super) book: &'b mut Book<'m, S>,
}

impl<S: Store> SendBatch<'_, '_, S> {
    /// Adds a request.
    ///
    /// # Errors
    /// Why it cannot be posted. Nothing was written, and the batch stays as it was.
    #[inline(always)]
    pub fn post(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let posted = match self.book.shape {
            Shape::VariableMsn => self.post_usual::<true>(request),
            Shape::StaticPsn => self.post_usual::<false>(request),
            Shape::General => None,
        };
        if posted.is_some() { Ok(()) } else { self.post_rest(request) }
    }

    /// Adds `requests` in order.
    ///
    /// # Errors
    /// The first that cannot be posted, by its position in the batch; those before it are in the batch.
    #[inline(always)]
    pub fn post_all(&mut self, requests: &[SendRequest<'_>]) -> Result<(), BatchError> {
        let mut requests = requests.iter();
        loop {
            match self.book.shape {
                Shape::VariableMsn => self.post_straight::<true>(&mut requests),
                Shape::StaticPsn => self.post_straight::<false>(&mut requests),
                Shape::General => {}
            }
            let Some(request) = requests.next() else { return Ok(()) };
            if let Err(error) = self.post_rest(request) {
                return Err(BatchError { index: self.len() as usize, error });
            }
        }
    }

    /// Posts `requests` in order as long as they are what most are. Nothing is called in this loop, so that its state stays
    /// in registers.
    #[inline(always)]
    fn post_straight<const VARIABLE: bool>(&mut self, requests: &mut slice::Iter<'_, SendRequest<'_>>) {
        let mut ahead = requests.clone();
        while let Some(request) = ahead.next()
            && self.post_usual::<VARIABLE>(request).is_some()
        {
            *requests = ahead.clone();
        }
    }

    #[inline(always)]
    fn post_usual<const VARIABLE: bool>(&mut self, request: &SendRequest<'_>) -> Option<()> {
        self.book.usual::<VARIABLE>(&mut self.run, &mut self.cursor, request)
    }

    /// Posts what [`SendBatch::post_straight`] does not. It works on copies, so that this state stays in registers.
    #[inline(always)]
    pub(super) fn post_rest(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let (mut run, mut cursor) = (self.run.lend(), self.cursor);
        let posted = post_rest(&mut run, &mut cursor, self.book, request);
        let tail = run.tail();
        self.run.resume(tail);
        self.cursor = cursor;
        posted
    }

    /// Requests in the batch.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        distance(self.committed.start, self.cursor.start, self.book.records)
    }

    /// The doorbell that [`SendBatch::commit`] will store.
    pub fn doorbell(&self) -> DbWord {
        self.book.doorbell(self.book.index(self.cursor.start, self.run.tail()), self.run.epoch())
    }

    /// Makes the requests visible to the device: the only place of barriers and doorbell. An empty batch rings nothing.
    #[inline(always)]
    pub fn commit(self, doorbell: &impl Doorbell) {
        if self.committed.start != self.cursor.start {
            ring(doorbell, self.finish());
        }
    }

    /// Takes the requests over without a doorbell, and gives its value to the caller: for queues whose doorbell
    /// several posters share (see [`crate::queue::Publisher`]), and for push.
    #[inline(always)]
    pub fn finish(self) -> DbWord {
        let Self { run, cursor, committed, book } = self;
        // One by one: they are in registers.
        committed.start = cursor.start;
        committed.msn = cursor.msn;
        committed.psn = cursor.psn;
        let index = book.index(cursor.start, run.tail());
        book.doorbell(index, run.commit())
    }
}

impl<S: Store> SendQueue<'_, S> {
    /// Posts one request and rings the doorbell, if it is what most are, and the queue is open. It does what a batch of one does, but on the
    /// queue's own indices: they move when nothing is left to go wrong. `false`, and nothing was done, if it is something
    /// else, or wrong.
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

/// Posts a request of any form, or says why it cannot be posted.
#[inline(never)]
fn post_rest<S: Store>(
    run: &mut SqRun<'_, '_>,
    cursor: &mut Cursor,
    book: &mut Book<'_, S>,
    request: &SendRequest<'_>,
) -> Result<(), PostError> {
    let posted = match (book.shape, Message::of(&request.op)) {
        (Shape::VariableMsn, Some(message)) => book.message::<true>(run, cursor, request, message),
        (Shape::StaticPsn, Some(message)) => book.message::<false>(run, cursor, request, message),
        _ => None,
    };
    if posted.is_some() { Ok(()) } else { post_any(run, cursor, book, request) }
}

/// Posts a request of any form, also across the ring's end, or says why it cannot be posted.
#[inline(never)]
fn post_any<S: Store>(
    run: &mut SqRun<'_, '_>,
    cursor: &mut Cursor,
    book: &mut Book<'_, S>,
    request: &SendRequest<'_>,
) -> Result<(), PostError> {
    let (length, used) = book.measure(request)?;
    let flags = book.flags.of(request);
    let header = header(request, &book.kind, flags, length, used)?;
    let slots = if book.variable { used } else { STATIC_SLOTS };
    let tail = run.tail();
    if run.take_across(slots).is_none() {
        return Err(PostError::QueueFull { needed: slots, free: run.free() });
    }
    put(run, tail, &header, &request.data);
    book.posts = book.posts.saturating_add(1);
    let packets = if header.packets { book.packets(length) } else { None };
    let word = header.op.first_word(used) | header.flags.in_first_word();
    let record = SendRecord::new(request.wr_id, length, word, slots as u8);
    let wqe = Wqe { record, tail, op: header.op, packets };
    book.enter(cursor, &wqe, book.variable, book.retransmit);
    Ok(())
}

/// Slots that a WQE takes of which `used` are used.
const fn taken<const VARIABLE: bool>(used: u32) -> u8 {
    if VARIABLE { used as u8 } else { STATIC_SLOTS as u8 }
}

/// What [`Book::enter`] needs to know of a WQE.
struct Wqe {
    record: SendRecord,
    /// Its first slot.
    tail: u32,
    op: Op,
    /// Packets that its message takes, if it is one of a connection.
    packets: Option<u32>,
}

impl<S: Store> Book<'_, S> {
    /// Posts a request of one SGE with one of the operations that most have, in `room`. Each operation has a path of its
    /// own, in which the compiler knows it. `None`, and nothing was done, if it is something else, or as with
    /// [`Book::straight`].
    #[inline(always)]
    fn usual<const VARIABLE: bool>(
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
    fn message<const VARIABLE: bool>(
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
    fn enter(&mut self, cursor: &mut Cursor, wqe: &Wqe, variable: bool, retransmit: Retransmit) {
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
}

fn low(word: le::U64) -> le::U32 {
    le::U32::new(word.get() as u32)
}

/// Writes a WQE of any form that begins at slot `tail`, across the ring's end too.
fn put(run: &mut SqRun<'_, '_>, tail: u32, header: &Header, data: &Data<'_>) {
    let (first, second) = (offset(run, tail, 0), offset(run, tail, 1));
    let [word, lower, third, last] = header.words;
    if header.written.key() {
        run.memory().store(first, &word);
    } else {
        run.memory().store(first, &low(word));
    }
    run.memory().store(first + 8, &lower);
    if header.written.second() {
        run.memory().store(second, &third);
        if header.written.last() {
            run.memory().store(second + 8, &last);
        } else if header.written.last_low() {
            run.memory().store(second + 8, &low(last));
        }
    }
    match data {
        Data::Sges(sges) => {
            for (ahead, sge) in (HEADER_SLOTS..).zip(*sges) {
                let at = offset(run, tail, ahead);
                run.memory().store(at, &SqSge::new(sge));
            }
        }
        Data::Inline(pieces) => {
            let ring = run.ring().slots() as usize * SLOT_BYTES as usize;
            let at = offset(run, tail, HEADER_SLOTS);
            inline::copy(run.memory(), at, ring, pieces);
        }
    }
}

/// Byte offset of the slot `ahead` of `tail`.
fn offset(run: &SqRun<'_, '_>, tail: u32, ahead: u32) -> usize {
    run.ring().slot(tail, ahead) as usize * SLOT_BYTES as usize
}

impl<S: Store> Book<'_, S> {
    /// Packets of a message of `length` bytes: at least one. `None` if it is too long.
    #[inline(always)]
    const fn packets(&self, length: u32) -> Option<u32> {
        if length <= self.mtu_mask {
            return Some(1);
        }
        core::hint::cold_path();
        if length > MAX_MESSAGE {
            return None;
        }
        Some(length.wrapping_add(self.mtu_mask) >> (self.mtu_log2 & 31))
    }

    /// Length of the message, and slots that its WQE uses, header included.
    pub(super) fn measure(&self, request: &SendRequest<'_>) -> Result<(u32, u32), PostError> {
        let given = request.length();
        let length = match u32::try_from(given) {
            Ok(length) if length <= MAX_MESSAGE => length,
            _ => return Err(PostError::MessageTooLong { given, max: MAX_MESSAGE.into() }),
        };
        let limits = &self.limits;
        let used = match request.data {
            Data::Sges(sges) => {
                if sges.len() > limits.sges as usize {
                    return Err(PostError::TooManySges { given: sges.len(), max: limits.sges });
                }
                HEADER_SLOTS + sges.len() as u32
            }
            Data::Inline(_) => {
                if length > limits.inline {
                    return Err(PostError::InlineTooLong { given, max: limits.inline });
                }
                inline_slots(length)
            }
        };
        Ok((length, used))
    }
}
