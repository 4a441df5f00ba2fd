//! What can be wrong with a request or its response.

use super::req_type::ReqType;

/// Status of a response. Open: any value is representable. Source: `hsi.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HwrmStatus(pub u16);

impl HwrmStatus {
    /// Done.
    pub const SUCCESS: Self = Self(0);
    /// Failed, for no other reason.
    pub const FAIL: Self = Self(1);
    /// A parameter makes no sense.
    pub const INVALID_PARAMS: Self = Self(2);
    /// Not allowed.
    pub const RESOURCE_ACCESS_DENIED: Self = Self(3);
    /// No such resources left.
    pub const RESOURCE_ALLOC_ERROR: Self = Self(4);
    /// Flags that are not known.
    pub const INVALID_FLAGS: Self = Self(5);
    /// Enables that are not known.
    pub const INVALID_ENABLES: Self = Self(6);
    /// A firmware reset is under way.
    pub const HOT_RESET_PROGRESS: Self = Self(0xa);
    /// A firmware reset has failed.
    pub const HOT_RESET_FAIL: Self = Self(0xb);
    /// Busy: send it again later.
    pub const BUSY: Self = Self(0x10);
    /// A resource is locked.
    pub const RESOURCE_LOCKED: Self = Self(0x11);
    /// The physical function is not there.
    pub const PF_UNAVAILABLE: Self = Self(0x12);
    /// The device has no such request.
    pub const CMD_NOT_SUPPORTED: Self = Self(0xffff);

    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::SUCCESS, "success"),
        (Self::FAIL, "failed"),
        (Self::INVALID_PARAMS, "invalid parameters"),
        (Self::RESOURCE_ACCESS_DENIED, "access denied"),
        (Self::RESOURCE_ALLOC_ERROR, "out of resources"),
        (Self::INVALID_FLAGS, "invalid flags"),
        (Self::INVALID_ENABLES, "invalid enables"),
        (Self::HOT_RESET_PROGRESS, "firmware reset in progress"),
        (Self::HOT_RESET_FAIL, "firmware reset failed"),
        (Self::BUSY, "busy"),
        (Self::RESOURCE_LOCKED, "resource locked"),
        (Self::PF_UNAVAILABLE, "physical function unavailable"),
        (Self::CMD_NOT_SUPPORTED, "not supported"),
    ];
}

impl core::fmt::Display for HwrmStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match Self::NAMES.iter().find(|(status, _)| status == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}

/// A request that cannot be sent. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{req_type} has {len} bytes, the device takes {max}")]
pub struct TooLong {
    /// Type of the request.
    pub req_type: ReqType,
    /// Its length in bytes.
    pub len: u32,
    /// Most bytes that the device takes.
    pub max: u32,
}

/// A response that is none to the request that was sent, or that says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// It is to another request.
    #[error("{req_type}: response has sequence number {seen}, not {sent}")]
    Sequence {
        /// Type of the request.
        req_type: ReqType,
        /// Sequence number sent.
        sent: u16,
        /// Sequence number in the response.
        seen: u16,
    },
    /// It is to a request of another type.
    #[error("{req_type}: response is to {seen}")]
    Type {
        /// Type of the request.
        req_type: ReqType,
        /// Type in the response.
        seen: ReqType,
    },
    /// Its length cannot be.
    #[error("{req_type}: response has {len} bytes, there is room for {room}")]
    Length {
        /// Type of the request.
        req_type: ReqType,
        /// Length in the response.
        len: u32,
        /// Bytes of the memory for it.
        room: u32,
    },
    /// Its last byte, which tells that it is complete, has a value that it cannot have.
    #[error("{req_type}: response has {seen:#x} as its valid byte")]
    Valid {
        /// Type of the request.
        req_type: ReqType,
        /// The byte.
        seen: u8,
    },
    /// The device says no.
    #[error("{req_type}: {status}")]
    Refused {
        /// Type of the request.
        req_type: ReqType,
        /// What it says.
        status: HwrmStatus,
    },
}

impl ResponseError {
    /// The request may be sent again, a little later.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Refused { status: HwrmStatus::BUSY, .. })
    }
}
