//! The datapath over the model of a kernel: what the kernel is told, what is rung, and what is left behind. Whether messages
//! arrive is tested where there is a device.

use std::sync::Arc;

use directverbs::bnxt_re::caps::context_bits;
use directverbs::bnxt_re::cq::CqState;
use directverbs::bnxt_re::qp::QueuePairState;
use directverbs::verbs::{
    AccessFlags, CompletionQueue as _, Device as _, Gid, Mac, MemoryRegion, Mtu, MwType, Psn, QpAttributes,
    QpCapabilities, QpInit, QpState, QpType, QueuePair as _, RKey, RecvRequest, SendRequest, Sge,
    SharedReceiveQueue as _, SrqInit,
};
use rustix::io::Errno;
use zerocopy::FromBytes;

use super::{CompletionQueue, Device, QueuePair, Settings};
use crate::bnxt_re::abi::{CqRequest, FIXED_NUM_CQE, FIXED_QUE_ATTR};
use crate::bnxt_re::tests::{ALL, names, open, qp_request, settings, with_qp_number};
use crate::bnxt_re::{self, Context, CqOptions, ProtectionDomain};
use crate::error::{Error, Result};
use crate::host::Origin;
use crate::uverbs::Kernel;
use crate::uverbs::model::{self, Model, Request};

const ORIGIN: Origin = Origin { port: 1, gid: Gid([0xfe; 16]), gid_index: 3, mac: Mac([2; 6]) };
const CAPABILITIES: QpCapabilities = QpCapabilities {
    max_send_wr: 30,
    max_recv_wr: 30,
    max_send_sge: 2,
    max_recv_sge: 1,
    max_inline_data: 32,
};

/// A P7 without pacing: file 4, events 5, PD 6, CQ 7, toggle page 8, QP 9.
fn p7() -> model::Settings {
    with_qp_number(settings(ALL & !context_bits::DBR_PACING_ENABLED), 9 + 0x100)
}

fn device(model: &Arc<Model>, settings: Settings) -> Device {
    Device::new(open(model).expect("opens"), ORIGIN, settings).expect("a device")
}

fn init(cq: &CompletionQueue) -> QpInit<'_, CompletionQueue, super::SharedReceiveQueue> {
    QpInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        signal_all: false,
    }
}

/// A queue pair that is ready to send.
fn ready(device: &mut Device) -> (CompletionQueue, QueuePair) {
    let pd = device.alloc_pd().expect("a domain");
    let mut cq = device.create_cq(100).expect("a queue");
    let mut qp = device.create_qp(&pd, &init(&cq)).expect("a queue pair");
    for attributes in to_rts(device) {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes).expect("a transition");
    }
    (cq, qp)
}

fn to_rts(device: &Device) -> [QpAttributes; 3] {
    use directverbs::verbs::{AddressVector, QpId};
    let port = device.port();
    let path = AddressVector { sgid_index: port.gid_index, ..AddressVector::new(port.gid, port.mac) };
    [
        QpAttributes { access: Some(AccessFlags::REMOTE_WRITE), ..QpAttributes::to(QpState::Init) },
        QpAttributes {
            path: Some(path),
            mtu: Some(Mtu::B1024),
            dest_qp: Some(QpId::truncated(9)),
            rq_psn: Some(Psn::default()),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(QpState::Rtr)
        },
        QpAttributes {
            sq_psn: Some(Psn::default()),
            timeout: Some(14),
            retry_count: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(1),
            ..QpAttributes::to(QpState::Rts)
        },
    ]
}

fn sent<'a>(log: &'a [Request], name: &str) -> &'a Request {
    log.iter().find(|r| r.name == name).expect("sent")
}

#[test]
fn rings_go_as_buffers_of_exact_size_where_the_kernel_takes_them() {
    let model = Model::new(p7());
    let mut device = device(&model, Settings::default());
    assert!(device.settings().direct);
    let _queues = ready(&mut device);
    let log = model.take_log();
    let cq = sent(&log, "CQ_CREATE");
    let uhw = CqRequest::read_from_bytes(cq.get("UHW_IN").expect("the driver's part")).expect("24 bytes");
    assert_eq!((uhw.cq_va.get(), uhw.comp_mask.get()), (0, FIXED_NUM_CQE));
    assert!(cq.get("BUF_UMEM").is_some());
    let qp = sent(&log, "QP_CREATE");
    let uhw = qp_request(qp);
    assert_eq!((uhw.qpsva.get(), uhw.comp_mask.get()), (0, FIXED_QUE_ATTR));
    assert!(uhw.sq_slots.get() != 0 && uhw.sq_npsn.get() != 0);
    assert!(qp.get("SQ_BUF_UMEM").is_some() && qp.get("RQ_BUF_UMEM").is_some());
}

#[test]
fn rings_go_by_their_addresses_where_it_does_not_or_shall_not() {
    let older = model::Settings { umem: false, core_support: 1, ..p7() };
    // A kernel that promises to look at all of a request, and does not know the attributes, says so: then it is asked anew.
    let between = model::Settings { umem: false, ..p7() };
    let not_wanted = Settings { direct: false, ..Settings::default() };
    for (kernel, wish) in [(older, Settings::default()), (between, Settings::default()), (p7(), not_wanted)] {
        let model = Model::new(kernel);
        let mut device = device(&model, wish);
        let (cq, qp) = ready(&mut device);
        assert!(!device.settings().direct);
        let log = model.take_log();
        let uhw = qp_request(sent(&log, "QP_CREATE"));
        let ring = qp.control().send_ring().pages().expect("ours").address();
        assert_eq!((uhw.qpsva.get(), uhw.comp_mask.get(), uhw.sq_npsn.get()), (ring, 0, 0));
        let created = log.iter().rfind(|r| r.name == "CQ_CREATE").expect("sent");
        assert_eq!(created.get("BUF_UMEM"), None);
        let va = &created.get("UHW_IN").expect("the driver's part")[..8];
        assert_eq!(va, cq.control().ring().pages().expect("ours").address().to_le_bytes());
    }
}

#[test]
fn a_post_writes_the_ring_and_rings_the_page_of_the_context() {
    let model = Model::new(p7());
    let mut device = device(&model, Settings::default());
    let pd = device.alloc_pd().expect("a domain");
    let mut region = device.alloc_mr(&pd, 4096, AccessFlags::LOCAL_WRITE).expect("memory");
    assert!(region.write(5, b"ring") && !region.write(4094, b"ring"));
    let mut back = [0; 4];
    assert!(region.read(5, &mut back));
    assert_eq!(&back, b"ring");
    let model = Model::new(p7());
    let mut device = self::device(&model, Settings::default());
    let (mut cq, mut qp) = ready(&mut device);
    let page = device.context().doorbell().expect("a page").address();
    let sges = [Sge::new(0x1000, 64, directverbs::verbs::LKey::truncated(1))];
    let request = SendRequest::write(0x2000, RKey::truncated(2)).sges(&sges).signaled();
    qp.post_send(&mut cq, &[request]).expect("room");
    // Send queue 9 + 0x100; two slots of header and one SGE.
    assert_eq!(model.load(page), 1 << 58 | (9 + 0x100) << 32 | 3);
    let ring = qp.control().send_ring().pages().expect("ours").address();
    assert_eq!(model.load(ring + 32), 0x1000, "the address in the SGE");
    qp.post_recv(&mut cq, &[RecvRequest::new(1, &sges)]).expect("room");
    assert_eq!(model.load(page) >> 60, 1, "receive queue");
    cq.arm(false);
    assert_eq!(model.load(page) >> 32, 0x6400_0123 | 1 << 26, "completion queue 0x123, all");
}

#[test]
fn queues_are_described_where_they_are_and_as_far_as_they_came() {
    let model = Model::new(p7());
    let mut device = device(&model, Settings::default());
    let (mut cq, mut qp) = ready(&mut device);
    let context = device.context().clone();
    let page = context.doorbell().expect("a page");
    let told = context.describe(None);
    assert_eq!((told.doorbell, told.dpi, told.push), (page.address(), page.dpi().get(), 0));
    assert_eq!((told.generation, told.wqe_mode, told.slot_bytes), (7, 1, 16));

    let fresh = QueuePairState::fresh(QpState::Rts, Psn::default(), Mtu::B1024);
    let at_first = qp.control().describe(&context, &fresh).expect("a description");
    assert_eq!(qp.describe(&context).expect("a description"), at_first, "nothing was posted");
    qp.post_send(&mut cq, &[SendRequest::new(directverbs::verbs::SendOp::Send)]).expect("room");
    let told = qp.describe(&context).expect("a description");
    let ring = qp.control().send_ring().pages().expect("ours").address();
    assert_eq!((told.sq_ring, told.doorbell, told.sq_wqe, told.sq_msn), (ring, page.address(), 1, 1));
    let word = told.sq_doorbell_base | u64::from(told.sq_epoch) << 24 | u64::from(told.sq_slot);
    assert_eq!(word, model.load(page.address()), "the doorbell that was rung");
    assert_eq!((told.id, told.handle), (9 + 0x100, qp.control().handle()));
    assert_eq!((told.send_cq, told.recv_cq, told.srq), (0x123, 0x123, u32::MAX));

    let told = cq.describe(&context).expect("a description");
    let at_first = cq.control().describe(&context, &CqState::FRESH).expect("a description");
    assert_eq!(told, at_first, "nothing was polled");
    assert_eq!(told.ring, cq.control().ring().pages().expect("ours").address());
    assert_ne!(told.toggle, 0, "this device has toggle pages");
    cq.arm(false);
    assert_eq!(told.arm_all_base | u64::from(told.index), model.load(page.address()));
}

#[test]
fn a_queue_pair_with_a_region_of_its_own_is_described_with_that() {
    let model = Model::new(with_qp_number(settings(ALL & !context_bits::DBR_PACING_ENABLED), 10 + 0x100));
    let mut device = device(&model, Settings::default());
    let pd = device.alloc_pd().expect("a domain");
    let region = crate::bnxt_re::DoorbellRegion::alloc(device.context()).expect("a region");
    let cq = device.create_cq(100).expect("a queue");
    let qp = device.create_qp_in(&pd, &init(&cq), Some(&region)).expect("a queue pair");
    let told = qp.describe(device.context()).expect("a description");
    assert_eq!(told.doorbell, region.page().address());
}

#[test]
fn short_inline_requests_are_pushed_if_the_device_has_a_page_for_it() {
    let model = Model::new(p7());
    let mut device = device(&model, Settings::default());
    let (mut cq, mut qp) = ready(&mut device);
    assert!(qp.pushes());
    let page = device.context().doorbell().expect("a page").address();
    let data: [&[u8]; 1] = [b"0123456789abcdef"];
    let inline = SendRequest::new(directverbs::verbs::SendOp::Send).inline(&data);
    qp.post_send(&mut cq, &[inline]).expect("room");
    assert_eq!(model.load(page), 0, "no plain doorbell");
    let end = model.load(page + 16);
    assert_eq!(end & 0xff_ffff, 3, "the end of the push tells the new index");
    qp.post_send(&mut cq, &[inline, inline]).expect("room");
    assert_eq!(model.load(page) & 0xff_ffff, 9, "a batch is not pushed");

    let without = Settings { push: false, ..Settings::default() };
    let model = Model::new(p7());
    let mut device = self::device(&model, without);
    let (_, qp) = ready(&mut device);
    assert!(!qp.pushes());
    assert!(!names(&model.take_log()).contains(&"ALLOC_PAGE"));
}

#[test]
fn a_region_of_its_own_takes_the_doorbells_of_its_queue_pair() {
    // The region is object 8 and the toggle page 9.
    let model = Model::new(with_qp_number(settings(ALL & !context_bits::DBR_PACING_ENABLED), 10 + 0x100));
    let mut device = device(&model, Settings::default());
    let pd = device.alloc_pd().expect("a domain");
    let region = crate::bnxt_re::DoorbellRegion::alloc(device.context()).expect("a region");
    let mut cq = device.create_cq(100).expect("a queue");
    let mut qp = device.create_qp_in(&pd, &init(&cq), Some(&region)).expect("a queue pair");
    for attributes in to_rts(&device) {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes).expect("a transition");
    }
    qp.post_send(&mut cq, &[SendRequest::new(directverbs::verbs::SendOp::Send)]).expect("room");
    assert_ne!(model.load(region.page().address()), 0);
    assert_eq!(model.load(device.context().doorbell().expect("a page").address()), 0);
    assert!(matches!(region.free(), Err(Error::InUse { .. })));
}

#[test]
fn a_completion_queue_needs_no_protection_domain_of_the_program() {
    let model = Model::new(p7());
    let mut device = device(&model, Settings::default());
    model.take_log();
    let cq = device.create_cq(100).expect("a queue");
    assert!(names(&model.take_log()).contains(&"ALLOC_PD"));
    device.destroy_cq(cq).expect("unused");
    drop(device);
    assert_eq!(model.leftovers(), Vec::<String>::new());
}

#[test]
fn memory_windows_are_not_there_and_numbers_of_nothing_are_refused() {
    let model = Model::new(p7());
    let mut device = device(&model, Settings::default());
    assert!(!device.attributes().memory_windows);
    assert!(device.dealloc_mw(RKey::truncated(0x100)).is_err());
    assert!(device.destroy_ah(directverbs::verbs::AhId::truncated(5)).is_err());
    let pd = device.alloc_pd().expect("a domain");
    let window = device.alloc_mw(&pd, MwType::Type2).expect("the model has them");
    // A bind changes the low byte.
    device.dealloc_mw(RKey::truncated(window.get() | 0x55)).expect("the same window");
}

#[test]
fn a_resize_that_the_kernel_refuses_leaves_the_queue_as_it_was() {
    let model = Model::new(p7());
    let mut device = device(&model, Settings::default());
    let mut cq = device.create_cq(100).expect("a queue");
    let entries = cq.entries();
    model.fail_at(1, Errno::NOMEM);
    assert!(device.resize_cq(&mut cq, 400).is_err());
    assert_eq!((cq.entries(), cq.control().plan().entries), (entries, entries));
    device.resize_cq(&mut cq, 400).expect("larger");
    assert!(cq.control().plan().entries > entries);
    let again = device.resize_cq(&mut cq, 100);
    assert!(matches!(again, Err(Error::Memory { .. })), "the first is under way");
}

/// All that a device has, made and undone; an early return leaves the rest to be dropped.
fn everything(model: &Arc<Model>, settings: Settings) -> Result<()> {
    let mut device = Device::new(open(model)?, ORIGIN, settings)?;
    let pd = device.alloc_pd()?;
    let region = device.alloc_mr(&pd, 100, AccessFlags::LOCAL_WRITE)?;
    let mut cq = device.create_cq(100)?;
    let mut srq = device.create_srq(&pd, SrqInit { max_wr: 50, max_sge: 1 })?;
    let init = QpInit { srq: Some(&srq), ..init(&cq) };
    let mut qp = device.create_qp(&pd, &init)?;
    for attributes in to_rts(&device) {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes)?;
    }
    let sges = [Sge::new(region.addr(), 8, region.lkey())];
    srq.post_recv(&[RecvRequest::new(1, &sges)]).expect("room");
    srq.arm_limit(1);
    device.resize_cq(&mut cq, 300)?;
    device.modify_qp(&mut qp, &mut [&mut cq], &QpAttributes::to(QpState::Reset))?;
    device.destroy_qp(qp, &mut [&mut cq])?;
    device.destroy_srq(srq)?;
    device.destroy_cq(cq)?;
    device.dealloc_mr(region)?;
    device.dealloc_pd(pd)
}

#[test]
fn whichever_call_fails_nothing_stays_open_mapped_or_registered() {
    for (mask, qp, wish) in [
        // Pacing pages 6 and 7, PD 8, MR 9, CQ 10, toggle 11, SRQ 12, toggle 13, QP 14.
        (ALL, 14, Settings::default()),
        (ALL & !context_bits::DBR_PACING_ENABLED, 12, Settings { direct: false, push: false }),
    ] {
        let settings = with_qp_number(settings(mask), qp + 0x100);
        let whole = Model::new(settings.clone());
        whole.fail_at(usize::MAX, Errno::IO);
        everything(&whole, wish).expect("all of it");
        assert_eq!(whole.leftovers(), Vec::<String>::new());
        for call in 0..whole.calls() {
            for errno in [Errno::INVAL, Errno::NOMEM, Errno::OPNOTSUPP, Errno::IO] {
                let model = Model::new(settings.clone());
                model.fail_at(call, errno);
                if let Err(error) = everything(&model, wish) {
                    assert!(!error.to_string().contains('\n'), "{error}");
                }
                assert_eq!(model.leftovers(), Vec::<String>::new(), "call {call} failed with {errno}");
            }
        }
    }
}

#[test]
fn an_imported_contexts_objects_are_left_to_their_owner() {
    // Context 4 and events 5 of the other library, its PD 6, CQ 7 and toggle page 8.
    let model = Model::new(settings(ALL & !context_bits::DBR_PACING_ENABLED));
    let theirs = open(&model).expect("opens");
    let their_pd = ProtectionDomain::alloc(&theirs).expect("a domain");
    let their_cq = bnxt_re::CompletionQueue::create(&theirs, 100, &CqOptions::default()).expect("a queue");
    let before = model.leftovers();

    let kernel: Arc<dyn Kernel> = Arc::clone(&model) as _;
    let context = Context::import_as(kernel, theirs.generic().file().fd(), *theirs.reply()).expect("taken");
    let mut device = Device::new(context.clone(), ORIGIN, Settings::default()).expect("a device");
    let pd = ProtectionDomain::import(&context, their_pd.generic().handle());
    let (ring, entries) = (their_cq.ring().pages().expect("memory").clone(), their_cq.plan().entries);
    let handle = their_cq.object().handle();
    let import = |entries| {
        bnxt_re::CompletionQueue::import(&context, handle, their_cq.id(), &ring, entries).map(|cq| cq.id())
    };
    assert!(matches!(import(entries * 1000), Err(Error::Limit { attribute: "entries", .. })));
    assert!(matches!(import(entries * 2), Err(Error::Limit { attribute: "bytes of the ring", .. })));
    let control = bnxt_re::CompletionQueue::import(&context, handle, their_cq.id(), &ring, entries);
    let cq = device.attach_cq(control.expect("fits")).expect("a queue");
    let region = device.alloc_mr(&pd, 100, AccessFlags::LOCAL_WRITE).expect("memory");
    model.take_log();
    // What is ours goes, in whatever order; what is theirs stays, and is theirs to destroy.
    device.dealloc_mr(region).expect("unused");
    device.destroy_cq(cq).expect("never destroyed here");
    device.dealloc_pd(pd).expect("never destroyed here");
    drop((device, context));
    let domain = their_pd.generic().handle();
    let theirs_too = |r: &&Request| r.name == "PD_DESTROY" && r.number("HANDLE") == Some(domain.into());
    let log = model.take_log();
    assert!(!names(&log).contains(&"CQ_DESTROY"));
    assert!(log.iter().find(theirs_too).is_none());
    assert_eq!(model.leftovers(), before);
    drop(ring);
    their_cq.destroy().expect("unused");
    their_pd.destroy().expect("unused");
    drop(theirs);
    assert_eq!(model.leftovers(), Vec::<String>::new());
}
