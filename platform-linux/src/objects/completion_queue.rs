//! Completion queues, as the kernel knows them. Polling is the driver's.

use std::sync::Arc;

use zerocopy::little_endian::{U32, U64};

use super::buffer::Buffer;
use super::channel::CompletionChannel;
use super::context::{Context, CoreSupport};
use super::event::UserHandle;
use super::handle::{Handle, destroy_last, within};
use crate::error::{Error, Result};
use crate::uverbs::abi::command::{REQ_NOTIFY_CQ, RESIZE_CQ, ReqNotifyCq, ResizeCq, ResizeCqReply};
use crate::uverbs::abi::methods::{create_cq, destroy};
use crate::uverbs::abi::packet::BufferDescriptor;
use crate::uverbs::{Call, Uhw};

const OBJECT: &str = "completion queue";

bitflags::bitflags! {
    /// What a completion queue shall do.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct CqFlags: u32 {
        /// Completions carry the device's clock.
        const TIMESTAMPS = 1;
        /// An overrun is no error.
        const IGNORE_OVERRUN = 1 << 1;
    }
}

/// What a completion queue is created from.
#[derive(Clone, Debug, Default)]
pub struct CqInit<'a> {
    /// Entries.
    pub cqe: u32,
    /// Where its events go.
    pub channel: Option<&'a CompletionChannel>,
    /// Interrupt.
    pub vector: u32,
    /// Flags.
    pub flags: CqFlags,
    /// Memory for its ring; none where the driver is told by its own part.
    pub buffer: Option<Buffer>,
}

/// A completion queue. Clones share it; queue pairs that complete here hold it.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: Handle,
    user_handle: UserHandle,
    cqe: u32,
    // Held until the kernel has let go of the queue.
    _channel: Option<CompletionChannel>,
    _buffer: Option<Buffer>,
}

impl CompletionQueue {
    /// Creates one. `uhw` is the driver's part.
    ///
    /// # Errors
    /// A number that the device does not have, a buffer that is not whole pages, a kernel that takes no buffers, or the
    /// kernel refuses.
    pub fn create(context: &Context, init: &CqInit<'_>, uhw: Uhw<'_>) -> Result<Self> {
        let shared = &context.shared;
        within(OBJECT, "cqe", init.cqe.into(), 1, shared.limits().max_cqe.get().into())?;
        let last = shared.vectors().saturating_sub(1);
        within(OBJECT, "completion vector", init.vector.into(), 0, last.into())?;
        if let Some(channel) = init.channel {
            channel.check_context(context)?;
        }
        let buffer = init.buffer.as_ref().map(|b| descriptor(context, OBJECT, b)).transpose()?;
        let user_handle = shared.user_handle();
        let mut granted = U32::ZERO;
        let mut call = Call::new(&create_cq::METHOD);
        call.new_handle(create_cq::HANDLE)
            .value(create_cq::CQE, init.cqe.into())
            .value(create_cq::USER_HANDLE, U64::new(user_handle.0))
            .value(create_cq::COMP_VECTOR, init.vector.into())
            .file(create_cq::EVENT_FD, shared.events())
            .advisory()
            .output(create_cq::RESP_CQE, &mut granted);
        if let Some(channel) = init.channel {
            call.file(create_cq::COMP_CHANNEL, channel.fd());
        }
        if !init.flags.is_empty() {
            call.value(create_cq::FLAGS, init.flags.bits().into());
        }
        if let Some(buffer) = &buffer {
            call.input(create_cq::BUF_UMEM, buffer);
        }
        uhw.add(&mut call);
        let number = shared.file().call(call)?.handle(create_cq::HANDLE)?;
        let inner = Inner {
            handle: Handle::new(shared, number, &destroy::CQ),
            user_handle,
            cqe: granted.get(),
            _channel: init.channel.cloned(),
            _buffer: init.buffer.clone(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes one that another library has created in `context`, by its handle. It is never destroyed here. Its events go
    /// where they went, and carry what the other library has chosen.
    pub fn import(context: &Context, handle: u32, cqe: u32) -> Self {
        let inner = Inner {
            handle: Handle::borrowed(&context.shared, handle, &destroy::CQ),
            user_handle: context.shared.user_handle(),
            cqe,
            _channel: None,
            _buffer: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The kernel's handle.
    pub fn handle(&self) -> u32 {
        self.inner.handle.number()
    }

    /// The number that its events carry.
    pub fn user_handle(&self) -> UserHandle {
        self.inner.user_handle
    }

    /// Entries that the kernel has granted at creation.
    pub fn cqe(&self) -> u32 {
        self.inner.cqe
    }

    /// Asks for another number of entries, and returns how many there are. The driver's part names the new ring.
    ///
    /// # Errors
    /// A number that the device does not have, or the kernel refuses.
    pub fn resize(&self, cqe: u32, uhw: Uhw<'_>) -> Result<u32> {
        let shared = self.inner.handle.context();
        within(OBJECT, "cqe", cqe.into(), 1, shared.limits().max_cqe.get().into())?;
        let core = ResizeCq { cq_handle: self.handle().into(), cqe: cqe.into(), ..ResizeCq::ZERO };
        let mut reply = ResizeCqReply::ZERO;
        shared.file().ask(&RESIZE_CQ, &core, &mut reply, uhw)?;
        Ok(reply.cqe.get())
    }

    /// Asks for an event through the kernel: for devices that have no doorbell for it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn request_notification(&self, solicited_only: bool) -> Result<()> {
        let core =
            ReqNotifyCq { cq_handle: self.handle().into(), solicited_only: u32::from(solicited_only).into() };
        self.inner.handle.context().file().ask(&REQ_NOTIFY_CQ, &core, &mut (), Uhw::none())
    }

    /// Destroys it.
    ///
    /// # Errors
    /// A queue pair completes here: then it is destroyed with the last of these. Or the kernel refuses.
    pub fn destroy(self) -> Result<()> {
        destroy_last(self.inner, OBJECT, |inner| &mut inner.handle)
    }

    pub(super) fn object(&self) -> &Handle {
        &self.inner.handle
    }
}

/// What the kernel is told of a buffer. One that may ignore what it does not know must not be asked: it would use other
/// memory, without a word.
pub(super) fn descriptor(
    context: &Context,
    object: &'static str,
    buffer: &Buffer,
) -> Result<BufferDescriptor> {
    if !context.core_support().contains(CoreSupport::ROBUST_UDATA) {
        return Err(Error::Unsupported {
            object,
            feature: "memory of the application for a queue",
            needs: "Linux 7.2 or newer",
        });
    }
    buffer.descriptor(object, context.file().kernel().page_size())
}
