//! Protection domains.

use std::rc::Rc;

use super::context::{Context, destroyed};
use super::error::{Error, Result, check, last};
use super::sys::{ibv_parent_domain_init_attr, ibv_pd, ibv_td};

#[derive(Debug)]
struct Owned {
    context: Context,
    raw: *mut ibv_pd,
    thread: Option<*mut ibv_td>,
    /// Of a parent domain: what it is made of.
    _of: Option<Pd>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: all that was made of it is gone.
        destroyed("ibv_dealloc_pd", unsafe { (self.context.verbs().ibv_dealloc_pd)(self.raw) });
        if let (Some(thread), Some(dealloc)) = (self.thread, self.context.extended().dealloc_td) {
            // SAFETY: its parent domain is gone.
            destroyed("ibv_dealloc_td", unsafe { dealloc(thread) });
        }
    }
}

/// A protection domain.
#[derive(Clone, Debug)]
pub struct Pd(Rc<Owned>);

impl Pd {
    /// Allocates one.
    ///
    /// # Errors
    /// The provider failed.
    pub fn new(context: &Context) -> Result<Self> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.verbs().ibv_alloc_pd)(context.raw()) };
        if raw.is_null() {
            return Err(last("ibv_alloc_pd"));
        }
        Ok(Self(Rc::new(Owned { context: context.clone(), raw, thread: None, _of: None })))
    }

    /// A parent domain with a thread domain: queues made of it take no locks.
    ///
    /// # Errors
    /// The provider has none, or failed.
    pub fn lock_free(&self) -> Result<Self> {
        let context = &self.0.context;
        let extended = context.extended();
        let alloc_td = extended.alloc_td.ok_or(Error::Missing("ibv_alloc_td"))?;
        let alloc = extended.alloc_parent_domain.ok_or(Error::Missing("ibv_alloc_parent_domain"))?;
        let mut mask = 0;
        // SAFETY: the context is open.
        let td = unsafe { alloc_td(context.raw(), &mut mask) };
        if td.is_null() {
            return Err(last("ibv_alloc_td"));
        }
        let mut attributes = ibv_parent_domain_init_attr {
            pd: self.raw(),
            td,
            comp_mask: 0,
            alloc: 0,
            free: 0,
            pd_context: std::ptr::null_mut(),
        };
        // SAFETY: both domains are there.
        let raw = unsafe { alloc(context.raw(), &mut attributes) };
        if raw.is_null() {
            return Err(last("ibv_alloc_parent_domain"));
        }
        Ok(Self(Rc::new(Owned { context: context.clone(), raw, thread: Some(td), _of: Some(self.clone()) })))
    }

    /// Handle, as the device knows it.
    pub fn handle(&self) -> u32 {
        // SAFETY: it is there.
        unsafe { (*self.raw()).handle }
    }

    /// ionic: pipelines that queues made of it from now on may come to.
    ///
    /// # Errors
    /// Not ionic, or the mask is empty.
    pub fn set_udma_mask(&self, mask: u8) -> Result<()> {
        // SAFETY: it is there.
        check("ionic_dv_pd_set_udma_mask", unsafe {
            (self.context().ionic().ionic_dv_pd_set_udma_mask)(self.raw(), mask)
        })
    }

    /// ionic: pipelines that queues made of it may come to.
    pub fn udma_mask(&self) -> u8 {
        // SAFETY: it is there.
        unsafe { (self.context().ionic().ionic_dv_pd_get_udma_mask)(self.raw()) }
    }

    /// ionic: whether send queues made of it from now on may be in controller memory, with express doorbells, and fail
    /// rather than go without.
    ///
    /// # Errors
    /// Not ionic.
    pub fn set_send_cmb(&self, enable: bool, express: bool, require: bool) -> Result<()> {
        // SAFETY: it is there.
        check("ionic_dv_pd_set_sqcmb", unsafe {
            (self.context().ionic().ionic_dv_pd_set_sqcmb)(self.raw(), enable, express, require)
        })
    }

    /// ionic: the same for receive queues.
    ///
    /// # Errors
    /// Not ionic.
    pub fn set_recv_cmb(&self, enable: bool, express: bool, require: bool) -> Result<()> {
        // SAFETY: it is there.
        check("ionic_dv_pd_set_rqcmb", unsafe {
            (self.context().ionic().ionic_dv_pd_set_rqcmb)(self.raw(), enable, express, require)
        })
    }

    pub(super) fn raw(&self) -> *mut ibv_pd {
        self.0.raw
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Context {
        &self.0.context
    }
}
