//! Memory that an application gives for a queue.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::uverbs::abi::packet::{BUFFER_DMABUF, BUFFER_VA, BufferDescriptor};
use crate::uverbs::{Pages, RingPages};

/// Memory for a ring. A queue holds it until it is destroyed.
#[derive(Clone, Debug)]
pub enum Buffer {
    /// Memory made for a ring, all of it: this process can post to and poll the queue.
    Ring(Arc<RingPages>),
    /// Part of this process's memory, for a queue that another party posts to or polls.
    Memory {
        /// The memory.
        pages: Arc<Pages>,
        /// Where the ring begins: a multiple of the page size.
        offset: u64,
        /// Bytes of the ring.
        length: u64,
    },
    /// Part of a dma-buf, such as memory of a GPU.
    DmaBuf {
        /// The dma-buf.
        file: Arc<OwnedFd>,
        /// Bytes of all of it.
        size: u64,
        /// Where the ring begins: a multiple of the page size.
        offset: u64,
        /// Bytes of the ring.
        length: u64,
    },
}

impl Buffer {
    /// Refuses a buffer that is too short for a ring.
    ///
    /// # Errors
    /// It is.
    pub(crate) fn check_room(&self, object: &'static str, needed: u64) -> Result<()> {
        super::handle::within(object, "buffer length", self.length(), needed, u64::MAX)
    }

    /// Bytes of the ring.
    pub fn length(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.len() as u64,
            Self::Memory { length, .. } | Self::DmaBuf { length, .. } => *length,
        }
    }

    /// What the kernel is told of it, after checking that it is whole pages' begin and lies in its memory.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn descriptor(&self, object: &'static str, page: usize) -> Result<BufferDescriptor> {
        let (size, offset, length) = match self {
            Self::Ring(ring) => (ring.len() as u64, 0, ring.len() as u64),
            Self::Memory { pages, offset, length } => (pages.len() as u64, *offset, *length),
            Self::DmaBuf { size, offset, length, .. } => (*size, *offset, *length),
        };
        let fault = |attribute, what| Err(Error::Value { object, attribute, what });
        if offset & (page as u64 - 1) != 0 {
            return fault("buffer offset", "is not a multiple of the page size");
        }
        if length == 0 {
            return fault("buffer length", "is zero");
        }
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return fault("buffer", "ends behind the memory that it is part of");
        }
        let common = BufferDescriptor { length: length.into(), ..BufferDescriptor::ZERO };
        let at =
            |address: u64| BufferDescriptor { buffer_type: BUFFER_VA.into(), addr: address.into(), ..common };
        Ok(match self {
            Self::Ring(ring) => at(ring.address()),
            Self::Memory { pages, .. } => at(pages.address() + offset),
            Self::DmaBuf { file, .. } => BufferDescriptor {
                buffer_type: BUFFER_DMABUF.into(),
                fd: file.as_raw_fd().cast_unsigned().into(),
                addr: offset.into(),
                ..common
            },
        })
    }
}
