//! Send work requests, as small const builders.

use zerocopy::{Immutable, IntoBytes};

use super::{AccessFlags, AhId, Imm, LKey, QKey, QpId, RKey};

/// A scatter/gather element: a piece of registered local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Sge {
    /// Address as the memory region knows it.
    pub addr: u64,
    /// Key of the region.
    pub lkey: LKey,
    /// Length in bytes.
    pub length: u32,
}

impl Sge {
    /// `length` bytes at `addr` of the region with `lkey`.
    pub const fn new(addr: u64, length: u32, lkey: LKey) -> Self {
        Self { addr, length, lkey }
    }
}

/// What a send request carries or fills.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Registered memory, read (or for READ and atomics, written) by the device.
    Sges(&'a [Sge]),
    /// Bytes copied into the WQE at post, from all pieces in order; the memory may be reused at once.
    Inline(&'a [&'a [u8]]),
}

/// A piece of the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Address as the peer's memory region knows it.
    pub addr: u64,
    /// The peer's key.
    pub rkey: RKey,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Address handle.
    pub ah: AhId,
    /// Destination queue pair.
    pub qp: QpId,
    /// Its queue key.
    pub qkey: QKey,
}

/// Kind of a memory window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MwType {
    /// Type 1: bound with a bind verb; zero length unbinds.
    Type1,
    /// Type 2: bound with a posted request, invalidated by key.
    Type2,
}

/// Binds a memory window to a part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindMw {
    /// Kind of window.
    pub mw_type: MwType,
    /// Key of the window as it is now.
    pub mw: RKey,
    /// Key it shall have afterwards; only the low 8 bits may differ.
    pub new_key: RKey,
    /// Region under it.
    pub region: LKey,
    /// First byte.
    pub addr: u64,
    /// Length in bytes.
    pub length: u64,
    /// What peers may do.
    pub access: AccessFlags,
}

/// How the pages of a fast-registered region are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageTable {
    /// The region is physically contiguous from this device address on.
    Contiguous(u64),
    /// A list of page addresses at this device address.
    Level1(u64),
    /// A list of lists at this device address.
    Level2(u64),
}

/// Registers memory through the send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRegister {
    /// Key of the region, allocated beforehand.
    pub key: LKey,
    /// Address of the first byte as work requests will name it.
    pub addr: u64,
    /// Length in bytes.
    pub length: u64,
    /// Base-two logarithm of the page size, 12 for 4 KiB.
    pub page_shift: u8,
    /// Number of pages.
    pub pages: u32,
    /// Where the pages are.
    pub table: PageTable,
    /// What the region allows.
    pub access: AccessFlags,
}

/// The operation of a send request. The layout is fixed so that telling operations apart is one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SendOp {
    /// SEND to the connected peer; on a raw queue pair, an Ethernet frame.
    Send,
    /// SEND with immediate data.
    SendImm(Imm),
    /// SEND that invalidates a key of the peer.
    SendInv(RKey),
    /// RDMA WRITE.
    Write(RemoteAddress),
    /// RDMA WRITE with immediate data, which consumes a receive request of the peer.
    WriteImm(RemoteAddress, Imm),
    /// RDMA READ.
    Read(RemoteAddress),
    /// Atomic compare and swap of 8 bytes.
    CompareSwap {
        /// Where.
        remote: RemoteAddress,
        /// Value that must be there.
        compare: u64,
        /// Value to store then.
        swap: u64,
    },
    /// Atomic fetch and add of 8 bytes.
    FetchAdd {
        /// Where.
        remote: RemoteAddress,
        /// Value to add.
        add: u64,
    },
    /// SEND of a datagram queue pair.
    SendTo(Datagram),
    /// SEND with immediate data of a datagram queue pair.
    SendToImm(Datagram, Imm),
    /// Invalidates a local key.
    LocalInv(RKey),
    /// Binds a memory window.
    BindMw(BindMw),
    /// Registers memory.
    FastRegister(FastRegister),
}

bitflags::bitflags! {
    /// Flags of a send request. The bit values are those of `ibv_send_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SendFlags: u8 {
        /// Start after earlier READs and atomics have completed.
        const FENCE = 1;
        /// Produce a completion also when it succeeds.
        const SIGNALED = 1 << 1;
        /// Wake the peer's completion queue that waits for solicited events.
        const SOLICITED = 1 << 2;
        /// The device's second fence: bnxt_re's `rd_or_atomic_fence`, which waits for earlier READs and atomics only.
        const LOCAL_FENCE = 1 << 6;
    }
}

/// A send work request.
///
/// ```
/// use directverbs::verbs::{LKey, RKey, SendRequest, Sge};
/// let sges = [Sge::new(0x1000, 64, LKey::MAX)];
/// let request = SendRequest::write(0x2000, RKey::MAX).sges(&sges).wr_id(7).signaled();
/// assert_eq!(request.length(), 64);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Operation.
    pub op: SendOp,
    /// Flags.
    pub flags: SendFlags,
    /// What it carries or fills.
    pub data: Data<'a>,
}

impl<'a> SendRequest<'a> {
    /// A request without data, flags or `wr_id`.
    pub const fn new(op: SendOp) -> Self {
        Self { wr_id: 0, op, flags: SendFlags::empty(), data: Data::Sges(&[]) }
    }

    /// SEND.
    pub const fn send() -> Self {
        Self::new(SendOp::Send)
    }

    /// RDMA WRITE to `addr` under the peer's `rkey`.
    pub const fn write(addr: u64, rkey: RKey) -> Self {
        Self::new(SendOp::Write(RemoteAddress { addr, rkey }))
    }

    /// RDMA READ from `addr` under the peer's `rkey`.
    pub const fn read(addr: u64, rkey: RKey) -> Self {
        Self::new(SendOp::Read(RemoteAddress { addr, rkey }))
    }

    /// SEND of a datagram.
    pub const fn send_to(to: Datagram) -> Self {
        Self::new(SendOp::SendTo(to))
    }

    /// Sets the number that the completion brings back.
    #[must_use]
    pub const fn wr_id(mut self, wr_id: u64) -> Self {
        self.wr_id = wr_id;
        self
    }

    /// Carries, or fills, registered memory.
    #[must_use]
    pub const fn sges(mut self, sges: &'a [Sge]) -> Self {
        self.data = Data::Sges(sges);
        self
    }

    /// Carries bytes inside the WQE.
    #[must_use]
    pub const fn inline(mut self, pieces: &'a [&'a [u8]]) -> Self {
        self.data = Data::Inline(pieces);
        self
    }

    /// Adds flags.
    #[must_use]
    pub const fn flags(mut self, flags: SendFlags) -> Self {
        self.flags = self.flags.union(flags);
        self
    }

    /// Asks for a completion.
    #[must_use]
    pub const fn signaled(self) -> Self {
        self.flags(SendFlags::SIGNALED)
    }

    /// Bytes of the message; `u64` because the sum of many SGEs can pass 4 GiB.
    pub fn length(&self) -> u64 {
        match self.data {
            Data::Sges(sges) => sges.iter().map(|s| u64::from(s.length)).sum(),
            Data::Inline(pieces) => pieces.iter().map(|p| p.len() as u64).sum(),
        }
    }
}
