//! Opening a device, and asking it.

use std::fs;
use std::os::fd::AsRawFd;
use std::time::Duration;

use directverbs_linux::error::Error;
use directverbs_linux::objects::{Context, CoreSupport, ProtectionDomain};
use directverbs_linux::uverbs::{CommandFile, Fd, Uhw};

use zerocopy::IntoBytes;

use super::{context, device, kernel, says};
use crate::check::Check;

/// `RDMA_DRIVER_RXE`.
pub const RXE: u32 = 14;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(a_context_tells_vectors_and_features),
        Check::of(the_drivers_id_is_found_by_asking),
        Check::of(a_driver_id_of_another_driver_is_refused),
        Check::of(a_reply_of_a_driver_that_writes_none_is_zero),
        Check::of(a_context_that_another_has_opened_can_be_used),
        Check::of(limits_are_asked_for_and_kept_to),
        Check::of(nothing_stays_open_when_a_context_is_dropped),
        Check::of(threads_share_a_context),
        Check::of(a_file_that_is_no_device_cannot_be_imported),
    ]
}

fn a_context_tells_vectors_and_features() {
    let context = context();
    assert!(context.completion_vectors() >= 1);
    // The core can do without what a driver does not know of access; soft-RoCE does not check its part of requests.
    assert_eq!(context.core_support(), CoreSupport::OPTIONAL_MR_ACCESS);
    assert_eq!((context.file().driver_id(), context.file().has_invoke_write()), (RXE, true));
}

fn the_drivers_id_is_found_by_asking() {
    let context = Context::open_path(kernel(), &device().path(), None, Uhw::none()).expect("a context");
    assert_eq!(context.file().driver_id(), RXE);
}

fn a_driver_id_of_another_driver_is_refused() {
    let error = CommandFile::open(kernel(), &device().path(), Some(6)).expect_err("it is not bnxt_re");
    assert!(matches!(error, Error::Value { attribute: "driver id", .. }), "{error}");
    says(&error.to_string(), &["driver id", "not that of the device's driver"]);
}

fn a_reply_of_a_driver_that_writes_none_is_zero() {
    let mut reply = [0xff; 48];
    let uhw = Uhw::reply(&mut reply);
    Context::open(kernel(), &device(), uhw).expect("a driver that does not look");
    assert_eq!(reply, [0; 48]);
    let mut reply = [0xff; 16];
    ProtectionDomain::alloc(&context(), Uhw::reply(&mut reply)).expect("likewise");
    assert_eq!(reply, [0; 16]);
}

fn a_context_that_another_has_opened_can_be_used() {
    let first = context();
    let fd = first.file().fd();
    let second = Context::import(kernel(), fd, None).expect("an opened context");
    // This driver cannot be asked about an opened context.
    assert_eq!((second.completion_vectors(), second.core_support()), (1, CoreSupport::empty()));
    let pd = ProtectionDomain::alloc(&second, Uhw::none()).expect("a protection domain");
    pd.destroy().expect("nothing refers to it");
    drop(second);
    first.query_port(1).expect("the file is still open");
}

fn limits_are_asked_for_and_kept_to() {
    let context = context();
    let limits = context.limits();
    for (what, value) in [
        ("max_qp", limits.base.max_qp.get()),
        ("max_qp_wr", limits.base.max_qp_wr.get()),
        ("max_cqe", limits.base.max_cqe.get()),
        ("max_mr", limits.base.max_mr.get()),
        ("max_pd", limits.base.max_pd.get()),
        ("max_ah", limits.base.max_ah.get()),
        ("max_srq_wr", limits.base.max_srq_wr.get()),
    ] {
        assert!(value > 0, "{what}");
    }
    // The kernel has written all that it was given room for.
    let bytes = limits.base.as_bytes().len() + limits.extra.as_bytes().len();
    assert_eq!(limits.extra.response_length.get() as usize, bytes);
    let error = context.query_port(2).expect_err("there is one port");
    says(&error.to_string(), &["port", "number 2", "1 to 1"]);
    assert!(matches!(context.query_port(0), Err(Error::Limit { .. })));
}

fn nothing_stays_open_when_a_context_is_dropped() {
    let open = || fs::read_dir("/proc/self/fd").expect("proc").count();
    let before = open();
    for _ in 0..3 {
        let context = context();
        let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
        assert_eq!(open(), before + 2, "the device and its events");
        // The last object closes it.
        drop(context);
        assert_eq!(open(), before + 2);
        drop(pd);
        assert_eq!(open(), before);
    }
}

fn threads_share_a_context() {
    let context = context();
    let other = context.clone();
    let thread = std::thread::spawn(move || {
        let pd = ProtectionDomain::alloc(&other, Uhw::none()).expect("a protection domain");
        (pd.handle(), other.next_event(Some(Duration::ZERO)).expect("no event"))
    });
    let (_, event) = thread.join().expect("it ends");
    assert_eq!(event, None);
}

fn a_file_that_is_no_device_cannot_be_imported() {
    let null = fs::File::open("/dev/null").expect("a file");
    let fd = Fd::new(null.as_raw_fd()).expect("a descriptor");
    let error = Context::import(kernel(), fd, None).expect_err("it is no device");
    assert!(error.is_absent(), "{error}");
}
