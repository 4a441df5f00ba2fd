//! Protection domains.

use std::sync::Arc;

use super::context::Context;
use super::handle::{Handle, destroy_last};
use crate::error::Result;
use crate::uverbs::Uhw;
use crate::uverbs::abi::command::{ALLOC_PD, HandleReply, ReplyOnly};
use crate::uverbs::abi::methods::destroy;

/// A protection domain. Clones share it.
#[derive(Clone, Debug)]
pub struct ProtectionDomain {
    pub(super) handle: Arc<Handle>,
}

impl ProtectionDomain {
    /// Creates one. `uhw` is the driver's part.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn alloc(context: &Context, uhw: Uhw<'_>) -> Result<Self> {
        let mut reply = HandleReply::ZERO;
        context.shared.file().ask(&ALLOC_PD, &ReplyOnly::ZERO, &mut reply, uhw)?;
        Ok(Self { handle: Arc::new(Handle::new(&context.shared, reply.handle.get(), &destroy::PD)) })
    }

    /// Takes one that another library has created in `context`, by its handle. It is never destroyed here, and must not be
    /// destroyed there as long as something of this crate refers to it: the kernel refuses that.
    pub fn import(context: &Context, handle: u32) -> Self {
        Self { handle: Arc::new(Handle::borrowed(&context.shared, handle, &destroy::PD)) }
    }

    /// The context.
    pub fn context(&self) -> Context {
        Context { shared: Arc::clone(self.handle.context()) }
    }

    /// The kernel's handle.
    pub fn handle(&self) -> u32 {
        self.handle.number()
    }

    /// Destroys it.
    ///
    /// # Errors
    /// Something refers to it: then it is destroyed with the last of these. Or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        destroy_last(self.handle, "protection domain", |h| h)
    }
}
