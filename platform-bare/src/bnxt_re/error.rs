use directverbs::bnxt_re::hwrm::context::ContextError;
use directverbs::bnxt_re::hwrm::error::{HwrmStatus, ResponseError, TooLong};
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs::bnxt_re::rcfw::cmdq::SendError;
use directverbs::bnxt_re::rcfw::event::CompletionError;
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::verbs::{MemoryError, PlanError, StateError, Text};

use crate::clock::Timeout;
use crate::dma::DmaError;
use crate::host::ResetError;
use crate::ledger::{Kind, Objects};
use crate::registers::MapError;

/// What went wrong with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// None that this driver knows.
    #[error("no bnxt_re: PCI function {vendor:04x}:{device:04x}")]
    Unknown {
        /// Vendor id.
        vendor: u16,
        /// Device id.
        device: u16,
    },
    /// The chip is of a generation that this driver does not know.
    #[error("chip {0:#x} is neither P5 nor P7")]
    UnknownChip(u16),
    /// The function is not there: its registers read all ones.
    #[error("the function is gone")]
    Gone,
    /// The firmware is not well, and does not get well.
    #[error("the firmware is not ready: status {0:#x}")]
    NotReady(u32),
    /// The firmware resets itself. What it was told is lost: open the device again.
    #[error("the firmware resets itself")]
    HotReset,
    /// A BAR is missing, or too short.
    #[error(transparent)]
    Map(#[from] MapError),
    /// There is not enough memory.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The function could not be reset.
    #[error(transparent)]
    Reset(#[from] ResetError),
    /// No response to a request.
    #[error("{req_type}: {timeout}")]
    NoResponse {
        /// The request.
        req_type: ReqType,
        /// How long it was waited.
        timeout: Timeout,
    },
    /// A request that the device does not take.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// A response that is none, or that says no.
    #[error(transparent)]
    Response(#[from] ResponseError),
    /// No completion of a command.
    #[error("{opcode}: {timeout}")]
    NoCompletion {
        /// The command.
        opcode: Opcode,
        /// How long it was waited.
        timeout: Timeout,
    },
    /// A command that cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A completion that is none, or that says no.
    #[error(transparent)]
    Completion(#[from] CompletionError),
    /// A query told less than it must.
    #[error("{opcode}: {told} units of 16 bytes, {needed} needed")]
    Short {
        /// The command.
        opcode: Opcode,
        /// Units told.
        told: u32,
        /// Units needed.
        needed: u32,
    },
    /// The device tells something about itself that it cannot go on with.
    #[error("the function reports event {0:#x}")]
    Function(u8),
    /// An entry of the event ring that makes no sense.
    #[error("an event that makes no sense: {:032x}", u128::from_be_bytes(*.0))]
    Event([u8; 16]),
    /// The device has given an object a number that it cannot have.
    #[error("{opcode}: number {xid:#x}")]
    Number {
        /// The command.
        opcode: Opcode,
        /// The number.
        xid: u32,
    },
    /// Context memory that cannot be.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Capabilities that cannot be.
    #[error("impossible capabilities: {0}")]
    Capabilities(Text),
    /// More than the device has.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Memory that does not fit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A transition that cannot be made.
    #[error(transparent)]
    State(#[from] StateError),
    /// An object that others refer to cannot be destroyed.
    #[error("{kind} {id:#x} is in use by {users} others")]
    InUse {
        /// What it is.
        kind: Kind,
        /// Its number.
        id: u32,
        /// Objects that refer to it.
        users: u32,
    },
    /// The object is of another NIC.
    #[error("the {0} is of another NIC")]
    Foreign(Kind),
    /// There is no such object.
    #[error("no {kind} {id:#x}")]
    NoSuch {
        /// What it would be.
        kind: Kind,
        /// Its number.
        id: u32,
    },
    /// Objects were dropped instead of destroyed. The function was reset, which has taken them back.
    #[error("not destroyed before the device was closed: {0}")]
    Left(Objects),
    /// There is no such GID.
    #[error("no GID {0}")]
    NoGid(u8),
    /// The completion queue is being resized: poll it until the old ring is empty.
    #[error("the completion queue is being resized")]
    Resizing,
    /// There is no such VLAN.
    #[error("no VLAN {0:#x}")]
    Vlan(u16),
    /// Pages of memory that do not fit the region.
    #[error("{given} pages for a region of {needed}")]
    Pages {
        /// Pages given.
        given: usize,
        /// Pages needed.
        needed: u32,
    },
    /// This driver keeps track of no more.
    #[error("no room for another {0}")]
    Full(Text),
    /// An earlier error has left the control channels in an unknown state: open the device again.
    #[error("the device has failed earlier")]
    Failed,
}

impl Error {
    /// The device has said no in good order, or was never asked: it knows nothing new, and goes on.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Response(ResponseError::Refused { .. })
                | Self::Completion(CompletionError::Refused { .. })
                | Self::TooLong(_)
                | Self::Send(_)
                | Self::Plan(_)
                | Self::Memory(_)
                | Self::State(_)
                | Self::Dma(_)
                | Self::Map(_)
                | Self::InUse { .. }
                | Self::Foreign(_)
                | Self::NoSuch { .. }
                | Self::NoGid(_)
                | Self::Vlan(_)
                | Self::Resizing
                | Self::Pages { .. }
                | Self::Full(_)
        )
    }

    /// The same, told apart from a firmware that resets itself.
    pub(super) const fn of_response(error: ResponseError) -> Self {
        match error {
            ResponseError::Refused { status: HwrmStatus::HOT_RESET_PROGRESS, .. } => Self::HotReset,
            error => Self::Response(error),
        }
    }
}
