//! The ioctl methods of the objects that this crate uses, each with its attributes. Drivers' own are with the drivers.

use zerocopy::little_endian::{U32, U64};

use super::attribute::*;
use super::packet::BufferDescriptor;
use super::query::QueryPortReplyEx;
use super::queue_pair::QpCap;

/// Numbers of objects.
pub mod object {
    /// The device itself.
    pub const DEVICE: u16 = 0;
    /// Protection domain.
    pub const PD: u16 = 1;
    /// Completion channel.
    pub const COMP_CHANNEL: u16 = 2;
    /// Completion queue.
    pub const CQ: u16 = 3;
    /// Queue pair.
    pub const QP: u16 = 4;
    /// Shared receive queue.
    pub const SRQ: u16 = 5;
    /// Address handle.
    pub const AH: u16 = 6;
    /// Memory region.
    pub const MR: u16 = 7;
    /// Memory window.
    pub const MW: u16 = 8;
    /// File of asynchronous events.
    pub const ASYNC_EVENT: u16 = 16;
    /// First object, method or attribute of a driver.
    pub const DRIVER: u16 = 0x1000;
}

/// The driver's part of a request.
pub const UHW_IN: Attribute<InputBytes> = Attribute::new(0x1000, "UHW_IN");
/// The driver's part of a reply.
pub const UHW_OUT: Attribute<OutputBytes> = Attribute::new(0x1001, "UHW_OUT");

/// GET_CONTEXT.
pub mod get_context {
    use super::*;
    /// Completion vectors there are.
    pub const NUM_COMP_VECTORS: Attribute<Output<U32>> = Attribute::new(0, "NUM_COMP_VECTORS");
    /// Features of the kernel.
    pub const CORE_SUPPORT: Attribute<Output<U64>> = Attribute::new(1, "CORE_SUPPORT");
    /// Opens the context of a file.
    pub const METHOD: Method = Method {
        object_id: object::DEVICE,
        method_id: 3,
        object: "device",
        name: "GET_CONTEXT",
        attributes: &[
            NUM_COMP_VECTORS.optional(),
            CORE_SUPPORT.optional(),
            UHW_IN.optional(),
            UHW_OUT.optional(),
        ],
    };
}

/// QUERY_CONTEXT.
pub mod query_context {
    use super::*;
    /// Completion vectors there are.
    pub const NUM_COMP_VECTORS: Attribute<Output<U32>> = Attribute::new(0, "NUM_COMP_VECTORS");
    /// Features of the kernel.
    pub const CORE_SUPPORT: Attribute<Output<U64>> = Attribute::new(1, "CORE_SUPPORT");
    /// Reads what opening the context has said: for a context that somebody else has opened.
    pub const METHOD: Method = Method {
        object_id: object::DEVICE,
        method_id: 4,
        object: "device",
        name: "QUERY_CONTEXT",
        attributes: &[NUM_COMP_VECTORS.optional(), CORE_SUPPORT.optional()],
    };
}

/// QUERY_PORT.
pub mod query_port {
    use super::*;
    /// Port.
    pub const PORT_NUM: Attribute<Constant> = Attribute::new(0, "PORT_NUM");
    /// State.
    pub const RESP: Attribute<Output<QueryPortReplyEx>> = Attribute::new(1, "RESP");
    /// Reads the state of a port.
    pub const METHOD: Method = Method {
        object_id: object::DEVICE,
        method_id: 2,
        object: "port",
        name: "QUERY_PORT",
        attributes: &[PORT_NUM.required(), RESP.required()],
    };
}

/// QUERY_GID_TABLE.
pub mod query_gid_table {
    use super::*;
    /// Bytes of an entry.
    pub const ENTRY_SIZE: Attribute<Constant> = Attribute::new(0, "ENTRY_SIZE");
    /// Zero.
    pub const FLAGS: Attribute<Input<U32>> = Attribute::new(1, "FLAGS");
    /// Entries.
    pub const RESP_ENTRIES: Attribute<OutputBytes> = Attribute::new(2, "RESP_ENTRIES");
    /// Entries written.
    pub const RESP_NUM_ENTRIES: Attribute<Output<U64>> = Attribute::new(3, "RESP_NUM_ENTRIES");
    /// Reads the GIDs of all ports.
    pub const METHOD: Method = Method {
        object_id: object::DEVICE,
        method_id: 5,
        object: "GID table",
        name: "QUERY_GID_TABLE",
        attributes: &[
            ENTRY_SIZE.required(),
            FLAGS.optional(),
            RESP_ENTRIES.required(),
            RESP_NUM_ENTRIES.required(),
        ],
    };
}

/// INVOKE_WRITE.
pub mod invoke_write {
    use super::*;
    /// The command.
    pub const CORE_IN: Attribute<InputBytes> = Attribute::new(0, "CORE_IN");
    /// Its reply.
    pub const CORE_OUT: Attribute<OutputBytes> = Attribute::new(1, "CORE_OUT");
    /// Number of the command.
    pub const WRITE_CMD: Attribute<Constant> = Attribute::new(2, "WRITE_CMD");
    /// Carries out a command of the write interface.
    pub const METHOD: Method = Method {
        object_id: object::DEVICE,
        method_id: 0,
        object: "device",
        name: "INVOKE_WRITE",
        attributes: &[
            CORE_IN.optional(),
            CORE_OUT.optional(),
            WRITE_CMD.required(),
            UHW_IN.optional(),
            UHW_OUT.optional(),
        ],
    };
}

/// ASYNC_EVENT_ALLOC.
pub mod async_event_alloc {
    use super::*;
    /// File of events.
    pub const FD_HANDLE: Attribute<NewFile> = Attribute::new(0, "FD_HANDLE");
    /// Creates a file that yields asynchronous events.
    pub const METHOD: Method = Method {
        object_id: object::ASYNC_EVENT,
        method_id: 0,
        object: "async events",
        name: "ASYNC_EVENT_ALLOC",
        attributes: &[FD_HANDLE.required()],
    };
}

/// CQ_CREATE.
pub mod create_cq {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<NewHandle> = Attribute::new(0, "HANDLE");
    /// Entries.
    pub const CQE: Attribute<Input<U32>> = Attribute::new(1, "CQE");
    /// What events carry.
    pub const USER_HANDLE: Attribute<Input<U64>> = Attribute::new(2, "USER_HANDLE");
    /// Where completion events go.
    pub const COMP_CHANNEL: Attribute<File> = Attribute::new(3, "COMP_CHANNEL");
    /// Interrupt.
    pub const COMP_VECTOR: Attribute<Input<U32>> = Attribute::new(4, "COMP_VECTOR");
    /// 1 timestamps, 2 ignore overrun.
    pub const FLAGS: Attribute<Input<U32>> = Attribute::new(5, "FLAGS");
    /// Entries granted.
    pub const RESP_CQE: Attribute<Output<U32>> = Attribute::new(6, "RESP_CQE");
    /// Where asynchronous events go.
    pub const EVENT_FD: Attribute<File> = Attribute::new(7, "EVENT_FD");
    /// Ring memory: its address.
    pub const BUFFER_VA: Attribute<Input<U64>> = Attribute::new(8, "BUFFER_VA");
    /// Ring memory: its bytes.
    pub const BUFFER_LENGTH: Attribute<Input<U64>> = Attribute::new(9, "BUFFER_LENGTH");
    /// Ring memory: its dma-buf.
    pub const BUFFER_FD: Attribute<RawFile> = Attribute::new(10, "BUFFER_FD");
    /// Ring memory: where in the dma-buf.
    pub const BUFFER_OFFSET: Attribute<Input<U64>> = Attribute::new(11, "BUFFER_OFFSET");
    /// Ring memory.
    pub const BUF_UMEM: Attribute<Input<BufferDescriptor>> = Attribute::new(12, "BUF_UMEM");
    /// Creates a completion queue.
    pub const METHOD: Method = Method {
        object_id: object::CQ,
        method_id: 0,
        object: "completion queue",
        name: "CQ_CREATE",
        attributes: &[
            HANDLE.required(),
            CQE.required(),
            USER_HANDLE.required(),
            COMP_CHANNEL.optional(),
            COMP_VECTOR.required(),
            FLAGS.optional(),
            RESP_CQE.required(),
            EVENT_FD.optional(),
            BUFFER_VA.optional(),
            BUFFER_LENGTH.optional(),
            BUFFER_FD.optional(),
            BUFFER_OFFSET.optional(),
            BUF_UMEM.optional(),
            UHW_IN.optional(),
            UHW_OUT.optional(),
        ],
    };
}

/// QP_CREATE.
pub mod create_qp {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<NewHandle> = Attribute::new(0, "HANDLE");
    /// Protection domain.
    pub const PD_HANDLE: Attribute<Handle> = Attribute::new(2, "PD_HANDLE");
    /// Shared receive queue.
    pub const SRQ_HANDLE: Attribute<Handle> = Attribute::new(3, "SRQ_HANDLE");
    /// Where send requests complete.
    pub const SEND_CQ_HANDLE: Attribute<Handle> = Attribute::new(4, "SEND_CQ_HANDLE");
    /// Where receive requests complete.
    pub const RECV_CQ_HANDLE: Attribute<Handle> = Attribute::new(5, "RECV_CQ_HANDLE");
    /// What events carry.
    pub const USER_HANDLE: Attribute<Input<U64>> = Attribute::new(7, "USER_HANDLE");
    /// Capabilities.
    pub const CAP: Attribute<Input<QpCap>> = Attribute::new(8, "CAP");
    /// Kind.
    pub const TYPE: Attribute<Constant> = Attribute::new(9, "TYPE");
    /// [`SIGNAL_ALL`] and others.
    pub const FLAGS: Attribute<Input<U32>> = Attribute::new(10, "FLAGS");
    /// Where asynchronous events go.
    pub const EVENT_FD: Attribute<File> = Attribute::new(12, "EVENT_FD");
    /// Capabilities granted.
    pub const RESP_CAP: Attribute<Output<QpCap>> = Attribute::new(13, "RESP_CAP");
    /// Number.
    pub const RESP_QP_NUM: Attribute<Output<U32>> = Attribute::new(14, "RESP_QP_NUM");
    /// Memory of both rings.
    pub const BUF_UMEM: Attribute<Input<BufferDescriptor>> = Attribute::new(15, "BUF_UMEM");
    /// Memory of the receive ring.
    pub const RQ_BUF_UMEM: Attribute<Input<BufferDescriptor>> = Attribute::new(16, "RQ_BUF_UMEM");
    /// Memory of the send ring.
    pub const SQ_BUF_UMEM: Attribute<Input<BufferDescriptor>> = Attribute::new(17, "SQ_BUF_UMEM");
    /// Flag: every send request produces a completion.
    pub const SIGNAL_ALL: u32 = 1 << 12;
    /// Creates a queue pair.
    pub const METHOD: Method = Method {
        object_id: object::QP,
        method_id: 0,
        object: "queue pair",
        name: "QP_CREATE",
        attributes: &[
            HANDLE.required(),
            PD_HANDLE.optional(),
            SRQ_HANDLE.optional(),
            SEND_CQ_HANDLE.optional(),
            RECV_CQ_HANDLE.optional(),
            USER_HANDLE.required(),
            CAP.required(),
            TYPE.required(),
            FLAGS.optional(),
            EVENT_FD.optional(),
            RESP_CAP.required(),
            RESP_QP_NUM.required(),
            BUF_UMEM.optional(),
            RQ_BUF_UMEM.optional(),
            SQ_BUF_UMEM.optional(),
            UHW_IN.optional(),
            UHW_OUT.optional(),
        ],
    };
}

/// SRQ_CREATE.
pub mod create_srq {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<NewHandle> = Attribute::new(0, "HANDLE");
    /// Protection domain.
    pub const PD_HANDLE: Attribute<Handle> = Attribute::new(1, "PD_HANDLE");
    /// What events carry.
    pub const USER_HANDLE: Attribute<Input<U64>> = Attribute::new(4, "USER_HANDLE");
    /// Depth.
    pub const MAX_WR: Attribute<Input<U32>> = Attribute::new(5, "MAX_WR");
    /// SGEs of a request.
    pub const MAX_SGE: Attribute<Input<U32>> = Attribute::new(6, "MAX_SGE");
    /// Requests left that raise the limit event.
    pub const LIMIT: Attribute<Input<U32>> = Attribute::new(7, "LIMIT");
    /// 0: an ordinary one.
    pub const TYPE: Attribute<Constant> = Attribute::new(9, "TYPE");
    /// Where asynchronous events go.
    pub const EVENT_FD: Attribute<File> = Attribute::new(10, "EVENT_FD");
    /// Depth granted.
    pub const RESP_MAX_WR: Attribute<Output<U32>> = Attribute::new(11, "RESP_MAX_WR");
    /// SGEs granted.
    pub const RESP_MAX_SGE: Attribute<Output<U32>> = Attribute::new(12, "RESP_MAX_SGE");
    /// Creates a shared receive queue.
    pub const METHOD: Method = Method {
        object_id: object::SRQ,
        method_id: 0,
        object: "shared receive queue",
        name: "SRQ_CREATE",
        attributes: &[
            HANDLE.required(),
            PD_HANDLE.required(),
            USER_HANDLE.required(),
            MAX_WR.required(),
            MAX_SGE.required(),
            LIMIT.required(),
            TYPE.required(),
            EVENT_FD.optional(),
            RESP_MAX_WR.required(),
            RESP_MAX_SGE.required(),
            UHW_IN.optional(),
            UHW_OUT.optional(),
        ],
    };
}

/// REG_DMABUF_MR.
pub mod reg_dmabuf_mr {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<NewHandle> = Attribute::new(0, "HANDLE");
    /// Protection domain.
    pub const PD_HANDLE: Attribute<Handle> = Attribute::new(1, "PD_HANDLE");
    /// Where in the dma-buf.
    pub const OFFSET: Attribute<Input<U64>> = Attribute::new(2, "OFFSET");
    /// Bytes.
    pub const LENGTH: Attribute<Input<U64>> = Attribute::new(3, "LENGTH");
    /// Address that requests name it by.
    pub const IOVA: Attribute<Input<U64>> = Attribute::new(4, "IOVA");
    /// The dma-buf. A value of 4 bytes, unlike other file descriptors.
    pub const FD: Attribute<Input<U32>> = Attribute::new(5, "FD");
    /// `ib_uverbs_access_flags`.
    pub const ACCESS_FLAGS: Attribute<Input<U32>> = Attribute::new(6, "ACCESS_FLAGS");
    /// Local key.
    pub const RESP_LKEY: Attribute<Output<U32>> = Attribute::new(7, "RESP_LKEY");
    /// Remote key.
    pub const RESP_RKEY: Attribute<Output<U32>> = Attribute::new(8, "RESP_RKEY");
    /// Registers a dma-buf.
    pub const METHOD: Method = Method {
        object_id: object::MR,
        method_id: 4,
        object: "memory region",
        name: "REG_DMABUF_MR",
        attributes: &[
            HANDLE.required(),
            PD_HANDLE.required(),
            OFFSET.required(),
            LENGTH.required(),
            IOVA.required(),
            FD.required(),
            ACCESS_FLAGS.required(),
            RESP_LKEY.required(),
            RESP_RKEY.required(),
        ],
    };
}

/// The methods that destroy an object.
pub mod destroy {
    use super::*;
    /// Handle.
    pub const HANDLE: Attribute<Handle> = Attribute::new(0, "HANDLE");
    /// Events reported before: of completions and others for a completion queue.
    pub const CQ_RESP: Attribute<Output<[U32; 2]>> = Attribute::new(1, "RESP");
    /// Events reported before.
    pub const RESP: Attribute<Output<U32>> = Attribute::new(1, "RESP");

    const fn method(
        object_id: u16,
        method_id: u16,
        object: &'static str,
        name: &'static str,
        attributes: &'static [Spec],
    ) -> Method {
        Method { object_id, method_id, object, name, attributes }
    }

    /// Protection domain.
    pub const PD: Method = method(object::PD, 0, "protection domain", "PD_DESTROY", &[HANDLE.required()]);
    /// Completion queue.
    pub const CQ: Method =
        method(object::CQ, 1, "completion queue", "CQ_DESTROY", &[HANDLE.required(), CQ_RESP.required()]);
    /// Queue pair.
    pub const QP: Method =
        method(object::QP, 1, "queue pair", "QP_DESTROY", &[HANDLE.required(), RESP.required()]);
    /// Shared receive queue.
    pub const SRQ: Method =
        method(object::SRQ, 1, "shared receive queue", "SRQ_DESTROY", &[HANDLE.required(), RESP.required()]);
    /// Address handle.
    pub const AH: Method = method(object::AH, 0, "address handle", "AH_DESTROY", &[HANDLE.required()]);
    /// Memory region.
    pub const MR: Method = method(object::MR, 1, "memory region", "MR_DESTROY", &[HANDLE.required()]);
    /// Memory window.
    pub const MW: Method = method(object::MW, 0, "memory window", "MW_DESTROY", &[HANDLE.required()]);
}

/// All methods of this module.
pub const METHODS: &[&Method] = &[
    &get_context::METHOD,
    &query_context::METHOD,
    &query_port::METHOD,
    &query_gid_table::METHOD,
    &invoke_write::METHOD,
    &async_event_alloc::METHOD,
    &create_cq::METHOD,
    &create_qp::METHOD,
    &create_srq::METHOD,
    &reg_dmabuf_mr::METHOD,
    &destroy::PD,
    &destroy::CQ,
    &destroy::QP,
    &destroy::SRQ,
    &destroy::AH,
    &destroy::MR,
    &destroy::MW,
];
