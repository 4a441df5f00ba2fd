//! What the device tells when a context is opened.

use zerocopy::little_endian as le;

use super::doorbell::QueueType;
use super::wqe::{RdmaVersion, SqOp};
use crate::layout::layout;

layout! {
    /// Reply to the opening of a context. Source: kernel `rdma/ionic-abi.h`.
    pub struct ContextReply: "ionic" "ionic_ctx_resp", 40 {
        /// Reserved.
        rsvd: le::U32 = 0,
        /// Page size, base-two logarithm.
        page_shift: le::U32 = 4,
        /// Where the doorbell page is.
        dbell_offset: le::U64 = 8,
        /// rdma version.
        version: le::U16 = 16,
        /// Number of opcodes of queue pairs.
        qp_opcodes: u8 = 18,
        /// Number of opcodes of admin queues.
        admin_opcodes: u8 = 19,
        /// Doorbell register of send queues.
        sq_qtype: u8 = 20,
        /// Doorbell register of receive queues.
        rq_qtype: u8 = 21,
        /// Doorbell register of completion queues.
        cq_qtype: u8 = 22,
        /// Doorbell register of admin queues.
        admin_qtype: u8 = 23,
        /// Longest WQE, base-two logarithm of its bytes.
        max_stride: u8 = 24,
        /// Most SGEs with a list of lengths.
        max_spec: u8 = 25,
        /// Pipelines, 1 or 2.
        udma_count: u8 = 26,
        /// Strides that express doorbells exist for.
        expdb_mask: u8 = 27,
        /// Queues that express doorbells exist for.
        expdb_qtypes: u8 = 28,
        /// Reserved.
        rsvd2: [u8; 3] = 29,
        /// Where the clock page is; 0 if there is none.
        phc_offset: le::U64 = 32,
    }
}

bitflags::bitflags! {
    /// Strides that express doorbells exist for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ExpressStrides: u8 {
        /// 64 bytes.
        const B64 = 1;
        /// 128 bytes.
        const B128 = 1 << 1;
        /// 256 bytes.
        const B256 = 1 << 2;
        /// 512 bytes.
        const B512 = 1 << 3;
    }
}

impl ExpressStrides {
    /// Whether express doorbells exist for WQEs of exactly `bytes` bytes.
    pub const fn supports(self, bytes: u32) -> bool {
        match bytes {
            64 => self.contains(Self::B64),
            128 => self.contains(Self::B128),
            256 => self.contains(Self::B256),
            512 => self.contains(Self::B512),
            _ => false,
        }
    }
}

bitflags::bitflags! {
    /// Queues that express doorbells exist for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ExpressQueues: u8 {
        /// Send queues.
        const SEND = 1;
        /// Receive queues.
        const RECV = 1 << 1;
    }
}

/// What the device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Interface version.
    pub version: RdmaVersion,
    /// Page size, base-two logarithm; rings are at least one page.
    pub page_shift: u8,
    /// Doorbell register of send queues.
    pub sq_qtype: QueueType,
    /// Doorbell register of receive queues.
    pub rq_qtype: QueueType,
    /// Doorbell register of completion queues.
    pub cq_qtype: QueueType,
    /// Longest WQE, base-two logarithm of its bytes.
    pub max_stride: u8,
    /// Most SGEs with a list of lengths, at most 16; 0 if the device takes no lists.
    pub max_spec: u8,
    /// Pipelines, 1 or 2. A completion queue has a ring on each.
    pub udma_count: u8,
    /// Strides that express doorbells exist for.
    pub express_strides: ExpressStrides,
    /// Queues that express doorbells exist for.
    pub express_queues: ExpressQueues,
}

/// A context reply that this driver cannot work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapsError {
    /// Another interface version.
    #[error("rdma version {0}, supported are 1 and 2")]
    Version(u16),
    /// Version 1 without memory windows.
    #[error("{given} queue pair opcodes, {needed} needed")]
    Opcodes {
        /// Number the device has.
        given: u8,
        /// Number there must be.
        needed: u8,
    },
    /// A number outside its range.
    #[error("{what} {given}, must be {min} to {max}")]
    Range {
        /// The number.
        what: &'static str,
        /// Its value.
        given: u32,
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
}

impl Caps {
    /// Checks a reply.
    ///
    /// # Errors
    /// What this driver cannot work with.
    pub fn from_reply(reply: &ContextReply) -> Result<Self, CapsError> {
        let version = match reply.version.get() {
            1 => RdmaVersion::V1,
            2 => RdmaVersion::V2,
            other => return Err(CapsError::Version(other)),
        };
        let needed = SqOp::BindMw as u8 + 1;
        if version == RdmaVersion::V1 && reply.qp_opcodes < needed {
            return Err(CapsError::Opcodes { given: reply.qp_opcodes, needed });
        }
        let range = |what, given: u32, min, max| {
            let inside = u8::try_from(given).ok().filter(|_| (min..=max).contains(&given));
            inside.ok_or(CapsError::Range { what, given, min, max })
        };
        let qtype = |what, given: u8| {
            QueueType::new(given).ok_or(CapsError::Range { what, given: given.into(), min: 0, max: 7 })
        };
        Ok(Self {
            version,
            page_shift: range("page_shift", reply.page_shift.get(), 12, 30)?,
            sq_qtype: qtype("sq_qtype", reply.sq_qtype)?,
            rq_qtype: qtype("rq_qtype", reply.rq_qtype)?,
            cq_qtype: qtype("cq_qtype", reply.cq_qtype)?,
            max_stride: range("max_stride", reply.max_stride.into(), 6, 16)?,
            max_spec: if reply.max_spec > 16 { 0 } else { reply.max_spec },
            udma_count: range("udma_count", reply.udma_count.into(), 1, 2)?,
            express_strides: ExpressStrides::from_bits_truncate(reply.expdb_mask),
            express_queues: ExpressQueues::from_bits_truncate(reply.expdb_qtypes),
        })
    }

    /// Bits of the pipelines there are.
    pub const fn udma_mask(&self) -> u8 {
        (1 << self.udma_count) - 1
    }
}
