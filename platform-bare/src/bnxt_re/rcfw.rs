//! RCFW: commands through the command ring.

use core::time::Duration;

use directverbs::bnxt_re::doorbell::DbType;
use directverbs::bnxt_re::nq::{ENTRY_BYTES, EventRing};
use directverbs::bnxt_re::pbl::{PAGE, Use};
use directverbs::bnxt_re::rcfw::cmdq::{Cmdq, MAILBOX, PRODUCER, Side, TRIGGER};
use directverbs::bnxt_re::rcfw::create::Listed;
use directverbs::bnxt_re::rcfw::event::{Completion, CreqEvent};
use directverbs::bnxt_re::rcfw::message::{Command, CreqSize, UNIT};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::queue::{Doorbell, barrier};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::area::{Areas, Shared, address, shared};
use super::error::Error;
use super::event::Event;
use crate::clock::{Deadline, Timeout};
use crate::dma::Owned;
use crate::host::Host;
use crate::registers::{DoorbellPage, Registers};

/// Events kept for whoever asks; older ones are dropped.
const EVENTS: usize = 16;

/// A ring that the device writes events to.
pub(super) type Events<H> = Owned<EventRing<'static>, <H as Host>::Dma, 1>;

/// A ring of `entries` events, and where it is.
pub(super) fn events<H: Host>(host: &H, entries: u32) -> Result<(Events<H>, Listed), Error> {
    let bytes = u64::from(entries) * ENTRY_BYTES as u64;
    let mut areas = Areas::default();
    let at = areas.pages(bytes);
    let area = areas.list(at, bytes, Use::Ring)?;
    let mut memory = shared(host, areas.bytes())?;
    let address = address(&memory);
    let listed = area.write(&mut memory, address)?;
    let len = bytes.next_multiple_of(PAGE) as usize;
    let ring = memory.try_map(|memory| EventRing::new(memory.split_at(len).0, entries))?;
    Ok((ring, listed))
}

/// The channel.
#[derive(Debug)]
pub(super) struct Rcfw<H: Host> {
    registers: H::Bar,
    page: DoorbellPage<H::Bar>,
    cmdq: Owned<Cmdq<'static>, H::Dma, 1>,
    creq: Events<H>,
    side: Shared<H>,
    creq_id: u16,
    events: heapless::Deque<Event, EVENTS>,
    limit: Duration,
    failed: bool,
}

impl<H: Host> Rcfw<H> {
    /// The channel, whose completions come in the ring `creq` with the number `creq_id`. The device is told.
    pub fn start(
        host: &H,
        registers: H::Bar,
        page: DoorbellPage<H::Bar>,
        (mut creq, creq_id): (Events<H>, u16),
        slots: u32,
        limit: Duration,
    ) -> Result<Self, Error> {
        let memory = shared(host, u64::from(slots) * UNIT as u64)?;
        let side = shared(host, PAGE)?;
        let cmdq = memory.try_map(|memory| Cmdq::new(memory, slots))?;
        creq.set_id(creq_id);
        let init = cmdq.init(address(&cmdq), creq_id);
        barrier::to_device();
        page.store(0, creq.doorbell(DbType::NQ_ARM).to_u64());
        registers.write_words(MAILBOX, init.as_bytes());
        let events = heapless::Deque::new();
        Ok(Self { registers, page, cmdq, creq, side, creq_id, events, limit, failed: false })
    }

    /// Sends a command and waits for its completion.
    ///
    /// # Errors
    /// No completion, one that is none, one that says no, or an event after which nothing can be trusted.
    pub fn send<C: Command>(&mut self, host: &H, command: &C) -> Result<C::Completion, Error> {
        let mut done = C::Completion::new_zeroed();
        self.exchange(host, C::OPCODE, command.as_bytes(), None, done.as_mut_bytes())?;
        Ok(done)
    }

    /// Sends a query and waits for what it tells.
    ///
    /// # Errors
    /// As [`Rcfw::send`], or it tells less than it must.
    pub fn query<C, T>(&mut self, host: &H, command: &C) -> Result<T, Error>
    where
        C: Command<Completion = CreqSize>,
        T: FromBytes + Copy,
    {
        self.side.zero();
        let side = Side { address: address(&self.side), bytes: size_of::<T>() };
        let mut done = CreqSize::new_zeroed();
        self.exchange(host, C::OPCODE, command.as_bytes(), Some(side), done.as_mut_bytes())?;
        let (told, needed) = (done.size.get(), size_of::<T>().div_ceil(UNIT) as u32);
        let read = self.side.load::<T>(0);
        // A device that claims to have written more than the buffer holds has written elsewhere.
        if told != needed {
            self.failed |= told > needed;
            return Err(Error::Short { opcode: C::OPCODE, told, needed });
        }
        read.ok_or(Error::Short { opcode: C::OPCODE, told, needed })
    }

    /// Sends a command as bytes, and waits for its completion, which goes to `done`: one copy of the code for all commands.
    fn exchange(
        &mut self,
        host: &H,
        opcode: Opcode,
        command: &[u8],
        side: Option<Side>,
        done: &mut [u8],
    ) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        let (ticket, producer) = self.cmdq.send_bytes(opcode, command, side)?;
        barrier::to_device();
        self.registers.write32(PRODUCER, producer);
        self.registers.write32(TRIGGER, 1);
        let deadline = Deadline::after(host, self.limit);
        let wait = deadline.wait(host, || self.look());
        let answer = match wait {
            Ok(completion) => {
                self.cmdq.complete(&ticket);
                ticket.accept(&completion, done).map_err(Error::Completion)
            }
            Err(Look::Error(error)) => Err(error),
            Err(Look::Timeout(timeout)) => Err(Error::NoCompletion { opcode, timeout }),
        };
        self.failed = answer.as_ref().is_err_and(|error| !error.is_refusal());
        answer
    }

    /// Takes entries until there is a completion.
    fn look(&mut self) -> Result<Option<Completion>, Look> {
        while let Some(entry) = self.creq.take(&self.page) {
            self.page.store(0, self.creq.doorbell(DbType::NQ).to_u64());
            match CreqEvent::decode(entry) {
                CreqEvent::Completion(completion) => return Ok(Some(completion)),
                CreqEvent::QpError(error) => self.keep(Event::QpError { qp: error.xid.get() }),
                CreqEvent::CqError(error) => self.keep(Event::CqError { cq: error.xid.get() }),
                CreqEvent::Function(event) => return Err(Look::Error(Error::Function(event.event))),
                CreqEvent::Unknown(entry) => return Err(Look::Error(Error::Event(entry))),
            }
        }
        Ok(None)
    }

    fn keep(&mut self, event: Event) {
        if self.events.is_full() {
            self.events.pop_front();
        }
        // There is room now.
        let kept = self.events.push_back(event);
        debug_assert!(kept.is_ok());
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// An event that makes no sense when no command is under way, or after which nothing can be trusted.
    pub fn take_event(&mut self) -> Result<Option<Event>, Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        match self.look() {
            Ok(None) => Ok(self.events.pop_front()),
            Ok(Some(completion)) => {
                self.failed = true;
                Err(Error::Event(completion.entry))
            }
            Err(Look::Error(error)) => {
                self.failed = true;
                Err(error)
            }
            Err(Look::Timeout(_)) => Ok(None),
        }
    }

    /// Number of the ring of completions.
    pub const fn id(&self) -> u16 {
        self.creq_id
    }

    /// Whether an error has left the channel in an unknown state.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Nothing that the device says is to be trusted any more.
    pub const fn fail(&mut self) {
        self.failed = true;
    }

    /// Frees the memory: the device has forgotten it.
    pub fn release(self) {
        self.cmdq.release();
        self.creq.release();
        self.side.release();
    }
}

/// How a look at the ring ends.
enum Look {
    Error(Error),
    Timeout(Timeout),
}

impl From<Timeout> for Look {
    fn from(timeout: Timeout) -> Self {
        Self::Timeout(timeout)
    }
}
