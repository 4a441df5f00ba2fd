//! Completion channels.

use std::sync::Arc;
use std::time::Duration;

use super::context::{Context, Shared};
use super::event::UserHandle;
use crate::error::{Error, Result};
use crate::uverbs::abi::command::{CREATE_COMP_CHANNEL, ChannelReply, ReplyOnly};
use crate::uverbs::abi::packet::CompletionEventRecord;
use crate::uverbs::{EventFile, Fd, Uhw};

const OBJECT: &str = "completion channel";

/// Where completion events go. Clones share it; completion queues that were created with it hold it.
#[derive(Clone, Debug)]
pub struct CompletionChannel {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    events: EventFile,
    context: Arc<Shared>,
}

impl CompletionChannel {
    /// Creates one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn create(context: &Context) -> Result<Self> {
        let file = context.shared.file();
        let mut reply = ChannelReply::ZERO;
        file.ask(&CREATE_COMP_CHANNEL, &ReplyOnly::ZERO, &mut reply, Uhw::none())?;
        let fd = i32::try_from(reply.fd.get()).ok().and_then(Fd::new).ok_or(Error::Reply {
            object: OBJECT,
            method: CREATE_COMP_CHANNEL.name,
            what: "a file descriptor out of range",
        })?;
        let events = EventFile::new(Arc::clone(file.kernel()), fd, OBJECT)?;
        Ok(Self { inner: Arc::new(Inner { events, context: Arc::clone(&context.shared) }) })
    }

    /// Descriptor that can be read when there is an event: for epoll.
    pub fn fd(&self) -> Fd {
        self.inner.events.fd()
    }

    /// The completion queue of the next event, waiting at most for `timeout`; none if the time is over. A queue raises one
    /// event each time it was armed: poll it, arm it, poll it once more.
    ///
    /// # Errors
    /// The device is gone.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<UserHandle>> {
        let record = self.inner.events.read::<CompletionEventRecord>(OBJECT, timeout)?;
        Ok(record.map(|r| UserHandle(r.cq_handle.get())))
    }

    pub(super) fn check_context(&self, context: &Context) -> Result<()> {
        if Arc::ptr_eq(&self.inner.context, &context.shared) {
            return Ok(());
        }
        Err(Error::OtherContext { object: "completion queue", other: OBJECT })
    }
}
