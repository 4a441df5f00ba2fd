use directverbs::ionic::devcmd::Status;

use super::Wrong;
use crate::bus::BusError;
use crate::device::DeviceError;

/// Why a command is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What the driver is told.
    pub status: Status,
    /// What it did wrong; nothing if it only happened to it.
    pub wrong: Option<Wrong>,
}

impl Refusal {
    /// The driver should have known.
    pub const fn blame(status: Status, what: &'static str, got: u64, want: u64) -> Self {
        Self { status, wrong: Some(Wrong { what, got, want }) }
    }

    /// Nobody's fault.
    pub const fn fate(status: Status) -> Self {
        Self { status, wrong: None }
    }

    /// The status as an RDMA admin queue tells it.
    pub const fn rdma_status(self) -> u32 {
        self.status.0 as u32
    }
}

impl From<Wrong> for Refusal {
    fn from(wrong: Wrong) -> Self {
        Self { status: Status::EINVAL, wrong: Some(wrong) }
    }
}

impl From<BusError> for Refusal {
    fn from(error: BusError) -> Self {
        Self::blame(Status::EFAULT, "DMA address", error.addr, 0)
    }
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::NoSuch { object, id } => Self::blame(Status::ENOENT, object, id.into(), 0),
            DeviceError::Exists { object, id } => Self::blame(Status::EEXIST, object, id.into(), 0),
            DeviceError::InUse { object, id } => Self::blame(Status::EBUSY, object, id.into(), 0),
            DeviceError::Invalid(what) => Self::blame(Status::EINVAL, what, 0, 0),
            DeviceError::State(_) => Self::blame(Status::EINVAL, "transition of a queue pair", 0, 0),
            DeviceError::Bus(error) => error.into(),
        }
    }
}

/// Reserved bytes are zero.
pub(super) fn zeros(what: &'static str, bytes: &[u8]) -> Result<(), Refusal> {
    match bytes.iter().find(|byte| **byte != 0) {
        Some(byte) => Err(Refusal::blame(Status::EINVAL, what, (*byte).into(), 0)),
        None => Ok(()),
    }
}
