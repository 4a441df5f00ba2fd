//! The device as workloads know it.

use directverbs::bnxt_re::rcfw::ah::{CmdqCreateAh, CmdqDestroyAh};
use directverbs::bnxt_re::rcfw::function::caps_ext2;
use directverbs::bnxt_re::rcfw::mr::{CmdqAllocateMrw, CmdqDeallocateKey};
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
use crate::region::Region;

/// Bits of a key that say which it is; the rest changes with each bind.
const KEY_INDEX: u32 = !0xff;

fn forget<H: Host>(qp: &QueuePair<H>, cqs: &mut [&mut CompletionQueue<H>]) {
    for cq in cqs {
        cq.queue.cq.forget(qp.key());
    }
}

impl<H: Host> Device<H> {
    /// What a queue pair allows its peer, where a transition must tell it again.
    fn access(&mut self, qp: &QueuePair<H>, attributes: &QpAttributes) -> Result<AccessFlags, Error> {
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

impl<H: Host> verbs::Device for Device<H> {
    type Error = Error;
    type ProtectionDomain = ProtectionDomain;
    type MemoryRegion = Region<H::Dma>;
    type CompletionQueue = CompletionQueue<H>;
    type QueuePair = QueuePair<H>;
    type SharedReceiveQueue = SharedReceiveQueue<H>;

    fn attributes(&self) -> DeviceAttributes {
        let outstanding = self.told.outstanding;
        self.caps().attributes(outstanding.initiator.min(outstanding.responder))
    }

    fn port(&self) -> PortAttributes {
        PortAttributes {
            active: self.told.link,
            mtu: self.mtu,
            mac: self.mac(),
            gid: self.gids().next().unwrap_or_default(),
            gid_index: 0,
        }
    }

    fn progress(&mut self) -> bool {
        // The device works by itself.
        self.host.relax();
        true
    }

    fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    fn alloc_pd(&mut self) -> Result<ProtectionDomain, Error> {
        Ok(self.take_pd())
    }

    fn dealloc_pd(&mut self, _: ProtectionDomain) -> Result<(), Error> {
        // It is a number, and the device keeps nothing of it.
        Ok(())
    }

    fn alloc_mr(
        &mut self,
        pd: &ProtectionDomain,
        len: usize,
        access: AccessFlags,
    ) -> Result<Region<H::Dma>, Error> {
        self.new_mr(pd.id, len, access)
    }

    fn dealloc_mr(&mut self, mr: Region<H::Dma>) -> Result<(), Error> {
        let (brought, host) = self.brought()?;
        brought.command(host, &CmdqDeallocateKey::region(mr.lkey().get()))?;
        mr.release();
        Ok(())
    }

    fn alloc_mw(&mut self, pd: &ProtectionDomain, mw_type: MwType) -> Result<RKey, Error> {
        if self.windows.is_full() {
            return Err(Error::Full("memory window"));
        }
        let (brought, host) = self.brought()?;
        let key = brought.command(host, &CmdqAllocateMrw::window(pd.id, mw_type))?.xid.get();
        let pushed = self.windows.push((key & KEY_INDEX, mw_type));
        debug_assert!(pushed.is_ok(), "there was room");
        Ok(RKey::truncated(key))
    }

    fn dealloc_mw(&mut self, mw: RKey) -> Result<(), Error> {
        let key = mw.get();
        let known = self.windows.iter().position(|(index, _)| *index == key & KEY_INDEX);
        let mw_type =
            known.and_then(|at| self.windows.get(at)).map_or(MwType::Type2, |(_, mw_type)| *mw_type);
        let (brought, host) = self.brought()?;
        brought.command(host, &CmdqDeallocateKey::window(key, mw_type))?;
        if let Some(at) = known {
            self.windows.swap_remove(at);
        }
        Ok(())
    }

    fn create_cq(&mut self, cqe: u32) -> Result<CompletionQueue<H>, Error> {
        self.new_cq(cqe)
    }

    fn destroy_cq(&mut self, cq: CompletionQueue<H>) -> Result<(), Error> {
        self.drop_cq(cq)
    }

    fn create_srq(&mut self, pd: &ProtectionDomain, init: SrqInit) -> Result<SharedReceiveQueue<H>, Error> {
        self.new_srq(pd.id, &init)
    }

    fn destroy_srq(&mut self, srq: SharedReceiveQueue<H>) -> Result<(), Error> {
        self.drop_srq(srq)
    }

    fn create_qp(
        &mut self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, CompletionQueue<H>, SharedReceiveQueue<H>>,
    ) -> Result<QueuePair<H>, Error> {
        self.new_qp(pd, init)
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair<H>,
        cqs: &mut [&mut CompletionQueue<H>],
        attributes: &QpAttributes,
    ) -> Result<(), Error> {
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
        let (brought, host) = self.brought()?;
        brought.command(host, &command)?;
        if to == QpState::Reset {
            forget(qp, cqs);
        }
        qp.queue.qp.modify(attributes)?;
        Ok(())
    }

    fn destroy_qp(&mut self, qp: QueuePair<H>, cqs: &mut [&mut CompletionQueue<H>]) -> Result<(), Error> {
        forget(&qp, cqs);
        self.drop_qp(qp)
    }

    fn create_ah(&mut self, pd: &ProtectionDomain, to: &AddressVector) -> Result<AhId, Error> {
        let command = CmdqCreateAh::new(pd.id, to, self.source(to.sgid_index)?);
        let (brought, host) = self.brought()?;
        Ok(AhId::truncated(brought.command(host, &command)?.xid.get()))
    }

    fn destroy_ah(&mut self, ah: AhId) -> Result<(), Error> {
        let ah_cid = le::U32::new(ah.get());
        let (brought, host) = self.brought()?;
        brought.command(host, &CmdqDestroyAh { ah_cid, ..CmdqDestroyAh::ZERO })?;
        Ok(())
    }
}
