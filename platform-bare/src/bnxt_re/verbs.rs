//! The device as workloads know it.

use directverbs::bnxt_re::rcfw::ah::{CmdqCreateAh, CmdqDestroyAh};
use directverbs::bnxt_re::rcfw::function::caps_ext2;
use directverbs::bnxt_re::rcfw::mr::{CmdqAllocateMrw, CmdqDeallocateKey};
use directverbs::bnxt_re::rcfw::opcode::Opcode;
use directverbs::bnxt_re::rcfw::qp::CmdqModifyQp;
use directverbs::bnxt_re::rcfw::transition::Transition;
use directverbs::verbs::{
    self, AccessFlags, AddressVector, AhId, DeviceAttributes, MemoryRegion as _, MwType, Pollable,
    PortAttributes, QpAttributes, QpInit, QpState, QueuePair as _, RKey, SrqInit,
};
use zerocopy::little_endian as le;

use super::device::{Device, ProtectionDomain};
use super::error::Error;
use super::queue::{CompletionQueue, QueuePair, SharedReceiveQueue};
use crate::host::Host;
use crate::ledger::Kind;
use crate::region::Region;

fn forget<H: Host>(qp: &QueuePair<'_, H>, cqs: &mut [&mut CompletionQueue<'_, H>]) {
    for cq in cqs {
        cq.queue.cq.forget(qp.key());
    }
}

impl<H: Host> Device<'_, H> {
    /// What a queue pair allows its peer, where a transition must tell it again.
    fn access(&mut self, qp: &QueuePair<'_, H>, attributes: &QpAttributes) -> Result<AccessFlags, Error> {
        let begins = qp.state() == QpState::Init && attributes.state == Some(QpState::Rtr);
        match attributes.access {
            None if begins && self.wants_more() => {
                let told = self.query_qp(qp)?.access;
                Ok(AccessFlags::from_bits_truncate((told & 0xf).into()))
            }
            access => Ok(access.unwrap_or(AccessFlags::LOCAL_WRITE)),
        }
    }

    fn wants_more(&self) -> bool {
        self.told.func.dev_cap_ext_flags_2.get() & caps_ext2::OPTIMIZE_MODIFY_QP != 0
    }
}

impl<'n, H: Host> verbs::Device for Device<'n, H> {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain<'n>;
    type MemoryRegion = Region<'n, H::Dma>;
    type CompletionQueue = CompletionQueue<'n, H>;
    type QueuePair = QueuePair<'n, H>;
    type SharedReceiveQueue = SharedReceiveQueue<'n, H>;

    fn attributes(&self) -> DeviceAttributes {
        let outstanding = self.told.outstanding;
        self.caps().attributes(outstanding.initiator.min(outstanding.responder))
    }

    fn port(&self) -> PortAttributes {
        let (gid_index, gid) = self.gids().next().unwrap_or_default();
        PortAttributes { active: self.told.link, mtu: self.mtu, mac: self.mac(), gid, gid_index }
    }

    fn progress(&mut self) -> bool {
        // The device works by itself.
        self.nic.host.relax();
        true
    }

    fn now_ns(&self) -> u64 {
        self.nic.host.now_ns()
    }

    fn alloc_pd(&mut self) -> Result<ProtectionDomain<'n>, Error> {
        let id = self.nic.new_pd()?;
        Ok(ProtectionDomain { id, lease: self.lease })
    }

    fn dealloc_pd(&mut self, pd: ProtectionDomain<'n>) -> Result<(), Error> {
        self.check_pd(&pd)?;
        self.check_unused(pd.object())?;
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
        self.new_mr(pd, len, access)
    }

    fn dealloc_mr(&mut self, mr: Region<'n, H::Dma>) -> Result<(), Error> {
        self.check_own(Kind::Region, mr.lease())?;
        let key = mr.lkey().get();
        self.forget_region(key)?;
        mr.release();
        Ok(())
    }

    fn alloc_mw(&mut self, pd: &ProtectionDomain<'n>, mw_type: MwType) -> Result<RKey, Error> {
        self.check_pd(pd)?;
        self.check_room()?;
        let (brought, host) = self.nic.brought()?;
        let key = brought.command(host, &CmdqAllocateMrw::window(pd.id, mw_type))?.xid.get();
        self.nic.created(Opcode::ALLOCATE_MRW, (Kind::Window(mw_type), key >> 8), key, &[pd.object()])?;
        Ok(RKey::truncated(key))
    }

    fn dealloc_mw(&mut self, mw: RKey) -> Result<(), Error> {
        // The lowest byte has changed with each bind.
        let (key, id) = (mw.get(), mw.get() >> 8);
        let (brought, host) = self.nic.brought()?;
        let Some(mw_type) = brought.ledger.window(id) else {
            return Err(Error::NoSuch { kind: Kind::Window(MwType::Type2), id: key });
        };
        brought.command(host, &CmdqDeallocateKey::window(key, mw_type))?;
        self.nic.destroyed((Kind::Window(mw_type), id));
        Ok(())
    }

    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue<'n, H>, Error> {
        self.new_cq(cqe)
    }

    fn destroy_cq(&mut self, cq: CompletionQueue<'n, H>) -> Result<(), Error> {
        self.drop_cq(cq)
    }

    fn create_srq(
        &mut self,
        pd: &ProtectionDomain<'n>,
        init: SrqInit,
    ) -> Result<SharedReceiveQueue<'n, H>, Error> {
        self.new_srq(pd, &init)
    }

    fn destroy_srq(&mut self, srq: SharedReceiveQueue<'n, H>) -> Result<(), Error> {
        self.drop_srq(srq)
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain<'n>,
        init: &QpInit<'_, CompletionQueue<'n, H>, SharedReceiveQueue<'n, H>>,
    ) -> Result<QueuePair<'n, H>, Error> {
        self.new_qp(pd, init)
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair<'n, H>,
        cqs: &mut [&mut CompletionQueue<'n, H>],
        attributes: &QpAttributes,
    ) -> Result<(), Error> {
        self.check_own(Kind::QueuePair, qp.lease)?;
        let source = match attributes.path {
            Some(path) => Some(self.source(path.sgid_index)?),
            None => None,
        };
        // What cannot be is found out before the device is asked for anything.
        attributes.check(qp.qp_type(), qp.state())?;
        let access = self.access(qp, attributes)?;
        let (command, to) = CmdqModifyQp::new(&Transition {
            qp: qp.id(),
            qp_type: qp.qp_type(),
            from: qp.state(),
            access,
            capabilities: qp.capabilities(),
            attributes,
            source,
            outstanding: self.told.outstanding,
            optimized: self.wants_more(),
        })?;
        let (brought, host) = self.nic.brought()?;
        brought.command(host, &command)?;
        if to == QpState::Reset {
            forget(qp, cqs);
        }
        qp.queue.qp.modify(attributes)?;
        Ok(())
    }

    fn destroy_qp(
        &mut self,
        qp: QueuePair<'n, H>,
        cqs: &mut [&mut CompletionQueue<'n, H>],
    ) -> Result<(), Error> {
        self.check_own(Kind::QueuePair, qp.lease)?;
        forget(&qp, cqs);
        self.drop_qp(qp)
    }

    fn create_ah(&mut self, pd: &ProtectionDomain<'n>, to: &AddressVector) -> Result<AhId, Error> {
        self.check_pd(pd)?;
        self.check_room()?;
        let command = CmdqCreateAh::new(pd.id, to, self.source(to.sgid_index)?);
        let (brought, host) = self.nic.brought()?;
        let xid = brought.command(host, &command)?.xid.get();
        self.nic.created(Opcode::CREATE_AH, (Kind::AddressHandle, xid), xid, &[pd.object()])?;
        Ok(AhId::truncated(xid))
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<(), Error> {
        let object = (Kind::AddressHandle, ah.get());
        self.check_unused(object)?;
        let ah_cid = le::U32::new(ah.get());
        let (brought, host) = self.nic.brought()?;
        brought.command(host, &CmdqDestroyAh { ah_cid, ..CmdqDestroyAh::ZERO })?;
        self.nic.destroyed(object);
        Ok(())
    }
}
