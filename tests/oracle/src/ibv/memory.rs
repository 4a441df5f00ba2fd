//! Memory regions and windows, and completion channels.

use std::rc::Rc;

use directverbs::verbs::{AccessFlags, LKey, MwType, RKey};

use super::context::{Context, destroyed};
use super::error::{Error, Result, last};
use super::pd::Pd;
use super::sys::{ibv_comp_channel, ibv_mr, ibv_mw};

/// A memory region. Nothing reads or writes the memory: the device is made up.
#[derive(Debug)]
pub struct Mr {
    pd: Pd,
    raw: *mut ibv_mr,
}

impl Mr {
    /// Registers bytes.
    ///
    /// # Errors
    /// The provider failed.
    pub fn new(pd: &Pd, memory: &mut [u8], access: AccessFlags) -> Result<Self> {
        let (at, bytes) = (memory.as_mut_ptr().cast(), memory.len());
        // SAFETY: the domain is there; the memory is not touched.
        let raw = unsafe { (pd.context().verbs().ibv_reg_mr)(pd.raw(), at, bytes, access.bits() as i32) };
        if raw.is_null() { Err(last("ibv_reg_mr")) } else { Ok(Self { pd: pd.clone(), raw }) }
    }

    /// Local key.
    pub fn lkey(&self) -> LKey {
        // SAFETY: it is there.
        LKey::truncated(unsafe { (*self.raw).lkey })
    }

    /// Remote key.
    pub fn rkey(&self) -> RKey {
        // SAFETY: it is there.
        RKey::truncated(unsafe { (*self.raw).rkey })
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // SAFETY: nothing uses it.
        destroyed("ibv_dereg_mr", unsafe { (self.pd.context().verbs().ibv_dereg_mr)(self.raw) });
    }
}

/// A memory window.
#[derive(Debug)]
pub struct Mw {
    pd: Pd,
    raw: *mut ibv_mw,
}

impl Mw {
    /// Allocates one.
    ///
    /// # Errors
    /// The provider has none, or failed.
    pub fn new(pd: &Pd, kind: MwType) -> Result<Self> {
        // SAFETY: the context is open.
        let alloc = unsafe { (*pd.context().raw()).ops.alloc_mw }.ok_or(Error::Missing("ibv_alloc_mw"))?;
        let kind = match kind {
            MwType::Type1 => 1,
            MwType::Type2 => 2,
        };
        // SAFETY: the domain is there.
        let raw = unsafe { alloc(pd.raw(), kind) };
        if raw.is_null() { Err(last("ibv_alloc_mw")) } else { Ok(Self { pd: pd.clone(), raw }) }
    }

    /// Key as it is now.
    pub fn rkey(&self) -> RKey {
        // SAFETY: it is there.
        RKey::truncated(unsafe { (*self.raw).rkey })
    }
}

impl Drop for Mw {
    fn drop(&mut self) {
        // SAFETY: the context is open.
        if let Some(dealloc) = unsafe { (*self.pd.context().raw()).ops.dealloc_mw } {
            // SAFETY: nothing uses it.
            destroyed("ibv_dealloc_mw", unsafe { dealloc(self.raw) });
        }
    }
}

#[derive(Debug)]
struct Owned {
    context: Context,
    raw: *mut ibv_comp_channel,
}

impl Drop for Owned {
    fn drop(&mut self) {
        let verbs = self.context.verbs();
        // SAFETY: no completion queue has it any more.
        destroyed("ibv_destroy_comp_channel", unsafe { (verbs.ibv_destroy_comp_channel)(self.raw) });
    }
}

/// A completion channel.
#[derive(Clone, Debug)]
pub struct Channel(Rc<Owned>);

impl Channel {
    /// Creates one.
    ///
    /// # Errors
    /// The library failed.
    pub fn new(context: &Context) -> Result<Self> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.verbs().ibv_create_comp_channel)(context.raw()) };
        if raw.is_null() {
            return Err(last("ibv_create_comp_channel"));
        }
        Ok(Self(Rc::new(Owned { context: context.clone(), raw })))
    }

    pub(super) fn raw(&self) -> *mut ibv_comp_channel {
        self.0.raw
    }
}
