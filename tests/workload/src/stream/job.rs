use directverbs::verbs::{DeviceAttributes, Mtu, PortAttributes, QpCapabilities};

use crate::job::range;
use crate::{JobError, MAX_BATCH, MAX_SIZE, Op, Pattern, Role};

/// The most requests outstanding.
pub const MAX_DEPTH: u32 = 16_384;
/// Bytes of message memory of a side at most, unless one message is larger: both sides fit the usual limit of pinned memory,
/// 8 MiB.
const WINDOW: u32 = 2 << 20;
/// Receive requests for each message that may be outstanding: the second side's program is slower than its device.
const RECEIVES: u32 = 4;

/// What the two sides of a stream do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamJob {
    /// SEND, WRITE or READ.
    pub op: Op,
    /// Bytes of a message.
    pub size: u32,
    /// The stream ends after this many messages,
    pub messages: u64,
    /// or when this many nanoseconds have passed by the first side's clock, whichever comes first.
    pub duration_ns: u64,
    /// Requests outstanding at most.
    pub depth: u32,
    /// Requests posted under one doorbell; at most [`MAX_BATCH`].
    pub batch: u32,
    /// Every so many requests one asks for a completion.
    pub signal_every: u32,
    /// Path MTU; the largest that both ports have if none is given.
    pub mtu: Option<Mtu>,
    /// Acknowledge time-out code of the queue pairs: 4.096 us * 2^n.
    pub timeout: u8,
    /// What the contents follow from.
    pub seed: u64,
    /// Nanoseconds, by the device's clock, after which a side that sees no completion gives up.
    pub idle_limit_ns: u64,
}

impl Default for StreamJob {
    fn default() -> Self {
        Self {
            op: Op::Write,
            size: 65_536,
            messages: 1000,
            duration_ns: u64::MAX,
            depth: 128,
            batch: 16,
            signal_every: 16,
            mtu: None,
            timeout: 14,
            seed: 1,
            idle_limit_ns: 30_000_000_000,
        }
    }
}

impl StreamJob {
    /// Checks what can be checked without a device.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn check(&self) -> Result<(), JobError> {
        let op = self.op;
        if !matches!(op, Op::Send | Op::Write | Op::Read) {
            return Err(JobError::Combination { op, what: "a stream" });
        }
        range("size", self.size.into(), 1, MAX_SIZE.into())?;
        range("messages", self.messages, 1, (1 << 40) - 1)?;
        range("depth", self.depth.into(), 1, MAX_DEPTH.into())?;
        range("batch", self.batch.into(), 1, MAX_BATCH.min(self.depth).into())?;
        // Otherwise all that may be outstanding could be, with no completion to come.
        range("signal-every", self.signal_every.into(), 1, (self.depth + 1 - self.batch).into())?;
        range("timeout", self.timeout.into(), 1, 31)
    }

    /// Checks the job against a device.
    ///
    /// # Errors
    /// What makes no sense, or the first thing that the device cannot do.
    pub fn check_for(&self, device: &DeviceAttributes, port: &PortAttributes) -> Result<(), JobError> {
        self.check()?;
        let (family, has) = (device.family, &device.max_qp);
        if let Some(mtu) = self.mtu.filter(|mtu| *mtu > port.mtu) {
            return Err(JobError::MtuOverPort { family, asked: mtu.bytes(), max: port.mtu.bytes() });
        }
        let needed = self.depth + 1;
        let receives = if self.op.fills_receive() { self.batch + 1 } else { 1 };
        let limits = [
            ("send requests", needed, has.max_send_wr),
            ("receive requests", receives, has.max_recv_wr),
            ("completions", needed.max(receives), device.max_cqe),
        ];
        match limits.into_iter().find(|(_, needed, max)| needed > max) {
            Some((what, needed, max)) => Err(JobError::OverDevice { family, what, needed, max }),
            None => Ok(()),
        }
    }

    /// What the queue pair of a side must have. One more request than messages: the one that closes.
    pub(super) fn capabilities(&self, role: Role, device: &DeviceAttributes) -> QpCapabilities {
        let receives = if role == Role::Second && self.op.fills_receive() {
            (self.depth * RECEIVES + 1).min(device.max_qp.max_recv_wr).min(device.max_cqe)
        } else {
            1
        };
        QpCapabilities {
            max_send_wr: if role == Role::First { self.depth + 1 } else { 1 },
            max_recv_wr: receives,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        }
    }

    /// Slots of message memory.
    pub(super) fn slots(&self) -> u32 {
        (WINDOW / self.size.max(1)).clamp(1, self.depth.max(1))
    }

    /// Slot of message `n`.
    pub(super) fn slot(&self, n: u64) -> u32 {
        (n % u64::from(self.slots())) as u32
    }

    /// Contents of the messages of a slot.
    pub(super) fn pattern(&self, slot: u32) -> Pattern {
        Pattern::new(self.seed, Role::First as u64, 0, slot.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_could_never_complete_is_refused() {
        let job = StreamJob { depth: 16, batch: 8, ..StreamJob::default() };
        assert_eq!(StreamJob { signal_every: 9, ..job }.check(), Ok(()));
        let wrong = [
            StreamJob { signal_every: 10, ..job },
            StreamJob { signal_every: 0, ..job },
            StreamJob { batch: 17, ..job },
            StreamJob { depth: 0, ..job },
            StreamJob { depth: MAX_DEPTH + 1, ..job },
            StreamJob { size: 0, ..job },
            StreamJob { messages: 0, ..job },
        ];
        for job in wrong {
            assert!(matches!(job.check(), Err(JobError::OutOfRange { .. })), "{job:?}");
        }
        let atomic = StreamJob { op: Op::FetchAdd, ..job };
        assert!(matches!(atomic.check(), Err(JobError::Combination { .. })));
    }

    #[test]
    fn large_messages_have_fewer_slots() {
        let job = StreamJob::default();
        assert_eq!(StreamJob { size: 4096, ..job }.slots(), 128);
        assert_eq!(StreamJob { size: 1 << 20, ..job }.slots(), 2);
        assert_eq!(StreamJob { size: MAX_SIZE, ..job }.slots(), 1);
    }
}
