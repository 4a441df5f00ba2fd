//! What a user without rights is told. The checks run in processes of their own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use directverbs::verbs::{AccessFlags, QpType};
use directverbs_linux::objects::{Context, CqInit, MemoryRegion, ProtectionDomain};
use directverbs_linux::sysfs::{Device, Sysfs};
use directverbs_linux::uverbs::{Pages, Uhw};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};

use super::{context, device, kernel, pd, port, refused, rxe, says};
use crate::check::{Check, Stage};

/// A user that is nobody.
const NOBODY: u32 = 65534;

const PAGE: usize = 4096;

/// What the other processes are started with.
const OUTSIDER: &str = "outsider";
const USER: &str = "user";

/// Checks of this process, which start the others.
pub fn stage() -> Stage {
    let others = [OUTSIDER, USER].into_iter().filter_map(checks_of).map(|checks| checks.len()).sum();
    let checks = vec![Check::of(a_process_that_may_not_open_the_device), Check::of(a_process_that_may)];
    Stage { prepare: || {}, checks, others }
}

/// Checks of a process that was started with `argument`.
pub fn checks_of(argument: &str) -> Option<Vec<Check>> {
    match argument {
        OUTSIDER => Some(vec![
            Check::of(a_device_that_only_root_may_open_says_what_helps),
            Check::of(discovery_needs_no_rights),
        ]),
        USER => Some(vec![
            Check::of(memory_beyond_the_limit_cannot_be_pinned),
            Check::of(raw_packets_need_a_capability),
            Check::of(without_a_limit_nothing_can_be_pinned),
        ]),
        _ => None,
    }
}

fn a_process_that_may_not_open_the_device() {
    run(OUTSIDER, 0o600);
}

fn a_process_that_may() {
    run(USER, 0o666);
}

/// Runs checks as nobody, with this access to the device's file.
fn run(argument: &str, mode: u32) {
    fs::set_permissions(device().path(), Permissions::from_mode(mode)).expect("our own file");
    let status = Command::new("/proc/self/exe").arg(argument).uid(NOBODY).gid(NOBODY).status();
    assert!(status.expect("a process").success());
}

fn a_device_that_only_root_may_open_says_what_helps() {
    let text = refused(Context::open(kernel(), &device(), Uhw::none()), Errno::ACCESS);
    says(&text, &["/dev/infiniband/uverbs0", "Permission denied", "run as root", "udev"]);
}

fn discovery_needs_no_rights() {
    assert_eq!(Device::all(&Sysfs::default()).expect("devices"), [device()]);
    assert!(port().gids.len() >= 3);
}

fn memory_beyond_the_limit_cannot_be_pinned() {
    let limit = 64 << 10;
    setrlimit(Resource::Memlock, Rlimit { current: Some(limit), maximum: Some(limit) }).expect("less");
    let pages = Arc::new(Pages::new(&kernel(), 32 * PAGE).expect("memory"));
    let pd = pd();
    let register =
        |pages_of: usize| MemoryRegion::register(&pd, &pages, 0..pages_of * PAGE, AccessFlags::LOCAL_WRITE);
    let first = register(10).expect("within the limit");
    let text = refused(register(7), Errno::NOMEM);
    says(&text, &["memory region", "REG_MR", "RLIMIT_MEMLOCK", "it is 64 KiB now"]);
    register(6).expect("just within the limit");
    drop(first);
    register(16).expect("the first was let go");
    refused(register(17), Errno::NOMEM);
}

fn raw_packets_need_a_capability() {
    let pd = ProtectionDomain::alloc(&context(), Uhw::none()).expect("a protection domain");
    let (cq, _) = rxe::cq(&pd.context(), CqInit::default()).expect("a completion queue");
    rxe::qp(&pd, QpType::Rc, &cq, None).expect("other queue pairs need none");
    let text = refused(rxe::qp(&pd, QpType::RawPacket, &cq, None), Errno::PERM);
    says(&text, &["queue pair", "QP_CREATE", "CAP_NET_RAW"]);
}

fn without_a_limit_nothing_can_be_pinned() {
    setrlimit(Resource::Memlock, Rlimit { current: Some(0), maximum: Some(0) }).expect("less");
    let pages = Arc::new(Pages::new(&kernel(), PAGE).expect("memory"));
    let text = refused(MemoryRegion::register(&pd(), &pages, 0..1, AccessFlags::LOCAL_WRITE), Errno::PERM);
    says(&text, &["memory region", "REG_MR", "RLIMIT_MEMLOCK"]);
}
