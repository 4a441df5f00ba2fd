//! Objects over the model of a kernel: what is sent, what is left over, and what is refused before it is sent.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use directverbs::verbs::{
    AccessFlags, AddressVector, Gid, Mac, Mtu, MwType, Psn, QpAttributes, QpCapabilities, QpId, QpInit,
    QpState, QpType, SrqInit,
};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::*;
use crate::error::Error;
use crate::uverbs::abi::packet::{AsyncEventRecord, BufferDescriptor};
use crate::uverbs::model::{Model, PAGE, Request, Settings};
use crate::uverbs::{Kernel, Pages, Uhw};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn open(model: &Arc<Model>) -> Result<Context, Error> {
    let kernel = Arc::clone(model) as Arc<dyn Kernel>;
    Context::open_path(kernel, Path::new("/dev/infiniband/uverbs0"), Some(6), Uhw::none())
}

fn opened(settings: Settings) -> (Arc<Model>, Context) {
    let model = Model::new(settings);
    let context = open(&model).expect("opens");
    model.take_log();
    (model, context)
}

fn pages(model: &Arc<Model>, length: usize) -> Arc<Pages> {
    let kernel = Arc::clone(model) as Arc<dyn Kernel>;
    Arc::new(Pages::new(&kernel, length).expect("memory"))
}

fn cq(context: &Context) -> CompletionQueue {
    CompletionQueue::create(context, &CqInit { cqe: 100, ..CqInit::default() }, Uhw::none()).expect("a queue")
}

fn qp_init<'a>(
    cq: &'a CompletionQueue,
    srq: Option<&'a SharedReceiveQueue>,
) -> QpInit<'a, CompletionQueue, SharedReceiveQueue> {
    let capabilities = QpCapabilities {
        max_send_wr: 16,
        max_recv_wr: 8,
        max_send_sge: 2,
        max_recv_sge: 1,
        max_inline_data: 32,
    };
    QpInit { qp_type: QpType::Rc, capabilities, send_cq: cq, recv_cq: cq, srq, signal_all: true }
}

fn names(log: &[Request]) -> Vec<&'static str> {
    log.iter().map(|r| r.name).collect()
}

/// Makes one of everything, and drops it in the order that is worst.
fn everything(model: &Arc<Model>) -> Result<(), Error> {
    let kernel = Arc::clone(model) as Arc<dyn Kernel>;
    let context = open(model)?;
    let channel = CompletionChannel::create(&context)?;
    let pd = ProtectionDomain::alloc(&context, Uhw::none())?;
    let memory = Arc::new(Pages::new(&kernel, 3 * PAGE)?);
    let mr = MemoryRegion::register(&pd, &memory, 0..100, AccessFlags::LOCAL_WRITE)?;
    let null = File::open("/dev/null").expect("a file");
    let dmabuf = MemoryRegion::register_dmabuf(&pd, null.as_fd(), 0, 4096, 0, AccessFlags::LOCAL_WRITE)?;
    let mw = MemoryWindow::alloc(&pd, MwType::Type2)?;
    let ring = Buffer::Memory { pages: Arc::clone(&memory), offset: PAGE as u64, length: PAGE as u64 };
    let init = CqInit { cqe: 100, channel: Some(&channel), buffer: Some(ring.clone()), ..CqInit::default() };
    let cq = CompletionQueue::create(&context, &init, Uhw::none())?;
    let srq = SharedReceiveQueue::create(&pd, SrqInit { max_wr: 10, max_sge: 1 }, Uhw::none())?;
    let buffers = QpBuffers { send: Some(ring), receive: None };
    let mut qp = QueuePair::create(&pd, &qp_init(&cq, Some(&srq)), &buffers, &[], Uhw::none())?;
    qp.modify(&QpAttributes { access: Some(AccessFlags::empty()), ..QpAttributes::to(QpState::Init) }, 1)?;
    let to = AddressVector::new(Gid::v4(Ipv4Addr::new(10, 0, 0, 2)), Mac::default());
    let ah = AddressHandle::create(&pd, &to, 1, Uhw::none())?;
    // What others depend on goes first.
    drop((context, channel, pd, memory, cq, srq, mr, dmabuf, mw, ah));
    drop(qp);
    Ok(())
}

#[test]
fn whatever_is_dropped_first_nothing_is_destroyed_before_what_refers_to_it() {
    for settings in [Settings::newest(), Settings { invoke_write: false, ..Settings::newest() }] {
        let model = Model::new(settings);
        everything(&model).expect("all of it");
        let log = model.take_log();
        let at = |name| {
            names(&log).iter().position(|n| *n == name).unwrap_or_else(|| panic!("{name} was not sent"))
        };
        for name in ["CQ_DESTROY", "SRQ_DESTROY", "PD_DESTROY"] {
            assert!(at("QP_DESTROY") < at(name), "{name}");
        }
        assert_eq!(model.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn whichever_call_fails_nothing_stays_open_mapped_or_registered() {
    let errnos = [
        Errno::PERM,
        Errno::INVAL,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::OPNOTSUPP,
        Errno::NOTTY,
        Errno::PROTONOSUPPORT,
        Errno::IO,
        Errno::NODEV,
        Errno::BUSY,
        Errno::FAULT,
        Errno::AGAIN,
        Errno::MFILE,
        Errno::INTR,
        Errno::TIMEDOUT,
    ];
    for settings in [Settings::newest(), Settings { invoke_write: false, ..Settings::newest() }] {
        let whole = Model::new(settings.clone());
        whole.fail_at(usize::MAX, Errno::IO);
        everything(&whole).expect("all of it");
        let calls = whole.calls();
        assert!(calls > 15, "{calls} calls");
        for call in 0..calls {
            for errno in errnos {
                let model = Model::new(settings.clone());
                model.fail_at(call, errno);
                // Some failures have a way round them, such as a query in its older form.
                if let Err(error) = everything(&model) {
                    assert!(!error.to_string().contains('\n'), "{error}");
                }
                assert_eq!(model.leftovers(), Vec::<String>::new(), "call {call} failed with {errno}");
            }
        }
    }
}

#[test]
fn opening_sends_what_it_takes_and_no_more() {
    let model = Model::new(Settings::newest());
    let context = open(&model).expect("opens");
    let log = model.take_log();
    assert_eq!(names(&log), ["GET_CONTEXT", "ASYNC_EVENT_ALLOC", "QUERY_DEVICE"]);
    assert_eq!(context.completion_vectors(), 4);
    assert!(context.core_support().contains(CoreSupport::ROBUST_UDATA));
    assert_eq!(context.limits().base.max_cqe.get(), 4096);
    // The kernel has written a part of what could be there; the rest is off.
    assert_eq!(context.limits().extra.timestamp_mask.get(), u64::MAX);
    assert_eq!(context.limits().extra.hca_core_clock.get(), 0);
    assert!(context.file().has_invoke_write());
}

#[test]
fn an_older_kernel_is_asked_the_older_way() {
    let settings = Settings { invoke_write: false, extended_query: false, ..Settings::older() };
    let (model, context) = opened(settings);
    assert!(!context.file().has_invoke_write());
    assert_eq!(context.limits().base.max_cqe.get(), 4096);
    assert_eq!(context.limits().extra.timestamp_mask.get(), 0);
    let mut told = [0u8; 16];
    ProtectionDomain::alloc(&context, Uhw::reply(&mut told)).expect("by write");
    assert_eq!(names(&model.take_log()), ["ALLOC_PD", "PD_DESTROY"]);
}

#[test]
fn the_drivers_id_is_found_by_asking_and_a_wrong_one_is_told() {
    let model = Model::new(Settings { driver_id: 14, ..Settings::newest() });
    let kernel = || Arc::clone(&model) as Arc<dyn Kernel>;
    let path = Path::new("/dev/infiniband/uverbs0");
    let context = Context::open_path(kernel(), path, None, Uhw::none()).expect("found");
    assert_eq!(context.file().driver_id(), 14);
    drop(context);
    let error = Context::open_path(kernel(), path, Some(6), Uhw::none()).expect_err("a wrong one");
    assert_eq!(error.to_string(), "device: driver id is not that of the device's driver");
    assert_eq!(model.leftovers(), Vec::<String>::new());
}

#[test]
fn no_permission_on_the_file_names_it_and_the_remedy() {
    let model = Model::new(Settings::newest());
    model.fail_at(0, Errno::ACCESS);
    let error = open(&model).expect_err("no permission").to_string();
    assert!(error.starts_with("/dev/infiniband/uverbs0: ") && error.contains("root"), "{error}");
}

#[test]
fn memory_that_cannot_be_pinned_names_the_limit() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let memory = pages(&model, PAGE);
    model.fail_at(0, Errno::NOMEM);
    let error = MemoryRegion::register(&pd, &memory, 0..PAGE, AccessFlags::LOCAL_WRITE).expect_err("limits");
    let text = error.to_string();
    assert!(text.starts_with("memory region: REG_MR failed") && text.contains("RLIMIT_MEMLOCK"), "{text}");
    assert!(text.contains("8192 KiB"), "{text}");
}

#[test]
fn the_drivers_parts_are_sent_and_what_a_kernel_does_not_fill_reads_as_zero() {
    for invoke_write in [true, false] {
        let settings =
            Settings { uhw: vec![("ALLOC_PD", vec![1, 2, 3, 4])], invoke_write, ..Settings::newest() };
        let (model, context) = opened(settings);
        let (request, mut reply) = ([7u8; 12], [0xffu8; 8]);
        let uhw = Uhw::vouched(&request, &mut reply[..]);
        let pd = ProtectionDomain::alloc(&context, uhw).expect("a domain");
        let sent = model.only();
        assert_eq!(sent.get("UHW_IN"), Some(&request[..]));
        assert_eq!(reply, [1, 2, 3, 4, 0, 0, 0, 0]);
        drop(pd);
    }
}

#[test]
fn a_completion_queue_is_created_as_asked() {
    let (model, context) = opened(Settings::newest());
    let channel = CompletionChannel::create(&context).expect("a channel");
    let memory = pages(&model, 4 * PAGE);
    model.take_log();
    let buffer = Buffer::Memory { pages: Arc::clone(&memory), offset: 2 * PAGE as u64, length: 100 };
    let init = CqInit {
        cqe: 100,
        channel: Some(&channel),
        vector: 3,
        flags: CqFlags::IGNORE_OVERRUN,
        buffer: Some(buffer),
    };
    let cq = CompletionQueue::create(&context, &init, Uhw::none()).expect("a queue");
    let sent = model.only();
    assert_eq!(cq.cqe(), 128);
    assert_eq!(
        (sent.number("CQE"), sent.number("COMP_VECTOR"), sent.number("FLAGS")),
        (Some(100), Some(3), Some(2))
    );
    assert_eq!(sent.number("COMP_CHANNEL"), Some(channel.fd().get() as u64));
    assert_eq!(sent.number("USER_HANDLE"), Some(cq.user_handle().0));
    assert_eq!(sent.advisory, ["EVENT_FD"]);
    let umem = BufferDescriptor::read_from_bytes(sent.get("BUF_UMEM").expect("memory")).expect("32 bytes");
    let expected = BufferDescriptor {
        buffer_type: 1.into(),
        addr: (memory.address() + 2 * PAGE as u64).into(),
        length: 100.into(),
        ..BufferDescriptor::ZERO
    };
    assert_eq!(umem, expected);
    assert_eq!(cq.resize(200, Uhw::none()).expect("larger"), 256);
    cq.request_notification(true).expect("armed");
    let log = model.take_log();
    assert_eq!(names(&log), ["RESIZE_CQ", "REQ_NOTIFY_CQ"]);
    assert_eq!(log[1].get("CORE_IN").expect("a body")[4..], [1, 0, 0, 0]);
}

#[test]
fn a_dmabuf_goes_by_its_descriptor_and_offset() {
    let (model, context) = opened(Settings::newest());
    let file: Arc<OwnedFd> = Arc::new(File::open("/dev/null").expect("a file").into());
    let fd = file.as_raw_fd();
    let buffer = Buffer::DmaBuf { file, size: 1 << 20, offset: 8 * PAGE as u64, length: PAGE as u64 };
    let init = CqInit { cqe: 10, buffer: Some(buffer), ..CqInit::default() };
    let _cq = CompletionQueue::create(&context, &init, Uhw::none()).expect("a queue");
    let umem =
        BufferDescriptor::read_from_bytes(model.only().get("BUF_UMEM").expect("memory")).expect("32 bytes");
    assert_eq!((umem.buffer_type.get(), umem.fd.get()), (0, fd.cast_unsigned()));
    assert_eq!((umem.addr.get(), umem.length.get()), (8 * PAGE as u64, PAGE as u64));
}

#[test]
fn a_buffer_that_is_not_whole_pages_begin_or_ends_outside_is_not_sent() {
    let (model, context) = opened(Settings::newest());
    let memory = pages(&model, 2 * PAGE);
    for (offset, length, part) in [
        (1, 10, "offset"),
        (PAGE as u64 / 2, 10, "offset"),
        (0, 0, "length"),
        (0, 2 * PAGE as u64 + 1, "ends behind"),
        (PAGE as u64, PAGE as u64 + 1, "ends behind"),
        (!(PAGE as u64 - 1), PAGE as u64, "ends behind"),
    ] {
        let buffer = Buffer::Memory { pages: Arc::clone(&memory), offset, length };
        let init = CqInit { cqe: 10, buffer: Some(buffer), ..CqInit::default() };
        let error =
            CompletionQueue::create(&context, &init, Uhw::none()).expect_err("no such memory").to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(model.take_log(), []);
}

#[test]
fn a_kernel_that_ignores_what_it_does_not_know_is_not_asked_for_memory() {
    let (model, context) = opened(Settings::older());
    let memory = pages(&model, PAGE);
    let buffer = Buffer::Memory { pages: memory, offset: 0, length: PAGE as u64 };
    let init = CqInit { cqe: 10, buffer: Some(buffer), ..CqInit::default() };
    let error = CompletionQueue::create(&context, &init, Uhw::none()).expect_err("Linux 6.12");
    assert!(error.is_absent() && error.to_string().contains("7.2"), "{error}");
    assert_eq!(model.take_log(), []);
    cq(&context);
}

#[test]
fn numbers_that_the_device_does_not_have_are_named_and_not_sent() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let cq = cq(&context);
    model.take_log();
    let create_cq = |init: CqInit<'_>| {
        CompletionQueue::create(&context, &init, Uhw::none()).expect_err("too much").to_string()
    };
    assert_eq!(
        create_cq(CqInit { cqe: 5000, ..CqInit::default() }),
        "completion queue: cqe 5000, the device has 1 to 4096"
    );
    assert_eq!(
        create_cq(CqInit { cqe: 0, ..CqInit::default() }),
        "completion queue: cqe 0, the device has 1 to 4096"
    );
    assert!(create_cq(CqInit { cqe: 1, vector: 4, ..CqInit::default() }).contains("completion vector 4"));
    let with = |change: fn(&mut QpCapabilities)| {
        let mut init = qp_init(&cq, None);
        change(&mut init.capabilities);
        QueuePair::create(&pd, &init, &QpBuffers::default(), &[], Uhw::none())
            .expect_err("too much")
            .to_string()
    };
    assert!(with(|c| c.max_send_wr = 1025).contains("max_send_wr 1025"));
    assert!(with(|c| c.max_recv_wr = 1025).contains("max_recv_wr 1025"));
    assert!(with(|c| c.max_send_sge = 7).contains("max_send_sge 7"));
    assert!(with(|c| c.max_recv_sge = 7).contains("max_recv_sge 7"));
    let srq = SharedReceiveQueue::create(&pd, SrqInit { max_wr: 513, max_sge: 1 }, Uhw::none());
    assert!(srq.expect_err("too much").to_string().contains("max_wr 513"));
    assert!(context.query_port(2).expect_err("one port").to_string().contains("port: number 2"));
    assert_eq!(model.take_log(), []);
}

#[test]
fn a_queue_pair_is_created_as_asked_and_with_a_shared_queue_has_no_ring_to_receive() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let cq = cq(&context);
    let srq =
        SharedReceiveQueue::create(&pd, SrqInit { max_wr: 10, max_sge: 1 }, Uhw::none()).expect("a queue");
    let memory = pages(&model, 2 * PAGE);
    model.take_log();
    let ring = |offset| Some(Buffer::Memory { pages: Arc::clone(&memory), offset, length: PAGE as u64 });
    let buffers = QpBuffers { send: ring(0), receive: ring(PAGE as u64) };
    let qp = QueuePair::create(&pd, &qp_init(&cq, None), &buffers, &[], Uhw::none()).expect("a queue pair");
    let sent = model.only();
    assert_eq!((sent.number("TYPE"), sent.number("FLAGS")), (Some(2), Some(1 << 12)));
    assert_eq!(
        (sent.number("PD_HANDLE"), sent.number("SEND_CQ_HANDLE")),
        (Some(pd.handle().into()), Some(cq.handle().into()))
    );
    let cap: Vec<u8> = [16u32, 8, 2, 1, 32].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(sent.get("CAP"), Some(&cap[..]));
    assert!(
        sent.get("SQ_BUF_UMEM").is_some()
            && sent.get("RQ_BUF_UMEM").is_some()
            && sent.get("SRQ_HANDLE").is_none()
    );
    assert_eq!((qp.granted().max_inline_data, qp.state()), (32, QpState::Reset));
    let shared =
        QueuePair::create(&pd, &qp_init(&cq, Some(&srq)), &buffers, &[], Uhw::none()).expect("a queue pair");
    let sent = model.only();
    assert!(sent.get("RQ_BUF_UMEM").is_none());
    assert_eq!(sent.number("SRQ_HANDLE"), Some(srq.handle().into()));
    drop((qp, shared));
}

#[test]
fn a_queue_pair_goes_through_its_states_and_stays_where_it_is_on_failure() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let cq = cq(&context);
    let mut qp = QueuePair::create(&pd, &qp_init(&cq, None), &QpBuffers::default(), &[], Uhw::none())
        .expect("a queue pair");
    model.take_log();
    let error = qp.modify(&QpAttributes::to(QpState::Rts), 1).expect_err("no such edge");
    assert!(matches!(error, Error::State(_)));
    assert!(qp.set_rate_limit(1000).is_err());
    assert_eq!(model.take_log(), []);
    let init = QpAttributes { access: Some(AccessFlags::REMOTE_READ), ..QpAttributes::to(QpState::Init) };
    model.fail_at(0, Errno::INVAL);
    assert!(qp.modify(&init, 1).is_err());
    assert_eq!(qp.state(), QpState::Reset);
    model.fail_at(usize::MAX, Errno::INVAL);
    qp.modify(&init, 1).expect("INIT");
    let rtr = QpAttributes {
        path: Some(AddressVector::new(Gid::default(), Mac::default())),
        mtu: Some(Mtu::B1024),
        dest_qp: QpId::new(5),
        rq_psn: Psn::new(0),
        max_dest_rd_atomic: Some(1),
        min_rnr_timer: Some(1),
        ..QpAttributes::to(QpState::Rtr)
    };
    // The port carries 1024 bytes.
    model.take_log();
    let error =
        qp.modify(&QpAttributes { mtu: Some(Mtu::B2048), ..rtr }, 1).expect_err("too large").to_string();
    assert_eq!(error, "queue pair: path MTU 2048, the device has 256 to 1024");
    assert_eq!(names(&model.take_log()), ["QUERY_PORT"]);
    qp.modify(&rtr, 1).expect("RTR");
    let rts = QpAttributes {
        sq_psn: Psn::new(0),
        timeout: Some(14),
        retry_count: Some(7),
        rnr_retry: Some(7),
        max_rd_atomic: Some(1),
        ..QpAttributes::to(QpState::Rts)
    };
    qp.modify(&rts, 1).expect("RTS");
    model.take_log();
    qp.set_rate_limit(25_000).expect("limited");
    let sent = model.only();
    let body = sent.get("CORE_IN").expect("a body");
    assert_eq!((body.len(), &body[112..116]), (120, &25_000u32.to_le_bytes()[..]));
    assert_eq!(body[68..72], (1u32 | 1 << 25).to_le_bytes());
    let queried = qp.query().expect("a reply");
    assert_eq!((qp.state(), queried.attributes.state), (QpState::Err, Some(QpState::Err)));
    assert_eq!((queried.capabilities.max_send_wr, queried.signal_all), (17, true));
}

#[test]
fn what_is_in_use_is_not_destroyed_until_its_last_user_is_gone() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let cq = cq(&context);
    let qp = QueuePair::create(&pd, &qp_init(&cq, None), &QpBuffers::default(), &[], Uhw::none())
        .expect("a queue pair");
    model.take_log();
    assert!(matches!(cq.destroy(), Err(Error::InUse { object: "completion queue", .. })));
    assert!(matches!(pd.destroy(), Err(Error::InUse { object: "protection domain", .. })));
    assert_eq!(model.take_log(), []);
    qp.destroy().expect("nobody uses it");
    assert_eq!(names(&model.take_log()), ["QP_DESTROY", "PD_DESTROY", "CQ_DESTROY"]);
}

#[test]
fn objects_of_two_contexts_do_not_go_together() {
    let (model, context) = opened(Settings::newest());
    let other = open(&model).expect("opens twice");
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let theirs = cq(&other);
    let error = QueuePair::create(&pd, &qp_init(&theirs, None), &QpBuffers::default(), &[], Uhw::none());
    assert!(matches!(error, Err(Error::OtherContext { other: "completion queue", .. })));
    let channel = CompletionChannel::create(&other).expect("a channel");
    let init = CqInit { cqe: 1, channel: Some(&channel), ..CqInit::default() };
    assert!(matches!(CompletionQueue::create(&context, &init, Uhw::none()), Err(Error::OtherContext { .. })));
}

#[test]
fn memory_is_registered_by_part_and_only_what_makes_sense() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let memory = pages(&model, 2 * PAGE);
    model.take_log();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::RELAXED_ORDERING;
    let mr = MemoryRegion::register(&pd, &memory, 100..300, access).expect("a part");
    let start = memory.address() + 100;
    let sent = model.only();
    let mut body = vec![0; 8];
    body.extend([start, 200, start].iter().flat_map(|v| v.to_le_bytes()));
    body.extend(pd.handle().to_le_bytes());
    body.extend((3u32 | 1 << 20).to_le_bytes());
    assert_eq!(sent.get("CORE_IN"), Some(&body[..]));
    assert_eq!((mr.iova(), mr.len()), (start, 200));
    assert_ne!(mr.lkey().get(), mr.rkey().get());
    let refused = |range, access| {
        MemoryRegion::register(&pd, &memory, range, access).expect_err("no sense").to_string()
    };
    assert!(refused(0..2 * PAGE + 1, access).contains("range"));
    assert!(refused(5..5, access).contains("range"));
    assert!(refused(0..8, AccessFlags::REMOTE_WRITE).contains("LOCAL_WRITE"));
    assert!(refused(0..8, AccessFlags::REMOTE_ATOMIC).contains("LOCAL_WRITE"));
    assert!(refused(0..8, AccessFlags::from_bits_retain(1 << 15)).contains("not known"));
    let null = File::open("/dev/null").expect("a file");
    let dmabuf = |offset, iova| {
        MemoryRegion::register_dmabuf(&pd, null.as_fd(), offset, 100, iova, AccessFlags::LOCAL_WRITE)
    };
    assert!(dmabuf(0, 8).expect_err("another place in its page").to_string().contains("iova"));
    assert_eq!(model.take_log(), []);
    let mr = dmabuf(0x1010, 0x7_0010).expect("the same place");
    let sent = model.only();
    assert_eq!(
        (sent.number("OFFSET"), sent.number("IOVA"), sent.number("LENGTH")),
        (Some(0x1010), Some(0x7_0010), Some(100))
    );
    assert_eq!(sent.get("FD").map(<[u8]>::len), Some(4));
    assert_eq!(mr.iova(), 0x7_0010);
}

#[test]
fn a_kernel_without_optional_access_is_not_sent_any() {
    let (model, context) = opened(Settings { core_support: 0, ..Settings::newest() });
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let memory = pages(&model, PAGE);
    model.take_log();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::RELAXED_ORDERING;
    let _mr = MemoryRegion::register(&pd, &memory, 0..8, access).expect("a region");
    assert_eq!(model.only().get("CORE_IN").expect("a body")[36..], [1, 0, 0, 0]);
}

#[test]
fn events_come_in_order_and_signals_do_not_end_the_wait() {
    let (model, context) = opened(Settings::newest());
    assert_eq!(context.next_event(NOW).expect("none yet"), None);
    let record = AsyncEventRecord { element: 1.into(), event_type: 9.into(), ..AsyncEventRecord::ZERO };
    model.raise(context.event_fd(), record.as_bytes());
    model.interrupt(2);
    let event = context.next_event(NOW).expect("readable").expect("an event");
    assert_eq!((event.kind, event.element), (EventKind::PORT_ACTIVE, Element::Port(1)));
    let channel = CompletionChannel::create(&context).expect("a channel");
    let cq = cq(&context);
    model.raise(channel.fd(), &cq.user_handle().0.to_le_bytes());
    assert_eq!(channel.next(NOW).expect("readable"), Some(cq.user_handle()));
    assert_eq!(channel.next(NOW).expect("none"), None);
    model.raise(channel.fd(), &[1, 2, 3]);
    assert!(matches!(channel.next(NOW), Err(Error::Reply { .. })));
}

#[test]
fn a_child_after_fork_neither_uses_nor_destroys_its_parents_objects() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    model.take_log();
    model.fork();
    let error = ProtectionDomain::alloc(&context, Uhw::none()).expect_err("a child").to_string();
    assert_eq!(
        error,
        "protection domain: the context belongs to process 100; open the device again in this one"
    );
    assert!(matches!(context.query_port(1), Err(Error::Forked { .. })));
    drop(pd);
    assert_eq!(model.take_log(), []);
    // Its own context is its own.
    let own = open(&model).expect("opens");
    ProtectionDomain::alloc(&own, Uhw::none()).expect("its own");
}

#[test]
fn a_device_that_is_gone_takes_its_objects_with_it() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    model.fail_at(0, Errno::IO);
    let error = cq_error(&context);
    assert!(error.contains("removed or reset"), "{error}");
    pd.destroy().expect("gone or not");
}

fn cq_error(context: &Context) -> String {
    let init = CqInit { cqe: 1, ..CqInit::default() };
    CompletionQueue::create(context, &init, Uhw::none()).expect_err("no device").to_string()
}

#[test]
fn an_imported_context_is_asked_about_and_left_open() {
    for query_context in [true, false] {
        let model = Model::new(Settings { query_context, ..Settings::newest() });
        let theirs = open(&model).expect("another library");
        let file = theirs.file().fd();
        let ours = Context::import(Arc::clone(&model) as Arc<dyn Kernel>, file, Some(6)).expect("imported");
        assert_eq!(ours.completion_vectors(), if query_context { 4 } else { 1 });
        assert_eq!(ours.core_support().contains(CoreSupport::ROBUST_UDATA), query_context);
        ProtectionDomain::alloc(&ours, Uhw::none()).expect("works");
        drop(ours);
        ProtectionDomain::alloc(&theirs, Uhw::none()).expect("still open");
    }
}

#[test]
fn gids_and_ports_are_read() {
    let (_model, context) = opened(Settings::newest());
    let gids = context.gids().expect("a table");
    let [gid] = gids.as_slice() else { panic!("one entry") };
    assert_eq!((gid.port, gid.index, gid.gid), (1, 3, Gid([0xfe; 16])));
    assert_eq!(gid.netdev, Some(crate::sysfs::Netdev::Index(7)));
    let port = context.query_port(1).expect("a port");
    assert_eq!((port.active_mtu, port.gbps()), (Some(Mtu::B1024), 100));
}

#[test]
fn a_shared_receive_queue_is_limited_and_queried() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    let srq =
        SharedReceiveQueue::create(&pd, SrqInit { max_wr: 10, max_sge: 2 }, Uhw::none()).expect("a queue");
    assert_eq!(srq.granted(), SrqInit { max_wr: 10, max_sge: 2 });
    model.take_log();
    assert!(srq.set_limit(11).is_err());
    srq.set_limit(5).expect("a limit");
    assert_eq!(model.only().get("CORE_IN").expect("a body")[4..], [2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
    assert_eq!(srq.query().expect("a reply"), (SrqInit { max_wr: 100, max_sge: 3 }, 5));
}

#[test]
fn an_address_handle_names_our_gid_and_more_than_one_hop() {
    let (model, context) = opened(Settings::newest());
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a domain");
    model.take_log();
    let to = AddressVector {
        sgid_index: 3,
        ..AddressVector::new(Gid::v4(Ipv4Addr::new(10, 0, 0, 2)), Mac::default())
    };
    let ah = AddressHandle::create(&pd, &to, 1, Uhw::none()).expect("a handle");
    let sent = model.only();
    let body = sent.get("CORE_IN").expect("a body");
    assert_eq!(body[16..20], pd.handle().to_le_bytes());
    assert_eq!(body[24..40], to.dgid.0);
    // sgid_index, hop_limit, traffic_class, reserved, dlid, sl, path bits, rate, is_global, port, reserved
    assert_eq!(body[44..56], [3, 64, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0]);
    assert!(AddressHandle::create(&pd, &to, 2, Uhw::none()).is_err());
    ah.destroy().expect("unused");
}

#[test]
fn memory_of_pages_is_copied_in_and_out_within_its_bounds() {
    let model = Model::new(Settings::newest());
    let memory = Arc::into_inner(pages(&model, 1)).expect("only one");
    assert_eq!(memory.len(), PAGE);
    assert!(memory.write(PAGE - 2, &[1, 2]));
    assert!(!memory.write(PAGE - 1, &[1, 2]));
    let mut out = [0; 2];
    assert!(memory.read(PAGE - 2, &mut out));
    assert_eq!(out, [1, 2]);
    assert!(!memory.read(usize::MAX, &mut out));
    drop(memory);
    assert_eq!(model.leftovers(), Vec::<String>::new());
}

#[test]
fn a_child_after_fork_does_not_unmap_what_it_does_not_have() {
    let model = Model::new(Settings::newest());
    let memory = pages(&model, 1);
    model.fork();
    drop(memory);
    assert_eq!(model.leftovers().len(), 1);
}
