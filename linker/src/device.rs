//! A device of whichever family. What runs on it is compiled once, so the image has one copy of the workload.

use directverbs::verbs::{
    self, AccessFlags, AddressVector, AhId, DeviceAttributes, MwType, PortAttributes, QpAttributes, QpInit,
    RKey, SrqInit,
};
use directverbs_bare::region::Region;
use directverbs_bare::{Host, bnxt_re, ionic};

use crate::nics::Error;
use crate::queues::{self, CompletionQueue, QueuePair, SharedReceiveQueue};

/// A NIC that is lent out.
pub enum Device<'n, H: Host> {
    /// Broadcom.
    BnxtRe(bnxt_re::Device<'n, H>),
    /// AMD Pensando.
    Ionic(ionic::Device<'n, H>),
}

/// A protection domain.
pub enum ProtectionDomain<'n> {
    /// Of a Broadcom device.
    BnxtRe(bnxt_re::ProtectionDomain<'n>),
    /// Of an AMD Pensando device.
    Ionic(ionic::ProtectionDomain<'n>),
}

type Result<T> = core::result::Result<T, Error>;

impl<'n, H: Host> verbs::Device for Device<'n, H> {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain<'n>;
    type MemoryRegion = Region<'n, H::Dma>;
    type CompletionQueue = CompletionQueue<'n, H>;
    type QueuePair = QueuePair<'n, H>;
    type SharedReceiveQueue = SharedReceiveQueue<'n, H>;

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

    fn alloc_pd(&mut self) -> Result<ProtectionDomain<'n>> {
        Ok(match self {
            Self::BnxtRe(device) => ProtectionDomain::BnxtRe(device.alloc_pd()?),
            Self::Ionic(device) => ProtectionDomain::Ionic(device.alloc_pd()?),
        })
    }

    fn dealloc_pd(&mut self, pd: ProtectionDomain<'n>) -> Result<()> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => Ok(device.dealloc_pd(pd)?),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => Ok(device.dealloc_pd(pd)?),
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn alloc_mr(
        &mut self,
        pd: &ProtectionDomain<'n>,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region<'n, H::Dma>> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => Ok(device.alloc_mr(pd, len, access)?),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => Ok(device.alloc_mr(pd, len, access)?),
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn dealloc_mr(&mut self, mr: Region<'n, H::Dma>) -> Result<()> {
        match self {
            Self::BnxtRe(device) => Ok(device.dealloc_mr(mr)?),
            Self::Ionic(device) => Ok(device.dealloc_mr(mr)?),
        }
    }

    #[inline(never)]
    fn alloc_mw(&mut self, pd: &ProtectionDomain<'n>, mw_type: MwType) -> Result<RKey> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => Ok(device.alloc_mw(pd, mw_type)?),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => Ok(device.alloc_mw(pd, mw_type)?),
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn dealloc_mw(&mut self, mw: RKey) -> Result<()> {
        match self {
            Self::BnxtRe(device) => Ok(device.dealloc_mw(mw)?),
            Self::Ionic(device) => Ok(device.dealloc_mw(mw)?),
        }
    }

    #[inline(never)]
    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue<'n, H>> {
        Ok(match self {
            Self::BnxtRe(device) => CompletionQueue::BnxtRe(device.create_cq(cqe)?),
            Self::Ionic(device) => CompletionQueue::Ionic(device.create_cq(cqe)?),
        })
    }

    #[inline(never)]
    fn destroy_cq(&mut self, cq: CompletionQueue<'n, H>) -> Result<()> {
        match (self, cq) {
            (Self::BnxtRe(device), CompletionQueue::BnxtRe(cq)) => Ok(device.destroy_cq(cq)?),
            (Self::Ionic(device), CompletionQueue::Ionic(cq)) => Ok(device.destroy_cq(cq)?),
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn create_srq(&mut self, pd: &ProtectionDomain<'n>, init: SrqInit) -> Result<SharedReceiveQueue<'n, H>> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => {
                Ok(SharedReceiveQueue::BnxtRe(device.create_srq(pd, init)?))
            }
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => {
                Ok(SharedReceiveQueue::Ionic(device.create_srq(pd, init)?))
            }
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn destroy_srq(&mut self, srq: SharedReceiveQueue<'n, H>) -> Result<()> {
        match (self, srq) {
            (Self::BnxtRe(device), SharedReceiveQueue::BnxtRe(srq)) => Ok(device.destroy_srq(srq)?),
            (_, SharedReceiveQueue::Ionic(none)) => match none {},
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn create_qp(
        &mut self,
        pd: &ProtectionDomain<'n>,
        init: &QpInit<'_, CompletionQueue<'n, H>, SharedReceiveQueue<'n, H>>,
    ) -> Result<QueuePair<'n, H>> {
        match (self, pd, init.send_cq, init.recv_cq) {
            (
                Self::BnxtRe(device),
                ProtectionDomain::BnxtRe(pd),
                CompletionQueue::BnxtRe(send_cq),
                CompletionQueue::BnxtRe(recv_cq),
            ) => {
                let srq = init.srq.map(|srq| match srq {
                    SharedReceiveQueue::BnxtRe(srq) => srq,
                    SharedReceiveQueue::Ionic(none) => match *none {},
                });
                Ok(QueuePair::BnxtRe(device.create_qp(pd, &with(init, send_cq, recv_cq, srq))?))
            }
            (
                Self::Ionic(device),
                ProtectionDomain::Ionic(pd),
                CompletionQueue::Ionic(send_cq),
                CompletionQueue::Ionic(recv_cq),
            ) if init.srq.is_none() => {
                Ok(QueuePair::Ionic(device.create_qp(pd, &with(init, send_cq, recv_cq, None))?))
            }
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn modify_qp(
        &mut self,
        qp: &mut QueuePair<'n, H>,
        cqs: &mut [&mut CompletionQueue<'n, H>],
        attributes: &QpAttributes,
    ) -> Result<()> {
        match (self, qp) {
            (Self::BnxtRe(device), QueuePair::BnxtRe(qp)) => {
                Ok(device.modify_qp(qp, &mut queues::bnxt_re(cqs)?, attributes)?)
            }
            (Self::Ionic(device), QueuePair::Ionic(qp)) => {
                Ok(device.modify_qp(qp, &mut queues::ionic(cqs)?, attributes)?)
            }
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn destroy_qp(&mut self, qp: QueuePair<'n, H>, cqs: &mut [&mut CompletionQueue<'n, H>]) -> Result<()> {
        match (self, qp) {
            (Self::BnxtRe(device), QueuePair::BnxtRe(qp)) => {
                Ok(device.destroy_qp(qp, &mut queues::bnxt_re(cqs)?)?)
            }
            (Self::Ionic(device), QueuePair::Ionic(qp)) => {
                Ok(device.destroy_qp(qp, &mut queues::ionic(cqs)?)?)
            }
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn create_ah(&mut self, pd: &ProtectionDomain<'n>, to: &AddressVector) -> Result<AhId> {
        match (self, pd) {
            (Self::BnxtRe(device), ProtectionDomain::BnxtRe(pd)) => Ok(device.create_ah(pd, to)?),
            (Self::Ionic(device), ProtectionDomain::Ionic(pd)) => Ok(device.create_ah(pd, to)?),
            _ => Err(Error::Foreign),
        }
    }

    #[inline(never)]
    fn destroy_ah(&mut self, ah: AhId) -> Result<()> {
        match self {
            Self::BnxtRe(device) => Ok(device.destroy_ah(ah)?),
            Self::Ionic(device) => Ok(device.destroy_ah(ah)?),
        }
    }
}

/// The same wishes with a family's own queues.
fn with<'a, H: Host, C, S>(
    init: &QpInit<'_, CompletionQueue<'_, H>, SharedReceiveQueue<'_, H>>,
    send_cq: &'a C,
    recv_cq: &'a C,
    srq: Option<&'a S>,
) -> QpInit<'a, C, S> {
    let QpInit { qp_type, capabilities, signal_all, .. } = *init;
    QpInit { qp_type, capabilities, send_cq, recv_cq, srq, signal_all }
}
