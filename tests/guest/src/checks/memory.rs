//! Protection domains, memory regions and windows.

use std::ptr;
use std::sync::Arc;

use directverbs::verbs::{AccessFlags, MwType};
use directverbs_linux::error::Error;
use directverbs_linux::objects::{MemoryRegion, MemoryWindow, ProtectionDomain};
use directverbs_linux::uverbs::abi::methods::destroy;
use directverbs_linux::uverbs::{Pages, Uhw};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::{context, kernel, pd, refused, says};
use crate::check::Check;

const PAGE: usize = 4096;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(pages_and_parts_of_them_are_registered),
        Check::of(requests_may_name_memory_by_other_addresses),
        Check::of(access_that_a_driver_may_ignore_is_taken),
        Check::of(access_that_makes_no_sense_is_not_sent),
        Check::of(access_that_the_device_does_not_have_is_refused),
        Check::of(memory_that_is_not_mapped_is_refused),
        Check::of(memory_that_may_not_be_written_is_refused),
        Check::of(a_length_that_cannot_be_is_refused),
        Check::of(a_protection_domain_in_use_is_not_destroyed),
        Check::of(a_handle_is_destroyed_once),
        Check::of(windows_are_allocated_and_freed),
        Check::of(what_was_pinned_is_let_go),
    ]
}

fn pages(count: usize) -> Arc<Pages> {
    Arc::new(Pages::new(&kernel(), count * PAGE).expect("memory"))
}

fn local() -> AccessFlags {
    AccessFlags::LOCAL_WRITE
}

fn pages_and_parts_of_them_are_registered() {
    let (pd, pages) = (pd(), pages(4));
    let all = MemoryRegion::register(&pd, &pages, 0..4 * PAGE, local()).expect("all");
    assert_eq!((all.iova(), all.len()), (pages.address(), 4 * PAGE as u64));
    let mut keys = vec![all.lkey().get()];
    for range in [0..1, 1..2, 4095..4097, 100..3 * PAGE + 5, 4 * PAGE - 1..4 * PAGE] {
        let part = MemoryRegion::register(&pd, &pages, range.clone(), local()).expect("a part");
        assert_eq!((part.iova(), part.len()), (pages.address() + range.start as u64, range.len() as u64));
        keys.push(part.lkey().get());
        part.destroy().expect("nothing is bound to it");
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 6, "every region has a key of its own");
    let outside = [0..4 * PAGE + 1, 5 * PAGE..5 * PAGE + 1];
    for range in outside {
        let error = MemoryRegion::register(&pd, &pages, range, local()).expect_err("not in the pages");
        assert!(matches!(error, Error::Value { attribute: "range", .. }), "{error}");
    }
    all.destroy().expect("nothing is bound to it");
}

fn requests_may_name_memory_by_other_addresses() {
    let (pd, pages) = (pd(), pages(1));
    let start = pages.address() + 24;
    // SAFETY: the pages outlive both regions, and nobody holds references into them.
    let register = |iova| unsafe { MemoryRegion::register_raw(&pd, start, 100, iova, local()) };
    let region = register(0x7000_0000_0000_0018).expect("at the same place in a page");
    assert_eq!((region.iova(), region.len()), (0x7000_0000_0000_0018, 100));
    let error = register(0x7000_0000_0000_0010).expect_err("at another place");
    assert!(matches!(error, Error::Value { attribute: "iova", .. }), "{error}");
}

fn access_that_a_driver_may_ignore_is_taken() {
    let access = local() | AccessFlags::RELAXED_ORDERING | AccessFlags::REMOTE_READ;
    MemoryRegion::register(&pd(), &pages(1), 0..PAGE, access).expect("it may ignore it");
}

fn access_that_makes_no_sense_is_not_sent() {
    let (pd, pages) = (pd(), pages(1));
    for access in [AccessFlags::REMOTE_WRITE, AccessFlags::REMOTE_ATOMIC] {
        let error = MemoryRegion::register(&pd, &pages, 0..PAGE, access).expect_err("it lacks LOCAL_WRITE");
        says(&error.to_string(), &["memory region", "access", "LOCAL_WRITE"]);
        assert_eq!(error.errno(), None);
    }
    let unknown = local() | AccessFlags::from_bits_retain(1 << 15);
    let error = MemoryRegion::register(&pd, &pages, 0..PAGE, unknown).expect_err("an unknown flag");
    assert!(matches!(error, Error::Value { attribute: "access", .. }), "{error}");
}

fn access_that_the_device_does_not_have_is_refused() {
    let region = MemoryRegion::register(&pd(), &pages(1), 0..PAGE, local() | AccessFlags::ZERO_BASED);
    let error = region.expect_err("only windows count from zero here");
    assert!(error.is_absent(), "{error}");
}

fn memory_that_is_not_mapped_is_refused() {
    let pd = pd();
    // SAFETY: nothing is mapped there, and the kernel finds out.
    let region = unsafe { MemoryRegion::register_raw(&pd, 0x1000, 4096, 0x1000, local()) };
    says(&refused(region, Errno::FAULT), &["memory region", "REG_MR", "not mapped"]);
    // Half of it: nothing stays pinned, as the next check but some finds.
    let pages = pages(1);
    // SAFETY: as above.
    let region =
        unsafe { MemoryRegion::register_raw(&pd, pages.address(), 1 << 30, pages.address(), local()) };
    refused(region, Errno::FAULT);
}

fn memory_that_may_not_be_written_is_refused() {
    let pd = pd();
    // SAFETY: without an address of its own, a mapping replaces no memory that is in use.
    let address = unsafe { mmap_anonymous(ptr::null_mut(), PAGE, ProtFlags::READ, MapFlags::PRIVATE) }
        .expect("memory to read");
    let start = address as u64;
    // SAFETY: the memory is mapped until the end of this function, and nobody has references into it.
    let register = |access| unsafe { MemoryRegion::register_raw(&pd, start, PAGE as u64, start, access) };
    refused(register(local()), Errno::FAULT);
    register(AccessFlags::empty()).expect("only to be read").destroy().expect("nothing is bound to it");
    // SAFETY: it was mapped above, and the region is gone.
    unsafe { munmap(address, PAGE) }.expect("mapped");
}

fn a_length_that_cannot_be_is_refused() {
    let (pd, pages) = (pd(), pages(1));
    let start = pages.address();
    // SAFETY: the kernel refuses, and pins nothing.
    let register = |length| unsafe { MemoryRegion::register_raw(&pd, start, length, start, local()) };
    let error = register(0).expect_err("nothing");
    assert!(matches!(error, Error::Limit { attribute: "length", given: 0, .. }), "{error}");
    // The sum of address and length overflows.
    refused(register(u64::MAX - PAGE as u64), Errno::INVAL);
}

fn a_protection_domain_in_use_is_not_destroyed() {
    let (pd, pages) = (pd(), pages(1));
    let region = MemoryRegion::register(&pd, &pages, 0..PAGE, local()).expect("a region");
    // The kernel itself, asked for what our objects do not let one ask for.
    let context = pd.context();
    let text = refused(context.file().destroy(&destroy::PD, pd.handle()), Errno::BUSY);
    says(&text, &["protection domain", "PD_DESTROY", "still refers to it"]);
    let again = pd.clone();
    let error = again.destroy().expect_err("the region and another clone hold it");
    assert!(matches!(error, Error::InUse { object: "protection domain", users: 2 }), "{error}");
    region.destroy().expect("nothing is bound to it");
    pd.destroy().expect("nothing refers to it any more");
}

fn a_handle_is_destroyed_once() {
    let context = context();
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
    let number = pd.handle();
    pd.destroy().expect("nothing refers to it");
    says(&refused(context.file().destroy(&destroy::PD, number), Errno::NOENT), &["PD_DESTROY"]);
    for method in [&destroy::PD, &destroy::AH, &destroy::MR, &destroy::MW] {
        refused(context.file().destroy(method, 0x7fff_fff0), Errno::NOENT);
    }
    // Of another kind.
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
    refused(context.file().destroy(&destroy::MR, pd.handle()), Errno::INVAL);
    pd.destroy().expect("it is still there");
}

fn windows_are_allocated_and_freed() {
    let pd = pd();
    for mw_type in [MwType::Type1, MwType::Type2] {
        let window = MemoryWindow::alloc(&pd, mw_type).expect("a window");
        assert_ne!(window.rkey().get(), 0);
        window.destroy().expect("it is bound to nothing");
    }
}

fn what_was_pinned_is_let_go() {
    let pinned = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("proc");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmPin:")).expect("a line of pinned memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    assert_eq!(pinned(), 0, "what the checks before have registered");
    let (pd, pages) = (pd(), pages(8));
    let region = MemoryRegion::register(&pd, &pages, 0..8 * PAGE, local()).expect("a region");
    assert_eq!(pinned(), 32);
    // The region holds the pages.
    drop(pages);
    drop(pd);
    assert_eq!(pinned(), 32);
    drop(region);
    assert_eq!(pinned(), 0);
}
