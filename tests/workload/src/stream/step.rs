//! One step of a side of a stream.

use directverbs::verbs::{
    CompletionQueue, Device, Imm, QueuePair, RemoteAddress, SendOp, SendRequest, Sge, Slices, WcOpcode,
    WcStatus, WorkCompletion,
};
use heapless::Vec;

use super::{Progress, Stage, Stream};
use crate::side::BATCH;
use crate::step::value;
use crate::{DataError, Error, Op, Role, Step, WrId, WrKind};

impl<D: Device> Stream<D> {
    /// See [`Party::step`](crate::Party::step).
    pub(super) fn advance_all(
        &mut self,
        dev: &mut D,
        observe: &mut impl FnMut(Progress),
    ) -> Result<Step, Error<D::Error>> {
        let mut busy = false;
        for cq in 0..self.cqs.len() {
            let mut completions = [WorkCompletion::default(); 16];
            let polled = match self.cqs.get_mut(cq) {
                Some(cq) => cq.poll(&mut Slices { qps: &mut self.qps, srqs: &mut [] }, &mut completions),
                None => Ok(0),
            };
            let (qp, outstanding) = (self.contact.qp, self.outstanding());
            let count = polled.map_err(|fault| Error::Fault { qp, outstanding, fault })?;
            if count > 0 {
                busy = true;
                self.patience.renew(dev.now_ns());
            }
            for completion in completions.iter().take(count) {
                self.take(completion)?;
            }
        }
        if busy && self.stage == Stage::Streaming {
            let ns = self.patience.last_completion_ns.saturating_sub(self.began_ns);
            observe(Progress { messages: self.completed, ns });
        }
        busy |= self.advance(dev)?;
        if self.stage == Stage::Done {
            return Ok(Step::Done);
        }
        if busy {
            return Ok(Step::Busy);
        }
        match self.patience.lose(dev.now_ns(), self.job.idle_limit_ns) {
            Some(waited_ns) => {
                let (qp, outstanding) = (self.contact.qp, self.outstanding());
                Err(Error::TimedOut { qp, outstanding, waited_ns })
            }
            None => Ok(Step::Idle),
        }
    }

    /// Posts what may be posted.
    fn advance(&mut self, dev: &mut D) -> Result<bool, Error<D::Error>> {
        match self.stage {
            Stage::Streaming => {
                let now_ns = dev.now_ns();
                if self.posted == 0 {
                    self.began_ns = now_ns;
                }
                let passed_ns = now_ns.saturating_sub(self.began_ns);
                let over = self.posted > 0 && passed_ns >= self.job.duration_ns;
                let left = if over { 0 } else { self.job.messages - self.posted };
                if left == 0 {
                    self.stage = Stage::Closing;
                    return self.close(self.posted).map(|()| true);
                }
                let count = left.min(self.job.batch.into());
                if self.posted + count > self.completed + u64::from(self.job.depth) {
                    return Ok(false);
                }
                self.post(count as u32)?;
            }
            Stage::Closing if self.closed && self.arrived => {
                self.report.messages = self.posted;
                self.report.bytes = self.posted * u64::from(self.job.size);
                self.stage = Stage::Done;
            }
            Stage::Answering if self.closed => self.stage = Stage::Done,
            Stage::Serving => {
                let posted = self.receives_posted;
                self.post_receives()?;
                return Ok(self.receives_posted != posted);
            }
            Stage::Closing | Stage::Answering | Stage::Done => return Ok(false),
        }
        Ok(true)
    }

    /// Posts the next `count` messages under one doorbell.
    fn post(&mut self, count: u32) -> Result<(), Error<D::Error>> {
        let Some(peer) = self.peer else { return Ok(()) };
        let numbers = self.posted..self.posted + u64::from(count);
        let sges: Vec<Option<Sge>, BATCH> =
            numbers.clone().map(|n| self.buffers.sges(self.job.slot(n)).next()).collect();
        let mut requests: Vec<SendRequest<'_>, BATCH> = Vec::new();
        for (n, sge) in numbers.zip(&sges) {
            let addr = peer.addr + u64::from(self.job.slot(n)) * peer.stride;
            let remote = RemoteAddress { addr, rkey: peer.rkey };
            let op = match self.job.op {
                Op::Write => SendOp::Write(remote),
                Op::Read => SendOp::Read(remote),
                _ => SendOp::Send,
            };
            let request = SendRequest::new(op).sges(sge.as_slice());
            let request = request.wr_id(WrId::new(WrKind::Operation, n, 0).0);
            let _ = requests.push(if self.is_signaled(n) { request.signaled() } else { request });
        }
        ring(&mut self.qps, &mut self.cqs, &requests)?;
        self.posted += u64::from(count);
        self.report.doorbells += 1;
        Ok(())
    }

    fn is_signaled(&self, n: u64) -> bool {
        (n + 1).is_multiple_of(self.job.signal_every.into())
    }

    /// Posts the empty SEND that closes a stream of `messages` messages, or answers.
    fn close(&mut self, messages: u64) -> Result<(), Error<D::Error>> {
        let wr = WrId::new(WrKind::HandOver, messages, 0);
        let request = SendRequest::new(SendOp::SendImm(Imm::truncated(messages as u32)));
        ring(&mut self.qps, &mut self.cqs, &[request.wr_id(wr.0).signaled()])
    }

    fn take(&mut self, completion: &WorkCompletion) -> Result<(), Error<D::Error>> {
        let (qp, wr) = (self.contact.qp, WrId(completion.wr_id));
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
        let data = |error| Error::Data { qp, wr, error };
        let opcode = |expected: WcOpcode| value("opcode", expected as u64, completion.opcode as u64);
        match wr.kind() {
            Some(WrKind::Receive) if wr == WrId::new(WrKind::Receive, self.received, 0) => {
                opcode(WcOpcode::Recv).and_then(|()| self.received(completion)).map_err(data)?;
                if self.role == Role::Second && self.arrived {
                    let messages = u64::from(completion.imm_or_rkey);
                    self.stage = Stage::Answering;
                    self.close(messages)?;
                }
                Ok(())
            }
            // Completions come in order, and the next one that was asked for is known.
            Some(WrKind::Operation) if Some(wr) == self.next_signaled() => {
                opcode(self.job.op.opcode()).map_err(data)?;
                if self.job.op.fetches() {
                    let length = u64::from(self.job.size);
                    value("byte_len", length, completion.byte_len.into()).map_err(data)?;
                }
                self.completed +=
                    u64::from(self.job.signal_every) - self.completed % u64::from(self.job.signal_every);
                Ok(())
            }
            Some(WrKind::HandOver)
                if !self.closed && matches!(self.stage, Stage::Closing | Stage::Answering) =>
            {
                // Whatever was signaled before has to have completed.
                if self.next_signaled().is_some() {
                    return Err(unexpected);
                }
                opcode(WcOpcode::Send).map_err(data)?;
                self.closed = true;
                self.completed = self.posted;
                if self.role == Role::First {
                    self.report.elapsed_ns = self.patience.last_completion_ns.saturating_sub(self.began_ns);
                    self.verify(self.posted).map_err(data)?;
                }
                Ok(())
            }
            _ => Err(unexpected),
        }
    }

    /// The next message whose completion was asked for, if it is outstanding.
    fn next_signaled(&self) -> Option<WrId> {
        let every = u64::from(self.job.signal_every);
        let next = self.completed - self.completed % every + every - 1;
        (next < self.posted).then(|| WrId::new(WrKind::Operation, next, 0))
    }

    /// Takes a message of the stream, or what closes it or answers.
    fn received(&mut self, completion: &WorkCompletion) -> Result<(), DataError> {
        let Some(imm) = completion.imm() else {
            if self.role == Role::First || !self.job.op.fills_receive() || self.arrived {
                return Err(DataError::Completion("a message that nobody sent"));
            }
            value("byte_len", self.job.size.into(), completion.byte_len.into())?;
            self.received += 1;
            return Ok(());
        };
        value("byte_len", 0, completion.byte_len.into())?;
        if self.role == Role::First {
            value("answered messages", self.posted & 0xffff_ffff, imm.get().into())?;
        } else {
            let messages = u64::from(imm.get());
            if self.job.op.fills_receive() {
                value("messages", messages, self.received & 0xffff_ffff)?;
                self.report.messages = self.received;
                self.report.bytes = self.received * u64::from(self.job.size);
            }
            self.verify(messages)?;
        }
        self.received += 1;
        self.arrived = true;
        Ok(())
    }

    /// Verifies the slots that `messages` messages have filled, if they went to this side.
    fn verify(&mut self, messages: u64) -> Result<(), DataError> {
        if self.is_source() {
            return Ok(());
        }
        for slot in 0..messages.min(self.job.slots().into()) as u32 {
            self.buffers.check(slot, 0, self.job.pattern(slot))?;
            self.report.verified_bytes += u64::from(self.job.size);
        }
        Ok(())
    }
}

/// Posts `requests` under one doorbell.
fn ring<Q: QueuePair, E: core::error::Error>(
    qps: &mut [Q],
    cqs: &mut [Q::CompletionQueue],
    requests: &[SendRequest<'_>],
) -> Result<(), Error<E>> {
    let (Some(qp), Some(cq)) = (qps.first_mut(), cqs.first_mut()) else { return Ok(()) };
    qp.post_send(cq, requests).map_err(|error| Error::Post {
        qp: qp.id(),
        wr: WrId(requests.get(error.index).map_or(0, |r| r.wr_id)),
        error,
    })
}
