//! Public cases of group E, and F6: the kernel's ABI, addressing, ownership and failures. Each test is named after its case.
//! The kernel is a made-up one that checks what it is told as strictly as the real one.

mod common;

use std::path::Path;
use std::sync::Arc;

use directverbs::bnxt_re::caps::{self, DeviceCaps, Limits, context_bits};
use directverbs::bnxt_re::doorbell::Toggle;
use directverbs::verbs::{
    AccessFlags, AddressVector, AhId, Device as _, Gid, Mac, MemoryRegion as _, Mtu, PlanError, PostError,
    QpCapabilities, QpInit, QpType, QueuePair as _, SendOp, SendRequest, Sge, SrqInit,
};
use directverbs_fake_uverbs::{Census, Errno, Machine, Profile, Release};
use directverbs_linux::bnxt_re::{
    CompletionQueue, CqOptions, DoorbellRegion, ProtectionDomain, QueuePair, QueuePairInit,
    SharedReceiveQueue, abi,
};
use directverbs_linux::device;
use directverbs_linux::objects::MemoryRegion;
use directverbs_linux::sysfs::Driver;
use directverbs_linux::uverbs::{CommandFile, Pages};
use directverbs_linux::{Error, Result, ionic};
use directverbs_softnic::open::NicKind;

use common::*;

/// All devices there can be.
fn all() -> impl Iterator<Item = (NicKind, Release)> {
    let of = |nic| Release::ALL.into_iter().filter(move |r| r.drives(nic)).map(move |r| (nic, r));
    NicKind::ALL.into_iter().flat_map(of)
}

fn new(nic: NicKind, release: Release) -> Machine {
    machine(Profile::new(nic, release, 1))
}

/// The queues of a device.
fn queue_pair(
    device: &mut directverbs_linux::Device,
) -> Result<(device::CompletionQueue, device::QueuePair)> {
    let pd = device.alloc_pd()?;
    let cq = device.create_cq(64)?;
    let init = QpInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
    };
    let qp = device.create_qp(&pd, &init)?;
    Ok((cq, qp))
}

#[test]
fn e1_another_abi_is_refused_with_both_numbers() {
    for nic in [NicKind::BnxtReP7, NicKind::IonicV2] {
        let machine = new(nic, Release::V7_3);
        let abi = machine.sysfs().join("class/infiniband_verbs/uverbs0/abi_version");
        std::fs::write(abi, "6\n").expect("writable");
        let error = open(&machine).expect_err("ABI 6").to_string();
        let driver = if nic == NicKind::BnxtReP7 { "bnxt_re" } else { "ionic" };
        assert!(error.starts_with(&format!("unsupported {driver} ABI 6, supported is 1 to 1")), "{error}");
        assert!(machine.census().is_empty());
    }
}

#[test]
fn e3_routed_packets_have_more_than_one_hop() {
    assert!(AddressVector::new(Gid::default(), Mac::default()).hop_limit > 1);
}

#[test]
fn e4_a_path_mtu_over_the_interfaces_is_refused_before_the_transition() {
    let machine = machine(Profile { mtu: Mtu::B1024, ..Profile::new(NicKind::BnxtReP7, Release::V7_3, 1) });
    let mut device = open(&machine).expect("opens");
    let (mut cq, mut qp) = queue_pair(&mut device).expect("queues");
    let [init, rtr, _] = to_rts(qp.id(), Mtu::B4096);
    device.modify_qp(&mut qp, &mut [&mut cq], &init).expect("INIT");
    let error = device.modify_qp(&mut qp, &mut [&mut cq], &rtr).expect_err("too large").to_string();
    assert_eq!(error, "queue pair: path MTU 4096, the device has 256 to 1024");
    let [_, rtr, rts] = to_rts(qp.id(), Mtu::B1024);
    for attributes in [rtr, rts] {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes).expect("the state is as it was");
    }
}

#[test]
fn e6_access_that_makes_no_sense_is_refused_and_not_masked() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let pages = Arc::new(Pages::new(&kernel(&machine), 4096).expect("memory"));
    machine.fail(None);
    for access in
        [AccessFlags::REMOTE_WRITE, AccessFlags::REMOTE_ATOMIC, AccessFlags::from_bits_retain(1 << 31)]
    {
        let region = MemoryRegion::register(pd.generic(), &pages, 0..4096, access);
        assert!(matches!(region, Err(Error::Value { attribute: "access", .. })), "{access:?}: {region:?}");
    }
    assert_eq!(machine.calls(), 0);
}

#[test]
fn e7_what_a_queue_pair_uses_goes_after_it() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let region = DoorbellRegion::alloc(&context).expect("a region");
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    let qp = QueuePair::create(&pd, &QueuePairInit { region: Some(&region), ..bnxt_re_qp(&cq) });
    let qp = qp.expect("a queue pair");
    let all = machine.census();
    // The program lets go of everything but the queue pair, which holds what it uses.
    drop((context, pd, region, cq));
    let left = machine.census();
    assert_eq!(left.contexts, 1);
    assert_eq!(left.objects.values().sum::<usize>() + 1, all.objects.values().sum(), "only the toggle page");
    drop(qp);
    assert_eq!(machine.census(), Census::default());
}

/// All that a device has, made and left to be dropped.
fn everything(machine: &Machine) -> Result<()> {
    let mut device = open(machine)?;
    let pd = device.alloc_pd()?;
    let region = device.alloc_mr(&pd, 100, AccessFlags::LOCAL_WRITE)?;
    let to =
        AddressVector { sgid_index: 1, ..AddressVector::new(Gid::v4([10, 0, 0, 1].into()), Mac::default()) };
    let _ah = device.create_ah(&pd, &to)?;
    let srq = match device.attributes().max_srq_wr {
        0 => None,
        _ => Some(device.create_srq(&pd, SrqInit { max_wr: 16, max_sge: 1 })?),
    };
    let mut cq = device.create_cq(64)?;
    let init = QpInit {
        qp_type: QpType::Rc,
        capabilities: CAPABILITIES,
        send_cq: &cq,
        recv_cq: &cq,
        srq: srq.as_ref(),
        signal_all: false,
    };
    let mut qp = device.create_qp(&pd, &init)?;
    for attributes in to_rts(qp.id(), Mtu::B1024) {
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes)?;
    }
    let sges = [Sge::new(region.addr(), 8, region.lkey())];
    qp.post_send(&mut cq, &[SendRequest::new(SendOp::Send).sges(&sges)]).expect("room");
    Ok(())
}

#[test]
fn e8_each_step_fails_in_turn_and_what_was_done_before_is_undone_once() {
    for (nic, release) in all() {
        let machine = new(nic, release);
        machine.fail(None);
        everything(&machine).unwrap_or_else(|error| panic!("{nic} on {release}: {error}"));
        assert_eq!(machine.census(), Census::default());
        let calls = machine.calls();
        assert!(calls > 12, "{nic} on {release}: {calls} calls");
        for call in 0..calls {
            machine.fail(Some((call, Errno::NOMEM)));
            if let Err(error) = everything(&machine) {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            assert_eq!(machine.census(), Census::default(), "{nic} on {release}, call {call}");
        }
    }
}

#[test]
fn f6_whatever_the_error_is_no_handle_and_no_mapping_stays() {
    for nic in [NicKind::BnxtReP7, NicKind::IonicV2] {
        let machine = new(nic, Release::V7_3);
        machine.fail(None);
        everything(&machine).expect("all of it");
        for call in 0..machine.calls() {
            for errno in [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSPC, Errno::PERM, Errno::IO, Errno::AGAIN]
            {
                machine.fail(Some((call, errno)));
                // Some calls are probes, whose failure is an answer.
                let _ = everything(&machine);
                assert_eq!(machine.census(), Census::default(), "{nic}: call {call}, {errno}");
            }
        }
    }
}

#[test]
fn e9_a_context_stays_as_long_as_an_object_of_it() {
    let machine = p7(Release::V7_3);
    let pd = ProtectionDomain::alloc(&bnxt_re(&machine)).expect("a domain");
    assert_eq!(machine.census().contexts, 1);
    pd.destroy().expect("the last");
    assert_eq!(machine.census(), Census::default());
}

#[test]
fn e10_unknown_bits_of_a_reply_are_ignored() {
    let reply = caps::ContextReply { chip_id0: 0x1760, mode: 1, ..Default::default() };
    let known = context_bits::HAVE_CCTX | context_bits::HAVE_MODE;
    let with =
        |comp_mask| DeviceCaps::from_context(&caps::ContextReply { comp_mask, ..reply }, Limits::default());
    // 0x20 is a bit that only drivers outside the kernel use.
    assert_eq!(with(known), with(known | 0x20 | 1 << 40 | 1 << 63));
}

#[test]
fn e11_what_an_older_kernel_does_not_tell_is_off() {
    let old = bnxt_re(&p7(Release::V6_12));
    assert!(!old.caps().rate_limit);
    assert_eq!(old.reply().comp_mask.get() & abi::TOGGLE_BY_HANDLE, 0);
    // The clock page came with Linux 7.3.
    assert!(ionic(&ionic_v2(Release::V7_2)).clock().is_none());
}

#[test]
fn e12_the_reply_of_a_domain_follows_four_bytes_without_a_gap() {
    assert_eq!((size_of::<abi::PdReply>(), align_of::<abi::PdReply>()), (16, 1));
    for release in Release::ALL {
        let context = bnxt_re(&p7(release));
        let pd = ProtectionDomain::alloc(&context).expect("a domain");
        assert!(pd.id().is_some());
        assert_ne!(context.doorbell().expect("a page").dpi().get(), 0);
    }
}

#[test]
fn e14_short_values_go_in_the_packet_and_long_ones_by_address() {
    // The strict kernel reads each from where the ABI says: the request of 8 bytes from the packet, that of 40 from memory.
    assert_eq!((size_of::<abi::ContextRequest>(), size_of::<abi::QpRequest>()), (8, 40));
    for (nic, release) in all() {
        let machine = new(nic, release);
        queue_pair(&mut open(&machine).expect("opens")).expect("queues");
        assert_eq!(machine.violations(), Vec::<String>::new());
    }
}

#[test]
fn e15_a_shared_page_is_not_trusted_before_the_kernel_has_written_it() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    assert_eq!(cq.toggle(), Toggle::ZERO, "no event yet");
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    // The number of an address handle is read after the call that makes it: no two have the same.
    let to =
        AddressVector { sgid_index: 1, ..AddressVector::new(Gid::v4([10, 0, 0, 1].into()), Mac::default()) };
    let made = [(); 3].map(|()| context.create_ah(&pd, &to, 1).expect("a handle"));
    let numbers = made.each_ref().map(|(_, id)| *id);
    assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2], "{numbers:?}");
}

#[test]
fn e16_the_page_size_is_the_one_that_the_kernel_says() {
    let machine = p7(Release::V7_3);
    let (context, kernel) = (bnxt_re(&machine), kernel(&machine));
    assert_eq!(context.caps().page_size as usize, kernel.page_size());
    assert_eq!(context.caps().page_size, context.reply().pg_size.get());
    let ionic = ionic(&ionic_v2(Release::V7_3));
    assert_eq!(1 << ionic.caps().page_shift, kernel.page_size());
}

#[test]
fn e17_calls_carry_the_drivers_number() {
    assert_eq!((Driver::BnxtRe.id(), Driver::Ionic.id()), (Some(6), Some(21)));
    for (nic, right, wrong) in [(NicKind::BnxtReP7, 6, 21), (NicKind::IonicV2, 21, 6)] {
        let machine = new(nic, Release::V7_3);
        let file = |id| CommandFile::open(kernel(&machine), Path::new(PATH), id);
        assert_eq!(file(None).expect("found by asking").driver_id(), right);
        assert!(matches!(file(Some(wrong)), Err(Error::Value { attribute: "driver id", .. })));
        assert!(machine.census().is_empty());
    }
}

#[test]
fn e18_a_queue_pair_may_ring_in_a_region_that_no_other_has() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    let regions = [(); 2].map(|()| DoorbellRegion::alloc(&context).expect("a region"));
    let default = DoorbellRegion::default_of(&context).expect("with the domain");
    let dpis = [regions[0].page().dpi(), regions[1].page().dpi(), default.dpi()];
    assert!(dpis[0] != dpis[1] && dpis[0] != dpis[2] && dpis[1] != dpis[2], "{dpis:?}");
    for region in &regions {
        let init = QueuePairInit { region: Some(region), ..bnxt_re_qp(&cq) };
        let qp = QueuePair::create(&pd, &init).expect("a queue pair");
        assert!(Arc::ptr_eq(qp.region().expect("its own"), region));
    }
}

#[test]
fn e19_toggle_pages_are_named_by_handle_where_the_kernel_says_so() {
    for release in Release::ALL {
        let context = bnxt_re(&p7(release));
        let by_handle = context.reply().comp_mask.get() & abi::TOGGLE_BY_HANDLE != 0;
        assert_eq!(by_handle, release == Release::V7_3);
        let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
        assert!(cq.has_toggle_page(), "Linux {release}");
    }
}

#[test]
fn e20_a_kind_that_the_device_does_not_have_is_refused_early() {
    let machine = ionic_v2(Release::V7_3);
    let context = ionic(&machine);
    let pd = ionic::ProtectionDomain::alloc(&context).expect("a domain");
    let cq = ionic::CompletionQueue::create(&context, 64, 3, None, 0).expect("a queue");
    machine.fail(None);
    let raw = ionic::QueuePairInit { qp_type: QpType::RawPacket, ..ionic_qp(&cq) };
    assert!(matches!(
        ionic::QueuePair::create(&pd, &raw),
        Err(Error::Unsupported { object: "queue pair", .. })
    ));
    assert_eq!(machine.calls(), 0);
}

#[test]
fn e21_with_a_shared_receive_queue_there_is_no_receive_ring() {
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let pd = ProtectionDomain::alloc(&context).expect("a domain");
    let cq = CompletionQueue::create(&context, 64, &CqOptions::default()).expect("a queue");
    let srq = SharedReceiveQueue::create(&pd, SrqInit { max_wr: 16, max_sge: 1 }).expect("a queue");
    let qp = QueuePair::create(&pd, &QueuePairInit { srq: Some(&srq), ..bnxt_re_qp(&cq) });
    let qp = qp.expect("a queue pair");
    assert!(qp.recv_ring().is_none() && qp.plan().recv.is_none());
    qp.destroy().expect("nothing to free twice");
}

#[test]
fn e22_too_many_inline_bytes_are_refused_with_the_most_there_are() {
    for (nic, release) in all() {
        let machine = new(nic, release);
        let mut device = open(&machine).expect("opens");
        let max = device.attributes().max_qp.max_inline_data;
        let pd = device.alloc_pd().expect("a domain");
        let cq = device.create_cq(64).expect("a queue");
        let capabilities = QpCapabilities { max_inline_data: max + 1, ..CAPABILITIES };
        let init = QpInit {
            qp_type: QpType::Rc,
            capabilities,
            send_cq: &cq,
            recv_cq: &cq,
            srq: None,
            signal_all: false,
        };
        let told = match device.create_qp(&pd, &init) {
            Err(Error::Plan { error: PlanError::OverDevice { asked, max, .. }, .. }) => (asked, max),
            other => panic!("{nic}: {other:?}"),
        };
        assert_eq!(told, (max + 1, max), "{nic}");
    }
}

#[test]
fn e23_a_handle_of_zero_is_a_handle() {
    // The kernel numbers the objects of a context from 0.
    let machine = p7(Release::V7_3);
    let context = bnxt_re(&machine);
    let region = DoorbellRegion::alloc(&context).expect("the first object");
    let pd = ProtectionDomain::alloc(&context).expect("the second");
    let push = context.push_page().expect("the third");
    drop(region);
    pd.destroy().expect("unused");
    drop((push, context));
    assert!(machine.census().is_empty(), "{:?}", machine.census());
}

#[test]
fn e24_too_many_sges_are_refused_at_the_post() {
    for (nic, release) in all() {
        let machine = new(nic, release);
        let mut device = open(&machine).expect("opens");
        let (mut cq, mut qp) = queue_pair(&mut device).expect("queues");
        for attributes in to_rts(qp.id(), Mtu::B1024) {
            device.modify_qp(&mut qp, &mut [&mut cq], &attributes).expect("a transition");
        }
        let granted = qp.capabilities().max_send_sge as usize;
        let sges = vec![Sge::new(0, 1, Default::default()); granted + 1];
        let error =
            qp.post_send(&mut cq, &[SendRequest::new(SendOp::Send).sges(&sges)]).expect_err("too many");
        assert!(matches!(error.error, PostError::TooManySges { given, .. } if given == granted + 1), "{nic}");
    }
}

#[test]
fn numbers_of_nothing_are_refused() {
    let mut device = open(&p7(Release::V7_3)).expect("opens");
    assert!(device.destroy_ah(AhId::truncated(99)).is_err());
}
