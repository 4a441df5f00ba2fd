//! Devices that are none, or that say what cannot be, and callers that ask for what there is not.

use std::time::Duration;

use directverbs::ionic::admin::PageError;
use directverbs::ionic::devcmd::IdentityError;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{
    AccessFlags, AddressVector, Device as _, Gid, Mac, QpAttributes, QpCapabilities, QpInit, QpState, QpType,
    RKey, StateError,
};
use directverbs_bare::ionic::{Cause, Config, Device, Event};
use directverbs_bare::{DmaMemory, Host};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::ionic::control::ControlConfig;
use directverbs_softnic::pci::{CommandFault, Copier, Slot, Trace};

use super::faults::{life, plug};
use super::rig::Rig;

fn changed(change: impl FnOnce(&mut ControlConfig)) -> Rig {
    Rig::plug_changed(&Fabric::new(FabricOptions::default()), RdmaVersion::V2, 1, change)
}

fn cause(rig: &Rig, config: Config) -> Cause {
    let cause = Device::open(rig.slot.clone(), config).map(drop).unwrap_err().cause;
    rig.assert_released();
    cause
}

#[test]
fn another_device_is_left_alone() {
    let fabric = Fabric::new(FabricOptions::default());
    let slot = Slot::plug(&fabric, Trace::default(), |port| Box::new(Copier::new(port)));
    let error = Device::open(slot, Config::default()).map(drop).unwrap_err();
    let unknown = Cause::UnknownDevice { vendor: Copier::VENDOR, device: Copier::DEVICE };
    assert_eq!((error.cause, error.to_string().starts_with("device: vendor 0x1234")), (unknown, true));
}

#[test]
fn a_device_that_tells_what_cannot_be_is_refused_by_name() {
    let what = |change: fn(&mut ControlConfig)| match cause(&changed(change), Config::default()) {
        Cause::Identity(IdentityError::Range { what, .. }) => what,
        other => panic!("{other}"),
    };
    assert_eq!(what(|config| config.event_queues = 0), "eq_qtype");
    assert_eq!(what(|config| config.admin_queues = 0), "aq_qtype");
    assert_eq!(what(|config| config.regions = 1), "nmrs_per_lif");
    assert_eq!(what(|config| config.address_handles = 0), "nahs_per_lif");
    assert_eq!(what(|config| config.page_table_entries = 0), "npts_per_lif");
    let rig = changed(|config| config.nic.mac = Mac([0xff; 6]));
    assert!(matches!(cause(&rig, Config::default()), Cause::Answer { what: "Ethernet address", .. }));
}

#[test]
fn the_callers_clock_bounds_the_wait() {
    let rig = plug();
    for limit in [Duration::ZERO, Duration::from_millis(20)] {
        rig.slot.command_faults().strike(0, CommandFault::Silent);
        let config = Config { command_limit: limit, ..Config::default() };
        assert_eq!(cause(&rig, config), Cause::Silent(limit));
    }
    rig.slot.command_faults().clear();
    let pipelines = Config { pipelines: 3, ..Config::default() };
    assert!(matches!(cause(&rig, pipelines), Cause::Unsupported(_)));
}

#[test]
fn a_device_that_was_pulled_out_is_gone_and_works_when_it_is_back() {
    let rig = plug();
    let mut device = rig.open(Config::default());
    let pd = device.alloc_pd().expect("a number");
    rig.slot.access_faults().strike(0, directverbs_softnic::pci::AccessFault::Removed);
    let error = device.alloc_mr(&pd, 4096, AccessFlags::empty()).unwrap_err();
    assert_eq!((error.cause, device.has_failed()), (Cause::Gone, true));
    assert_eq!(device.create_cq(4).map(drop).unwrap_err().cause, Cause::Failed);
    drop(device);
    assert_eq!(cause(&rig, Config::default()), Cause::Gone);
    rig.slot.replug();
    assert_eq!(life(&rig), Ok(()));
    rig.assert_released();
}

#[test]
fn a_reset_of_its_own_is_told_with_the_generation() {
    let rig = plug();
    let mut device = rig.open(Config::default());
    rig.slot.command_faults().strike(0, CommandFault::HotReset);
    let error = device.create_cq(4).map(drop).unwrap_err();
    assert_eq!(error.cause, Cause::HotReset { was: 0, now: 1 });
    assert_eq!(error.to_string(), "completion queue: the device has reset itself: generation 1, it was 0");
    drop(device);
    assert_eq!(life(&rig), Ok(()));
    rig.assert_released();
}

#[test]
fn an_event_that_nobody_knows_is_handed_on() {
    let rig = plug();
    let mut device = rig.open(Config::default());
    rig.slot.command_faults().strike(0, CommandFault::Event);
    let cq = device.create_cq(4).expect("an event is no harm");
    let events: Vec<Event> = std::iter::from_fn(|| device.next_event()).collect();
    assert!(events.contains(&Event::Unknown { kind: 5, code: 15, qid: 0xff_ffff }), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, Event::Link { up: true, .. })), "{events:?}");
    device.destroy_cq(cq).expect("destroyed");
    device.close().expect("closes");
    rig.assert_clean();
}

#[test]
fn what_is_in_use_is_not_destroyed_and_what_is_dropped_is_kept_until_the_end() {
    let rig = plug();
    let mut device = rig.open(Config::default());
    let pd = device.alloc_pd().expect("a number");
    let cq = device.create_cq(4).expect("created");
    let init = QpInit {
        qp_type: QpType::Ud,
        capabilities: QpCapabilities { max_send_wr: 1, max_recv_wr: 1, ..Default::default() },
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
    };
    let mut qp = device.create_qp(&pd, &init).expect("created");
    let early = device.modify_qp(&mut qp, &mut [], &QpAttributes::to(QpState::Rts)).unwrap_err();
    assert!(matches!(early.cause, Cause::State(StateError::NoSuchTransition { .. })));
    let wrong_gid = AddressVector { sgid_index: 9, ..AddressVector::new(rig.gid, Mac::default()) };
    assert!(matches!(device.create_ah(&pd, &wrong_gid).unwrap_err().cause, Cause::Unsupported(_)));
    let other_family = AddressVector::new(Gid([0xfd; 16]), Mac::default());
    assert!(matches!(device.create_ah(&pd, &other_family).unwrap_err().cause, Cause::Path(_)));
    assert_eq!(device.dealloc_mw(RKey::truncated(0x500)).unwrap_err().cause, Cause::NoSuch);
    assert_eq!(device.destroy_cq(cq).unwrap_err().cause, Cause::InUse(2));
    assert_eq!(device.dealloc_pd(pd).unwrap_err().cause, Cause::InUse(1));
    assert!(!device.has_failed() && rig.slot.abandoned() > 0);
    drop(qp);
    device.close().expect("closes");
    rig.assert_clean();
}

#[test]
fn memory_is_registered_by_its_pages() {
    let rig = plug();
    let mut device = rig.open(Config::default());
    let pd = device.alloc_pd().expect("a number");
    let blocks: Vec<_> = (0..3).map(|_| rig.slot.dma(4096, 4096).expect("memory")).collect();
    let pages: Vec<u64> = blocks.iter().rev().map(DmaMemory::device_address).collect();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    // SAFETY: the blocks live until the key is given back.
    let mut register = |va, len, pages: &[u64]| unsafe { device.register(&pd, va, len, 12, pages, access) };
    let key = register(0x7000_0100, 2 * 4096, &pages).expect("three pages");
    let one = register(0x1010, 16, &pages[..1]).expect("one page");
    let few = register(0, 3 * 4096, &pages[..2]).unwrap_err();
    assert_eq!(few.cause, Cause::Pages(PageError::Count { given: 2, needed: 3 }));
    for key in [key, one] {
        device.deregister(key).expect("registered");
    }
    device.dealloc_pd(pd).expect("unused");
    device.close().expect("closes");
    drop(blocks);
    rig.assert_clean();
}
