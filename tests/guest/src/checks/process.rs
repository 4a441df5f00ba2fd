//! What a process is, to the kernel: a child after fork is another one, and a control group limits what it may have.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use directverbs::verbs::AccessFlags;
use directverbs_linux::error::Error;
use directverbs_linux::objects::{CompletionChannel, Context, MemoryRegion, ProtectionDomain};
use directverbs_linux::uverbs::{Pages, Uhw};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::{context, device, kernel, refused, says};
use crate::check::Check;
use crate::machine::network::DEVICE;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(a_child_is_refused_and_destroys_nothing_of_its_parents),
        Check::of(a_wait_goes_on_after_each_signal_and_no_longer_than_asked),
        Check::of(a_limit_of_the_control_group_is_named),
    ]
}

/// Runs `child` in a child after fork, and tells whether it has returned true.
fn forked(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: this process has one thread, so that nothing in the child's memory is half done.
    let id = unsafe { libc::fork() };
    assert!(id >= 0, "fork");
    let Some(id) = Pid::from_raw(id) else {
        // SAFETY: it ends the child, and runs nothing of the parent's.
        unsafe { libc::_exit(i32::from(!child())) }
    };
    let (_, status) = waitpid(Some(id), WaitOptions::empty()).expect("a child").expect("its end");
    status.exit_status() == Some(0)
}

fn a_child_is_refused_and_destroys_nothing_of_its_parents() {
    let context = context();
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
    let pages = Pages::new(&kernel(), 4096).expect("memory");
    assert!(pages.write(0, b"parent"));
    let pages = Arc::new(pages);
    let region = MemoryRegion::register(&pd, &pages, 0..4096, AccessFlags::LOCAL_WRITE).expect("a region");
    let held = std::cell::Cell::new(Some((context, pd, region)));
    let refused_there = forked(|| {
        let Some((context, pd, region)) = held.take() else { return false };
        let query = matches!(context.query_port(1), Err(Error::Forked { owner: 1, .. }));
        let alloc = matches!(ProtectionDomain::alloc(&context, Uhw::none()), Err(Error::Forked { .. }));
        drop((region, pd, context));
        query && alloc
    });
    assert!(refused_there);
    let (context, pd, region) = held.take().expect("the parent's own");
    context.query_port(1).expect("it is still open");
    assert_eq!(context.next_event(Some(Duration::ZERO)).expect("an open device"), None);
    let mut bytes = [0; 6];
    assert!(pages.read(0, &mut bytes));
    assert_eq!(&bytes, b"parent");
    region.destroy().expect("it is still there");
    pd.destroy().expect("it is still there");
}

/// Signals that came.
static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Sends this process a signal again and again, which interrupts system calls; 0 for never.
fn interrupt_every(microseconds: libc::suseconds_t) {
    // SAFETY: zeros are a valid value of each.
    let (mut action, mut timer) =
        unsafe { (std::mem::zeroed::<libc::sigaction>(), std::mem::zeroed::<libc::itimerval>()) };
    // Without SA_RESTART, so that system calls end early.
    action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
    timer.it_interval.tv_usec = microseconds;
    timer.it_value.tv_usec = microseconds;
    // SAFETY: the handler only counts; both structures are whole.
    let done = unsafe {
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut())
            | libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut())
    };
    assert_eq!(done, 0, "a timer");
}

fn a_wait_goes_on_after_each_signal_and_no_longer_than_asked() {
    let limit = Duration::from_millis(60);
    let context = context();
    let channel = CompletionChannel::create(&context).expect("a channel");
    interrupt_every(2000);
    let waits: [&dyn Fn() -> bool; 2] =
        [&|| context.next_event(Some(limit)).expect("a wait").is_none(), &|| {
            channel.next(Some(limit)).expect("a wait").is_none()
        }];
    for wait in waits {
        let (before, began) = (SIGNALS.load(Ordering::Relaxed), Instant::now());
        assert!(wait(), "there is nothing to come");
        let (came, lasted) = (SIGNALS.load(Ordering::Relaxed) - before, began.elapsed());
        assert!(came > 1 && lasted >= limit && lasted < limit * 10, "{came} signals, {lasted:?}");
    }
    // Calls that the kernel restarts or that cannot be interrupted go on as well.
    for _ in 0..50 {
        let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
        let pages = Arc::new(Pages::new(&kernel(), 1 << 20).expect("memory"));
        let region = MemoryRegion::register(&pd, &pages, 0..1 << 20, AccessFlags::LOCAL_WRITE);
        region.expect("a region").destroy().expect("it is there");
    }
    interrupt_every(0);
}

fn a_limit_of_the_control_group_is_named() {
    let put = |file: &str, text: &str| fs::write(file, text).unwrap_or_else(|e| panic!("{file}: {e}"));
    fs::create_dir_all("/groups").expect("a folder");
    mount("cgroup2", "/groups", "cgroup2", MountFlags::empty(), None).expect("control groups");
    put("/groups/cgroup.subtree_control", "+rdma");
    fs::create_dir("/groups/few").expect("a group");
    put("/groups/few/rdma.max", &format!("{DEVICE} hca_handle=2 hca_object=1"));
    put("/groups/few/cgroup.procs", "0");
    let first = context();
    // An object for each protection domain, and a handle for each context.
    let pd = ProtectionDomain::alloc(&first, Uhw::none()).expect("the only one");
    let none = ProtectionDomain::alloc(&first, Uhw::none());
    let second = context();
    let third = Context::open(kernel(), &device(), Uhw::none());
    put("/groups/cgroup.procs", "0");
    says(&refused(none, Errno::AGAIN), &["protection domain", "ALLOC_PD", "rdma.max"]);
    says(&refused(third, Errno::AGAIN), &["device", "GET_CONTEXT", "rdma.max"]);
    drop((pd, first, second));
}
