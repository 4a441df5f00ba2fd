//! Calls that fail in turn, and what is left then: nothing.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use directverbs::verbs::{AccessFlags, QpId, QpType, SrqInit};
use directverbs_linux::error::Error;
use directverbs_linux::objects::{
    AddressHandle, CompletionChannel, Context, CqInit, MemoryRegion, ProtectionDomain,
};
use directverbs_linux::uverbs::abi::methods::object;
use directverbs_linux::uverbs::{Kernel, Pages, Protection, Uhw};
use rustix::io::Errno;

use super::altered::Altered;
use super::packets::{Packet, send};
use super::{context, device, pd, rxe};
use crate::check::Check;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(nothing_is_left_when_any_call_fails),
        Check::of(what_is_dropped_is_gone_in_the_kernel),
        Check::of(what_could_not_be_made_is_not_in_the_kernel),
    ]
}

/// Kinds of objects that the kernel counts, with their numbers.
const KINDS: [(&str, u16); 6] = [
    ("protection domains", object::PD),
    ("completion queues", object::CQ),
    ("queue pairs", object::QP),
    ("shared receive queues", object::SRQ),
    ("address handles", object::AH),
    ("memory regions", object::MR),
];

/// Objects of each kind that the kernel keeps for a context.
fn counts(context: &Context) -> [u32; 6] {
    KINDS.map(|(_, kind)| {
        let (mut total, mut handles) = (0u32, [0u32; 64]);
        // INFO_HANDLES: the kind, how many there are, their handles.
        let mut packet = Packet::new(object::DEVICE, 1);
        packet.attribute(0, 8, kind.into()).output(1, &mut total).output(2, &mut handles);
        send(context, &packet).expect("handles");
        total
    })
}

/// What a process holds: open files, mappings that no child has, pinned memory.
fn held() -> (usize, usize, String) {
    let files = fs::read_dir("/proc/self/fd").expect("proc").count();
    let maps = fs::read_to_string("/proc/self/smaps").expect("proc");
    let device = |line: &&str| line.starts_with("VmFlags:") && line.split(' ').any(|flag| flag == "dc");
    let status = fs::read_to_string("/proc/self/status").expect("proc");
    let pinned = status.lines().find(|line| line.starts_with("VmPin:")).expect("a line of pinned memory");
    (files, maps.lines().filter(device).count(), pinned.to_owned())
}

/// Makes one object of each kind, maps a ring, and lets go of all.
fn everything(kernel: &Arc<dyn Kernel>) -> Result<(), Error> {
    let context = Context::open(Arc::clone(kernel), &device(), Uhw::none())?;
    let pd = ProtectionDomain::alloc(&context, Uhw::none())?;
    let pages = Arc::new(Pages::new(kernel, 8192)?);
    let region = MemoryRegion::register(&pd, &pages, 0..5000, AccessFlags::LOCAL_WRITE)?;
    let channel = CompletionChannel::create(&context)?;
    let (cq, ring) = rxe::cq(&context, CqInit { channel: Some(&channel), ..CqInit::default() })?;
    let mapping = context.file().map(ring.offset, ring.size as usize, Protection::ReadWrite, "ring")?;
    let (srq, _) = rxe::srq(&pd, SrqInit { max_wr: 8, max_sge: 1 })?;
    let (mut qp, _) = rxe::qp(&pd, QpType::Rc, &cq, Some(&srq))?;
    let handle = AddressHandle::create(&pd, &rxe::to_itself(), 1, Uhw::none())?;
    for attributes in rxe::connection(QpId::truncated(7)) {
        qp.modify(&attributes, 1)?;
    }
    qp.query()?;
    cq.request_notification(false)?;
    channel.next(Some(Duration::ZERO))?;
    context.next_event(Some(Duration::ZERO))?;
    drop(mapping);
    qp.destroy()?;
    srq.destroy()?;
    cq.destroy()?;
    handle.destroy()?;
    region.destroy()?;
    pd.destroy()
}

fn nothing_is_left_when_any_call_fails() {
    let whole = Altered::failing(u32::MAX, Errno::IO);
    let kernel: Arc<dyn Kernel> = Arc::<Altered>::clone(&whole);
    everything(&kernel).expect("no call fails");
    drop(kernel);
    let calls = whole.calls();
    assert!(calls > 20, "{calls}");
    let before = held();
    for errno in [Errno::NOMEM, Errno::INVAL, Errno::IO] {
        for call in 0..calls {
            let kernel: Arc<dyn Kernel> = Altered::failing(call, errno);
            match everything(&kernel) {
                // Destroying an object of a device that is gone is no failure.
                Ok(()) => assert_eq!(errno, Errno::IO, "call {call} has failed, and nobody has been told"),
                Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
            }
            assert_eq!(held(), before, "call {call} has failed with {errno}");
        }
    }
}

fn what_is_dropped_is_gone_in_the_kernel() {
    let pd = pd();
    let context = pd.context();
    let pages = Arc::new(Pages::new(context.file().kernel(), 4096).expect("memory"));
    let region =
        MemoryRegion::register(&pd, &pages, 0..4096, AccessFlags::LOCAL_WRITE).expect("a memory region");
    let (cq, _) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let (srq, _) = rxe::srq(&pd, SrqInit { max_wr: 8, max_sge: 1 }).expect("a shared receive queue");
    let (qp, _) = rxe::qp(&pd, QpType::Rc, &cq, Some(&srq)).expect("a queue pair");
    let handle = AddressHandle::create(&pd, &rxe::to_itself(), 1, Uhw::none()).expect("an address handle");
    assert_eq!(counts(&context), [1; 6]);
    // The queue pair holds what it depends on.
    drop((cq, srq, pd));
    assert_eq!(counts(&context), [1; 6]);
    drop(qp);
    assert_eq!(counts(&context), [1, 0, 0, 0, 1, 1]);
    drop((handle, region));
    assert_eq!(counts(&context), [0; 6]);
}

fn what_could_not_be_made_is_not_in_the_kernel() {
    let context = context();
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
    let (cq, _) = rxe::cq(&context, CqInit::default()).expect("a completion queue");
    let before = counts(&context);
    let mut far = rxe::to_itself();
    far.sgid_index = 200;
    // SAFETY: nothing is mapped there, and the kernel finds out.
    let region = unsafe { MemoryRegion::register_raw(&pd, 0x1000, 4096, 0x1000, AccessFlags::LOCAL_WRITE) };
    assert!(region.is_err());
    assert!(rxe::qp(&pd, QpType::RawPacket, &cq, None).is_err());
    assert!(AddressHandle::create(&pd, &far, 1, Uhw::none()).is_err());
    assert_eq!(counts(&context), before);
}
