//! dma-bufs: how the kernel takes their descriptors. Soft-RoCE registers none.

use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use directverbs::verbs::AccessFlags;
use directverbs_linux::error::Error;
use directverbs_linux::objects::{Buffer, CompletionQueue, CqInit, MemoryRegion};
use directverbs_linux::uverbs::Uhw;
use directverbs_linux::uverbs::abi::methods::{object, reg_dmabuf_mr};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::packets::{Packet, send};
use super::{pd, refused, says};
use crate::check::Check;
use crate::machine::dmabuf;

const SIZE: u64 = 4 * 4096;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(a_driver_without_dma_bufs_says_that_it_lacks_them),
        Check::of(a_sub_range_is_checked_before_the_call),
        Check::of(reg_dmabuf_mr_takes_its_descriptor_as_a_value),
        Check::of(reg_mr_and_cq_create_take_a_raw_descriptor),
        Check::of(a_mapped_dma_buf_cannot_be_pinned_as_memory),
        Check::of(memory_for_a_queue_is_not_asked_of_a_kernel_that_may_ignore_it),
    ]
}

fn a_driver_without_dma_bufs_says_that_it_lacks_them() {
    let buffer = dmabuf::create(SIZE);
    for (offset, length) in [(0, SIZE), (4096, 4096), (100, 200)] {
        let region = MemoryRegion::register_dmabuf(
            &pd(),
            buffer.as_fd(),
            offset,
            length,
            offset,
            AccessFlags::LOCAL_WRITE,
        );
        let error = region.expect_err("soft-RoCE has no dma-bufs");
        // All attributes are taken: it is the driver that lacks it.
        assert_eq!((error.errno(), error.is_absent()), (Some(Errno::OPNOTSUPP), true), "{error}");
        says(&error.to_string(), &["memory region", "REG_DMABUF_MR", "driver does not have it"]);
    }
}

fn a_sub_range_is_checked_before_the_call() {
    let buffer = dmabuf::create(SIZE);
    let register = |offset, length, iova| {
        MemoryRegion::register_dmabuf(&pd(), buffer.as_fd(), offset, length, iova, AccessFlags::LOCAL_WRITE)
    };
    let error = register(0, 0, 0).expect_err("nothing");
    assert!(matches!(error, Error::Limit { attribute: "length", .. }), "{error}");
    let error = register(8, 8, 16).expect_err("another place in a page");
    assert!(matches!(error, Error::Value { attribute: "iova", .. }), "{error}");
}

/// REG_DMABUF_MR with its descriptor as `len` bytes.
fn register(len: u16) -> Errno {
    let (pd, buffer) = (pd(), dmabuf::create(SIZE));
    let (mut lkey, mut rkey) = (0u32, 0u32);
    let mut packet = Packet::new(object::MR, reg_dmabuf_mr::METHOD.method_id);
    packet
        .attribute(0, 0, 0)
        .attribute(1, 0, pd.handle().into())
        .attribute(2, 8, 0)
        .attribute(3, 8, SIZE)
        .attribute(4, 8, 0)
        .attribute(5, len, buffer.as_raw_fd() as u64)
        .attribute(6, 4, 1)
        .output(7, &mut lkey)
        .output(8, &mut rkey);
    send(&pd.context(), &packet).expect_err("soft-RoCE has no dma-bufs")
}

fn reg_dmabuf_mr_takes_its_descriptor_as_a_value() {
    assert_eq!(register(4), Errno::OPNOTSUPP);
    assert_eq!(register(0), Errno::INVAL);
    assert_eq!(register(8), Errno::INVAL);
}

/// REG_MR with a raw descriptor of `len` bytes.
fn register_any(len: u16) -> Errno {
    let (pd, buffer) = (pd(), dmabuf::create(SIZE));
    let (mut lkey, mut rkey) = (0u32, 0u32);
    let mut packet = Packet::new(object::MR, 5);
    packet
        .attribute(0, 0, 0)
        .attribute(1, 0, pd.handle().into())
        .attribute(3, 8, 0)
        .attribute(5, 8, SIZE)
        .attribute(6, 4, 1)
        .attribute(7, len, buffer.as_raw_fd() as u64)
        .attribute(8, 8, 0)
        .output(9, &mut lkey)
        .output(10, &mut rkey);
    send(&pd.context(), &packet).expect_err("soft-RoCE has no dma-bufs")
}

fn reg_mr_and_cq_create_take_a_raw_descriptor() {
    assert_eq!(register_any(0), Errno::OPNOTSUPP);
    assert_eq!(register_any(4), Errno::INVAL);
    let buffer = dmabuf::create(SIZE);
    let create = |len: u16| {
        let context = super::context();
        let (mut cqe, mut driver) = (0u32, [0u64; 2]);
        let mut packet = Packet::new(object::CQ, 0);
        packet
            .attribute(0, 0, 0)
            .attribute(1, 4, 16)
            .attribute(2, 8, 7)
            .attribute(4, 4, 0)
            .output(6, &mut cqe)
            .attribute(10, len, buffer.as_raw_fd() as u64)
            .attribute(11, 8, 0)
            .output(0x1001, &mut driver);
        send(&context, &packet)
    };
    // A driver that does not look at it uses memory of its own, without a word.
    assert_eq!(create(0), Ok(()));
    assert_eq!(create(4), Err(Errno::INVAL));
}

fn a_mapped_dma_buf_cannot_be_pinned_as_memory() {
    let (pd, buffer) = (pd(), dmabuf::create(SIZE));
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: without an address of its own, a mapping replaces no memory that is in use.
    let address = unsafe { mmap(ptr::null_mut(), SIZE as usize, flags, MapFlags::SHARED, &buffer, 0) };
    let address = address.expect("a mapping");
    let start = address as u64;
    // SAFETY: the kernel refuses.
    let region = unsafe { MemoryRegion::register_raw(&pd, start, SIZE, start, AccessFlags::LOCAL_WRITE) };
    refused(region, Errno::FAULT);
    // SAFETY: it was mapped above.
    unsafe { munmap(address, SIZE as usize) }.expect("mapped");
}

fn memory_for_a_queue_is_not_asked_of_a_kernel_that_may_ignore_it() {
    let context = super::context();
    let buffer = Buffer::DmaBuf { file: dmabuf::create(SIZE).into(), size: SIZE, offset: 0, length: 4096 };
    let init = CqInit { cqe: 16, buffer: Some(buffer), ..CqInit::default() };
    let error = CompletionQueue::create(&context, &init, Uhw::none()).expect_err("the driver is not robust");
    assert!(matches!(error, Error::Unsupported { object: "completion queue", .. }), "{error}");
}
