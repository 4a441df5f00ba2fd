//! A handle that is destroyed once.

use std::sync::Arc;

use zerocopy::little_endian::U32;

use super::context::Shared;
use crate::error::{Error, Result};
use crate::uverbs::Call;
use crate::uverbs::abi::attribute::{Attribute, Method};
use crate::uverbs::abi::methods::destroy;

/// The kernel's handle of an object, and the context that it belongs to.
#[derive(Debug)]
pub(crate) struct Handle {
    context: Arc<Shared>,
    number: u32,
    destroy: &'static Method,
    /// It is to be destroyed.
    alive: bool,
}

impl Handle {
    /// Owns `number`, which `destroy` destroys.
    pub fn new(context: &Arc<Shared>, number: u32, destroy: &'static Method) -> Self {
        Self { context: Arc::clone(context), number, destroy, alive: true }
    }

    /// Names `number`, which somebody else has created and will destroy.
    pub fn borrowed(context: &Arc<Shared>, number: u32, destroy: &'static Method) -> Self {
        Self { context: Arc::clone(context), number, destroy, alive: false }
    }

    /// The number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The context.
    pub fn context(&self) -> &Arc<Shared> {
        &self.context
    }

    /// Destroys the object. A second call does nothing.
    pub fn destroy(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.alive) {
            return Ok(());
        }
        let (mut cq_events, mut events) = ([U32::ZERO; 2], U32::ZERO);
        let mut call = Call::new(self.destroy);
        // A driver's objects have their handle under a number of its own.
        let handle = self.destroy.attributes.first().map_or(destroy::HANDLE.id(), |first| first.id);
        call.handle(Attribute::new(handle, destroy::HANDLE.name()), self.number);
        // How many events were reported is of no use: they name objects by numbers that are not used again.
        if self.destroy == &destroy::CQ {
            call.output(destroy::CQ_RESP, &mut cq_events);
        } else if self.destroy.attributes.len() > 1 {
            call.output(destroy::RESP, &mut events);
        }
        self.context.file().finish(call)
    }

    /// Refuses an object of another context.
    pub fn check_context(&self, other: &Self, object: &'static str) -> Result<()> {
        if Arc::ptr_eq(&self.context, &other.context) {
            return Ok(());
        }
        Err(Error::OtherContext { object, other: other.destroy.object })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody is there to be told; closing the context takes what is left.
        let _ = self.destroy();
    }
}

/// Destroys what only `owner` holds.
pub(crate) fn destroy_last<T>(
    owner: Arc<T>,
    object: &'static str,
    handle: impl FnOnce(&mut T) -> &mut Handle,
) -> Result<()> {
    match Arc::try_unwrap(owner) {
        Ok(mut last) => handle(&mut last).destroy(),
        Err(shared) => Err(Error::InUse { object, users: Arc::strong_count(&shared) - 1 }),
    }
}

/// Refuses what is not in `min..=max`, before the kernel is asked.
pub(crate) fn within(
    object: &'static str,
    attribute: &'static str,
    given: u64,
    min: u64,
    max: u64,
) -> Result<()> {
    if (min..=max).contains(&given) {
        return Ok(());
    }
    Err(Error::Limit { object, attribute, given, min, max })
}
