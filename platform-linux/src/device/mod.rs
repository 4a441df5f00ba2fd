//! A device of whichever family: what a program holds that does not care.
//!
//! Each call looks at the family once. Programs that do care, or want what only one family has, take [`bnxt_re::Device`] or
//! [`ionic::Device`] out of the variant.

mod open;
mod queue;

use std::time::Duration;

use directverbs::verbs::{
    self, AccessFlags, AddressVector, AhId, DeviceAttributes, MwType, PortAttributes, QpAttributes, QpInit,
    RKey, SrqInit,
};

use crate::error::{Error, Result};
use crate::host::{Origin, Region};
use crate::objects::{AsyncEvent, CompletionChannel, QueriedQp};
use crate::{bnxt_re, ionic, objects};

pub use open::OpenOptions;
pub use queue::{CompletionQueue, QueuePair, SharedReceiveQueue};

/// An opened device.
#[derive(Debug)]
pub enum Device {
    /// Broadcom.
    BnxtRe(bnxt_re::Device),
    /// AMD Pensando.
    Ionic(ionic::Device),
}

/// A protection domain.
#[derive(Clone, Debug)]
pub enum ProtectionDomain {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::ProtectionDomain),
    /// Of an AMD Pensando device.
    Ionic(ionic::ProtectionDomain),
}

/// Two objects of devices of different families.
fn foreign(object: &'static str, other: &'static str) -> Error {
    Error::OtherContext { object, other }
}

impl Device {
    /// Opens the device called `name`, such as `bnxt_re0`: port 1, the GID that reaches most peers.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(name: &str) -> Result<Self> {
        OpenOptions::new().open(name)
    }

    /// Our end of the wire.
    pub fn origin(&self) -> &Origin {
        match self {
            Self::BnxtRe(device) => device.origin(),
            Self::Ionic(device) => device.origin(),
        }
    }

    /// What every driver has.
    pub fn generic(&self) -> &objects::Context {
        match self {
            Self::BnxtRe(device) => device.context().generic(),
            Self::Ionic(device) => device.context().generic(),
        }
    }

    /// The next asynchronous event, waiting at most for `timeout`.
    ///
    /// # Errors
    /// The device is gone.
    pub fn next_event(&self, timeout: Option<Duration>) -> Result<Option<AsyncEvent>> {
        self.generic().next_event(timeout)
    }

    /// Creates a completion queue whose events go to `channel`, by interrupt `vector`.
    ///
    /// # Errors
    /// More than the device has, or the kernel refuses.
    pub fn create_cq_on(
        &mut self,
        cqe: u32,
        channel: Option<&CompletionChannel>,
        vector: u32,
    ) -> Result<CompletionQueue> {
        Ok(match self {
            Self::BnxtRe(device) => CompletionQueue::BnxtRe(device.create_cq_on(cqe, channel, vector)?),
            Self::Ionic(device) => {
                let mask = device.settings().udma_mask;
                CompletionQueue::Ionic(device.create_cq_on(cqe, mask, channel, vector)?)
            }
        })
    }

    /// Reads a queue pair's attributes from the device. If that has found it in error, what is outstanding is flushed.
    ///
    /// # Errors
    /// The kernel refuses, or answers with a state that there is not.
    pub fn query_qp(&mut self, qp: &mut QueuePair) -> Result<QueriedQp> {
        match (self, qp) {
            (Self::BnxtRe(device), QueuePair::BnxtRe(qp)) => device.query_qp(qp),
            (Self::Ionic(device), QueuePair::Ionic(qp)) => device.query_qp(qp),
            _ => Err(foreign("device", "queue pair")),
        }
    }
}

impl verbs::Device for Device {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain;
    type MemoryRegion = Region;
    type CompletionQueue = CompletionQueue;
    type QueuePair = QueuePair;
    type SharedReceiveQueue = SharedReceiveQueue;

    fn attributes(&self) -> DeviceAttributes {
        match self {
            Self::BnxtRe(device) => device.attributes(),
            Self::Ionic(device) => device.attributes(),
        }
    }

    fn port(&self) -> PortAttributes {
        match self {
            Self::BnxtRe(device) => device.port(),
            Self::Ionic(device) => device.port(),
        }
    }

    fn progress(&mut self) -> bool {
        match self {
            Self::BnxtRe(device) => device.progress(),
            Self::Ionic(device) => device.progress(),
        }
    }

    fn now_ns(&self) -> u64 {
        match self {
            Self::BnxtRe(device) => device.now_ns(),
            Self::Ionic(device) => device.now_ns(),
        }
    }

    fn alloc_pd(&mut self) -> Result<ProtectionDomain> {
        Ok(match self {
            Self::BnxtRe(device) => ProtectionDomain::BnxtRe(device.alloc_pd()?),
            Self::Ionic(device) => ProtectionDomain::Ionic(device.alloc_pd()?),
        })
    }

    fn dealloc_pd(&mut self, pd: ProtectionDomain) -> Result<()> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => device.dealloc_pd(pd),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => device.dealloc_pd(pd),
            _ => Err(foreign("device", "protection domain")),
        }
    }

    fn alloc_mr(&mut self, pd: &ProtectionDomain, len: usize, access: AccessFlags) -> Result<Region> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => device.alloc_mr(pd, len, access),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => device.alloc_mr(pd, len, access),
            _ => Err(foreign("memory region", "protection domain")),
        }
    }

    fn dealloc_mr(&mut self, mr: Region) -> Result<()> {
        mr.destroy()
    }

    fn alloc_mw(&mut self, pd: &ProtectionDomain, mw_type: MwType) -> Result<RKey> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => device.alloc_mw(pd, mw_type),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => device.alloc_mw(pd, mw_type),
            _ => Err(foreign("memory window", "protection domain")),
        }
    }

    fn dealloc_mw(&mut self, mw: RKey) -> Result<()> {
        match self {
            Self::BnxtRe(device) => device.dealloc_mw(mw),
            Self::Ionic(device) => device.dealloc_mw(mw),
        }
    }

    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue> {
        self.create_cq_on(cqe, None, 0)
    }

    fn destroy_cq(&mut self, cq: CompletionQueue) -> Result<()> {
        match (self, cq) {
            (Self::BnxtRe(device), CompletionQueue::BnxtRe(cq)) => device.destroy_cq(cq),
            (Self::Ionic(device), CompletionQueue::Ionic(cq)) => device.destroy_cq(cq),
            _ => Err(foreign("device", "completion queue")),
        }
    }

    fn create_srq(&mut self, pd: &ProtectionDomain, init: SrqInit) -> Result<SharedReceiveQueue> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => {
                device.create_srq(pd, init).map(SharedReceiveQueue::BnxtRe)
            }
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => {
                device.create_srq(pd, init).map(SharedReceiveQueue::Ionic)
            }
            _ => Err(foreign("shared receive queue", "protection domain")),
        }
    }

    fn destroy_srq(&mut self, srq: SharedReceiveQueue) -> Result<()> {
        match (self, srq) {
            (Self::BnxtRe(device), SharedReceiveQueue::BnxtRe(srq)) => device.destroy_srq(srq),
            (Self::Ionic(device), SharedReceiveQueue::Ionic(srq)) => device.destroy_srq(srq),
            _ => Err(foreign("device", "shared receive queue")),
        }
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue, SharedReceiveQueue>,
    ) -> Result<QueuePair> {
        match (self, pd, init.send_cq, init.recv_cq) {
            (
                Self::BnxtRe(device),
                ProtectionDomain::BnxtRe(pd),
                CompletionQueue::BnxtRe(send_cq),
                CompletionQueue::BnxtRe(recv_cq),
            ) => {
                let srq = match init.srq {
                    None => None,
                    Some(SharedReceiveQueue::BnxtRe(srq)) => Some(srq),
                    Some(SharedReceiveQueue::Ionic(none)) => match *none {},
                };
                device.create_qp(pd, &with(init, send_cq, recv_cq, srq)).map(QueuePair::BnxtRe)
            }
            (
                Self::Ionic(device),
                ProtectionDomain::Ionic(pd),
                CompletionQueue::Ionic(send_cq),
                CompletionQueue::Ionic(recv_cq),
            ) if init.srq.is_none() => {
                device.create_qp(pd, &with(init, send_cq, recv_cq, None)).map(QueuePair::Ionic)
            }
            _ => Err(foreign("queue pair", "another object")),
        }
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair,
        cqs: &mut [&mut CompletionQueue],
        attributes: &QpAttributes,
    ) -> Result<()> {
        match (self, qp) {
            (Self::BnxtRe(device), QueuePair::BnxtRe(qp)) => {
                device.modify_qp(qp, &mut queue::bnxt_re(cqs), attributes)
            }
            (Self::Ionic(device), QueuePair::Ionic(qp)) => {
                device.modify_qp(qp, &mut queue::ionic(cqs), attributes)
            }
            _ => Err(foreign("device", "queue pair")),
        }
    }

    fn destroy_qp(&mut self, qp: QueuePair, cqs: &mut [&mut CompletionQueue]) -> Result<()> {
        match (self, qp) {
            (Self::BnxtRe(device), QueuePair::BnxtRe(qp)) => device.destroy_qp(qp, &mut queue::bnxt_re(cqs)),
            (Self::Ionic(device), QueuePair::Ionic(qp)) => device.destroy_qp(qp, &mut queue::ionic(cqs)),
            _ => Err(foreign("device", "queue pair")),
        }
    }

    fn create_ah(&mut self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => device.create_ah(pd, to),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => device.create_ah(pd, to),
            _ => Err(foreign("address handle", "protection domain")),
        }
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<()> {
        match self {
            Self::BnxtRe(device) => device.destroy_ah(ah),
            Self::Ionic(device) => device.destroy_ah(ah),
        }
    }
}

/// The same wishes with a family's own queues.
fn with<'a, C, S>(
    init: &QpInit<'_, CompletionQueue, SharedReceiveQueue>,
    send_cq: &'a C,
    recv_cq: &'a C,
    srq: Option<&'a S>,
) -> QpInit<'a, C, S> {
    let QpInit { qp_type, capabilities, signal_all, .. } = *init;
    QpInit { qp_type, capabilities, send_cq, recv_cq, srq, signal_all }
}
