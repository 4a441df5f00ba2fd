use core::fmt::Display;

use directverbs::verbs::{MemoryError, PlanError, StateError};

use crate::device::DeviceError;

/// A control operation that failed: on which object, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {cause}")]
pub struct HostError {
    /// The object, with its number if it has one already.
    pub object: String,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// Why a control operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The device refuses.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no such queue on this device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The driver refuses the memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The driver refuses the transition.
    #[error(transparent)]
    State(#[from] StateError),
    /// The family does not have it.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// Names the object of an error.
pub(super) trait On<T> {
    /// The same, but an error names `object`.
    fn on(self, object: impl Display) -> Result<T, HostError>;
}

impl<T, E: Into<Cause>> On<T> for Result<T, E> {
    fn on(self, object: impl Display) -> Result<T, HostError> {
        self.map_err(|error| HostError { object: object.to_string(), cause: error.into() })
    }
}
