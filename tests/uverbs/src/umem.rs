//! Memory of the process that a queue lies in.

use crate::Errno;
use crate::abi::BufferDesc;
use crate::pages::PAGE;
use crate::session::Session;
use crate::user::Pin;

/// A dma-buf.
const DMABUF: u32 = 0;
/// Memory of the process.
const VA: u32 = 1;

/// A buffer that an attribute names.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Where it is.
    pub desc: BufferDesc,
}

impl Buffer {
    /// Checks a descriptor's constant fields.
    ///
    /// # Errors
    /// EINVAL: flags, or a kind that there is not.
    pub fn new(desc: BufferDesc) -> Result<Self, Errno> {
        if desc.flags != 0 || !matches!(desc.kind, DMABUF | VA) {
            return Err(Errno::INVAL);
        }
        Ok(Self { desc })
    }

    /// Memory of the process.
    pub fn va(addr: u64, length: u64) -> Self {
        Self { desc: BufferDesc { kind: VA, addr, length, ..BufferDesc::default() } }
    }

    /// A part of a dma-buf.
    pub fn dmabuf(fd: i32, addr: u64, length: u64) -> Self {
        Self { desc: BufferDesc { kind: DMABUF, fd, addr, length, ..BufferDesc::default() } }
    }

    /// Pins its first `bytes` bytes.
    ///
    /// # Errors
    /// EINVAL: the descriptor is no dma-buf, or they end behind it; or none, or they wrap. EBADF: there is no such descriptor.
    /// EFAULT, ENOMEM: the memory is not there, not writable, or more than may be pinned.
    pub fn pin(&self, session: &Session<'_>, bytes: u64, writable: bool) -> Result<Pin, Errno> {
        let (memory, desc) = (&session.device.memory, &self.desc);
        if desc.kind == VA {
            memory.pin(desc.addr, bytes, writable)
        } else {
            memory.pin_dmabuf(desc.fd, desc.addr, bytes)
        }
    }
}

/// Pinned memory of a queue.
#[derive(Debug)]
pub struct Umem {
    /// The memory.
    pub pin: Pin,
}

/// Pins `bytes` of the buffer, or without one of the memory at `va`.
///
/// # Errors
/// EINVAL: the buffer is too short, ends behind its dma-buf, or does not begin on a page; or the descriptor is no dma-buf.
/// EBADF: there is no such descriptor. EFAULT: the memory is not there.
pub fn get(session: &Session<'_>, buffer: Option<&Buffer>, va: u64, bytes: u64) -> Result<Umem, Errno> {
    let own = Buffer::va(va, bytes);
    let buffer = buffer.unwrap_or(&own);
    // The driver cuts it into pages of 4 KiB.
    if buffer.desc.length < bytes || !buffer.desc.addr.is_multiple_of(PAGE as u64) {
        return Err(Errno::INVAL);
    }
    buffer.pin(session, bytes, true).map(|pin| Umem { pin })
}
