//! What a system call is given: the packet of an ioctl, the header of a write, the records that event files yield.

use directverbs::layout::{Layout, layout};
use zerocopy::little_endian as le;

layout! {
    /// Head of the packet that `ioctl` is given; attributes follow.
    pub struct Header: "uverbs" "ib_uverbs_ioctl_hdr", 24 {
        /// Bytes of the packet.
        length: le::U16 = 0,
        /// Object.
        object_id: le::U16 = 2,
        /// Method of the object.
        method_id: le::U16 = 4,
        /// Attributes that follow.
        num_attrs: le::U16 = 6,
        /// Zero.
        reserved1: le::U64 = 8,
        /// Driver that the caller believes to talk to.
        driver_id: le::U32 = 16,
        /// Zero.
        reserved2: le::U32 = 20,
    }
}

layout! {
    /// One attribute of a packet.
    pub struct RawAttribute: "uverbs" "ib_uverbs_attr", 16 {
        /// Number within the method.
        attr_id: le::U16 = 0,
        /// Bytes of the value or of the buffer; 0 for handles and file descriptors.
        len: le::U16 = 2,
        /// [`flags`].
        flags: le::U16 = 4,
        /// Zero.
        reserved: le::U16 = 6,
        /// The value itself, a handle, a file descriptor, or the address of a buffer.
        data: le::U64 = 8,
    }
}

/// Flags of an attribute.
pub mod flags {
    /// A kernel that does not know the attribute shall refuse the call.
    pub const MANDATORY: u16 = 1;
    /// The kernel has written the output.
    pub const VALID_OUTPUT: u16 = 1 << 1;
}

/// `RDMA_VERBS_IOCTL`: read and write, 24 bytes, group 0x1b, number 1.
pub const VERBS_IOCTL: u32 = 0xc018_1b01;

layout! {
    /// Head of what `write` is given.
    pub struct CommandHeader: "uverbs" "ib_uverbs_cmd_hdr", 8 {
        /// Number of the command; bit 31 set for an extended one.
        command: le::U32 = 0,
        /// Words of the whole command: of 4 bytes, or of 8 bytes of the core part if it is extended.
        in_words: le::U16 = 4,
        /// Words of the reply, likewise.
        out_words: le::U16 = 6,
    }
}

layout! {
    /// What follows [`CommandHeader`] in an extended command.
    pub struct ExtendedHeader: "uverbs" "ib_uverbs_ex_cmd_hdr", 16 {
        /// Address of the reply.
        response: le::U64 = 0,
        /// Words of 8 bytes of the driver's part.
        provider_in_words: le::U16 = 8,
        /// Words of 8 bytes of the driver's part of the reply.
        provider_out_words: le::U16 = 10,
        /// Zero.
        cmd_hdr_reserved: le::U32 = 12,
    }
}

/// Bit of an extended command.
pub const EXTENDED: u32 = 0x8000_0000;

layout! {
    /// What reading the file of asynchronous events yields.
    pub struct AsyncEventRecord: "uverbs" "ib_uverbs_async_event_desc", 16 {
        /// User handle of the object, or number of the port.
        element: le::U64 = 0,
        /// `ib_event_type`.
        event_type: le::U32 = 8,
        /// Zero.
        reserved: le::U32 = 12,
    }
}

layout! {
    /// What reading a completion channel yields.
    pub struct CompletionEventRecord: "uverbs" "ib_uverbs_comp_event_desc", 8 {
        /// User handle of the completion queue.
        cq_handle: le::U64 = 0,
    }
}

layout! {
    /// A buffer for a queue: application memory, or a dma-buf.
    pub struct BufferDescriptor: "uverbs" "ib_uverbs_buffer_desc", 32 {
        /// [`BUFFER_DMABUF`] or [`BUFFER_VA`].
        buffer_type: le::U32 = 0,
        /// File descriptor of the dma-buf.
        fd: le::U32 = 4,
        /// Zero: the kernel refuses what it does not know.
        flags: le::U32 = 8,
        /// Zero: the kernel ignores what it does not know.
        optional_flags: le::U32 = 12,
        /// Virtual address, or offset in the dma-buf.
        addr: le::U64 = 16,
        /// Bytes.
        length: le::U64 = 24,
    }
}

/// The buffer is a dma-buf.
pub const BUFFER_DMABUF: u32 = 0;
/// The buffer is application memory.
pub const BUFFER_VA: u32 = 1;

/// All layouts of this module.
pub const LAYOUTS: &[Layout] = &[
    Header::LAYOUT,
    RawAttribute::LAYOUT,
    CommandHeader::LAYOUT,
    ExtendedHeader::LAYOUT,
    AsyncEventRecord::LAYOUT,
    CompletionEventRecord::LAYOUT,
    BufferDescriptor::LAYOUT,
];
