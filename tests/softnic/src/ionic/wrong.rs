/// What is wrong with something that the host wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {got:#x}, expected {want:#x}")]
pub struct Wrong {
    /// The field or rule.
    pub what: &'static str,
    /// What was written.
    pub got: u64,
    /// What would be right: the value, or the largest allowed.
    pub want: u64,
}

impl Wrong {
    /// Refuses `got` if it is not `want`.
    pub(super) fn unless_equal(what: &'static str, got: u64, want: u64) -> Result<(), Self> {
        if got == want { Ok(()) } else { Err(Self { what, got, want }) }
    }

    /// Refuses `got` if it is over `max`.
    pub(super) fn if_over(what: &'static str, got: u64, max: u64) -> Result<(), Self> {
        if got <= max { Ok(()) } else { Err(Self { what, got, want: max }) }
    }
}

/// Kind of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Send queue of a queue pair.
    Send,
    /// Receive queue of a queue pair.
    Recv,
    /// Completion queue.
    Completion,
    /// Device commands; the number is the opcode.
    DeviceCommand,
    /// Ethernet admin queue; the number is the opcode, or that of the doorbell.
    Admin,
    /// RDMA admin queue; the number is the opcode, or that of the doorbell.
    RdmaAdmin,
    /// Transmit and receive queues of the Ethernet part; the number is that of the doorbell, or the kind.
    Ethernet,
    /// Event queue.
    Event,
    /// Registers and doorbells that belong to no queue.
    Registers,
}

/// A breach of the contract between driver and device. The device goes on as well as it can; a test asks for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{queue:?} queue {id:#x}, entry {entry}: {wrong}")]
pub struct Violation {
    /// Kind of queue.
    pub queue: QueueKind,
    /// Number of the queue pair or completion queue.
    pub id: u32,
    /// Position in its ring.
    pub entry: u16,
    /// What is wrong.
    pub wrong: Wrong,
}
