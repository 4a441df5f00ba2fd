use core::fmt;
use core::str::FromStr;

use directverbs::verbs::{DeviceAttributes, Mtu, PortAttributes, QpCapabilities, QpType, WcOpcode};

/// The largest batch under one doorbell.
pub const MAX_BATCH: u32 = 32;
/// The most SGEs of a message.
pub const MAX_SGES: u32 = 16;
/// The most inline bytes of a message, whatever the device grants.
pub const MAX_INLINE: u32 = 512;
/// The largest message: RoCE's own limit is 2 GiB, and three buffers of each size must fit memory.
pub const MAX_SIZE: u32 = 1 << 30;
/// What a peer that echoes sends before anything has come.
pub const BEFORE_ECHO: u8 = 0x7b;
/// Bytes in front of a received datagram.
pub(crate) const GRH: u32 = 40;

/// Operation of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Op {
    /// SEND.
    #[default]
    Send,
    /// SEND with immediate data.
    SendImm,
    /// SEND that invalidates a memory window of the receiver.
    SendInv,
    /// RDMA WRITE.
    Write,
    /// RDMA WRITE with immediate data.
    WriteImm,
    /// RDMA READ.
    Read,
    /// Compare and swap; every fourth one compares with a wrong value and must change nothing.
    CompareSwap,
    /// Fetch and add.
    FetchAdd,
    /// SEND of a datagram queue pair.
    SendTo,
}

impl Op {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 9] = [
        Self::Send,
        Self::SendImm,
        Self::SendInv,
        Self::Write,
        Self::WriteImm,
        Self::Read,
        Self::CompareSwap,
        Self::FetchAdd,
        Self::SendTo,
    ];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::SendImm => "send-imm",
            Self::SendInv => "send-inv",
            Self::Write => "write",
            Self::WriteImm => "write-imm",
            Self::Read => "read",
            Self::CompareSwap => "cas",
            Self::FetchAdd => "fetch-add",
            Self::SendTo => "ud-send",
        }
    }

    /// Kind of queue pair that has the operation.
    pub const fn qp_type(self) -> QpType {
        match self {
            Self::SendTo => QpType::Ud,
            _ => QpType::Rc,
        }
    }

    /// Opcode of the requester's completion.
    pub const fn opcode(self) -> WcOpcode {
        match self {
            Self::Send | Self::SendImm | Self::SendInv | Self::SendTo => WcOpcode::Send,
            Self::Write | Self::WriteImm => WcOpcode::RdmaWrite,
            Self::Read => WcOpcode::RdmaRead,
            Self::CompareSwap => WcOpcode::CompSwap,
            Self::FetchAdd => WcOpcode::FetchAdd,
        }
    }

    /// Whether each message consumes a receive request of the peer.
    pub const fn consumes_receive(self) -> bool {
        !matches!(self, Self::Write | Self::Read | Self::CompareSwap | Self::FetchAdd)
    }

    /// Whether each message fills a receive request's memory.
    pub const fn fills_receive(self) -> bool {
        self.consumes_receive() && !matches!(self, Self::WriteImm)
    }

    /// Whether the requester gets data back.
    pub const fn fetches(self) -> bool {
        matches!(self, Self::Read) || self.is_atomic()
    }

    /// Whether it is an atomic.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::CompareSwap | Self::FetchAdd)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no such operation; there are: send, send-imm, send-inv, write, write-imm, read, cas, fetch-add, ud-send"
)]
pub struct UnknownOp;

impl FromStr for Op {
    type Err = UnknownOp;

    fn from_str(name: &str) -> Result<Self, UnknownOp> {
        Self::ALL.into_iter().find(|op| op.name() == name).ok_or(UnknownOp)
    }
}

/// What two sides do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Operation.
    pub op: Op,
    /// Bytes of a message.
    pub size: u32,
    /// Turns that each side takes.
    pub iterations: u64,
    /// Messages of a turn, posted under one doorbell; at most [`MAX_BATCH`].
    pub batch: u32,
    /// SGEs of a message, each of a memory region of its own; a message of fewer bytes has as many as it has bytes.
    pub sges: u32,
    /// The requests carry their data inline.
    pub inline: bool,
    /// Receive requests come from a shared receive queue.
    pub srq: bool,
    /// Send and receive requests complete to one completion queue.
    pub one_cq: bool,
    /// Every request asks for a completion; otherwise the last of each batch does.
    pub signal_all: bool,
    /// The peer sends back what it has received last, and before that bytes of [`BEFORE_ECHO`], as `ibv_rc_pingpong` does.
    /// SEND alone, one message a turn.
    pub echoed: bool,
    /// Path MTU; the largest that both ports have if none is given.
    pub mtu: Option<Mtu>,
    /// Acknowledge time-out code of the queue pairs: 4.096 us * 2^n.
    pub timeout: u8,
    /// What the contents follow from.
    pub seed: u64,
    /// Nanoseconds, by the device's clock, after which a side that sees no completion gives up.
    pub idle_limit_ns: u64,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            op: Op::Send,
            size: 64,
            iterations: 1000,
            batch: 1,
            sges: 1,
            inline: false,
            srq: false,
            one_cq: false,
            signal_all: false,
            echoed: false,
            mtu: None,
            timeout: 14,
            seed: 1,
            idle_limit_ns: 30_000_000_000,
        }
    }
}

/// A job that makes no sense, or that the device cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// Too few or too many of something.
    #[error("{what} {given}: must be {min} to {max}")]
    OutOfRange {
        /// Of what.
        what: &'static str,
        /// Asked for.
        given: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// An atomic has 8 bytes.
    #[error("{op} works on 8 bytes, size {size} given: leave the size out or say 8")]
    AtomicSize {
        /// The atomic.
        op: Op,
        /// The size.
        size: u32,
    },
    /// The operation has no such thing.
    #[error("{op} cannot be combined with {what}")]
    Combination {
        /// The operation.
        op: Op,
        /// What it does not go with.
        what: &'static str,
    },
    /// A datagram fits one packet.
    #[error("a datagram fits one packet: size {size} is over the path MTU of {mtu} bytes")]
    DatagramTooLong {
        /// The size.
        size: u32,
        /// Bytes of the path MTU.
        mtu: u32,
    },
    /// More inline data than the device takes.
    #[error("{family} takes at most {max} inline bytes, size {size} given")]
    InlineTooLong {
        /// The device.
        family: &'static str,
        /// The size.
        size: u32,
        /// Its limit.
        max: u32,
    },
    /// The device has less of something than the job needs.
    #[error("{family} has at most {max} {what}, the job needs {needed}")]
    OverDevice {
        /// The device.
        family: &'static str,
        /// Of what.
        what: &'static str,
        /// What the job needs.
        needed: u32,
        /// What the device has.
        max: u32,
    },
    /// The device cannot do it.
    #[error("{family} has no {what}")]
    Missing {
        /// The device.
        family: &'static str,
        /// What it lacks.
        what: &'static str,
    },
    /// A path MTU that a port does not have.
    #[error("path MTU {asked}: the port of {family} has at most {max}")]
    MtuOverPort {
        /// The device.
        family: &'static str,
        /// Bytes asked for.
        asked: u32,
        /// Bytes of the port.
        max: u32,
    },
}

pub(crate) fn range(what: &'static str, given: u64, min: u64, max: u64) -> Result<(), JobError> {
    if (min..=max).contains(&given) { Ok(()) } else { Err(JobError::OutOfRange { what, given, min, max }) }
}

impl Job {
    /// Requests that a side has outstanding at most.
    pub(crate) fn capabilities(&self) -> QpCapabilities {
        let binds = if self.op == Op::SendInv { self.batch } else { 0 };
        let pieces = self.pieces(self.size).max(1);
        QpCapabilities {
            max_send_wr: self.batch + binds + 1,
            max_recv_wr: self.receives(),
            max_send_sge: pieces,
            max_recv_sge: if self.op.fills_receive() { self.pieces(self.received_size()).max(1) } else { 1 },
            max_inline_data: if self.inline { self.size } else { 0 },
        }
    }

    /// Receive requests of a turn.
    pub(crate) fn receives(&self) -> u32 {
        if self.op.consumes_receive() { self.batch } else { 1 }
    }

    /// SGEs of a message of `length` bytes: no SGE is empty.
    pub(crate) fn pieces(&self, length: u32) -> u32 {
        self.sges.min(length)
    }

    /// Bytes of a received message with what the device puts in front.
    pub(crate) fn received_size(&self) -> u32 {
        self.size + if self.op == Op::SendTo { GRH } else { 0 }
    }

    /// Checks what can be checked without a device.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn check(&self) -> Result<(), JobError> {
        range("iterations", self.iterations, 1, (1 << 40) - 1)?;
        range("batch", self.batch.into(), 1, MAX_BATCH.into())?;
        range("sges", self.sges.into(), 1, MAX_SGES.into())?;
        range("size", self.size.into(), 0, MAX_SIZE.into())?;
        range("timeout", self.timeout.into(), 1, 31)?;
        let op = self.op;
        if op.is_atomic() && self.size != 8 {
            return Err(JobError::AtomicSize { op, size: self.size });
        }
        if self.echoed && (op != Op::Send || self.batch != 1) {
            return Err(JobError::Combination {
                op,
                what: "a peer that echoes: it sends one message a turn",
            });
        }
        if op.is_atomic() && self.sges != 1 {
            return Err(JobError::Combination { op, what: "several SGEs" });
        }
        if op.fetches() && self.inline {
            return Err(JobError::Combination { op, what: "inline data: it carries none" });
        }
        Ok(())
    }

    /// Checks the job against a device.
    ///
    /// # Errors
    /// What makes no sense, or the first thing that the device cannot do.
    pub fn check_for(&self, device: &DeviceAttributes, port: &PortAttributes) -> Result<(), JobError> {
        self.check()?;
        let (family, has, needs) = (device.family, &device.max_qp, self.capabilities());
        if let Some(mtu) = self.mtu.filter(|mtu| *mtu > port.mtu) {
            return Err(JobError::MtuOverPort { family, asked: mtu.bytes(), max: port.mtu.bytes() });
        }
        let mtu = self.mtu.unwrap_or(port.mtu).bytes();
        if self.op == Op::SendTo && self.size > mtu {
            return Err(JobError::DatagramTooLong { size: self.size, mtu });
        }
        let max = has.max_inline_data.min(MAX_INLINE);
        if self.inline && self.size > max {
            return Err(JobError::InlineTooLong { family, size: self.size, max });
        }
        if self.srq && device.max_srq_wr == 0 {
            return Err(JobError::Missing { family, what: "shared receive queue" });
        }
        if self.op.is_atomic() && !device.atomics {
            return Err(JobError::Missing { family, what: "atomics" });
        }
        if self.op == Op::SendInv && !device.memory_windows {
            return Err(JobError::Missing {
                family,
                what: "memory windows, which SEND with invalidate needs here",
            });
        }
        let send_sge = if self.inline { 0 } else { needs.max_send_sge };
        let limits = [
            ("SGEs of a send request", send_sge, has.max_send_sge),
            ("SGEs of a receive request", needs.max_recv_sge, has.max_recv_sge),
            ("send requests", needs.max_send_wr, has.max_send_wr),
            ("receive requests", needs.max_recv_wr, has.max_recv_wr),
            ("completions", needs.max_send_wr + needs.max_recv_wr, device.max_cqe),
        ];
        match limits.into_iter().find(|(_, needed, max)| needed > max) {
            Some((what, needed, max)) => Err(JobError::OverDevice { family, what, needed, max }),
            None => Ok(()),
        }
    }
}
