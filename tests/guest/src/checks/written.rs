//! The same objects by `write`, as kernels without a method for commands want it.

use std::sync::Arc;
use std::time::Duration;

use directverbs::verbs::{AccessFlags, MwType, QpId, QpState, QpType};
use directverbs_linux::objects::{
    AddressHandle, CompletionChannel, Context, CqInit, MemoryRegion, MemoryWindow, ProtectionDomain,
};
use directverbs_linux::uverbs::{Kernel, Pages, Uhw};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::altered::Altered;
use super::rxe::{self, Ring};
use super::{context, device, refused};
use crate::check::Check;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(a_kernel_without_a_method_for_commands_is_found_out),
        Check::of(limits_are_the_same_by_write),
        Check::of(objects_are_made_and_destroyed_by_write),
        Check::of(queues_are_armed_resized_and_changed_by_write),
        Check::of(what_is_refused_is_refused_by_write),
    ]
}

fn old() -> Arc<dyn Kernel> {
    Altered::without_invoke_write()
}

fn opened() -> Context {
    Context::open(old(), &device(), Uhw::none()).expect("a context")
}

fn a_kernel_without_a_method_for_commands_is_found_out() {
    assert!(!opened().file().has_invoke_write());
}

fn limits_are_the_same_by_write() {
    let (old, new) = (opened(), context());
    assert_eq!(old.limits().base.as_bytes(), new.limits().base.as_bytes());
    assert_eq!(old.limits().extra.as_bytes(), new.limits().extra.as_bytes());
}

fn objects_are_made_and_destroyed_by_write() {
    let context = opened();
    let mut reply = [0xff; 8];
    let pd = ProtectionDomain::alloc(&context, Uhw::reply(&mut reply)).expect("by write");
    assert_eq!(reply, [0; 8], "the driver writes none");
    let pages = Arc::new(Pages::new(&old(), 8192).expect("memory"));
    let region = MemoryRegion::register(&pd, &pages, 100..5000, AccessFlags::LOCAL_WRITE).expect("by write");
    assert_ne!(region.lkey().get(), 0);
    region.destroy().expect("nothing is bound to it");
    MemoryWindow::alloc(&pd, MwType::Type2).expect("by write").destroy().expect("bound to nothing");
    // The driver's reply comes behind the core's: here the number by which its send requests name the handle.
    let mut number = [0u8; 8];
    let uhw = Uhw::reply(&mut number);
    let handle = AddressHandle::create(&pd, &rxe::to_itself(), 1, uhw).expect("by write");
    assert_ne!(number[..4], [0; 4]);
    handle.destroy().expect("nothing refers to it");
    let channel = CompletionChannel::create(&context).expect("by write");
    assert_eq!(channel.next(Some(Duration::ZERO)).expect("an open device"), None);
    pd.destroy().expect("nothing refers to it");
}

fn queues_are_armed_resized_and_changed_by_write() {
    let pd = ProtectionDomain::alloc(&opened(), Uhw::none()).expect("by write");
    let (cq, first) = rxe::cq(&pd.context(), CqInit::default()).expect("a completion queue");
    cq.request_notification(false).expect("armed");
    let mut ring = Ring::default();
    assert!(cq.resize(1000, Uhw::reply(&mut ring)).expect("another size") >= 1000);
    assert!(ring.size > first.size && ring.offset != first.offset, "{ring:?}");
    let (mut qp, _) = rxe::qp(&pd, QpType::Rc, &cq, None).expect("a queue pair");
    for attributes in rxe::connection(QpId::truncated(0x99)) {
        qp.modify(&attributes, 1).expect("the usual way");
    }
    let told = qp.query().expect("its attributes");
    assert_eq!((told.attributes.state, told.capabilities), (Some(QpState::Rts), qp.granted()));
    assert_eq!(told.attributes.dest_qp, Some(QpId::truncated(0x99)));
    // An extended command.
    let error = qp.set_rate_limit(1000).expect_err("this driver limits no rate");
    assert!(error.is_absent(), "{error}");
}

fn what_is_refused_is_refused_by_write() {
    let pd = ProtectionDomain::alloc(&opened(), Uhw::none()).expect("by write");
    // SAFETY: nothing is mapped there, and the kernel finds out.
    let region = unsafe { MemoryRegion::register_raw(&pd, 0x1000, 4096, 0x1000, AccessFlags::LOCAL_WRITE) };
    refused(region, Errno::FAULT);
    let mut to = rxe::to_itself();
    to.sgid_index = 200;
    refused(AddressHandle::create(&pd, &to, 1, Uhw::none()), Errno::NODATA);
    pd.destroy().expect("nothing refers to it");
}
