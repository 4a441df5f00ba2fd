//! One step of a side: takes completions, verifies what they announce, and goes on.

use directverbs::verbs::{CompletionQueue, Device, Slices, WcFlags, WcOpcode, WcStatus, WorkCompletion};

use crate::job::GRH;
use crate::side::Side;
use crate::turn::Stage;
use crate::{BEFORE_ECHO, DataError, Error, Op, Pattern, Role, WrId, WrKind};

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done.
    Busy,
    /// There was nothing to do. [`Device::progress`] is due.
    Idle,
    /// All turns of both sides are through, and all of it is verified.
    Done,
}

/// A turn of the first side that is through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Number of the turn, from 0.
    pub iteration: u64,
    /// Nanoseconds by the device's clock. For READ and atomics, from the post to the completion of the last; otherwise
    /// from the post to the completion of the peer's last message, the peer's verification included.
    pub ns: u64,
    /// Bytes that the side has verified so far.
    pub verified_bytes: u64,
}

/// What a side has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Messages, or atomics, that it sent.
    pub messages: u64,
    /// Bytes that it compared with what they had to be.
    pub verified_bytes: u64,
    /// Completions that it took.
    pub completions: u64,
}

impl<D: Device> Side<D> {
    /// Takes what has completed and does what is next. `observe` is called for each turn that is through, at the first
    /// side.
    ///
    /// # Errors
    /// What went wrong. The side goes no further then.
    pub fn step(&mut self, dev: &mut D, observe: &mut impl FnMut(Sample)) -> Result<Step, Error<D::Error>> {
        self.step_dyn(dev, observe)
    }

    /// [`Side::step`], once for all kinds of `observe`.
    fn step_dyn(&mut self, dev: &mut D, observe: &mut dyn FnMut(Sample)) -> Result<Step, Error<D::Error>> {
        let mut busy = false;
        for cq in 0..self.cqs.len() {
            let mut completions = [WorkCompletion::default(); 16];
            let polled = match self.cqs.get_mut(cq) {
                Some(cq) => {
                    let mut endpoints = Slices { qps: &mut self.qps, srqs: &mut self.srqs };
                    cq.poll(&mut endpoints, &mut completions)
                }
                None => Ok(0),
            };
            let qp = self.contact().qp;
            let count =
                polled.map_err(|fault| Error::Fault { qp, outstanding: self.outstanding(), fault })?;
            if count > 0 {
                busy = true;
                self.patience.renew(dev.now_ns());
            }
            for completion in completions.iter().take(count) {
                self.report.completions += 1;
                self.take(completion, observe)?;
            }
        }
        busy |= self.advance(dev, observe)?;
        if self.stage == Stage::Done {
            return Ok(Step::Done);
        }
        if busy {
            return Ok(Step::Busy);
        }
        match self.patience.lose(dev.now_ns(), self.job.idle_limit_ns) {
            Some(waited_ns) => {
                let (qp, outstanding) = (self.contact().qp, self.outstanding());
                Err(Error::TimedOut { qp, outstanding, waited_ns })
            }
            None => Ok(Step::Idle),
        }
    }

    /// Goes on to the next stage, if the present one is over.
    fn advance(&mut self, dev: &mut D, observe: &mut dyn FnMut(Sample)) -> Result<bool, Error<D::Error>> {
        if !self.awaited.is_empty() {
            return Ok(false);
        }
        match self.stage {
            Stage::Binding => self.stage = Stage::Idle,
            Stage::Operating if self.job.op.fetches() => {
                self.check_fetched()?;
                if self.role == Role::First {
                    self.observe(observe);
                }
                self.post_hand_over()?;
            }
            Stage::Operating | Stage::HandingOver => {
                self.report.messages += u64::from(self.job.batch);
                self.sent_turns += 1;
                self.stage = Stage::Idle;
            }
            Stage::Idle if self.is_due() => self.act(dev)?,
            Stage::Idle if self.sent_turns.min(self.received_turns) == self.job.iterations => {
                self.stage = Stage::Done;
            }
            Stage::Idle | Stage::Done => return Ok(false),
        }
        Ok(true)
    }

    fn observe(&self, observe: &mut dyn FnMut(Sample)) {
        let ns = self.patience.last_completion_ns.saturating_sub(self.turn_began_ns);
        let iteration = if self.job.op.fetches() { self.sent_turns } else { self.received_turns };
        observe(Sample { iteration, ns, verified_bytes: self.report.verified_bytes });
    }

    fn take(
        &mut self,
        completion: &WorkCompletion,
        observe: &mut dyn FnMut(Sample),
    ) -> Result<(), Error<D::Error>> {
        let (qp, wr) = (self.contact().qp, WrId(completion.wr_id));
        if completion.status != WcStatus::Success {
            let (status, vendor_err) = (completion.status, completion.vendor_err);
            return Err(Error::Status { qp, wr, status, vendor_err });
        }
        let unexpected = Error::Unexpected {
            qp: completion.qp,
            wr,
            opcode: completion.opcode,
            outstanding: self.outstanding(),
        };
        if completion.qp != qp {
            return Err(unexpected);
        }
        if wr.kind() == Some(WrKind::Receive) {
            return if self.take_receive(wr) {
                self.received(wr, completion, observe)
            } else {
                Err(unexpected)
            };
        }
        match self.awaited.front().copied() {
            Some(awaited) if awaited.wr == wr => {
                self.awaited.pop_front();
                let fetched =
                    awaited.fetched.map(|length| ("byte_len", length.into(), completion.byte_len.into()));
                value("opcode", awaited.opcode as u64, completion.opcode as u64)
                    .and_then(|()| {
                        fetched.map_or(Ok(()), |(what, expected, found)| value(what, expected, found))
                    })
                    .map_err(self.data_error(wr))
            }
            _ => Err(unexpected),
        }
    }

    /// Takes receive request `wr` off those outstanding, if it is there and its turn. Without a shared receive queue they
    /// are consumed in the order in which they were posted.
    fn take_receive(&mut self, wr: WrId) -> bool {
        let bit = 1u32.checked_shl(wr.position()).unwrap_or(0);
        let posted = wr == WrId::new(WrKind::Receive, self.received_turns, wr.position());
        let due = posted && self.receives & bit != 0 && (self.job.srq || self.receives & (bit - 1) == 0);
        if due {
            self.receives &= !bit;
        }
        due
    }

    /// Verifies a message of the peer, or what its hand-over announces.
    fn received(
        &mut self,
        wr: WrId,
        completion: &WorkCompletion,
        observe: &mut dyn FnMut(Sample),
    ) -> Result<(), Error<D::Error>> {
        let message = self.arrived;
        self.check_receive(completion, message).map_err(self.data_error(wr))?;
        let checked = if self.job.op.consumes_receive() {
            self.check_message(completion, wr.position(), message)
        } else {
            self.check_exposed()
        };
        self.report.verified_bytes += checked.map_err(self.data_error(wr))?;
        self.arrived += 1;
        if self.arrived == self.job.receives() {
            if self.role == Role::First && !self.job.op.fetches() {
                self.observe(observe);
            }
            self.arrived = 0;
            self.received_turns += 1;
            if self.received_turns < self.job.iterations {
                self.post_receives()?;
            }
        }
        Ok(())
    }

    /// Checks the completion of a receive request.
    fn check_receive(&self, completion: &WorkCompletion, message: u32) -> Result<(), DataError> {
        let (op, turn, peer) = (self.job.op, self.received_turns, self.role.other());
        let (opcode, length) = match op {
            _ if op.fills_receive() => (WcOpcode::Recv, self.job.received_size()),
            Op::WriteImm => (WcOpcode::RecvRdmaWithImm, self.job.size),
            _ => (WcOpcode::Recv, 0),
        };
        let immediate = match op {
            Op::SendImm | Op::WriteImm => Some(self.immediate(peer, turn, Some(message))),
            _ if op.consumes_receive() => None,
            _ => Some(self.immediate(peer, turn, None)),
        };
        let invalidated = (op == Op::SendInv).then(|| self.own_window_key(turn, message));
        value("opcode", opcode as u64, completion.opcode as u64)?;
        value("byte_len", length.into(), completion.byte_len.into())?;
        match (immediate, completion.imm()) {
            (None, None) => {}
            (Some(expected), Some(found)) => {
                value("immediate data", expected.get().into(), found.get().into())?;
            }
            (Some(_), None) => return Err(DataError::Completion("there is no immediate data")),
            (None, Some(_)) => return Err(DataError::Completion("there is immediate data")),
        }
        match (invalidated, completion.invalidated()) {
            (None, None) => {}
            (Some(expected), Some(found)) => {
                value("invalidated key", expected.get().into(), found.get().into())?;
            }
            (Some(_), None) => return Err(DataError::Completion("no key was invalidated")),
            (None, Some(_)) => return Err(DataError::Completion("a key was invalidated")),
        }
        match (op == Op::SendTo, completion.flags.contains(WcFlags::GRH)) {
            (true, false) => Err(DataError::Completion("the datagram has no GRH")),
            (false, true) => Err(DataError::Completion("the message has a GRH")),
            _ => Ok(()),
        }
    }

    /// Contents of message `message` of the peer's present turn.
    fn expected(&self, message: u32) -> Pattern {
        let turn = self.received_turns;
        match (self.job.echoed, self.role) {
            (false, role) => self.pattern(role.other(), turn, message),
            (true, Role::First) => self.pattern(Role::First, turn, message),
            (true, Role::Second) => match turn.checked_sub(1) {
                Some(before) => self.pattern(Role::Second, before, message),
                None => Pattern::of_byte(BEFORE_ECHO),
            },
        }
    }

    /// Verifies a message that came into a receive request, or a WRITE with immediate data.
    fn check_message(&self, completion: &WorkCompletion, slot: u32, message: u32) -> Result<u64, DataError> {
        let pattern = self.expected(message);
        if self.job.op == Op::SendTo {
            let peer = self.peer.map(|p| p.qp).unwrap_or_default();
            value("source queue pair", peer.get().into(), completion.src_qp.get().into())?;
            self.check_grh(slot)?;
        }
        if self.job.op.fills_receive() {
            let skip = self.job.received_size() - self.job.size;
            self.rx.check(slot, skip as usize, pattern)?;
        } else {
            self.exposed.check(message, 0, pattern)?;
        }
        Ok(self.job.size.into())
    }

    /// Verifies the addresses in front of a datagram: an IPv6 header, or an IPv4 header in the last 20 of its 40 bytes.
    fn check_grh(&self, slot: u32) -> Result<(), DataError> {
        let mut grh = [0; GRH as usize];
        self.rx.read(slot, &mut grh)?;
        let Some(peer) = self.peer else { return Ok(()) };
        let (source, destination) = (peer.gid.0, self.contact().gid.0);
        let parts: [(usize, &[u8]); 2] = if peer.gid.as_v4().is_some() {
            [(32, source.get(12..).unwrap_or(&[])), (36, destination.get(12..).unwrap_or(&[]))]
        } else {
            [(8, &source), (24, &destination)]
        };
        for (offset, expected) in parts {
            for (n, (&expected, &found)) in expected.iter().zip(grh.iter().skip(offset)).enumerate() {
                if expected != found {
                    return Err(DataError::Value {
                        what: if offset == 32 || offset == 8 {
                            "source address in the GRH"
                        } else {
                            "destination address in the GRH"
                        },
                        expected: (n as u64) << 8 | u64::from(expected),
                        found: (n as u64) << 8 | u64::from(found),
                    });
                }
            }
        }
        Ok(())
    }

    /// Verifies what the peer did to the exposed memory in the turn that it has just handed over.
    fn check_exposed(&self) -> Result<u64, DataError> {
        let (turn, batch) = (self.received_turns, self.job.batch);
        for message in 0..batch {
            match self.job.op {
                Op::Write => {
                    self.exposed.check(message, 0, self.pattern(self.role.other(), turn, message))?
                }
                op if op.is_atomic() => {
                    let expected = self.atomic_value(self.role, turn + 1, message);
                    value("memory after the atomic", expected, self.exposed.word(message)?)?;
                }
                _ => return Ok(0),
            }
        }
        Ok(u64::from(batch) * u64::from(self.job.size))
    }

    /// Verifies what READs and atomics have brought back.
    fn check_fetched(&mut self) -> Result<(), Error<D::Error>> {
        let turn = self.sent_turns;
        for message in 0..self.job.batch {
            let checked = if self.job.op.is_atomic() {
                let expected = self.atomic_value(self.role.other(), turn, message);
                self.rx.word(message).and_then(|found| value("value before the atomic", expected, found))
            } else {
                self.rx.check(message, 0, self.pattern(self.role.other(), turn, message))
            };
            checked.map_err(self.data_error(WrId::new(WrKind::Operation, turn, message)))?;
            self.report.verified_bytes += u64::from(self.job.size);
        }
        Ok(())
    }
}

pub(crate) fn value(what: &'static str, expected: u64, found: u64) -> Result<(), DataError> {
    if expected == found { Ok(()) } else { Err(DataError::Value { what, expected, found }) }
}
