//! Public cases of the platform, groups A to D: doorbell and other pages, sizes, controller memory. Each test is named after
//! its case. The kernel is a made-up one that checks what it is told as strictly as the real one.
//!
//! Two cases cannot come up here, and have no test: D19, since no instruction is chosen by CPUID, and D25, since a preference
//! for controller memory has no bit for GPU access that could be set beside express doorbells.

mod common;

use std::sync::Arc;

use directverbs::bnxt_re::caps::{self, DeviceCaps, Generation, Limits, context_bits};
use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::bnxt_re::plan::{DirectParameters, QpPlan, VARIABLE_SLOT_ALIGN};
use directverbs::bnxt_re::wqe::WqeMode as CoreMode;
use directverbs::ionic::caps::{Caps, CapsError, ContextReply};
use directverbs::ionic::cmb::{CmbGrant, CmbPreference};
use directverbs::verbs::{
    AccessFlags, CompletionQueue as _, Device as _, Mtu, PostError, QpCapabilities, QpInit, QpState, QpType,
    QueuePair as _, RKey, RemoteAddress, SendOp, SendRequest, SrqInit,
};
use directverbs_fake_uverbs::{Errno, Profile, Release};
use directverbs_linux::bnxt_re::{
    CompletionQueue, CqOptions, DoorbellRegion, ProtectionDomain, QueuePair, QueuePairInit,
    SharedReceiveQueue, abi,
};
use directverbs_linux::objects::{Buffer, CqFlags, MemoryRegion};
use directverbs_linux::uverbs::{Pages, RingPages};
use directverbs_linux::{Error, bnxt_re, ionic};
use directverbs_softnic::open::{NicKind, WqeMode};

use common::*;

const ENABLE: CmbPreference = CmbPreference { enable: true, express: false, require: false };
const REQUIRE: CmbPreference = CmbPreference { require: true, ..ENABLE };

fn pages(machine: &directverbs_fake_uverbs::Machine, length: usize) -> Arc<Pages> {
    Arc::new(Pages::new(&kernel(machine), length).expect("memory"))
}

#[test]
fn a11_no_toggle_page_is_no_error() {
    // A P5 has none.
    let machine = machine(Profile::new(NicKind::BnxtReP5, Release::V7_3, 1));
    let context = bnxt_re(&machine);
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    assert!(!cq.has_toggle_page());
    assert_eq!(cq.toggle(), Toggle::ZERO);
    // A P7 whose driver refuses the question: the call after the creation itself.
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    machine.fail(Some((2, Errno::OPNOTSUPP)));
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue all the same");
    assert!(!cq.has_toggle_page());
}

#[test]
fn a12_the_toggle_call_carries_all_its_attributes() {
    // The made-up kernel refuses a call that lacks one.
    for release in Release::ALL {
        let machine = p7(release);
        let context = bnxt_re(&machine);
        let pd = ProtectionDomain::alloc(&context).expect("a domain");
        let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
        assert!(cq.has_toggle_page(), "Linux {release}");
        let srq = SharedReceiveQueue::create(&pd, SrqInit { max_wr: 16, max_sge: 1 }).expect("a queue");
        assert_eq!(srq.toggle(), Toggle::ZERO);
    }
}

#[test]
fn a13_a_toggle_page_belongs_to_its_context_and_goes_with_its_queue() {
    let machine = p7(Release::V7_3);
    let (ours, theirs) = (bnxt_re(&machine), bnxt_re(&machine));
    let cq = CompletionQueue::create(&theirs, 64, &CqOptions::default()).expect("a queue");
    let ring = RingPages::new(&kernel(&machine), 8192).expect("memory");
    let stolen = CompletionQueue::import(&ours, cq.object().handle(), cq.id(), &ring, 64);
    assert!(matches!(stolen, Err(Error::Call { object: "toggle page", .. })), "{stolen:?}");
    let before = machine.census();
    let second = CompletionQueue::create(&theirs, 64, &CqOptions::default()).expect("a queue");
    assert!(second.has_toggle_page());
    second.destroy().expect("unused");
    assert_eq!(machine.census(), before);
}

#[test]
fn a25_the_doorbell_page_is_where_the_reply_says() {
    // Two contexts have different pages, and each rings in its own: a store to a wrong place reaches no queue.
    for nic in [NicKind::BnxtReP5, NicKind::BnxtReP7] {
        let machine = machine(Profile::new(nic, Release::V7_3, 1));
        let domains = [(); 2].map(|()| ProtectionDomain::alloc(&bnxt_re(&machine)).expect("a domain"));
        let [a, b] = domains.each_ref().map(|pd| pd.context().doorbell().expect("a page"));
        assert_ne!(a.dpi(), b.dpi());
        assert_ne!(a.address(), b.address());
    }
}

#[test]
fn a26_a_page_that_cannot_be_mapped_is_an_error() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    // The allocation itself, then the mapping of the doorbell page.
    machine.fail(Some((1, Errno::NXIO)));
    let error = ProtectionDomain::alloc(&context).expect_err("no page").to_string();
    assert!(error.starts_with("doorbell page: mmap failed"), "{error}");
    assert!(context.doorbell().is_none());
}

#[test]
fn a27_the_push_page_is_allocated_once() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let first = context.push_page().expect("a page");
    let before = machine.census();
    assert!(Arc::ptr_eq(&first, &context.push_page().expect("the same")));
    assert_eq!(machine.census(), before);
    // Fifteen of its buffers have one owner each; the first is left alone.
    let claimed: Vec<_> = std::iter::from_fn(|| first.claim()).collect();
    assert_eq!(claimed.len(), 15);
    drop(claimed);
    assert!(first.claim().is_some());
}

#[test]
fn a28_a_region_in_use_is_not_freed() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    let region = DoorbellRegion::alloc(&context).expect("a region");
    let qp = QueuePair::create(&pd, &QueuePairInit { region: Some(&region), ..bnxt_re_qp(&cq) });
    let qp = qp.expect("a queue pair");
    assert!(matches!(Arc::clone(&region).free(), Err(Error::InUse { object: "doorbell region", .. })));
    qp.destroy().expect("unused");
    region.free().expect("unused");
}

#[test]
fn a29_the_doorbell_page_stays_until_the_context_is_closed() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let page = context.doorbell().expect("a page").address();
    pd.destroy().expect("unused");
    let mut device = open(&machine).expect("opens");
    let pd = device.alloc_pd().expect("a domain");
    let mut cq = device.create_cq(64).expect("a queue");
    device.dealloc_pd(pd).expect("unused");
    cq.arm(false);
    assert_eq!(context.doorbell().map(|p| p.address()), Some(page));
    drop((context, cq, device));
    assert!(machine.census().is_empty(), "{:?}", machine.census());
}

#[test]
fn b15_the_msn_table_is_a_capability_and_no_matter_of_the_generation() {
    for nic in [NicKind::BnxtReP5, NicKind::BnxtReP7] {
        let context = bnxt_re(&machine(Profile::new(nic, Release::V7_3, 1)));
        let told = context.reply().comp_mask.get() & context_bits::MSN_TABLE_ENABLED != 0;
        assert_eq!(context.caps().msn_table, told, "{nic}");
    }
    let reply =
        caps::ContextReply { comp_mask: context_bits::HAVE_CCTX, chip_id0: 0x1760, ..Default::default() };
    let caps = DeviceCaps::from_context(&reply, Limits::default());
    assert_eq!((caps.generation, caps.msn_table), (Generation::P7, false));
}

#[test]
fn b17_fixed_sizes_are_checked_before_the_kernel_is_asked() {
    let context = bnxt_re(&p7(Release::V7_3));
    let caps = context.caps();
    let plan = QpPlan::new(caps, &CAPABILITIES, false).expect("fits");
    let good = DirectParameters::new(caps, &plan).expect("fits");
    assert_eq!(good.check(caps), Ok(()));
    assert!(good.sq_slots.is_multiple_of(VARIABLE_SLOT_ALIGN));
    let bound = good.sq_slots.next_power_of_two() / 2;
    for bad in [
        DirectParameters { sq_slots: 0, ..good },
        DirectParameters { sq_slots: 65537, ..good },
        DirectParameters { sq_npsn: 0, ..good },
        DirectParameters { sq_npsn: bound * 2, sq_len: 1 << 20, ..good },
        DirectParameters { sq_len: good.sq_slots * 16, ..good },
    ] {
        assert!(bad.check(caps).is_err(), "{bad:?}");
    }
    // A context in static mode takes none.
    let machine =
        machine(Profile { wqe_mode: WqeMode::Static, ..Profile::new(NicKind::BnxtReP7, Release::V7_3, 1) });
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    let buffer = Buffer::Ring(RingPages::new(&kernel(&machine), 1 << 16).expect("memory"));
    let error = QueuePair::create(&pd, &QueuePairInit { send_buffer: Some(buffer), ..bnxt_re_qp(&cq) });
    assert!(matches!(error, Err(Error::Plan { object: "queue pair", .. })), "{error:?}");
}

#[test]
fn b18_a_buffer_that_is_not_whole_pages_or_too_short_is_refused_before_the_kernel_is_asked() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let memory = pages(&machine, 1 << 16);
    machine.fail(None);
    let create = |offset, length| {
        let buffer = Some(Buffer::Memory { pages: Arc::clone(&memory), offset, length });
        let options = CqOptions { buffer, ..CqOptions::default() };
        CompletionQueue::create(&context, 64, &options).map(drop)
    };
    assert!(matches!(create(64, 1 << 15), Err(Error::Value { attribute: "buffer offset", .. })));
    assert!(matches!(create(1 << 15, 1 << 16), Err(Error::Value { attribute: "buffer", .. })));
    assert!(matches!(create(0, 64), Err(Error::Limit { attribute: "buffer length", .. })));
    assert!(matches!(create(u64::MAX - 4095, 1 << 15), Err(Error::Value { .. })));
    assert_eq!(machine.calls(), 0);
    create(4096, 1 << 15).expect("whole pages");
}

#[test]
fn b19_a_kernel_that_may_ignore_buffers_is_not_given_any() {
    let machine = p7(Release::V6_12);
    let context = bnxt_re(&machine);
    let buffer = Some(Buffer::Ring(RingPages::new(&kernel(&machine), 1 << 16).expect("memory")));
    machine.fail(None);
    let cq = CompletionQueue::create(&context, 64, &CqOptions { buffer, ..CqOptions::default() });
    let error = cq.expect_err("Linux 6.12").to_string();
    assert!(error.contains("Linux 7.2"), "{error}");
    assert_eq!(machine.calls(), 0);
    let error = DoorbellRegion::alloc(&context).expect_err("Linux 6.12").to_string();
    assert!(error.contains("Linux 7.2"), "{error}");
}

#[test]
fn b20_bits_that_are_not_known_cannot_be_asked_for() {
    assert_eq!(CqFlags::from_bits(1 << 5), None);
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    machine.fail(None);
    let access = AccessFlags::from_bits_retain(1 << 30);
    let region = MemoryRegion::register(pd.generic(), &pages(&machine, 4096), 0..4096, access);
    assert!(matches!(region, Err(Error::Value { attribute: "access", .. })), "{region:?}");
}

#[test]
fn b21_reserved_bytes_are_zero_whatever_was_on_the_stack() {
    #[inline(never)]
    fn litter() -> u8 {
        let mut bytes = [0xa5u8; 1 << 16];
        std::hint::black_box(&mut bytes);
        bytes[77]
    }
    // The made-up kernel refuses reserved bytes and unknown bits that are not zero.
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    assert_eq!(litter(), 0xa5);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    litter();
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    litter();
    let srq = SharedReceiveQueue::create(&pd, SrqInit { max_wr: 16, max_sge: 1 }).expect("a queue");
    for n in 0..64 {
        litter();
        let init = QueuePairInit { srq: (n % 2 == 0).then_some(&srq), ..bnxt_re_qp(&cq) };
        QueuePair::create(&pd, &init).unwrap_or_else(|error| panic!("queue pair {n}: {error}"));
    }
}

#[test]
fn b22_structures_have_the_sizes_of_the_kernels() {
    let sizes = [
        (size_of::<abi::ContextRequest>(), 8),
        (size_of::<abi::ContextReply>(), 48),
        (size_of::<abi::PdReply>(), 16),
        (size_of::<abi::CqRequest>(), 24),
        (size_of::<abi::CqReply>(), 24),
        (size_of::<abi::QpRequest>(), 40),
        (size_of::<abi::QpReply>(), 8),
        (size_of::<abi::SrqRequest>(), 16),
        (size_of::<abi::SrqReply>(), 16),
        (size_of::<abi::DbRegion>(), 16),
        (size_of::<ionic::abi::CqRequest>(), 40),
        (size_of::<ionic::abi::CqReply>(), 16),
        (size_of::<ionic::abi::QpRequest>(), 40),
        (size_of::<ionic::abi::QpReply>(), 24),
    ];
    for (ours, kernels) in sizes {
        assert_eq!(ours, kernels);
    }
}

#[test]
fn b27_variable_mode_takes_the_question_and_the_answer() {
    for (mode, expected) in [(WqeMode::Static, CoreMode::Static), (WqeMode::Variable, CoreMode::Variable)] {
        for release in Release::ALL {
            let profile = Profile { wqe_mode: mode, ..Profile::new(NicKind::BnxtReP7, release, 1) };
            assert_eq!(bnxt_re(&machine(profile)).caps().wqe_mode, expected, "Linux {release}");
        }
    }
    // A driver that says nothing of a mode has static WQEs, whatever the field holds.
    let reply = caps::ContextReply { comp_mask: context_bits::HAVE_CCTX, mode: 1, ..Default::default() };
    assert_eq!(DeviceCaps::from_context(&reply, Limits::default()).wqe_mode, CoreMode::Static);
}

#[test]
fn c19_a_completion_queue_that_is_too_deep_is_refused_and_leaves_nothing() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let before = machine.census();
    for cqe in [0, context.caps().max_cqe + 1, u32::MAX] {
        let error = CompletionQueue::create(&context, cqe, &CqOptions::default()).expect_err("no such depth");
        assert!(matches!(error, Error::Plan { .. } | Error::Limit { .. }), "{error}");
        assert_eq!(machine.census(), before);
    }
    let mut device = open(&machine).expect("opens");
    let most = device.attributes().max_cqe;
    device.create_cq(most).expect("what is advertised is granted");
}

#[test]
fn d3_rings_are_told_as_the_kernel_wants_them() {
    for nic in [NicKind::IonicV1, NicKind::IonicV2] {
        let context = ionic(&machine(Profile::new(nic, Release::V7_3, 1)));
        let pd = ionic::ProtectionDomain::alloc(&context).expect("a domain");
        let cq = ionic::CompletionQueue::create(&context, 100, 3, None, 0).expect("a queue");
        let qp = ionic::QueuePair::create(&pd, &ionic_qp(&cq)).expect("a queue pair");
        let plan = qp.plan();
        let rings = [
            (cq.ring(0).expect("a ring").1, cq.plan().ring),
            (qp.send().ring(), plan.sq.ring),
            (qp.recv().ring(), plan.rq.ring),
        ];
        for (memory, plan) in rings {
            assert!(memory.address().is_multiple_of(4096) && memory.len() >= plan.bytes().max(4096));
            assert_eq!(u32::from(plan.mask()), plan.depth() - 1);
        }
    }
}

#[test]
fn d16_where_a_queue_is_the_reply_says() {
    let with = |device_memory, wish| {
        let profile = Profile { device_memory, ..Profile::new(NicKind::IonicV2, Release::V7_3, 1) };
        let machine = machine(profile);
        let context = ionic(&machine);
        let mut pd = ionic::ProtectionDomain::alloc(&context).expect("a domain");
        pd.set_send_placement(wish).expect("plain controller memory");
        let cq = ionic::CompletionQueue::create(&context, 100, 3, None, 0).expect("a queue");
        ionic::QueuePair::create(&pd, &ionic_qp(&cq)).map(|qp| qp.send().grant())
    };
    assert!(matches!(with(1 << 20, ENABLE), Ok(CmbGrant::Cmb { express: false, .. })));
    assert_eq!(with(0, ENABLE).expect("falls back"), CmbGrant::Host);
    assert!(with(0, REQUIRE).is_err());
    assert!(matches!(with(1 << 20, REQUIRE), Ok(CmbGrant::Cmb { .. })));
}

#[test]
fn d17_express_doorbells_that_are_required_and_not_there_are_refused() {
    let context = ionic(&ionic_v2(Release::V7_3));
    let mut pd = ionic::ProtectionDomain::alloc(&context).expect("a domain");
    let express = CmbPreference { express: true, ..REQUIRE };
    let before = pd.placement();
    let queues = context.caps().express_queues;
    if !queues.contains(directverbs::ionic::caps::ExpressQueues::RECV) {
        assert!(matches!(
            pd.set_recv_placement(express),
            Err(Error::Plan { object: "protection domain", .. })
        ));
        assert_eq!(pd.placement(), before, "a wish that was refused changes nothing");
    }
    pd.set_recv_placement(CmbPreference { require: false, ..express }).expect("may fall back");
    assert_eq!(pd.placement().rq.express, queues.contains(directverbs::ionic::caps::ExpressQueues::RECV));
}

#[test]
fn d24_a_context_that_makes_no_sense_is_refused() {
    let good = ContextReply {
        page_shift: 12.into(),
        version: 2.into(),
        qp_opcodes: 20,
        max_stride: 10,
        udma_count: 2,
        ..ContextReply::ZERO
    };
    assert!(Caps::from_reply(&good).is_ok());
    for version in [0, 3, 0xffff] {
        let reply = ContextReply { version: version.into(), ..good };
        assert_eq!(Caps::from_reply(&reply), Err(CapsError::Version(version)));
    }
    let few = ContextReply { version: 1.into(), qp_opcodes: 5, ..good };
    assert!(matches!(Caps::from_reply(&few), Err(CapsError::Opcodes { .. })));
    for udma_count in [0, 3] {
        let reply = ContextReply { udma_count, ..good };
        assert!(matches!(Caps::from_reply(&reply), Err(CapsError::Range { what: "udma_count", .. })));
    }
    for (nic, version) in [(NicKind::IonicV1, "V1"), (NicKind::IonicV2, "V2")] {
        let context = ionic(&machine(Profile::new(nic, Release::V7_3, 1)));
        assert_eq!(format!("{:?}", context.caps().version), version);
    }
}

#[test]
fn d26_what_was_not_asked_for_is_not_turned_on() {
    let machine = ionic_v2(Release::V7_3);
    let mut device = open(&machine).expect("opens");
    let pd = device.alloc_pd().expect("a domain");
    let cq = device.create_cq(64).expect("a queue");
    let init = QpInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
    };
    let qp = device.create_qp(&pd, &init).expect("a queue pair");
    let directverbs_linux::device::QueuePair::Ionic(qp) = &qp else { panic!("another family") };
    assert_eq!((qp.control().send().grant(), qp.control().recv().grant()), (CmbGrant::Host, CmbGrant::Host));
}

#[test]
fn d27_a_rate_limit_comes_with_rts() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    let mut qp = QueuePair::create(&pd, &bnxt_re_qp(&cq)).expect("a queue pair");
    assert!(matches!(
        qp.set_rate_limit(&context, 1000),
        Err(Error::Value { attribute: "rate limit", .. } | Error::Unsupported { .. })
    ));
    for attributes in to_rts(qp.id(), Mtu::B1024) {
        qp.modify(&attributes, 1).expect("a transition");
    }
    assert_eq!(qp.object().state(), QpState::Rts);
    // Linux 6.12 has no limits, and is not asked.
    let machine = p7(Release::V6_12);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    let mut qp = QueuePair::create(&pd, &bnxt_re_qp(&cq)).expect("a queue pair");
    assert!(matches!(qp.set_rate_limit(&context, 1000), Err(Error::Unsupported { .. })));
}

#[test]
fn d30_an_operation_that_a_queue_pair_does_not_have_is_refused_at_the_post() {
    for nic in NicKind::ALL {
        let machine = machine(Profile::new(nic, Release::V7_3, 1));
        let mut device = open(&machine).expect("opens");
        let pd = device.alloc_pd().expect("a domain");
        let mut cq = device.create_cq(64).expect("a queue");
        let capabilities = QpCapabilities { max_inline_data: 0, ..CAPABILITIES };
        let init = QpInit {
            qp_type: QpType::Ud,
            capabilities,
            send_cq: &cq,
            recv_cq: &cq,
            srq: None,
            signal_all: false,
        };
        let mut qp = device.create_qp(&pd, &init).expect("a queue pair");
        use directverbs::verbs::{Psn, QKey, QpAttributes};
        for attributes in [
            QpAttributes { qkey: Some(QKey::truncated(1)), ..QpAttributes::to(QpState::Init) },
            QpAttributes::to(QpState::Rtr),
            QpAttributes { sq_psn: Some(Psn::default()), ..QpAttributes::to(QpState::Rts) },
        ] {
            device.modify_qp(&mut qp, &mut [&mut cq], &attributes).expect("a transition");
        }
        let remote = RemoteAddress { addr: 0, rkey: RKey::truncated(1) };
        let error =
            qp.post_send(&mut cq, &[SendRequest::new(SendOp::Write(remote))]).expect_err("a datagram");
        assert!(matches!(error.error, PostError::NotSupported { .. }), "{nic}: {error}");
    }
}

#[test]
fn the_settings_in_force_are_those_that_the_kernel_has() {
    for (release, direct) in [(Release::V6_12, false), (Release::V7_2, true), (Release::V7_3, true)] {
        let directverbs_linux::Device::BnxtRe(device) = open(&p7(release)).expect("opens") else {
            panic!("another family")
        };
        assert_eq!(device.settings(), bnxt_re::datapath::Settings { direct, push: true }, "Linux {release}");
    }
}
