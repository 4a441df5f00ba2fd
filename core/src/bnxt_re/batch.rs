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
use super::payload::{OneSge, Payload};
use super::psn::{Retransmit, SqMsnSearch, SqPsnSearch, SqPsnSearchExt};
use super::recv::ring;
use super::request::{Header, Op, header};
use super::send::{Book, Cursor, SendRecord, Shape, SqRun, distance};
use super::wqe::{
    HEADER_SLOTS, MAX_MESSAGE, SLOT_BYTES, STATIC_SLOTS, SqFlags, SqSge, WqeType, inline_slots,
};
use crate::queue::{Doorbell, Slot, Store};
use crate::verbs::{BatchError, Data, PostError, Psn, SendOp, SendRequest};

/// Requests that are posted under one doorbell. Dropped without [`SendBatch::commit`], it leaves no trace but the
/// bytes of free slots.
#[derive(Debug)]
#[must_use = "a batch that is not committed is undone"]
pub struct SendBatch<'b, 'm, S: Store> {
    pub(super) run: SqRun<'b, 'm>,
    pub(super) cursor: Cursor,
    pub(super) book: &'b mut Book<'m, S>,
}

impl<S: Store> SendBatch<'_, '_, S> {
    /// Adds a request.
    ///
    /// # Errors
    /// Why it cannot be posted. Nothing was written, and the batch stays as it was.
    #[inline(always)]
    pub fn post(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        self.post_all(slice::from_ref(request)).map_err(|e| e.error)
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
            && let Data::Sges([sge]) = request.data
            && let Some(cursor) =
                self.book.straight::<VARIABLE, _>(&mut self.run, self.cursor, request, OneSge(sge))
        {
            self.cursor = cursor;
            *requests = ahead.clone();
        }
    }

    /// Posts what [`SendBatch::post_straight`] does not. It works on copies, so that this state stays in registers.
    #[inline(always)]
    fn post_rest(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
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
        distance(self.book.cursor.start, self.cursor.start, self.book.records)
    }

    /// The doorbell that [`SendBatch::commit`] will store.
    pub fn doorbell(&self) -> DbWord {
        self.book.doorbell(self.cursor.start, self.run.tail(), self.run.epoch())
    }

    /// Makes the requests visible to the device: the only place of barriers and doorbell. An empty batch rings nothing.
    #[inline(always)]
    pub fn commit(self, doorbell: &impl Doorbell) {
        if self.book.cursor.start != self.cursor.start {
            ring(doorbell, self.finish());
        }
    }

    /// Takes the requests over without a doorbell, and gives its value to the caller: for queues whose doorbell
    /// several posters share (see [`crate::queue::Publisher`]), and for push.
    #[inline(always)]
    pub fn finish(self) -> DbWord {
        let Self { run, cursor, book } = self;
        // One by one: they are in registers.
        book.cursor.start = cursor.start;
        book.cursor.msn = cursor.msn;
        book.cursor.psn = cursor.psn;
        let tail = run.tail();
        book.doorbell(cursor.start, tail, run.commit())
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
    let posted = match (book.shape, request.data) {
        (Shape::VariableMsn, Data::Sges(sges)) => book.straight::<true, _>(run, *cursor, request, sges),
        (Shape::VariableMsn, Data::Inline(pieces)) => book.straight::<true, _>(run, *cursor, request, pieces),
        (Shape::StaticPsn, Data::Sges(sges)) => book.straight::<false, _>(run, *cursor, request, sges),
        (Shape::StaticPsn, Data::Inline(pieces)) => book.straight::<false, _>(run, *cursor, request, pieces),
        (Shape::General, _) => None,
    };
    *cursor = match posted {
        Some(cursor) => cursor,
        None => post_any(run, *cursor, book, request)?,
    };
    Ok(())
}

/// Posts a request of any form, also across the ring's end, or says why it cannot be posted.
#[inline(never)]
fn post_any<S: Store>(
    run: &mut SqRun<'_, '_>,
    cursor: Cursor,
    book: &mut Book<'_, S>,
    request: &SendRequest<'_>,
) -> Result<Cursor, PostError> {
    let (length, used) = book.measure(request)?;
    let all = SqFlags::from_first_word(book.flags);
    let header = header(request, &book.kind, all, length, used)?;
    let slots = if book.variable { used } else { STATIC_SLOTS };
    let tail = run.tail();
    if run.take_across(slots).is_none() {
        return Err(PostError::QueueFull { needed: slots, free: run.free() });
    }
    put(run, tail, &header, &request.data);
    book.posts = book.posts.saturating_add(1);
    let next = if header.packets { book.psn_behind(cursor.psn, length) } else { None };
    let word = header.op.first_word(used) | header.flags.in_first_word();
    let record = SendRecord::new(request.wr_id, length, word, slots as u8);
    let wqe = Wqe { record, tail, op: header.op, next };
    Ok(book.enter(cursor, wqe, book.variable, book.retransmit))
}

/// What [`Book::enter`] needs to know of a WQE.
struct Wqe {
    record: SendRecord,
    /// Its first slot.
    tail: u32,
    op: Op,
    /// PSN behind its message, if it takes packets of a connection.
    next: Option<Psn>,
}

impl<S: Store> Book<'_, S> {
    /// Posts a request on a connection that sends, writes or reads, and whose WQE does not reach the ring's end.
    /// `None`, and nothing was done, if it is something else, or wrong.
    #[inline(always)]
    fn straight<const VARIABLE: bool, P: Payload>(
        &mut self,
        run: &mut SqRun<'_, '_>,
        cursor: Cursor,
        request: &SendRequest<'_>,
        payload: P,
    ) -> Option<Cursor> {
        let op = Op::of_message(&request.op)?;
        if P::FLAGS.inline_data() && op.wqe_type == WqeType::READ {
            return None;
        }
        let (length, used) = payload.measure(&self.limits)?;
        let slots = if VARIABLE { used } else { STATIC_SLOTS } as u8;
        let next = self.psn_behind(cursor.psn, length)?;
        let tail = run.tail();
        let mut place = payload.take(run, slots)?;
        let mut header = P::header(&mut place)?;
        put_operands(&mut header, &request.op, op);
        let word =
            SqFlags::word_of(request.flags) | self.flags | P::FLAGS.in_first_word() | op.first_word(used);
        header.store_low::<0>(word);
        header.store::<1>(length.into());
        if payload.put(place).is_none() {
            run.resume(tail);
            return None;
        }
        let record = SendRecord::new(request.wr_id, length, word, slots);
        let wqe = Wqe { record, tail, op: *op, next: Some(next) };
        Some(self.enter(cursor, wqe, VARIABLE, if VARIABLE { Retransmit::Msn } else { Retransmit::PsnExt }))
    }

    /// Enters a WQE that was written: record, retransmit entry, indices. `variable` and `retransmit` are the queue's, and
    /// known to the compiler where it matters.
    #[inline(always)]
    fn enter(&mut self, cursor: Cursor, wqe: Wqe, variable: bool, retransmit: Retransmit) -> Cursor {
        let Cursor { start, mut msn, psn: first } = cursor;
        let index = if variable { wqe.tail } else { start };
        *self.shadow.get_mut(start as usize) = wqe.record;
        let next = wqe.next.unwrap_or(first);
        match retransmit {
            Retransmit::Msn if wqe.next.is_some() => {
                self.table.store(msn, SqMsnSearch::new(first, next, index).word().into_bits());
                msn = msn.wrapping_add(1);
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
        let mut start = start.wrapping_add(1);
        if start >= self.records {
            core::hint::cold_path();
            start = 0;
        }
        Cursor { start, msn, psn: next }
    }
}

/// Writes the operands of a message into its header.
#[inline(always)]
fn put_operands(header: &mut Slot<'_, 4>, request: &SendOp, op: &Op) {
    if let SendOp::Write(remote) | SendOp::WriteImm(remote, _) | SendOp::Read(remote) = request {
        header.store::<2>(remote.addr);
        header.store_low::<3>(remote.rkey.get());
    }
    if op.has_key {
        core::hint::cold_path();
        match request {
            SendOp::SendImm(imm) | SendOp::WriteImm(_, imm) => header.store_high::<0>(imm.get()),
            SendOp::SendInv(key) => header.store_high::<0>(key.get()),
            _ => {}
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
    /// PSN behind a message of `length` bytes that begins at `first`: it takes at least one packet. `None` if it is too
    /// long.
    #[inline(always)]
    const fn psn_behind(&self, first: Psn, length: u32) -> Option<Psn> {
        if length <= self.mtu_mask {
            return Some(first.add(1));
        }
        core::hint::cold_path();
        if length > MAX_MESSAGE {
            return None;
        }
        Some(first.add(length.wrapping_add(self.mtu_mask) >> (self.mtu_log2 & 31)))
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
