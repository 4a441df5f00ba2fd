//! What the device tells without being asked, on a completion ring of Ethernet. Source: `hsi.h`.

use zerocopy::little_endian as le;

use crate::layout::layout;

/// Kind of a [`HwrmCmpl`].
pub const HWRM_DONE: u16 = 0x20;
/// Kind of a [`HwrmAsyncEventCmpl`].
pub const HWRM_ASYNC_EVENT: u16 = 0x2e;

layout! {
    /// A request is done.
    pub struct HwrmCmpl: "bnxt_re" "hwrm_cmpl", 16 {
        /// Kind in bits 0 to 5: [`HWRM_DONE`].
        r#type: le::U16 = 0,
        /// Sequence number of the request.
        sequence_id: le::U16 = 2,
        /// Zero.
        unused_1: le::U32 = 4,
        /// Phase in bit 0.
        v: le::U32 = 8,
        /// Zero.
        unused_3: le::U32 = 12,
    }
}
layout! {
    /// Something happened.
    pub struct HwrmAsyncEventCmpl: "bnxt_re" "hwrm_async_event_cmpl", 16 {
        /// Kind in bits 0 to 5: [`HWRM_ASYNC_EVENT`].
        r#type: le::U16 = 0,
        /// What happened, see [`EventId`].
        event_id: le::U16 = 2,
        /// Depends on the event.
        event_data2: le::U32 = 4,
        /// Phase in bit 0.
        opaque_v: u8 = 8,
        /// Time, low part.
        timestamp_lo: u8 = 9,
        /// Time, high part.
        timestamp_hi: le::U16 = 10,
        /// Depends on the event.
        event_data1: le::U32 = 12,
    }
}

/// What happened. Open: any value is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId(pub u16);

impl EventId {
    /// The link went up or down.
    pub const LINK_STATUS_CHANGE: Self = Self(0x0);
    /// The firmware will be reset.
    pub const RESET_NOTIFY: Self = Self(0x8);
    /// The firmware has an error.
    pub const ERROR_RECOVERY: Self = Self(0x9);
    /// Doorbells shall be paced.
    pub const DOORBELL_PACING_THRESHOLD: Self = Self(0x46);
}

impl HwrmAsyncEventCmpl {
    /// What happened, if this is an event at all.
    pub const fn event(&self) -> Option<EventId> {
        if self.r#type.get() & 0x3f == HWRM_ASYNC_EVENT { Some(EventId(self.event_id.get())) } else { None }
    }
}
