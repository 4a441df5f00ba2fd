//! A device that is removed while it is in use.

use std::time::Duration;

use directverbs::verbs::{AccessFlags, QpType};
use directverbs_linux::objects::{
    AddressHandle, CompletionChannel, Context, CqInit, Element, EventKind, MemoryRegion, ProtectionDomain,
};
use directverbs_linux::sysfs::{Device, Problem, Sysfs};
use directverbs_linux::uverbs::{Pages, Uhw};
use rustix::io::Errno;

use super::events::event;
use super::{context, device, kernel, refused, rxe, says};
use crate::check::Check;
use crate::machine::network::{self, DEVICE};
use crate::machine::wait_for;

pub fn checks() -> Vec<Check> {
    vec![Check::of(a_device_that_is_removed_is_told_and_everything_is_let_go)]
}

fn a_device_that_is_removed_is_told_and_everything_is_let_go() {
    let (context, device) = (context(), device());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
    let pages = std::sync::Arc::new(Pages::new(&kernel(), 4096).expect("memory"));
    let region =
        MemoryRegion::register(&pd, &pages, 0..4096, AccessFlags::LOCAL_WRITE).expect("a memory region");
    let handle = AddressHandle::create(&pd, &rxe::to_itself(), 1, Uhw::none()).expect("an address handle");
    let channel = CompletionChannel::create(&context).expect("a channel");
    let init = CqInit { channel: Some(&channel), ..CqInit::default() };
    let (cq, _) = rxe::cq(&context, init).expect("a completion queue");
    let (qp, _) = rxe::qp(&pd, QpType::Rc, &cq, None).expect("a queue pair");

    network::remove_pair();
    assert_eq!(event(&context, EventKind::DEVICE_FATAL), Element::Port(0));
    wait_for("the file to go", || (!device.path().exists()).then_some(()));

    // Its file goes first, then the rest.
    let error = wait_for("the device to go", || {
        let error = Device::find(&Sysfs::default(), DEVICE).expect_err("it is gone");
        (!matches!(error.problem, Problem::NoUverbs)).then_some(error)
    });
    assert!(matches!(error.problem, Problem::NoDevice(_)), "{error}");
    says(&error.to_string(), &[DEVICE, "there are none at all"]);
    let text = refused(Context::open(kernel(), &device, Uhw::none()), Errno::NOENT);
    says(&text, &["/dev/infiniband/uverbs0"]);

    for refusal in [
        refused(context.query_port(1), Errno::IO),
        refused(ProtectionDomain::alloc(&context, Uhw::none()), Errno::IO),
        refused(rxe::cq(&context, CqInit::default()), Errno::IO),
        refused(cq.request_notification(false), Errno::IO),
    ] {
        says(&refusal, &["removed or reset", "open it again"]);
    }
    // That event was the last one. A channel says so at once.
    assert_eq!(context.next_event(Some(Duration::from_millis(20))).expect("an open file"), None);
    refused(channel.next(Some(Duration::from_secs(10))), Errno::IO);
    // Objects of a device that is gone are gone, too: that is no failure.
    qp.destroy().expect("gone");
    cq.destroy().expect("gone");
    region.destroy().expect("gone");
    handle.destroy().expect("gone");
    pd.destroy().expect("gone");
}
