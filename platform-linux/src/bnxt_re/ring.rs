//! Memory of a ring.

use std::sync::Arc;

use crate::error::Result;
use crate::objects::{Buffer, Context};
use crate::uverbs::RingPages;

/// Memory of a ring: its own, or given by the application.
#[derive(Clone, Debug)]
pub enum Ring {
    /// Its own.
    Own(Arc<RingPages>),
    /// The application's.
    Application(Buffer),
}

impl Ring {
    /// The application's `buffer` if there is one, or else fresh memory; of at least `bytes` bytes.
    pub(super) fn new(
        context: &Context,
        object: &'static str,
        buffer: Option<&Buffer>,
        bytes: u32,
    ) -> Result<Self> {
        if let Some(buffer) = buffer {
            buffer.check_room(object, bytes.into())?;
            return Ok(Self::Application(buffer.clone()));
        }
        Ok(Self::Own(RingPages::new(context.file().kernel(), bytes as usize)?))
    }

    /// Its address for the driver's part of a request: 0 for the application's, which goes by an attribute.
    pub(super) fn va(&self) -> u64 {
        match self {
            Self::Own(pages) => pages.address(),
            Self::Application(_) => 0,
        }
    }

    /// Its address in this process; 0 if it has none, as memory of a GPU.
    pub fn address(&self) -> u64 {
        match self {
            Self::Own(pages) | Self::Application(Buffer::Ring(pages)) => pages.address(),
            Self::Application(Buffer::Memory { pages, offset, .. }) => pages.address() + offset,
            Self::Application(Buffer::DmaBuf { .. }) => 0,
        }
    }

    /// The memory, if a queue of this process can be on it.
    pub fn pages(&self) -> Option<&Arc<RingPages>> {
        match self {
            Self::Own(pages) | Self::Application(Buffer::Ring(pages)) => Some(pages),
            Self::Application(_) => None,
        }
    }

    /// The application's buffer.
    pub(super) fn buffer(&self) -> Option<Buffer> {
        match self {
            Self::Own(_) => None,
            Self::Application(buffer) => Some(buffer.clone()),
        }
    }
}
