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
/// EINVAL: the buffer is too short or does not begin on a page. EFAULT: it is not there. EBADF: the descriptor is no
/// dma-buf.
pub fn get(session: &Session<'_>, buffer: Option<&Buffer>, va: u64, bytes: u64) -> Result<Umem, Errno> {
    let start = match buffer {
        None => va,
        Some(Buffer { desc }) if desc.length < bytes => return Err(Errno::INVAL),
        Some(Buffer { desc }) if desc.kind == VA => desc.addr,
        // A made-up kernel has no dma-bufs, so no descriptor is one.
        Some(_) => return Err(Errno::INVAL),
    };
    // The driver cuts it into pages of 4 KiB.
    if !start.is_multiple_of(PAGE as u64) {
        return Err(Errno::INVAL);
    }
    session.device.memory.pin(start, bytes, true).map(|pin| Umem { pin })
}
