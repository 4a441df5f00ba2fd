//! What can go wrong, and with which object.

use core::fmt;
use core::time::Duration;

use directverbs::ionic::admin::{AdminError, PageError, TemplateError};
use directverbs::ionic::devcmd::{AdminFault, CommandError, IdentityError, QueueFull};
use directverbs::verbs::{MemoryError, PlanError, StateError, Text};

use crate::clock::{Timeout, micros};
use crate::dma::DmaError;
use crate::host::ResetError;
use crate::ledger::Objects;
use crate::registers::MapError;

/// The object of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    kind: Text,
    /// `id` is its number: an [`Option`] would be longer.
    has_id: bool,
    id: u32,
}

impl Object {
    /// An object, with its number if it has one already.
    pub const fn new(kind: Text, id: Option<u32>) -> Self {
        match id {
            Some(id) => Self { kind, has_id: true, id },
            None => Self { kind, has_id: false, id: 0 },
        }
    }

    /// What it is.
    pub const fn kind(&self) -> Text {
        self.kind
    }

    /// Its number, if it has one already.
    pub const fn id(&self) -> Option<u32> {
        if self.has_id { Some(self.id) } else { None }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id() {
            Some(id) => write!(f, "{} {id:#x}", self.kind),
            None => fmt::Display::fmt(&self.kind, f),
        }
    }
}

/// A control operation that failed: on which object, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {cause}")]
pub struct Error {
    /// The object.
    pub object: Object,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// Why a control operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Another device.
    #[error("vendor {vendor:#06x}, device {device:#06x} is no ionic NIC")]
    UnknownDevice {
        /// PCI vendor id.
        vendor: u16,
        /// PCI device id.
        device: u16,
    },
    /// The device does not answer: it reads as all ones.
    #[error("the device is gone")]
    Gone,
    /// BAR 0 does not begin as it must.
    #[error("signature {0:#x}")]
    Signature(u32),
    /// BAR 0 is too short.
    #[error("{0:#x} bytes of registers")]
    Registers(u64),
    /// The firmware does not run.
    #[error("the firmware is down: status {0:#x}")]
    FirmwareDown(u8),
    /// The firmware has started again: everything that was created is gone.
    #[error("the device has reset itself: generation {now}, it was {was}")]
    HotReset {
        /// Generation when the device was opened.
        was: u8,
        /// Generation now.
        now: u8,
    },
    /// The firmware's heart stands still.
    #[error("the firmware is dead: its heart has stood still at {beat} for {} us", micros(*limit))]
    Heartbeat {
        /// Beats counted.
        beat: u32,
        /// How long it was watched.
        limit: Duration,
    },
    /// The device has told that it resets itself, or a part of itself.
    #[error("the device resets itself: code {code}, state {state}")]
    ResetEvent {
        /// Why, in the device's terms.
        code: u8,
        /// 0 begins, 1 is done, 2 has failed.
        state: u8,
    },
    /// An event that this driver does not know, and that nobody has asked for.
    #[error("unexpected event: type {kind}, code {code}, queue {qid:#x}")]
    UnexpectedEvent {
        /// Type, or 255 for a notification.
        kind: u8,
        /// Code.
        code: u16,
        /// Queue that it names.
        qid: u32,
    },
    /// The bit that says that a command is done cannot be cleared.
    #[error("the device does not take a command")]
    NotCleared,
    /// The device has not answered in time.
    #[error("no answer in {} us", micros(*.0))]
    Silent(Duration),
    /// The device refuses a command.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The device refuses a command of the RDMA admin queue.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// An admin queue has an answer that makes no sense.
    #[error(transparent)]
    Fault(#[from] AdminFault),
    /// An admin queue takes no command.
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// The device says of itself what cannot be.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The device has answered with what cannot be.
    #[error("{what} {given:#x}")]
    Answer {
        /// What it told.
        what: Text,
        /// Its value.
        given: u64,
    },
    /// The device failed earlier. Drop it and open it again.
    #[error("the device has failed before")]
    Failed,
    /// A part of a BAR cannot be reached.
    #[error(transparent)]
    Map(#[from] MapError),
    /// There is no memory.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The device cannot be reset.
    #[error(transparent)]
    Reset(#[from] ResetError),
    /// The device does not come to rest.
    #[error("the device does not come to rest: {0}")]
    Unrest(Timeout),
    /// All numbers are given.
    #[error("all {0} are in use")]
    Exhausted(u32),
    /// Other objects refer to it.
    #[error("{0} others refer to it")]
    InUse(u32),
    /// There is none with this number.
    #[error("no such object")]
    NoSuch,
    /// It is of another NIC.
    #[error("it is of another NIC")]
    Foreign,
    /// Objects were dropped instead of destroyed. The device was reset, which has taken them back.
    #[error("not destroyed before the device was closed: {0}")]
    Left(Objects),
    /// There is no such GID.
    #[error("no GID {0}")]
    NoGid(u8),
    /// There is no such queue on this device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The driver refuses the memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The driver refuses the transition.
    #[error(transparent)]
    State(#[from] StateError),
    /// There are no pages for the region.
    #[error(transparent)]
    Pages(#[from] PageError),
    /// The path is none.
    #[error(transparent)]
    Path(#[from] TemplateError),
    /// The family does not have it.
    #[error("{0}")]
    Unsupported(Text),
}

impl Cause {
    /// Whether the device is as it was before: it has refused, or was not asked.
    pub(super) const fn is_harmless(&self) -> bool {
        !matches!(
            self,
            Self::Gone
                | Self::FirmwareDown(_)
                | Self::HotReset { .. }
                | Self::Heartbeat { .. }
                | Self::ResetEvent { .. }
                | Self::NotCleared
                | Self::Silent(_)
                | Self::Fault(_)
                | Self::QueueFull(_)
                | Self::Answer { .. }
                | Self::Failed
        )
    }
}

impl From<Timeout> for Cause {
    fn from(timeout: Timeout) -> Self {
        Self::Silent(timeout.limit)
    }
}

/// Names the object of an error.
pub(super) trait On<T> {
    /// The same, but an error names the object.
    fn on(self, kind: Text, id: impl Into<Option<u32>>) -> Result<T, Error>;
}

impl<T, E: Into<Cause>> On<T> for Result<T, E> {
    fn on(self, kind: Text, id: impl Into<Option<u32>>) -> Result<T, Error> {
        self.map_err(|cause| Error { object: Object::new(kind, id.into()), cause: cause.into() })
    }
}
