//! What all commands and completions have in common. Source: `roce_hsi.h`.

use zerocopy::{FromBytes, Immutable, IntoBytes, little_endian as le};

use super::opcode::Opcode;
use crate::layout::{bits, layout};

/// Unit of commands and side buffers in bytes, and size of a completion.
pub const UNIT: usize = 16;

layout! {
    /// What is written to the device's mailbox to start the channel.
    pub struct CmdqInit: "bnxt_re" "cmdq_init", 16 {
        /// Address of the ring.
        cmdq_pbl: le::U64 = 0,
        /// Level in bits 0 and 1, entries above.
        cmdq_size_cmdq_lvl: le::U16 = 8,
        /// Ring that gets completions.
        creq_ring_id: le::U16 = 10,
        /// Zero.
        prod_idx: le::U32 = 12,
    }
}
layout! {
    /// Header of a command.
    pub struct CmdqBase: "bnxt_re" "cmdq_base", 16 {
        /// Opcode, see [`Opcode`].
        opcode: u8 = 0,
        /// Units of the command.
        cmd_size: u8 = 1,
        /// Flags of the command.
        flags: le::U16 = 2,
        /// Comes back in the completion.
        cookie: le::U16 = 4,
        /// Units of the side buffer.
        resp_size: u8 = 6,
        /// Depends on the command.
        reserved8: u8 = 7,
        /// Address of the side buffer.
        resp_addr: le::U64 = 8,
    }
}
bits! {
    /// Byte with the phase of a completion.
    pub struct CreqValid(u8) {
        /// Phase: 1 in the first lap of the ring, flips with each lap.
        v: bool = 1,
        __: u8 = 7,
    }
}
bits! {
    /// First byte of a completion.
    pub struct CreqType(u8) {
        /// Kind: 0x38 of a command or a queue, 0x3a of the function.
        kind: u8 = 6,
        __: u8 = 2,
    }
}
layout! {
    /// What all entries of the completion ring have in common.
    pub struct CreqBase: "bnxt_re" "creq_base", 16 {
        /// Kind.
        r#type: u8 as CreqType = 0,
        /// Depends on the kind.
        reserved56: [u8; 7] = 1,
        /// Phase.
        v: u8 as CreqValid = 8,
        /// What happened.
        event: u8 = 9,
        /// Depends on the kind.
        reserved48: [u8; 6] = 10,
    }
}
layout! {
    /// Something about the function.
    pub struct CreqFuncEvent: "bnxt_re" "creq_func_event", 16 {
        /// Kind.
        r#type: u8 as CreqType = 0,
        /// Zero.
        reserved56: [u8; 7] = 1,
        /// Phase.
        v: u8 as CreqValid = 8,
        /// What happened.
        event: u8 = 9,
        /// Zero.
        reserved48: [u8; 6] = 10,
    }
}
layout! {
    /// A queue pair went into error.
    pub struct CreqQpErrorNotification: "bnxt_re" "creq_qp_error_notification", 16 {
        /// Kind.
        r#type: u8 as CreqType = 0,
        /// Zero.
        status: u8 = 1,
        /// State of the requester.
        req_slow_path_state: u8 = 2,
        /// Why it went into error.
        req_err_state_reason: u8 = 3,
        /// The queue pair.
        xid: le::U32 = 4,
        /// Phase.
        v: u8 as CreqValid = 8,
        /// [`QP_ERROR`].
        event: u8 = 9,
        /// State of the responder.
        res_slow_path_state: u8 = 10,
        /// Why it went into error.
        res_err_state_reason: u8 = 11,
        /// Where the send queue stopped.
        sq_cons_idx: le::U16 = 12,
        /// Where the receive queue stopped.
        rq_cons_idx: le::U16 = 14,
    }
}
layout! {
    /// A completion queue went into error.
    pub struct CreqCqErrorNotification: "bnxt_re" "creq_cq_error_notification", 16 {
        /// Kind.
        r#type: u8 as CreqType = 0,
        /// Zero.
        status: u8 = 1,
        /// Why it went into error.
        cq_err_reason: u8 = 2,
        /// Zero.
        reserved8: u8 = 3,
        /// The completion queue.
        xid: le::U32 = 4,
        /// Phase.
        v: u8 as CreqValid = 8,
        /// [`CQ_ERROR`].
        event: u8 = 9,
        /// Zero.
        reserved48: [u8; 6] = 10,
    }
}

/// Kind of a completion of a command, or of something about a queue.
pub const QP_EVENT: u8 = 0x38;
/// Kind of a [`CreqFuncEvent`].
pub const FUNC_EVENT: u8 = 0x3a;
/// Event of a [`CreqQpErrorNotification`]. Lower ones are opcodes of commands.
pub const QP_ERROR: u8 = 0xc0;
/// Event of a [`CreqCqErrorNotification`].
pub const CQ_ERROR: u8 = 0xc1;

/// A command.
pub trait Command: IntoBytes + FromBytes + Immutable + Copy {
    /// Its opcode.
    const OPCODE: Opcode;
    /// What comes back.
    type Completion: IntoBytes + FromBytes + Immutable + Copy;
}

/// Declares a command: its header is that of all commands. One with something in the header's eighth byte says in brackets
/// what.
macro_rules! command {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kernel:literal, $size:literal, $opcode:ident => $completion:ty { $($fields:tt)* }
    ) => {
        command! {
            $(#[doc = $doc])*
            pub struct $name: $kernel, $size, [reserved8] $opcode => $completion { $($fields)* }
        }
    };
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kernel:literal, $size:literal, [$eighth:ident] $opcode:ident => $completion:ty
        { $($fields:tt)* }
    ) => {
        $crate::layout::layout! {
            $(#[doc = $doc])*
            pub struct $name: "bnxt_re" $kernel, $size {
                /// Opcode, see [`super::opcode::Opcode`].
                opcode: u8 = 0,
                /// Units of the command.
                cmd_size: u8 = 1,
                /// Flags.
                flags: le::U16 = 2,
                /// Comes back in the completion.
                cookie: le::U16 = 4,
                /// Units of the side buffer.
                resp_size: u8 = 6,
                /// Depends on the command.
                $eighth: u8 = 7,
                /// Address of the side buffer.
                resp_addr: le::U64 = 8,
                $($fields)*
            }
        }
        impl super::message::Command for $name {
            const OPCODE: super::opcode::Opcode = super::opcode::Opcode::$opcode;
            type Completion = $completion;
        }
    };
}
pub(super) use command;

/// Declares a completion of a command, by its fields before and behind the phase.
macro_rules! completion {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kernel:literal { { $($before:tt)* } { $($behind:tt)* } }
    ) => {
        $crate::layout::layout! {
            $(#[doc = $doc])*
            pub struct $name: "bnxt_re" $kernel, 16 {
                /// Kind.
                r#type: u8 as super::message::CreqType = 0,
                /// See [`super::event::Status`].
                status: u8 = 1,
                /// Cookie of the command.
                cookie: le::U16 = 2,
                $($before)*
                /// Phase.
                v: u8 as super::message::CreqValid = 8,
                /// Opcode of the command.
                event: u8 = 9,
                $($behind)*
            }
        }
    };
}
pub(super) use completion;

/// Declares what a query writes to its side buffer.
macro_rules! side_buffer {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kernel:literal, $size:literal { $($fields:tt)* }
    ) => {
        $crate::layout::layout! {
            $(#[doc = $doc])*
            pub struct $name: "bnxt_re" $kernel, $size {
                /// Opcode of the query.
                opcode: u8 = 0,
                /// Zero.
                status: u8 = 1,
                /// Cookie of the query.
                cookie: le::U16 = 2,
                /// Flags.
                flags: le::U16 = 4,
                /// Units of the side buffer.
                resp_size: u8 = 6,
                /// Zero.
                reserved8: u8 = 7,
                $($fields)*
            }
        }
    };
}
pub(super) use side_buffer;

completion! {
    /// The completion that says nothing but that it is done.
    pub struct CreqDone: "creq_initialize_fw_resp" {
        {
            /// Zero.
            reserved32: le::U32 = 4,
        }
        {
            /// Zero.
            reserved48: [u8; 6] = 10,
        }
    }
}
completion! {
    /// The completion that names an object.
    pub struct CreqXid: "creq_create_cq_resp" {
        {
            /// Number of the object.
            xid: le::U32 = 4,
        }
        {
            /// Zero.
            reserved48: [u8; 6] = 10,
        }
    }
}
completion! {
    /// The completion of a query.
    pub struct CreqSize: "creq_query_func_resp" {
        {
            /// Units of the side buffer that were written.
            size: le::U32 = 4,
        }
        {
            /// Zero.
            reserved48: [u8; 6] = 10,
        }
    }
}
