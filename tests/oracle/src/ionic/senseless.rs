//! CQEs that make no sense. The core tells of each of them once and goes on.

use directverbs::ionic::cqe::{CqeType, QidTypeFlags};
use directverbs::verbs::FaultKind;

use super::device::{Cqe, Noise, Queues};
use super::exceptions::{self as known};
use super::quirks::Quirks;
use crate::case::{Dice, Exception, Message};

/// Whether the core has taken it, and told of it at once unless it had completions to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Not yet.
    No,
    /// Yes.
    Yes,
}

/// A CQE that makes no sense and was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Senseless {
    /// What the provider does with it.
    pub exception: &'static Exception,
    /// What the core says of it.
    pub fault: FaultKind,
    /// Whether it was taken.
    pub told: Told,
}

/// Kinds of CQEs that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    UnknownType,
    Indirect,
    UnknownQp,
    MessageOutside,
    MessageModulo,
    Position,
    ReceiveOutside,
    ReceiveTwice,
    WrongRing,
}

/// As often as they are listed: some are seldom possible.
const KINDS: [Kind; 14] = [
    Kind::UnknownType,
    Kind::Indirect,
    Kind::UnknownQp,
    Kind::MessageOutside,
    Kind::MessageModulo,
    Kind::Position,
    Kind::ReceiveOutside,
    Kind::ReceiveTwice,
    Kind::ReceiveTwice,
    Kind::ReceiveTwice,
    Kind::MessageModulo,
    Kind::WrongRing,
    Kind::WrongRing,
    Kind::WrongRing,
];

/// Bits of a message number.
const MESSAGE_MASK: u32 = 0xff_ffff;

impl Senseless {
    /// One of the kinds that are possible now, and its CQE. All earlier CQEs have been polled. `other` says that there
    /// is a ring that the queue pair does not complete to.
    pub fn new(
        queues: &Queues,
        quirks: &Quirks,
        other: bool,
        which: Dice,
        noise: &mut Noise,
    ) -> Option<(Self, Cqe)> {
        let kind = KINDS[which.0 as usize % KINDS.len()];
        let pick = |n: u32| Dice(which.0.rotate_left(16)).below(n);
        let qp = queues.id.get();
        let messages = queues.sent.iter().filter(|sent| sent.remote).count() as u32;
        let (depth, mask) = (u32::from(queues.sq_mask) + 1, u32::from(queues.sq_mask));
        let message = |ahead: u32| queues.messages.wrapping_add(ahead) & MESSAGE_MASK;
        let send =
            |number: u32, noise: &mut Noise| queues.send_cqe(CqeType::SEND_MSN, number, 0, None, noise);
        let bad_index = |index: u32| FaultKind::BadIndex { qp, index };
        let (exception, fault, cqe): (&'static Exception, _, _) = match kind {
            Kind::UnknownType => {
                let unknown = [0, 5, 6, 7][pick(4) as usize];
                let fault = match unknown {
                    0 => FaultKind::Unexpected(0),
                    other => FaultKind::UnknownType(other),
                };
                let cqe = queues.send_cqe(CqeType(unknown), 0, 0, None, noise);
                (&known::BAD_CQE_STAYS, fault, cqe)
            }
            Kind::Indirect => {
                let cqe = queues.receive_cqe(0, 0, Message::Plain, 0, noise);
                let cqe = retyped(cqe, |qtf| qtf.with_cqe_type(CqeType::RECV_INDIR.0));
                (&known::SENSELESS_CQE_IS_NOT_TOLD, FaultKind::Unexpected(CqeType::RECV_INDIR.0), cqe)
            }
            Kind::UnknownQp => {
                // No case has numbers that differ in the upper half only.
                let unknown = qp ^ (1 + pick(0xfe)) << 16;
                let cqe = retyped(send(message(1), noise), |qtf| qtf.with_qid(unknown));
                (&known::UNKNOWN_QP_IS_NOT_TOLD, FaultKind::UnknownQp(unknown.into()), cqe)
            }
            Kind::MessageOutside => {
                let beyond = pick(mask - messages + 1);
                let number = message(if beyond == 0 { 0 } else { messages + beyond });
                (&known::BAD_CQE_STAYS, bad_index(number), send(number, noise))
            }
            Kind::MessageModulo if messages != 0 => {
                let number = message(1 + pick(messages) + depth * (1 + pick(7)));
                (&known::MESSAGE_MODULO_DEPTH, bad_index(number), send(number, noise))
            }
            Kind::Position => {
                // One entry is always free.
                let index = queues.sq_prod;
                let cqe = queues.send_cqe(CqeType::SEND_NPG, 0, index, None, noise);
                (&known::SENSELESS_CQE_IS_NOT_TOLD, bad_index(index.into()), cqe)
            }
            Kind::ReceiveOutside => {
                let index = queues.rq_mask.checked_add(1 + pick(1 << 8) as u16)?;
                let cqe = queues.receive_cqe(index, 1, Message::Plain, 0, noise);
                (&known::BAD_CQE_STAYS, bad_index(index.into()), cqe)
            }
            Kind::ReceiveTwice => {
                let index = queues.rq_prod.wrapping_sub(pick(4) as u16) & queues.rq_mask;
                if queues.posted.contains(&index) {
                    return None;
                }
                let other = !queues.posted.is_empty() && quirks.taken_over(index);
                let exception = if other { &known::RECEIVE_TWICE } else { &known::BAD_CQE_STAYS };
                let cqe = queues.receive_cqe(index, 1, Message::Plain, 0, noise);
                (exception, bad_index(index.into()), cqe)
            }
            Kind::WrongRing if other && messages != 0 => {
                let cqe = send(message(1 + pick(messages)), noise);
                (&known::WRONG_RING, FaultKind::Unexpected(CqeType::SEND_MSN.0), cqe)
            }
            Kind::MessageModulo | Kind::WrongRing => return None,
        };
        Some((Self { exception, fault, told: Told::No }, cqe))
    }
}

/// The CQE with another last word.
fn retyped(mut cqe: Cqe, edit: impl FnOnce(QidTypeFlags) -> QidTypeFlags) -> Cqe {
    if let Some(last) = cqe.last_chunk_mut() {
        let word = QidTypeFlags::from_bits(u32::from_be_bytes(*last));
        *last = edit(word).into_bits().to_be_bytes();
    }
    cqe
}
