//! The device's place: what it has been given, and the CQEs that it writes.

use std::collections::VecDeque;

use directverbs::ionic::cqe::{
    CQE_BYTES, CqeType, IdxTimestamp, QidTypeFlags, RecvCqe, RecvOp, SendCqe, SrcQpnOp, Status,
};
use directverbs::verbs::{QpId, WcStatus};

use crate::case::{Dice, Message};

/// A CQE.
pub(super) type Cqe = [u8; CQE_BYTES];

/// Bits of a message number.
const MESSAGE_MASK: u32 = 0xff_ffff;

/// A send request that the device has not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its place in the ring.
    pub index: u16,
    /// It completes by message, not by position.
    pub remote: bool,
}

/// A queue pair as the device sees it.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    /// Number.
    pub id: QpId,
    /// Largest index of the send ring.
    pub sq_mask: u16,
    /// Largest index of the receive ring.
    pub rq_mask: u16,
    /// Where the next send request goes.
    pub sq_prod: u16,
    /// Where the next receive request goes.
    pub rq_prod: u16,
    /// Send requests that it has not completed, oldest first.
    pub sent: VecDeque<Sent>,
    /// Receive requests that it has not completed, oldest first.
    pub posted: VecDeque<u16>,
    /// Messages acknowledged.
    pub messages: u32,
    /// It has told that the queue pair is in error, and tells no more.
    pub failed: bool,
}

/// Random bits that a CQE carries besides what it tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise(pub u64);

impl Noise {
    /// Other bits.
    pub fn next(&mut self) -> u64 {
        // A linear congruential generator: the bits only have to differ.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }
}

impl Queues {
    /// A queue pair that nothing was posted to, whose next message has the number `first_message`.
    pub fn new(id: QpId, sq_mask: u16, rq_mask: u16, first_message: u32) -> Self {
        Self {
            id,
            sq_mask,
            rq_mask,
            sq_prod: 0,
            rq_prod: 0,
            sent: VecDeque::new(),
            posted: VecDeque::new(),
            messages: first_message,
            failed: false,
        }
    }

    /// As if new.
    pub fn reset(&mut self) {
        *self = Self::new(self.id, self.sq_mask, self.rq_mask, 0);
    }

    /// A send request was posted.
    pub fn send(&mut self, remote: bool) {
        self.sent.push_back(Sent { index: self.sq_prod, remote });
        self.sq_prod = self.sq_prod.wrapping_add(1) & self.sq_mask;
    }

    /// A receive request was posted.
    pub fn recv(&mut self) {
        self.posted.push_back(self.rq_prod);
        self.rq_prod = self.rq_prod.wrapping_add(1) & self.rq_mask;
    }

    fn qtf(&self, kind: CqeType, error: bool) -> QidTypeFlags {
        QidTypeFlags::new().with_qid(self.id.get()).with_cqe_type(kind.0).with_error(error)
    }

    /// A send CQE with every other field filled at random.
    pub fn send_cqe(
        &self,
        kind: CqeType,
        message: u32,
        index: u16,
        error: Option<Status>,
        noise: &mut Noise,
    ) -> Cqe {
        let time = IdxTimestamp::new().with_wqe_idx(index).with_timestamp(noise.next());
        let message = if kind == CqeType::SEND_MSN { message } else { noise.next() as u32 };
        let cqe = SendCqe {
            rsvd: (noise.next() as u32).to_ne_bytes(),
            msg_msn: message.into(),
            npg_wqe_idx_timestamp: time.into_bits().into(),
            status_length: error.map_or(noise.next() as u32, |status| status.0).into(),
            qid_type_flags: self.qtf(kind, error.is_some()).into_bits().into(),
            ..SendCqe::ZERO
        };
        zerocopy::transmute!(cqe)
    }

    /// CQEs that complete the `count` oldest send requests: one for each run of messages, or one for all messages, and
    /// one for each position.
    pub fn complete(&mut self, count: usize, noise: &mut Noise) -> Vec<Cqe> {
        let mut cqes = Vec::new();
        let apart = noise.next() & 1 == 0;
        let mut told = self.messages;
        for _ in 0..count {
            let Some(sent) = self.sent.pop_front() else { break };
            if sent.remote {
                self.messages = self.messages.wrapping_add(1) & MESSAGE_MASK;
                if noise.next().is_multiple_of(8) {
                    // By position it says nothing: the message is waited for.
                    cqes.push(self.send_cqe(CqeType::SEND_NPG, 0, sent.index, None, noise));
                }
                continue;
            }
            if apart && told != self.messages {
                cqes.push(self.send_cqe(CqeType::SEND_MSN, self.messages, 0, None, noise));
                told = self.messages;
            }
            cqes.push(self.send_cqe(CqeType::SEND_NPG, 0, sent.index, None, noise));
        }
        if told != self.messages {
            cqes.push(self.send_cqe(CqeType::SEND_MSN, self.messages, noise.next() as u16, None, noise));
        }
        cqes
    }

    /// Takes the `count` oldest send requests as completed without telling, if all of them are messages: the next message
    /// told of tells of them. `false` if not.
    pub fn complete_silently(&mut self, count: usize) -> bool {
        let all = self.sent.iter().take(count).all(|sent| sent.remote);
        if all {
            self.sent.drain(..count.min(self.sent.len()));
            self.messages = self.messages.wrapping_add(count as u32) & MESSAGE_MASK;
        }
        all
    }

    /// The CQE by which the oldest send request fails, by message (always, with `message`) or by position; its index goes
    /// with it.
    pub fn fail(&mut self, status: Status, message: bool, noise: &mut Noise) -> Option<(Cqe, u16)> {
        let sent = self.sent.pop_front()?;
        let by_message = sent.remote && (message || noise.next() & 1 == 0);
        if sent.remote {
            self.messages = self.messages.wrapping_add(1) & MESSAGE_MASK;
        }
        let kind = if by_message { CqeType::SEND_MSN } else { CqeType::SEND_NPG };
        Some((self.send_cqe(kind, self.messages, sent.index, Some(status), noise), sent.index))
    }

    /// A receive CQE for the request at `index`.
    pub fn receive_cqe(
        &self,
        index: u16,
        length: u32,
        message: Message,
        src_qp: u32,
        noise: &mut Noise,
    ) -> Cqe {
        let (op, key) = match message {
            // Values without a meaning of their own are plain receives.
            Message::Plain if noise.next().is_multiple_of(4) => {
                (4 + noise.next() as u8 % 28, noise.next() as u32)
            }
            Message::Plain => (RecvOp::SEND.0, noise.next() as u32),
            Message::Imm(imm) => (RecvOp::SEND_IMM.0, imm),
            Message::WriteImm(imm) => (RecvOp::RDMA_IMM.0, imm),
            Message::Invalidated(key) => (RecvOp::SEND_INV.0, key),
        };
        let flags = noise.next();
        let source = SrcQpnOp::new()
            .with_src_qpn(src_qp & MESSAGE_MASK)
            .with_op(op)
            .with_vlan(flags & 1 != 0)
            .with_ipv4(flags & 2 != 0);
        let time = IdxTimestamp::new().with_wqe_idx(index).with_timestamp(noise.next());
        let mut src_mac = [0; 6];
        src_mac.copy_from_slice(&noise.next().to_ne_bytes()[..6]);
        let cqe = RecvCqe {
            wqe_idx_timestamp: time.into_bits().into(),
            src_qpn_op: source.into_bits().into(),
            src_mac,
            vlan_tag: (noise.next() as u16).into(),
            imm_data_rkey: key.into(),
            status_length: length.into(),
            qid_type_flags: self.qtf(CqeType::RECV, false).into_bits().into(),
        };
        zerocopy::transmute!(cqe)
    }

    /// The CQE by which the oldest receive request takes a message.
    pub fn receive(&mut self, length: u32, message: Message, src_qp: u32, noise: &mut Noise) -> Option<Cqe> {
        let index = self.posted.pop_front()?;
        Some(self.receive_cqe(index, length, message, src_qp, noise))
    }

    /// The CQE by which the oldest receive request fails.
    pub fn fail_receive(&mut self, status: Status, noise: &mut Noise) -> Option<Cqe> {
        let index = self.posted.pop_front()?;
        let mut cqe = self.receive_cqe(index, status.0, Message::Plain, 0, noise);
        cqe[28..].copy_from_slice(&self.qtf(CqeType::RECV, true).into_bits().to_be_bytes());
        Some(cqe)
    }

    /// The CQEs by which the device tells that it flushes.
    pub fn flush(&mut self, noise: &mut Noise) -> [Cqe; 2] {
        self.failed = true;
        let send = self.send_cqe(CqeType::SEND_NPG, 0, noise.next() as u16, Some(Status::WQE_FLUSHED), noise);
        let mut recv = self.receive_cqe(noise.next() as u16, Status::WQE_FLUSHED.0, Message::Plain, 0, noise);
        recv[28..].copy_from_slice(&self.qtf(CqeType::RECV, true).into_bits().to_be_bytes());
        [send, recv]
    }
}

/// The device's code for a status; statuses that several codes mean come out as any of them.
pub(super) fn code(status: WcStatus, dice: Dice) -> Status {
    let codes: Vec<Status> = (1..=16)
        .map(Status)
        .filter(|code| *code != Status::WQE_FLUSHED && code.wc_status() == status)
        .collect();
    codes.get(dice.below(codes.len() as u32) as usize).copied().unwrap_or(Status(dice.0 | 1 << 16))
}

/// The completion ring as the device writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CqProducer {
    /// Largest index.
    pub mask: u16,
    /// Next entry.
    pub prod: u16,
    /// Its color.
    pub color: bool,
}

impl CqProducer {
    /// Offset and bytes of the next CQE, with the color that it must have.
    pub fn next(&mut self, cqe: &Cqe) -> (usize, Cqe) {
        let offset = usize::from(self.prod) * CQE_BYTES;
        let mut cqe = *cqe;
        cqe[31] = cqe[31] & !1 | u8::from(self.color);
        self.prod = self.prod.wrapping_add(1) & self.mask;
        self.color ^= self.prod == 0;
        (offset, cqe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_status_has_a_code_of_the_device() {
        for status in [WcStatus::LocLen, WcStatus::RemAccess, WcStatus::RnrRetryExceeded, WcStatus::General] {
            for bits in [0, 1 << 31, u32::MAX] {
                assert_eq!(code(status, Dice(bits)).wc_status(), status);
            }
        }
    }

    #[test]
    fn a_batch_of_completions_tells_every_message_and_every_position() {
        for seed in 0..32 {
            let mut queues = Queues::new(QpId::truncated(5), 15, 15, 0xff_fffe);
            for remote in [true, true, false, true, false] {
                queues.send(remote);
            }
            let cqes = queues.complete(5, &mut Noise(seed));
            let kinds: Vec<(u8, u32, u16)> = cqes
                .iter()
                .map(|bytes| {
                    let cqe: SendCqe = zerocopy::transmute!(*bytes);
                    let qtf = QidTypeFlags::from_bits(cqe.qid_type_flags.get());
                    let time = IdxTimestamp::from_bits(cqe.npg_wqe_idx_timestamp.get());
                    (qtf.cqe_type(), cqe.msg_msn.get(), time.wqe_idx())
                })
                .collect();
            assert!(
                kinds.iter().any(|cqe| (cqe.0, cqe.1) == (2, 1)),
                "the third message is number 0: {kinds:?}"
            );
            for position in [2, 4] {
                assert!(kinds.iter().any(|cqe| (cqe.0, cqe.2) == (3, position)), "{kinds:?}");
            }
            assert!(queues.sent.is_empty());
        }
    }

    #[test]
    fn the_color_flips_when_the_ring_wraps() {
        let mut ring = CqProducer { mask: 1, prod: 0, color: true };
        let written: Vec<(usize, u8)> = (0..4)
            .map(|_| {
                let (offset, cqe) = ring.next(&[0; 32]);
                (offset, cqe[31])
            })
            .collect();
        assert_eq!(written, [(0, 1), (32, 1), (0, 0), (32, 0)]);
    }
}
