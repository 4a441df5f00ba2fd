//! The traits a workload is written against. They are resolved at compile time; a platform implements [`Device`] once
//! for each family.

use super::{
    AccessFlags, AddressVector, AhId, BatchError, CqFault, CqId, Endpoints, Gid, LKey, Mac, Mtu, MwType,
    Pollable, QpAttributes, QpCapabilities, QpId, QpInit, QpState, QpType, RKey, RecvRequest, SendRequest,
    SrqId, SrqInit, WorkCompletion,
};

/// What a device can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceAttributes {
    /// Family and generation, as `dv` spells them: `bnxt_re-p5`, `bnxt_re`, `ionic-v1`, `ionic`.
    pub family: &'static str,
    /// Largest capabilities of a queue pair.
    pub max_qp: QpCapabilities,
    /// CQEs of a completion queue.
    pub max_cqe: u32,
    /// Requests of a shared receive queue; 0 if there are none.
    pub max_srq_wr: u32,
    /// READs and atomics outstanding at a queue pair.
    pub max_rd_atomic: u8,
    /// Compare and swap, fetch and add.
    pub atomics: bool,
    /// Memory windows through the send queue.
    pub memory_windows: bool,
}

/// The state of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortAttributes {
    /// The link is up.
    pub active: bool,
    /// Largest path MTU.
    pub mtu: Mtu,
    /// Ethernet address.
    pub mac: Mac,
    /// Our GID: the one that packets come from.
    pub gid: Gid,
    /// Its index in the device's table, for [`AddressVector::sgid_index`].
    pub gid_index: u8,
}

/// Registered memory that this process can reach.
///
/// The device may write at any time, so contents are copied in and out.
pub trait MemoryRegion {
    /// Address of the first byte, for [`super::Sge`]s and for the peer.
    fn addr(&self) -> u64;
    /// Length in bytes.
    fn len(&self) -> usize;
    /// Local key.
    fn lkey(&self) -> LKey;
    /// Remote key.
    fn rkey(&self) -> RKey;
    /// Copies `bytes` to `offset`; `false`, and nothing written, if they do not fit.
    #[must_use]
    fn write(&mut self, offset: usize, bytes: &[u8]) -> bool;
    /// Fills `bytes` from `offset`; `false`, and nothing read, if they do not fit.
    #[must_use]
    fn read(&self, offset: usize, bytes: &mut [u8]) -> bool;
}

/// A completion queue.
pub trait CompletionQueue {
    /// Queue pairs that complete here.
    type QueuePair: Pollable;
    /// Shared receive queues whose requests complete here.
    type SharedReceiveQueue: SharedReceiveQueue;

    /// Number.
    fn id(&self) -> CqId;

    /// Fills `out` with completions and returns how many.
    ///
    /// # Errors
    /// The first CQE that makes no sense. Completions found before it are returned first: the fault follows with the
    /// next call. Whether the queue goes on is told by [`super::FaultKind`].
    fn poll<E>(&mut self, endpoints: &mut E, out: &mut [WorkCompletion]) -> Result<usize, CqFault>
    where
        E: Endpoints<Self::QueuePair, Self::SharedReceiveQueue>;

    /// Asks for an event at the next completion, or the next solicited one. Poll once more after it: what completed
    /// before raises no event.
    fn arm(&mut self, solicited_only: bool);
}

/// A queue pair: a send queue, and a receive queue unless a shared one stands in.
pub trait QueuePair: Pollable {
    /// Completion queue of the same device.
    type CompletionQueue;

    /// Number.
    fn id(&self) -> QpId;
    /// Kind.
    fn qp_type(&self) -> QpType;
    /// State, as the driver knows it.
    fn state(&self) -> QpState;
    /// Capabilities granted.
    fn capabilities(&self) -> QpCapabilities;

    /// Posts all of `requests` under one doorbell, or none. `cq` is the send completion queue, whose credit is spent.
    ///
    /// # Errors
    /// The first request that cannot be posted. Nothing was rung, and what was posted before is as it was; free entries
    /// may hold bytes of the requests before the refused one.
    fn post_send(
        &mut self,
        cq: &mut Self::CompletionQueue,
        requests: &[SendRequest<'_>],
    ) -> Result<(), BatchError>;

    /// Posts all of `requests` under one doorbell, or none. `cq` is the receive completion queue.
    ///
    /// # Errors
    /// The first request that cannot be posted. Nothing was rung, and what was posted before is as it was; free entries
    /// may hold bytes of the requests before the refused one.
    fn post_recv(
        &mut self,
        cq: &mut Self::CompletionQueue,
        requests: &[RecvRequest<'_>],
    ) -> Result<(), BatchError>;
}

/// A shared receive queue.
pub trait SharedReceiveQueue {
    /// Number.
    fn id(&self) -> SrqId;

    /// Posts all of `requests` under one doorbell, or none.
    ///
    /// # Errors
    /// The first request that cannot be posted. Nothing was rung, and what was posted before is as it was; free entries
    /// may hold bytes of the requests before the refused one.
    fn post_recv(&mut self, requests: &[RecvRequest<'_>]) -> Result<(), BatchError>;

    /// Asks for a limit event when fewer than `limit` requests are left.
    fn arm_limit(&mut self, limit: u32);
}

/// An opened device: creates, changes and destroys objects.
///
/// Destroy queue pairs before what they refer to; a device refuses to destroy an object in use. An object that is
/// dropped instead of destroyed stays in the device until that is closed.
pub trait Device {
    /// Error of every control operation. It names the object and the cause.
    type Error: core::error::Error;
    /// Protection domain.
    type ProtectionDomain;
    /// Registered memory.
    type MemoryRegion: MemoryRegion;
    /// Completion queue.
    type CompletionQueue: CompletionQueue<QueuePair = Self::QueuePair, SharedReceiveQueue = Self::SharedReceiveQueue>;
    /// Queue pair.
    type QueuePair: QueuePair<CompletionQueue = Self::CompletionQueue>;
    /// Shared receive queue.
    type SharedReceiveQueue: SharedReceiveQueue;

    /// What the device can do.
    fn attributes(&self) -> DeviceAttributes;
    /// State of the port.
    fn port(&self) -> PortAttributes;

    /// Gives the device time: delivers what is under way in a software NIC, or waits a moment. A workload calls it
    /// whenever it has found nothing to do. `false` says that nothing will ever come without new work.
    fn progress(&mut self) -> bool;

    /// A clock in nanoseconds that never goes back.
    fn now_ns(&self) -> u64;

    /// Creates a protection domain.
    fn alloc_pd(&mut self) -> Result<Self::ProtectionDomain, Self::Error>;
    /// Destroys it.
    fn dealloc_pd(&mut self, pd: Self::ProtectionDomain) -> Result<(), Self::Error>;

    /// Allocates `len` zeroed bytes and registers them.
    fn alloc_mr(
        &mut self,
        pd: &Self::ProtectionDomain,
        len: usize,
        access: AccessFlags,
    ) -> Result<Self::MemoryRegion, Self::Error>;
    /// Deregisters and frees it.
    fn dealloc_mr(&mut self, mr: Self::MemoryRegion) -> Result<(), Self::Error>;

    /// Creates a memory window, not bound to anything yet. Its key changes with every bind, in the low 8 bits.
    fn alloc_mw(&mut self, pd: &Self::ProtectionDomain, mw_type: MwType) -> Result<RKey, Self::Error>;
    /// Destroys the window that has `mw` as its key, or had it before a bind.
    fn dealloc_mw(&mut self, mw: RKey) -> Result<(), Self::Error>;

    /// Creates a completion queue with room for `cqe` completions.
    fn create_cq(&mut self, cqe: u32) -> Result<Self::CompletionQueue, Self::Error>;
    /// Destroys it.
    fn destroy_cq(&mut self, cq: Self::CompletionQueue) -> Result<(), Self::Error>;

    /// Creates a shared receive queue.
    fn create_srq(
        &mut self,
        pd: &Self::ProtectionDomain,
        init: SrqInit,
    ) -> Result<Self::SharedReceiveQueue, Self::Error>;
    /// Destroys it.
    fn destroy_srq(&mut self, srq: Self::SharedReceiveQueue) -> Result<(), Self::Error>;

    /// Creates a queue pair.
    fn create_qp(
        &mut self,
        pd: &Self::ProtectionDomain,
        init: &QpInit<'_, Self::CompletionQueue, Self::SharedReceiveQueue>,
    ) -> Result<Self::QueuePair, Self::Error>;
    /// Changes its attributes. `cqs` are its completion queues, once or twice: on the way to RESET they forget it.
    fn modify_qp(
        &mut self,
        qp: &mut Self::QueuePair,
        cqs: &mut [&mut Self::CompletionQueue],
        attributes: &QpAttributes,
    ) -> Result<(), Self::Error>;
    /// Destroys it; its completion queues forget it.
    fn destroy_qp(
        &mut self,
        qp: Self::QueuePair,
        cqs: &mut [&mut Self::CompletionQueue],
    ) -> Result<(), Self::Error>;

    /// Creates an address handle.
    fn create_ah(&mut self, pd: &Self::ProtectionDomain, to: &AddressVector) -> Result<AhId, Self::Error>;
    /// Destroys it.
    fn destroy_ah(&mut self, ah: AhId) -> Result<(), Self::Error>;
}
