//! What all requests and responses have in common. Source: `hsi.h`.

use zerocopy::{FromBytes, Immutable, IntoBytes, little_endian as le};

use super::req_type::ReqType;
use crate::layout::layout;

layout! {
    /// Header of a request.
    pub struct HwrmCmdHdr: "bnxt_re" "hwrm_cmd_hdr", 16 {
        /// Type, see [`ReqType`].
        req_type: le::U16 = 0,
        /// Completion ring; 0xffff is none.
        cmpl_ring: le::U16 = 2,
        /// Comes back in the response.
        seq_id: le::U16 = 4,
        /// Whom the request is for; 0xffff is the function that sends it.
        target_id: le::U16 = 6,
        /// Where the response goes.
        resp_addr: le::U64 = 8,
    }
}
layout! {
    /// Header of a response.
    pub struct HwrmRespHdr: "bnxt_re" "hwrm_resp_hdr", 8 {
        /// See [`super::error::HwrmStatus`].
        error_code: le::U16 = 0,
        /// Type of the request.
        req_type: le::U16 = 2,
        /// Sequence number of the request.
        seq_id: le::U16 = 4,
        /// Bytes of the response; 0 until it is there.
        resp_len: le::U16 = 6,
    }
}
layout! {
    /// What is written to the window when the request itself is in host memory.
    pub struct HwrmShortInput: "bnxt_re" "hwrm_short_input", 16 {
        /// Type of the request.
        req_type: le::U16 = 0,
        /// [`SHORT_SIGNATURE`].
        signature: le::U16 = 2,
        /// Whom the request is for; 0 is the function that sends it.
        target_id: le::U16 = 4,
        /// Bytes of the request.
        size: le::U16 = 6,
        /// Where it is.
        req_addr: le::U64 = 8,
    }
}

/// Tells a [`HwrmShortInput`] from the start of a request.
pub const SHORT_SIGNATURE: u16 = 0x4321;
/// No completion ring, and the function itself.
pub const NONE: u16 = 0xffff;

/// A request.
pub trait Request: IntoBytes + FromBytes + Immutable + Copy {
    /// Its type.
    const TYPE: ReqType;
    /// What comes back.
    type Response: Response;
}

/// A response. A device that knows less of it sends a shorter one; the rest is zero then.
pub trait Response: IntoBytes + FromBytes + Immutable + Copy {
    /// All zero bytes.
    const ZERO: Self;
}

/// Declares a request: its header is that of all requests.
macro_rules! request {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kernel:literal, $size:literal, $type:ident => $response:ty { $($fields:tt)* }
    ) => {
        $crate::layout::layout! {
            $(#[doc = $doc])*
            pub struct $name: "bnxt_re" $kernel, $size {
                /// Type, see [`super::req_type::ReqType`].
                req_type: le::U16 = 0,
                /// Completion ring.
                cmpl_ring: le::U16 = 2,
                /// Comes back in the response.
                seq_id: le::U16 = 4,
                /// Whom the request is for.
                target_id: le::U16 = 6,
                /// Where the response goes.
                resp_addr: le::U64 = 8,
                $($fields)*
            }
        }
        impl super::message::Request for $name {
            const TYPE: super::req_type::ReqType = super::req_type::ReqType::$type;
            type Response = $response;
        }
    };
}
pub(super) use request;

/// Declares a response: its header is that of all responses.
macro_rules! response {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kernel:literal, $size:literal { $($fields:tt)* }
    ) => {
        $crate::layout::layout! {
            $(#[doc = $doc])*
            pub struct $name: "bnxt_re" $kernel, $size {
                /// See [`super::error::HwrmStatus`].
                error_code: le::U16 = 0,
                /// Type of the request.
                req_type: le::U16 = 2,
                /// Sequence number of the request.
                seq_id: le::U16 = 4,
                /// Bytes of the response.
                resp_len: le::U16 = 6,
                $($fields)*
            }
        }
        impl super::message::Response for $name {
            const ZERO: Self = $name::ZERO;
        }
    };
}
pub(super) use response;

response! {
    /// The response that says nothing but that it is done.
    pub struct HwrmDone: "hwrm_func_reset_output", 16 {
        /// Zero.
        unused_0: [u8; 7] = 8,
        /// 1 when the response is complete; written last.
        valid: u8 = 15,
    }
}
