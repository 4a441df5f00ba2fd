//! Memory windows.

use directverbs::verbs::{MwType, RKey};

use super::handle::Handle;
use super::protection_domain::ProtectionDomain;
use crate::error::Result;
use crate::uverbs::Uhw;
use crate::uverbs::abi::command::{ALLOC_MW, AllocMw, AllocMwReply};
use crate::uverbs::abi::methods::destroy;

/// A memory window. It is bound through a send queue, which changes its key.
#[derive(Debug)]
pub struct MemoryWindow {
    handle: Handle,
    _pd: ProtectionDomain,
    rkey: RKey,
}

impl MemoryWindow {
    /// Creates one, not bound to anything.
    ///
    /// # Errors
    /// The kernel refuses: the driver may have no windows.
    pub fn alloc(pd: &ProtectionDomain, mw_type: MwType) -> Result<Self> {
        let core = AllocMw {
            pd_handle: pd.handle().into(),
            mw_type: match mw_type {
                MwType::Type1 => 1,
                MwType::Type2 => 2,
            },
            ..AllocMw::ZERO
        };
        let mut reply = AllocMwReply::ZERO;
        let shared = pd.handle.context();
        shared.file().ask(&ALLOC_MW, &core, &mut reply, Uhw::none())?;
        let handle = Handle::new(shared, reply.mw_handle.get(), &destroy::MW);
        Ok(Self { handle, _pd: pd.clone(), rkey: RKey::truncated(reply.rkey.get()) })
    }

    /// The key that it was created with.
    pub fn rkey(&self) -> RKey {
        self.rkey
    }

    /// Destroys it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn destroy(mut self) -> Result<()> {
        self.handle.destroy()
    }
}
