//! Shared receive queues, as the kernel knows them. Posting is the driver's.

use std::sync::Arc;

use directverbs::verbs::SrqInit;
use zerocopy::little_endian::{U32, U64};

use super::event::UserHandle;
use super::handle::{Handle, destroy_last, within};
use super::protection_domain::ProtectionDomain;
use crate::error::{Error, Result};
use crate::uverbs::abi::command::{MODIFY_SRQ, ModifySrq, QUERY_SRQ, QuerySrq, QuerySrqReply};
use crate::uverbs::abi::methods::{create_srq, destroy};
use crate::uverbs::{Call, Uhw};

const OBJECT: &str = "shared receive queue";
/// Bit of MODIFY_SRQ: the limit.
const LIMIT: u32 = 1 << 1;

/// A shared receive queue. Clones share it; queue pairs that receive from it hold it.
#[derive(Clone, Debug)]
pub struct SharedReceiveQueue {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: Handle,
    user_handle: UserHandle,
    granted: SrqInit,
    _pd: ProtectionDomain,
}

impl SharedReceiveQueue {
    /// Creates one. `uhw` is the driver's part.
    ///
    /// # Errors
    /// A number that the device does not have, or the kernel refuses.
    pub fn create(pd: &ProtectionDomain, init: SrqInit, uhw: Uhw<'_>) -> Result<Self> {
        let shared = pd.handle.context();
        let limits = shared.limits();
        if limits.max_srq.get() == 0 {
            return Err(Error::Unsupported { object: OBJECT, feature: "any", needs: "another device" });
        }
        within(OBJECT, "max_wr", init.max_wr.into(), 1, limits.max_srq_wr.get().into())?;
        within(OBJECT, "max_sge", init.max_sge.into(), 1, limits.max_srq_sge.get().into())?;
        let user_handle = shared.user_handle();
        let (mut max_wr, mut max_sge) = (U32::ZERO, U32::ZERO);
        let mut call = Call::new(&create_srq::METHOD);
        call.new_handle(create_srq::HANDLE)
            .handle(create_srq::PD_HANDLE, pd.handle())
            .constant(create_srq::TYPE, 0)
            .value(create_srq::USER_HANDLE, U64::new(user_handle.0))
            .value(create_srq::MAX_WR, init.max_wr.into())
            .value(create_srq::MAX_SGE, init.max_sge.into())
            .value(create_srq::LIMIT, U32::ZERO)
            .file(create_srq::EVENT_FD, shared.events())
            .output(create_srq::RESP_MAX_WR, &mut max_wr)
            .output(create_srq::RESP_MAX_SGE, &mut max_sge);
        uhw.add(&mut call);
        let number = shared.file().call(call)?.handle(create_srq::HANDLE)?;
        let inner = Inner {
            handle: Handle::new(shared, number, &destroy::SRQ),
            user_handle,
            granted: SrqInit { max_wr: max_wr.get(), max_sge: max_sge.get() },
            _pd: pd.clone(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The kernel's handle.
    pub fn handle(&self) -> u32 {
        self.inner.handle.number()
    }

    /// The number that its events carry.
    pub fn user_handle(&self) -> UserHandle {
        self.inner.user_handle
    }

    /// What the kernel has granted.
    pub fn granted(&self) -> SrqInit {
        self.inner.granted
    }

    /// Asks for an event when fewer than `limit` requests are left.
    ///
    /// # Errors
    /// The limit is not below the depth, or the kernel refuses.
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        within(OBJECT, "limit", limit.into(), 0, self.inner.granted.max_wr.into())?;
        let core = ModifySrq {
            srq_handle: self.handle().into(),
            attr_mask: LIMIT.into(),
            srq_limit: limit.into(),
            ..ModifySrq::ZERO
        };
        self.inner.handle.context().file().ask(&MODIFY_SRQ, &core, &mut (), Uhw::none())
    }

    /// Depth, SGEs and limit as the device has them.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn query(&self) -> Result<(SrqInit, u32)> {
        let core = QuerySrq { srq_handle: self.handle().into(), ..QuerySrq::ZERO };
        let mut reply = QuerySrqReply::ZERO;
        self.inner.handle.context().file().ask(&QUERY_SRQ, &core, &mut reply, Uhw::none())?;
        let init = SrqInit { max_wr: reply.max_wr.get(), max_sge: reply.max_sge.get() };
        Ok((init, reply.srq_limit.get()))
    }

    /// Destroys it.
    ///
    /// # Errors
    /// A queue pair receives from it: then it is destroyed with the last of these. Or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        destroy_last(self.inner, OBJECT, |inner| &mut inner.handle)
    }

    pub(super) fn object(&self) -> &Handle {
        &self.inner.handle
    }
}
