use core::ops::Deref;

use directverbs::ionic::devcmd::PortOper;
use directverbs::ionic::plan::{MAX_CQE, QpPlan};
use directverbs::ionic::qp::NoSharedReceiveQueue;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::text;
use directverbs::verbs::{
    self, AccessFlags, AddressVector, AhId, DeviceAttributes, MwType, PortAttributes, QpAttributes, QpInit,
    RKey, SrqInit, Text,
};

use super::config::PdConfig;
use super::error::{Cause, Error, On};
use super::nic::Nic;
use super::queues::{CompletionQueue, QueuePair};
use crate::host::Host;
use crate::lease::Lease;
use crate::ledger::{Kind, Object};
use crate::region::Region;

/// READs and atomics outstanding at a queue pair.
const MAX_RD_ATOMIC: u8 = 16;

pub(super) const CQ: Text = text!("completion queue");
pub(super) const PD: Text = text!("protection domain");
pub(super) const MR: Text = text!("memory region");
pub(super) const MW: Text = text!("memory window");
pub(super) const QP: Text = text!("queue pair");
pub(super) const AH: Text = text!("address handle");

/// Protection domain.
#[derive(Debug)]
pub struct ProtectionDomain<'n> {
    pub(super) id: u32,
    pub(super) config: PdConfig,
    pub(super) lease: Lease<'n>,
}

impl ProtectionDomain<'_> {
    pub(super) const fn object(&self) -> Object {
        (Kind::ProtectionDomain, self.id)
    }
}

/// A [`Nic`] that is lent out. Its objects are created, changed and destroyed through [`directverbs::verbs::Device`].
///
/// What the device has no command for is refused with [`Cause::Unsupported`]: shared receive queues
/// ([`verbs::Device::create_srq`]), and queue pairs of raw packets. Completion queues keep the size that they were created with.
#[derive(Debug)]
pub struct Device<'n, H: Host> {
    pub(super) nic: &'n mut Nic<H>,
    pub(super) lease: Lease<'n>,
}

impl<H: Host> Deref for Device<'_, H> {
    type Target = Nic<H>;

    fn deref(&self) -> &Nic<H> {
        self.nic
    }
}

impl<'n, H: Host> Device<'n, H> {
    /// Whether an object is of this NIC.
    pub(super) fn check_own(&self, lease: Lease<'_>) -> Result<(), Cause> {
        if lease == self.lease { Ok(()) } else { Err(Cause::Foreign) }
    }

    /// The next event, as [`Nic::take_event`].
    ///
    /// # Errors
    /// The same.
    pub fn take_event(&mut self) -> Result<Option<super::Event>, Error> {
        self.nic.take_event()
    }

    /// Adds a GID, as [`Nic::add_gid`].
    ///
    /// # Errors
    /// The same.
    pub fn add_gid(&mut self, gid: verbs::Gid, vlan: Option<u16>) -> Result<u8, Error> {
        self.nic.add_gid(gid, vlan)
    }

    /// Looks whether the firmware is alive, as [`Nic::check`].
    ///
    /// # Errors
    /// The same.
    pub fn check(&mut self) -> Result<(), Error> {
        self.nic.check()
    }

    /// Allocates a protection domain whose queue pairs go where `config` says.
    ///
    /// # Errors
    /// There are too many objects.
    pub fn alloc_pd_with(&mut self, config: PdConfig) -> Result<ProtectionDomain<'n>, Error> {
        self.check_room().on(PD, None)?;
        let id = self.nic.free_pd().on(PD, None)?;
        let pd = ProtectionDomain { id, config, lease: self.lease };
        self.nic.created(pd.object(), &[]);
        Ok(pd)
    }
}

impl<'n, H: Host> verbs::Device for Device<'n, H> {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain<'n>;
    type MemoryRegion = Region<'n, H::Dma>;
    type CompletionQueue = CompletionQueue<'n, H>;
    type QueuePair = QueuePair<'n, H>;
    type SharedReceiveQueue = NoSharedReceiveQueue;

    fn attributes(&self) -> DeviceAttributes {
        DeviceAttributes {
            family: match self.caps.version {
                RdmaVersion::V1 => "ionic-v1",
                RdmaVersion::V2 => "ionic",
            },
            max_qp: QpPlan::largest(&self.caps),
            max_cqe: MAX_CQE,
            max_srq_wr: 0,
            max_rd_atomic: MAX_RD_ATOMIC,
            atomics: true,
            memory_windows: true,
        }
    }

    fn port(&self) -> PortAttributes {
        let status = self.session.lif_info().map(|info| info.status.link_status.get());
        PortAttributes {
            active: status.map(PortOper) == Some(PortOper::UP),
            mtu: self.session.link.config.mtu,
            mac: self.mac(),
            gid: self.gids().next().unwrap_or_default(),
            gid_index: 0,
        }
    }

    /// A device that has failed brings nothing any more.
    fn progress(&mut self) -> bool {
        self.nic.session.link.host.relax();
        self.nic.collect_events();
        !self.has_failed()
    }

    fn now_ns(&self) -> u64 {
        self.session.link.host.now_ns()
    }

    fn alloc_pd(&mut self) -> Result<ProtectionDomain<'n>, Error> {
        let config = self.session.link.config.pd;
        self.alloc_pd_with(config)
    }

    fn dealloc_pd(&mut self, pd: ProtectionDomain<'n>) -> Result<(), Error> {
        self.check_own(pd.lease).and_then(|()| self.check_unused(pd.object())).on(PD, pd.id)?;
        // It is a number, and the device keeps nothing of it.
        self.nic.destroyed(pd.object());
        Ok(())
    }

    fn alloc_mr(
        &mut self,
        pd: &ProtectionDomain<'n>,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region<'n, H::Dma>, Error> {
        self.make_region(pd, len, access).on(MR, None)
    }

    fn dealloc_mr(&mut self, mr: Region<'n, H::Dma>) -> Result<(), Error> {
        let key = verbs::MemoryRegion::rkey(&mr);
        self.check_own(mr.lease()).on(MR, key.get())?;
        self.deregister(key)?;
        mr.release();
        Ok(())
    }

    fn alloc_mw(&mut self, pd: &ProtectionDomain<'n>, mw_type: MwType) -> Result<RKey, Error> {
        self.make_window(pd, mw_type).on(MW, None)
    }

    fn dealloc_mw(&mut self, mw: RKey) -> Result<(), Error> {
        self.forget_window(mw.get()).on(MW, mw.get())
    }

    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue<'n, H>, Error> {
        self.make_cq(cqe).on(CQ, None)
    }

    fn destroy_cq(&mut self, cq: CompletionQueue<'n, H>) -> Result<(), Error> {
        let id = verbs::CompletionQueue::id(&cq).get();
        self.unmake_cq(cq).on(CQ, id)
    }

    /// The device has no shared receive queues: always refused.
    fn create_srq(&mut self, _: &ProtectionDomain<'n>, _: SrqInit) -> Result<NoSharedReceiveQueue, Error> {
        Err(Cause::Unsupported(text!("the device has no shared receive queues")))
            .on(text!("shared receive queue"), None)
    }

    fn destroy_srq(&mut self, srq: NoSharedReceiveQueue) -> Result<(), Error> {
        match srq {}
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain<'n>,
        init: &QpInit<'_, CompletionQueue<'n, H>, NoSharedReceiveQueue>,
    ) -> Result<QueuePair<'n, H>, Error> {
        self.make_qp(pd, init).on(QP, None)
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair<'n, H>,
        cqs: &mut [&mut CompletionQueue<'n, H>],
        attributes: &QpAttributes,
    ) -> Result<(), Error> {
        self.change_qp(qp, cqs, attributes).on(QP, qp.queue.id().get())
    }

    fn destroy_qp(
        &mut self,
        qp: QueuePair<'n, H>,
        cqs: &mut [&mut CompletionQueue<'n, H>],
    ) -> Result<(), Error> {
        let id = qp.queue.id().get();
        self.unmake_qp(qp, cqs).on(QP, id)
    }

    fn create_ah(&mut self, pd: &ProtectionDomain<'n>, to: &AddressVector) -> Result<AhId, Error> {
        self.make_ah(pd, to).on(AH, None)
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<(), Error> {
        self.unmake_ah(ah).on(AH, ah.get())
    }
}
