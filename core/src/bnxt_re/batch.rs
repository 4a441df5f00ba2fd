//! Posting to the send queue: a batch of requests under one doorbell.
//!
//! The ring bytes are those of the vendor's provider, including the bytes of a header that an operation does not use:
//! they keep what an earlier WQE left there. Two exceptions: fetch and add clears the compare field, and SEND_INV has
//! its own opcode, which the provider lacks.
//!
//! A batch works on a copy of the queue's indices, so undoing it is to forget the copy. Most requests take a path in
//! [`super::straight`], which leaves what is rare, and what is wrong, to the one here.

use core::slice;

use zerocopy::little_endian as le;

use super::doorbell::DbWord;
use super::inline;
use super::recv::ring;
use super::request::{Header, Message, header};
use super::send::{Book, Cursor, SendRecord, Shape, SqRun, distance};
use super::straight::Wqe;
use super::wqe::{HEADER_SLOTS, MAX_MESSAGE, SLOT_BYTES, STATIC_SLOTS, SqSge, inline_slots};
use crate::queue::{Doorbell, Store};
use crate::verbs::{BatchError, Data, PostError, SendRequest};

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
