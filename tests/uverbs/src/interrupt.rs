//! What the drivers do when a NIC interrupts, and what happens when a process reads of it.

use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use directverbs::bnxt_re::doorbell::{DbIndex, DbType, DbWord, Epoch, Toggle, Xid};
use directverbs_softnic::device::Notification;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::IntoBytes;

use crate::Errno;
use crate::abi::AsyncEvent;
use crate::device::Device;
use crate::events::Record;
use crate::machine::State;
use crate::objects::Object;

/// `enum ib_event_type`.
mod event {
    pub const CQ_ERR: u32 = 0;
    pub const QP_FATAL: u32 = 1;
    pub const QP_ACCESS_ERR: u32 = 3;
    pub const SQ_DRAINED: u32 = 5;
    pub const SRQ_LIMIT_REACHED: u32 = 15;
}

/// Hands on what NICs have to tell; `true` if there was anything.
pub fn serve(state: &mut State) -> bool {
    let mut any = false;
    for number in 0..state.devices.len() {
        while let Some(notification) = take(state, number) {
            any = true;
            tell(state, number, notification);
        }
    }
    any
}

fn take(state: &State, number: usize) -> Option<Notification> {
    state.devices.get(number)?.nic.lock().take_notification()
}

/// An object that a notification is about: its handle, and the file it is reached through.
fn find(state: &State, number: usize, is: impl Fn(&Object) -> bool) -> Option<(RawFd, u32)> {
    let files = state.files.iter().filter(|(_, file)| file.device == number);
    let mut all = files.filter_map(|(fd, file)| Some((*fd, file.context.as_ref()?)));
    all.find_map(|(fd, context)| {
        let found = context.objects.iter().find(|(_, object)| is(object));
        found.map(|(handle, _)| (fd, handle))
    })
}

fn tell(state: &mut State, number: usize, notification: Notification) {
    let found = match notification {
        Notification::Cq(id) | Notification::CqError(id) => find(state, number, |object| match object {
            Object::Cq(cq) => cq.ids.contains(&Some(id)),
            _ => false,
        }),
        Notification::SrqLimit(id) => {
            find(state, number, |object| matches!(object, Object::Srq(srq) if srq.id == id))
        }
        Notification::QpError(id) | Notification::QpAccess(id) | Notification::SqDrained(id) => {
            find(state, number, |object| matches!(object, Object::Qp(qp) if qp.id == id))
        }
    };
    // It may have been destroyed since.
    let Some(about) = found else { return };
    match notification {
        Notification::Cq(_) => complete(state, number, about),
        Notification::CqError(_) => raise(state, about, event::CQ_ERR),
        Notification::SrqLimit(_) => {
            rearm(state, number, about);
            raise(state, about, event::SRQ_LIMIT_REACHED);
        }
        Notification::QpError(_) => raise(state, about, event::QP_FATAL),
        Notification::QpAccess(_) => raise(state, about, event::QP_ACCESS_ERR),
        Notification::SqDrained(_) => raise(state, about, event::SQ_DRAINED),
    }
}

fn complete(state: &mut State, number: usize, about: (RawFd, u32)) {
    rearm(state, number, about);
    let context = state.files.get(&about.0).and_then(|file| file.context.as_ref());
    let Some(Ok(cq)) = context.map(|context| context.objects.cq(about.1)) else { return };
    if let Some(channel) = cq.channel {
        let bytes = cq.events.user_handle.as_bytes().to_vec();
        state.events.push(channel, Record { about, bytes });
    }
}

/// bnxt_re: publishes the toggle for the next arm, and lets the queue be armed again.
fn rearm(state: &mut State, number: usize, about: (RawFd, u32)) {
    let State { devices, files, .. } = state;
    let Some(device) = devices.get(number) else { return };
    let Some(context) = files.get(&about.0).and_then(|file| file.context.as_ref()) else { return };
    let found = context.objects.iter().find(|(handle, _)| *handle == about.1);
    let (kind, xid, toggle, page) = match found {
        Some((_, Object::Cq(cq))) => {
            let Some(id) = cq.ids[0] else { return };
            (DbType::CQ_ARMENA, Xid::cq(id), toggle(device, |chip| chip.cq_toggle(id)), &cq.toggle)
        }
        Some((_, Object::Srq(srq))) => (
            DbType::SRQ_ARMENA,
            Xid::srq(srq.id),
            toggle(device, |chip| chip.srq_toggle(srq.id)),
            &srq.toggle,
        ),
        _ => return,
    };
    let (Ok(xid), Some(toggle)) = (xid, toggle) else { return };
    if let Some(page) = page {
        page.write(0, u32::from(toggle).as_bytes());
    }
    let word = DbWord::ring(kind, xid, DbIndex::ZERO, Epoch(false), Toggle::truncated(toggle.into()));
    device.nic.lock().doorbell(0, 0, word.to_u64());
}

fn toggle(device: &Device, of: impl FnOnce(&crate::chip::Chip) -> Option<u8>) -> Option<u8> {
    of(device.nic.lock().front_end())
}

fn raise(state: &mut State, about: (RawFd, u32), event_type: u32) {
    let context = state.files.get_mut(&about.0).and_then(|file| file.context.as_mut());
    let Some(events) = context.and_then(|context| context.objects.events(about.1)) else { return };
    if let Some(file) = events.file {
        let event = AsyncEvent { element: events.user_handle, event_type, reserved: 0 };
        state.events.push(file, Record { about, bytes: event.as_bytes().to_vec() });
    }
}

/// A record was read: its object's destruction will tell so.
pub fn reported(state: &mut State, record: &Record) {
    let context = state.files.get_mut(&record.about.0).and_then(|file| file.context.as_mut());
    let Some(objects) = context.map(|context| &mut context.objects) else { return };
    let completion = record.bytes.len() == 8;
    if completion && let Ok(cq) = objects.cq_mut(record.about.1) {
        cq.completions += 1;
    } else if let Some(events) = objects.events(record.about.1) {
        events.reported += 1;
    }
}

/// Waits until a descriptor can be read; `false` if the time is over.
///
/// # Errors
/// As `poll(2)`.
pub fn wait_readable(fd: RawFd, timeout: Option<Duration>) -> Result<bool, Errno> {
    let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
    // SAFETY: a descriptor that was closed makes the call fail.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(poll(&mut [PollFd::from_borrowed_fd(file, PollFlags::IN)], timeout.as_ref())? != 0)
}

/// Makes reading a descriptor wait, or not.
///
/// # Errors
/// As `fcntl(2)`.
pub fn set_nonblocking(fd: RawFd, nonblocking: bool) -> Result<(), Errno> {
    // SAFETY: as in `wait_readable`.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut flags = rustix::fs::fcntl_getfl(file)?;
    flags.set(rustix::fs::OFlags::NONBLOCK, nonblocking);
    rustix::fs::fcntl_setfl(file, flags)
}
