//! Shared receive queues.

use std::ffi::c_int;
use std::rc::Rc;

use directverbs::verbs::SrqInit;

use super::context::destroyed;
use super::error::{PostError, Result, check, last};
use super::pd::Pd;
use super::requests::RecvList;
use super::sys::{ibv_srq, ibv_srq_attr, ibv_srq_init_attr};

#[derive(Debug)]
struct Owned {
    pd: Pd,
    raw: *mut ibv_srq,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: no queue pair has it any more.
        destroyed("ibv_destroy_srq", unsafe { (self.pd.context().verbs().ibv_destroy_srq)(self.raw) });
    }
}

/// A shared receive queue.
#[derive(Clone, Debug)]
pub struct Srq(Rc<Owned>);

/// Bit of the mask of `ibv_modify_srq`.
const LIMIT: c_int = 1 << 1;

impl Srq {
    /// Creates one, with a limit.
    ///
    /// # Errors
    /// The provider has none, or failed.
    pub fn new(pd: &Pd, init: &SrqInit, limit: u32) -> Result<Self> {
        let attr = ibv_srq_attr { max_wr: init.max_wr, max_sge: init.max_sge, srq_limit: limit };
        let mut attributes = ibv_srq_init_attr { srq_context: std::ptr::null_mut(), attr };
        // SAFETY: the domain is there.
        let raw = unsafe { (pd.context().verbs().ibv_create_srq)(pd.raw(), &mut attributes) };
        if raw.is_null() {
            return Err(last("ibv_create_srq"));
        }
        Ok(Self(Rc::new(Owned { pd: pd.clone(), raw })))
    }

    /// Handle, as the device knows it.
    pub fn handle(&self) -> u32 {
        // SAFETY: it is there.
        unsafe { (*self.raw()).handle }
    }

    /// Arms the limit event.
    ///
    /// # Errors
    /// The provider failed.
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        let mut attributes = ibv_srq_attr { srq_limit: limit, ..ibv_srq_attr::default() };
        let verbs = self.0.pd.context().verbs();
        // SAFETY: it is there.
        check("ibv_modify_srq", unsafe { (verbs.ibv_modify_srq)(self.raw(), &mut attributes, LIMIT) })
    }

    /// Posts receive requests.
    ///
    /// # Errors
    /// What the provider returned, and which request it refused.
    pub fn post_recv(&self, list: &mut RecvList) -> std::result::Result<(), PostError> {
        // SAFETY: the context is open.
        let post = unsafe { (*self.0.pd.context().raw()).ops.post_srq_recv };
        let post = post.ok_or(PostError { code: libc::EOPNOTSUPP, index: 0 })?;
        // SAFETY: the list is linked and lives on.
        list.post(|first, bad| unsafe { post(self.raw(), first, bad) })
    }

    pub(super) fn raw(&self) -> *mut ibv_srq {
        self.0.raw
    }
}
