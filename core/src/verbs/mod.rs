//! The field's vocabulary, vendor-neutral: work requests and completions, addresses and keys, queue-pair states, and
//! the traits a workload is written against. Nothing here knows a vendor, a ring or a platform.

#[macro_use]
mod text;

mod access;
mod address;
mod completion;
mod device;
mod endpoints;
mod error;
mod id;
mod qp;
mod recv;
mod send;

pub use access::AccessFlags;
pub use address::{AddressVector, Gid, Mac, Mtu};
pub use completion::{WcFlags, WcOpcode, WcStatus, WorkCompletion};
pub use device::{
    CompletionQueue, Device, DeviceAttributes, MemoryRegion, PortAttributes, QueuePair, SharedReceiveQueue,
};
pub use endpoints::{Endpoints, Pollable, Slices, Unwrapped, Wrapper};
pub use error::{BatchError, CqFault, FaultKind, MemoryError, PlanError, PostError, StateError, shown};
pub use id::{AhId, CqId, Dpi, Imm, LKey, PdId, Psn, QKey, QpId, RKey, SrqId};
pub use qp::{QpAttributes, QpCapabilities, QpInit, QpState, QpType, SrqInit};
pub use recv::RecvRequest;
pub use send::{
    BindMw, Data, Datagram, FastRegister, MwType, PageTable, RemoteAddress, SendFlags, SendOp, SendRequest,
    Sge,
};
pub use text::Text;
