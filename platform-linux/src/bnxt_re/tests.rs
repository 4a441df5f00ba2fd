//! The driver's part over the model of a kernel.

use std::path::Path;
use std::sync::Arc;

use directverbs::bnxt_re::caps::{Generation, context_bits};
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::queue::Doorbell;
use directverbs::verbs::{
    AccessFlags, AddressVector, Gid, Mac, QpAttributes, QpCapabilities, QpState, QpType, SrqInit,
};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::abi::{self, ContextReply, CqReply, CqRequest, DbRegion, PdReply, QpReply, QpRequest, SrqReply};
use super::*;
use crate::error::Error;
use crate::objects::Buffer;
use crate::uverbs::abi::attribute::Spec;
use crate::uverbs::abi::packet::BufferDescriptor;
use crate::uverbs::model::{Model, PAGE, Request, Settings};
use crate::uverbs::{Kernel, Pages};

pub(super) const ALL: u64 = context_bits::HAVE_CCTX
    | context_bits::HAVE_MODE
    | context_bits::WC_DPI_ENABLED
    | context_bits::DBR_PACING_ENABLED
    | context_bits::POW2_DISABLED
    | context_bits::MSN_TABLE_ENABLED
    | context_bits::QP_RATE_LIMIT_ENABLED
    | abi::TOGGLE_BY_HANDLE;

const DBR_HANDLE: &[(&str, Spec)] = &[("QP_CREATE", abi::QP_DBR_HANDLE.optional())];

/// A P7 of Linux 7.3, with `comp_mask` of its features.
pub(super) fn settings(comp_mask: u64) -> Settings {
    let context = ContextReply {
        pg_size: (PAGE as u32).into(),
        cqe_sz: 32.into(),
        max_cqd: 4096.into(),
        comp_mask: comp_mask.into(),
        chip_id0: 0x1760.into(),
        mode: 1.into(),
        ..ContextReply::ZERO
    };
    let pd = PdReply { pdid: 7.into(), dpi: 9.into(), dbr: 0x5000.into() };
    let cq =
        CqReply { cqid: 0x123.into(), phase: 1.into(), comp_mask: abi::TOGGLE_PAGE.into(), ..CqReply::ZERO };
    let srq = SrqReply { srqid: 0x45.into(), comp_mask: abi::TOGGLE_PAGE.into(), ..SrqReply::ZERO };
    let region = DbRegion { dpi: 11.into(), ..DbRegion::ZERO };
    let default = DbRegion { dpi: 9.into(), ..DbRegion::ZERO };
    let u32s = |v: u32| v.to_le_bytes().to_vec();
    let u64s = |v: u64| v.to_le_bytes().to_vec();
    let page = PAGE as u32;
    Settings {
        uhw: vec![
            ("GET_CONTEXT", context.as_bytes().to_vec()),
            ("ALLOC_PD", pd.as_bytes().to_vec()),
            ("CQ_CREATE", cq.as_bytes().to_vec()),
            ("SRQ_CREATE", srq.as_bytes().to_vec()),
        ],
        methods: abi::METHODS,
        attributes: DBR_HANDLE,
        outputs: vec![
            ("DBR_ALLOC", "ATTR", region.as_bytes().to_vec()),
            ("DBR_ALLOC", "OFFSET", u64s(0x7000)),
            ("GET_DEFAULT_DBR", "ATTR", default.as_bytes().to_vec()),
            ("ALLOC_PAGE", "DPI", u32s(0x234)),
            ("ALLOC_PAGE", "MMAP_OFFSET", u64s(0x9000)),
            ("ALLOC_PAGE", "MMAP_LENGTH", u32s(page)),
            ("GET_TOGGLE_MEM", "MMAP_PAGE", u64s(0xb000)),
            ("GET_TOGGLE_MEM", "MMAP_OFFSET", u32s(0)),
            ("GET_TOGGLE_MEM", "MMAP_LENGTH", u32s(page)),
        ],
        ..Settings::newest()
    }
}

pub(super) fn open(model: &Arc<Model>) -> Result<Context, Error> {
    Context::open_path(Arc::clone(model) as Arc<dyn Kernel>, Path::new("/dev/infiniband/uverbs0"))
}

fn opened(settings: Settings) -> (Arc<Model>, Context) {
    let model = Model::new(settings);
    let context = open(&model).expect("opens");
    model.take_log();
    (model, context)
}

pub(super) fn names(log: &[Request]) -> Vec<&'static str> {
    log.iter().map(|r| r.name).collect()
}

fn init<'a>(cq: &'a CompletionQueue) -> QueuePairInit<'a> {
    QueuePairInit {
        qp_type: QpType::Rc,
        capabilities: QpCapabilities {
            max_send_wr: 60,
            max_recv_wr: 30,
            max_send_sge: 2,
            max_recv_sge: 1,
            max_inline_data: 0,
        },
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        signal_all: false,
        send_buffer: None,
        recv_buffer: None,
        region: None,
    }
}

fn memory(model: &Arc<Model>, length: usize) -> Arc<Pages> {
    Arc::new(Pages::new(&(Arc::clone(model) as Arc<dyn Kernel>), length).expect("memory"))
}

pub(super) fn qp_request(sent: &Request) -> QpRequest {
    QpRequest::read_from_bytes(sent.get("UHW_IN").expect("the driver's part")).expect("40 bytes")
}

/// The model numbers queue pairs by their handle; the driver's reply says the same.
pub(super) fn with_qp_number(mut settings: Settings, number: u32) -> Settings {
    let reply = QpReply { qpid: number.into(), ..QpReply::ZERO };
    settings.uhw.push(("QP_CREATE", reply.as_bytes().to_vec()));
    settings
}

#[test]
fn opening_asks_for_variable_wqes_and_takes_them_only_if_the_reply_says_so() {
    let model = Model::new(settings(ALL));
    let context = open(&model).expect("opens");
    let log = model.take_log();
    assert_eq!(names(&log), ["GET_CONTEXT", "ASYNC_EVENT_ALLOC", "QUERY_DEVICE", "mmap"]);
    assert_eq!(log[0].get("UHW_IN"), Some(&[3, 0, 0, 0, 0, 0, 0, 0][..]));
    // The shared page is at 0, and read and written.
    assert_eq!((log[3].number("OFFSET"), log[3].number("LENGTH")), (Some(0), Some(PAGE as u64)));
    let caps = context.caps();
    assert_eq!((caps.generation, caps.wqe_mode, caps.msn_table), (Generation::P7, WqeMode::Variable, true));
    assert_eq!((caps.limits.max_qp_wr, caps.limits.max_srq_sge), (1024, 6));
    let (_model, context) = opened(settings(ALL & !context_bits::HAVE_MODE));
    assert_eq!(context.caps().wqe_mode, WqeMode::Static);
}

#[test]
fn an_older_kernels_short_reply_has_its_features_off() {
    let mut short = settings(ALL);
    short.uhw[0].1.truncate(32);
    let (_model, context) = opened(short);
    // The chip's number and the mode are not there, so neither counts; what is there does.
    assert_eq!(context.caps().wqe_mode, WqeMode::Static);
    assert!(context.caps().msn_table);
}

#[test]
fn a_page_size_that_is_not_this_machines_is_refused_and_the_file_closed() {
    let mut odd = settings(ALL);
    odd.uhw[0].1[8..12].copy_from_slice(&65536u32.to_le_bytes());
    let model = Model::new(odd);
    assert!(matches!(open(&model), Err(Error::Reply { method: "GET_CONTEXT", .. })));
    assert_eq!(model.leftovers(), Vec::<String>::new());
}

#[test]
fn the_first_protection_domain_brings_the_doorbell_page_and_it_stays() {
    let (model, context) = opened(settings(ALL));
    assert!(context.doorbell().is_none());
    let first = ProtectionDomain::alloc(&context).expect("a domain");
    let log = model.take_log();
    assert_eq!(names(&log), ["ALLOC_PD", "mmap"]);
    assert_eq!(log[1].number("OFFSET"), Some(0x5000));
    let page = context.doorbell().expect("a page");
    assert_eq!((page.dpi().get(), first.id().map(|id| id.get())), (9, Some(7)));
    page.store(0, 0x1122_3344_5566_7788);
    page.store(usize::MAX, 1);
    let second = ProtectionDomain::alloc(&context).expect("another");
    assert_eq!(names(&model.take_log()), ["ALLOC_PD"]);
    drop((first, second));
    assert!(context.doorbell().is_some());
}

#[test]
fn a_doorbell_region_is_unmapped_and_freed_after_the_queue_pairs_that_ring_there() {
    // File 4, events 5, PD 6, CQ 7, toggle 8, region 9, QP 10.
    let (model, context) = opened(with_qp_number(settings(ALL), 10 + 0x100));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    model.take_log();
    let region = DoorbellRegion::alloc(&context).expect("a region");
    let log = model.take_log();
    assert_eq!(names(&log), ["DBR_ALLOC", "mmap"]);
    assert_eq!(log[1].number("OFFSET"), Some(0x7000));
    assert_eq!(region.page().dpi().get(), 11);
    let qp =
        QueuePair::create(&pd, &QueuePairInit { region: Some(&region), ..init(&cq) }).expect("a queue pair");
    assert_eq!(model.only().number("DBR_HANDLE"), Some(9));
    let in_use = Arc::clone(&region).free();
    assert!(matches!(in_use, Err(Error::InUse { object: "doorbell region", .. })));
    drop(region);
    assert_eq!(model.take_log(), []);
    drop(qp);
    assert_eq!(names(&model.take_log()), ["QP_DESTROY", "DBR_FREE"]);
    let alone = DoorbellRegion::alloc(&context).expect("a region");
    alone.free().expect("nobody rings there");
}

#[test]
fn the_default_region_comes_with_a_protection_domain_and_is_asked_for() {
    let (model, context) = opened(settings(ALL));
    assert!(matches!(DoorbellRegion::default_of(&context), Err(Error::Value { .. })));
    let _pd = ProtectionDomain::alloc(&context).expect("a domain");
    model.take_log();
    assert_eq!(DoorbellRegion::default_of(&context).expect("the default").dpi().get(), 9);
    assert_eq!(names(&model.take_log()), ["GET_DEFAULT_DBR"]);
}

#[test]
fn an_older_kernel_without_regions_says_what_it_takes() {
    let (_model, context) = opened(Settings { methods: &[], ..settings(ALL) });
    let error = DoorbellRegion::alloc(&context).expect_err("Linux 6.12");
    assert!(error.is_absent() && error.to_string().contains("Linux 7.2"), "{error}");
}

#[test]
fn a_completion_queue_has_the_planned_ring_and_its_toggle_page() {
    let (model, context) = opened(settings(ALL));
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    let log = model.take_log();
    assert_eq!(names(&log), ["CQ_CREATE", "GET_TOGGLE_MEM", "mmap"]);
    let request =
        CqRequest::read_from_bytes(log[0].get("UHW_IN").expect("the driver's part")).expect("24 bytes");
    let Ring::Own(ring) = cq.ring() else { panic!("its own") };
    assert_eq!((request.cq_va.get(), request.comp_mask.get()), (ring.address(), 0));
    assert_eq!(log[0].number("CQE"), Some(cq.plan().cqe.into()));
    assert!(ring.len() >= cq.plan().entries as usize * 32);
    assert_eq!((cq.id().get(), cq.has_toggle_page(), cq.toggle().get()), (0x123, true, 0));
    // By the kernel's handle, where the driver knows it.
    assert_eq!(log[1].number("CQ_HANDLE"), Some(cq.object().handle().into()));
    assert!(log[1].get("TYPE").is_none());
    cq.destroy().expect("nobody completes here");
    assert_eq!(names(&model.take_log()), ["TOGGLE_MEM_RELEASE", "CQ_DESTROY"]);
}

#[test]
fn an_older_driver_is_asked_for_toggle_pages_by_number_and_may_have_none() {
    let (model, context) = opened(settings(ALL & !abi::TOGGLE_BY_HANDLE));
    let _cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    let log = model.take_log();
    assert_eq!((log[1].number("TYPE"), log[1].number("RES_ID")), (Some(0), Some(0x123)));
    assert!(log[1].get("CQ_HANDLE").is_none());
    // The reply says that there is one, and then there is none: no reason to fail.
    model.fail_at(1, Errno::OPNOTSUPP);
    // Call 0 of these maps the ring, 1 creates the queue.
    assert!(CompletionQueue::create(&context, 100, &CqOptions::default()).is_err());
    model.fail_at(2, Errno::OPNOTSUPP);
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    assert!(!cq.has_toggle_page());
}

#[test]
fn a_kernel_before_7_2_is_sent_the_request_that_it_knows() {
    let older = Settings { core_support: 1, umem: false, ..settings(ALL) };
    let (model, context) = opened(older);
    let _cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    let log = model.take_log();
    assert_eq!(log[0].get("UHW_IN").map(<[u8]>::len), Some(16));
    let ring = memory(&model, 1 << 20);
    let buffer = Buffer::Memory { pages: ring, offset: 0, length: 1 << 20 };
    let options = CqOptions { buffer: Some(buffer), ..CqOptions::default() };
    let error = CompletionQueue::create(&context, 100, &options).expect_err("Linux 6.12");
    assert!(error.is_absent() && error.to_string().contains("7.2"), "{error}");
}

#[test]
fn a_completion_queue_in_the_applications_memory_has_exactly_the_planned_entries() {
    let (model, context) = opened(settings(ALL));
    let pages = memory(&model, 1 << 20);
    let at = |length| Buffer::Memory { pages: Arc::clone(&pages), offset: 2 * PAGE as u64, length };
    let create = |length| {
        CompletionQueue::create(
            &context,
            100,
            &CqOptions { buffer: Some(at(length)), ..CqOptions::default() },
        )
    };
    let cq = create(1 << 16).expect("a queue");
    let log = model.take_log();
    let request =
        CqRequest::read_from_bytes(log[0].get("UHW_IN").expect("the driver's part")).expect("24 bytes");
    assert_eq!((request.cq_va.get(), request.comp_mask.get()), (0, abi::FIXED_NUM_CQE));
    assert_eq!(log[0].number("CQE"), Some(cq.plan().entries.into()));
    let umem = BufferDescriptor::read_from_bytes(log[0].get("BUF_UMEM").expect("memory")).expect("32 bytes");
    assert_eq!((umem.addr.get(), umem.length.get()), (pages.address() + 2 * PAGE as u64, 1 << 16));
    let error = create(u64::from(cq.plan().bytes) - 1).expect_err("too short").to_string();
    assert!(error.contains("buffer length"), "{error}");
}

#[test]
fn a_completion_queue_is_resized_to_a_new_ring_and_keeps_the_old_on_failure() {
    let (model, context) = opened(settings(ALL));
    let mut cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    model.take_log();
    let before = *cq.plan();
    model.fail_at(1, Errno::NOMEM);
    assert!(cq.resize(&context, 500).is_err());
    assert_eq!(*cq.plan(), before);
    model.fail_at(usize::MAX, Errno::NOMEM);
    let Ring::Own(old) = cq.ring() else { panic!("its own") };
    let old = old.address();
    model.take_log();
    let kept = cq.resize(&context, 500).expect("larger");
    let Ring::Own(new) = cq.ring() else { panic!("its own") };
    assert_eq!(kept.address(), old);
    assert_eq!(model.only().get("UHW_IN"), Some(&new.address().to_le_bytes()[..]));
    assert!(cq.plan().entries > before.entries);
}

#[test]
fn a_queue_pair_of_its_own_memory_names_rings_handle_and_slots() {
    let (model, context) = opened(with_qp_number(settings(ALL), 9 + 0x100));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    model.take_log();
    let qp = QueuePair::create(&pd, &init(&cq)).expect("a queue pair");
    let sent = model.only();
    let request = qp_request(&sent);
    let (Ring::Own(send), Some(Ring::Own(recv))) = (qp.send_ring(), qp.recv_ring()) else {
        panic!("its own")
    };
    assert_eq!((request.qpsva.get(), request.qprva.get()), (send.address(), recv.address()));
    assert_eq!(request.qp_handle.get(), u64::from(qp.handle()));
    assert_ne!(qp.handle(), 0);
    assert_eq!(
        (request.comp_mask.get(), request.sq_slots.get(), request.sq_npsn.get()),
        (0, qp.plan().send.slots, 0)
    );
    assert!(sent.get("SQ_BUF_UMEM").is_none() && sent.get("DBR_HANDLE").is_none());
    let cap: Vec<u8> = [60u32, 30, 2, 1, 0].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(sent.get("CAP"), Some(&cap[..]));
}

#[test]
fn static_mode_names_no_slots() {
    let (model, context) = opened(with_qp_number(settings(ALL & !context_bits::HAVE_MODE), 9 + 0x100));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    model.take_log();
    let _qp = QueuePair::create(&pd, &init(&cq)).expect("a queue pair");
    assert_eq!(qp_request(&model.only()).sq_slots.get(), 0);
}

#[test]
fn a_queue_pair_in_the_applications_memory_has_exactly_the_planned_sizes() {
    let (model, context) = opened(with_qp_number(settings(ALL), 9 + 0x100));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    let pages = memory(&model, 1 << 20);
    let at = |offset, length| Some(Buffer::Memory { pages: Arc::clone(&pages), offset, length });
    model.take_log();
    let both = QueuePairInit { send_buffer: at(0, 1 << 16), recv_buffer: at(1 << 16, 1 << 16), ..init(&cq) };
    let short = QueuePairInit { send_buffer: at(0, PAGE as u64), ..both.clone() };
    assert!(QueuePair::create(&pd, &short).expect_err("too short").to_string().contains("buffer length"));
    let odd = QueuePairInit { send_buffer: at(8, 1 << 16), ..both.clone() };
    assert!(QueuePair::create(&pd, &odd).expect_err("no page's begin").to_string().contains("buffer offset"));
    let alone = QueuePairInit { send_buffer: None, ..both.clone() };
    assert!(matches!(QueuePair::create(&pd, &alone), Err(Error::Value { attribute: "receive buffer", .. })));
    assert_eq!(model.take_log(), []);
    let qp = QueuePair::create(&pd, &both).expect("a queue pair");
    let sent = model.only();
    let request = qp_request(&sent);
    let plan =
        directverbs::bnxt_re::plan::QpPlan::new(context.caps(), &both.capabilities, false).expect("a plan");
    let direct =
        directverbs::bnxt_re::plan::DirectParameters::new(context.caps(), &plan).expect("parameters");
    assert_eq!(
        (request.qpsva.get(), request.qprva.get(), request.comp_mask.get()),
        (0, 0, abi::FIXED_QUE_ATTR)
    );
    assert_eq!((request.sq_slots.get(), request.sq_npsn.get()), (direct.sq_slots, direct.sq_npsn));
    let umem = |name| BufferDescriptor::read_from_bytes(sent.get(name).expect("memory")).expect("32 bytes");
    assert_eq!(umem("SQ_BUF_UMEM").addr.get(), pages.address());
    assert_eq!(umem("RQ_BUF_UMEM").addr.get(), pages.address() + (1 << 16));
    let cap = sent.get("CAP").expect("capabilities");
    assert_eq!(cap[..4], plan.send.wqes.to_le_bytes());
    assert_eq!(cap[4..8], plan.recv.expect("a ring").wqes.to_le_bytes());
    assert_eq!(qp.direct(), Some(&direct));
}

#[test]
fn a_queue_pair_with_a_shared_receive_queue_has_no_receive_ring() {
    // PD 6, CQ 7, toggle 8, SRQ 9, toggle 10, QP 11.
    let (model, context) = opened(with_qp_number(settings(ALL), 11 + 0x100));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    let srq = SharedReceiveQueue::create(&pd, SrqInit { max_wr: 50, max_sge: 2 }).expect("a queue");
    assert_eq!((srq.id().get(), srq.plan().entries), (0x45, 51));
    let log = model.take_log();
    assert_eq!(log.last().map(|r| r.name), Some("mmap"));
    let qp = QueuePair::create(&pd, &QueuePairInit { srq: Some(&srq), ..init(&cq) }).expect("a queue pair");
    let sent = model.only();
    assert_eq!((qp_request(&sent).qprva.get(), qp.recv_ring().is_none()), (0, true));
    assert_eq!(sent.number("SRQ_HANDLE"), Some(srq.object().handle().into()));
}

#[test]
fn more_than_the_device_has_is_refused_by_the_plan_and_not_sent() {
    let (model, context) = opened(settings(ALL));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    model.take_log();
    let error =
        CompletionQueue::create(&context, 5000, &CqOptions::default()).expect_err("too many").to_string();
    assert!(
        error.starts_with("completion queue: ") && error.contains("5000") && error.contains("4096"),
        "{error}"
    );
    let mut large = init(&cq);
    large.capabilities.max_inline_data = 4096;
    let error = QueuePair::create(&pd, &large).expect_err("too many").to_string();
    assert!(error.contains("max_inline_data") && error.contains("4096"), "{error}");
    assert_eq!(model.take_log(), []);
}

#[test]
fn an_answer_that_makes_no_sense_is_an_error_and_leaves_nothing() {
    let spoilt: [(&str, usize, u32); 4] =
        [("CQ_CREATE", 0, 1 << 20), ("CQ_CREATE", 4, 1), ("CQ_CREATE", 8, 0), ("ALLOC_PD", 4, 1 << 20)];
    for (name, at, value) in spoilt {
        let mut settings = settings(ALL);
        let (_, reply) = settings.uhw.iter_mut().find(|(n, _)| *n == name).expect("a reply");
        reply[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let model = Model::new(settings);
        let result = open(&model).and_then(|context| {
            ProtectionDomain::alloc(&context)?;
            CompletionQueue::create(&context, 100, &CqOptions::default())
        });
        assert!(matches!(result, Err(Error::Reply { .. })), "{name} {at}");
        assert_eq!(model.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn the_push_page_is_one_for_a_context_and_only_where_there_is_push() {
    let (model, context) = opened(settings(ALL));
    let page = context.push_page().expect("a page");
    let log = model.take_log();
    assert_eq!(names(&log), ["ALLOC_PAGE", "mmap"]);
    assert_eq!((log[0].number("TYPE"), log[1].number("OFFSET")), (Some(0), Some(0x9000)));
    assert!(Arc::ptr_eq(&page, &context.push_page().expect("the same")));
    assert_eq!(model.take_log(), []);
    assert!(page.buffer(15).is_ok() && page.buffer(16).is_err());
    let (model, context) = opened(settings(ALL & !context_bits::WC_DPI_ENABLED));
    assert!(matches!(context.push_page(), Err(Error::Unsupported { .. })));
    assert_eq!(model.take_log(), []);
}

#[test]
fn pacing_pages_are_read_only_and_the_driver_can_be_told() {
    let (model, context) = opened(settings(ALL));
    let pacing = PacingPages::map(&context).expect("pages").expect("a device with pacing");
    let log = model.take_log();
    assert_eq!(names(&log), ["ALLOC_PAGE", "mmap", "ALLOC_PAGE", "mmap"]);
    assert_eq!((log[0].number("TYPE"), log[2].number("TYPE")), (Some(2), Some(1)));
    // Protection 0: reading.
    assert_eq!((log[1].number("PROTECTION"), log[3].number("PROTECTION")), (Some(0), Some(0)));
    let parameters = pacing.parameters();
    assert_eq!((parameters.do_pacing, pacing.register(&parameters)), (0, 0));
    pacing.notify().expect("told");
    assert_eq!(names(&model.take_log()), ["NOTIFY_DRV"]);
    let (_model, context) = opened(settings(ALL & !context_bits::DBR_PACING_ENABLED));
    assert!(PacingPages::map(&context).expect("nothing to do").is_none());
}

#[test]
fn an_address_handles_number_comes_in_the_shared_page() {
    let (model, context) = opened(settings(ALL));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    model.take_log();
    let to = AddressVector::new(Gid::default(), Mac::default());
    let (handle, id) = context.create_ah(&pd, &to, 1).expect("a handle");
    assert_eq!(id.get(), 0);
    handle.destroy().expect("unused");
    assert_eq!(names(&model.take_log()), ["CREATE_AH", "AH_DESTROY"]);
}

#[test]
fn a_rate_limit_takes_a_device_that_has_it() {
    let (_model, context) =
        opened(with_qp_number(settings(ALL & !context_bits::QP_RATE_LIMIT_ENABLED), 9 + 0x100));
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 100, &CqOptions::default()).expect("a queue");
    let mut qp = QueuePair::create(&pd, &init(&cq)).expect("a queue pair");
    assert!(matches!(
        qp.set_rate_limit(&context, 1000),
        Err(Error::Unsupported { feature: "a rate limit", .. })
    ));
    qp.modify(&QpAttributes { access: Some(AccessFlags::empty()), ..QpAttributes::to(QpState::Init) }, 1)
        .expect("INIT");
}

#[test]
fn whichever_call_fails_nothing_stays_open_mapped_or_registered() {
    let everything = |model: &Arc<Model>| -> Result<(), Error> {
        let context = open(model)?;
        let pd = ProtectionDomain::alloc(&context)?;
        let region = DoorbellRegion::alloc(&context)?;
        let push = context.push_page()?;
        let pacing = PacingPages::map(&context)?;
        let cq = CompletionQueue::create(&context, 100, &CqOptions::default())?;
        let srq = SharedReceiveQueue::create(&pd, SrqInit { max_wr: 50, max_sge: 2 })?;
        let pages = Arc::new(Pages::new(&(Arc::clone(model) as Arc<dyn Kernel>), 1 << 17)?);
        let buffer = Buffer::Memory { pages, offset: 0, length: 1 << 17 };
        let with =
            QueuePairInit { srq: Some(&srq), send_buffer: Some(buffer), region: Some(&region), ..init(&cq) };
        let qp = QueuePair::create(&pd, &with)?;
        drop((context, pd, region, push, pacing, srq));
        drop(cq);
        drop(qp);
        Ok(())
    };
    // PD 6, region 7, push 8, pacing 9 and 10, CQ 11, toggle 12, SRQ 13, toggle 14, QP 15.
    let settings = with_qp_number(settings(ALL), 15 + 0x100);
    let whole = Model::new(settings.clone());
    whole.fail_at(usize::MAX, Errno::IO);
    everything(&whole).expect("all of it");
    assert_eq!(whole.leftovers(), Vec::<String>::new());
    let calls = whole.calls();
    assert!(calls > 25, "{calls} calls");
    for call in 0..calls {
        for errno in
            [Errno::INVAL, Errno::NOMEM, Errno::OPNOTSUPP, Errno::PROTONOSUPPORT, Errno::IO, Errno::AGAIN]
        {
            let model = Model::new(settings.clone());
            model.fail_at(call, errno);
            if let Err(error) = everything(&model) {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            assert_eq!(model.leftovers(), Vec::<String>::new(), "call {call} failed with {errno}");
        }
    }
}
