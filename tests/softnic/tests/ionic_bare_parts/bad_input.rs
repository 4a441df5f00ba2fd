//! Devices that are none, or that say what cannot be, and callers that ask for what there is not.

use std::time::Duration;

use directverbs::ionic::devcmd::IdentityError;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{AccessFlags, Device as _, Mac, QpCapabilities, QpInit, QpType, SrqInit};
use directverbs_bare::Clock as _;
use directverbs_bare::ionic::{Cause, Config, Event, Nic};
use directverbs_bare::registers::MapError;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::ionic::control::{ControlConfig, Lie, Told};
use directverbs_softnic::pci::{CommandFault, Copier, Slot, Trace};

use super::faults::{life, plug};
use super::rig::Rig;

fn changed(change: impl FnOnce(&mut ControlConfig)) -> Rig {
    Rig::plug_changed(&Fabric::new(FabricOptions::default()), RdmaVersion::V2, 1, change)
}

fn cause(rig: &Rig, config: Config) -> Cause {
    let cause = Nic::open(rig.slot.clone(), config).map(drop).unwrap_err().cause;
    rig.assert_released();
    cause
}

#[test]
fn another_device_is_left_alone() {
    let fabric = Fabric::new(FabricOptions::default());
    let slot = Slot::plug(&fabric, Trace::default(), |port| Box::new(Copier::new(port)));
    let error = Nic::open(slot, Config::default()).map(drop).unwrap_err();
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
    assert!(
        matches!(cause(&rig, Config::default()), Cause::Answer { what, .. } if what == "Ethernet address")
    );
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
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    rig.slot.access_faults().strike(0, directverbs_softnic::pci::AccessFault::Removed);
    let error = device.alloc_mr(&pd, 4096, AccessFlags::empty()).unwrap_err();
    assert_eq!((error.cause, device.has_failed()), (Cause::Gone, true));
    assert_eq!(device.create_cq(4).map(drop).unwrap_err().cause, Cause::Failed);
    assert!(!device.progress(), "nothing will ever come");
    assert!(nic.reset(Config::default()).is_err() && nic.has_failed());
    drop(nic);
    assert_eq!(cause(&rig, Config::default()), Cause::Gone);
    rig.slot.replug();
    assert_eq!(life(&rig), Ok(()));
    rig.assert_released();
}

#[test]
fn a_reset_of_its_own_is_told_with_the_generation() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    rig.slot.command_faults().strike(0, CommandFault::HotReset);
    let error = nic.device().create_cq(4).map(drop).unwrap_err();
    assert_eq!(error.cause, Cause::HotReset { was: 0, now: 1 });
    assert_eq!(error.to_string(), "completion queue: the device has reset itself: generation 1, it was 0");
    // It has also said so.
    assert_eq!(nic.take_event().unwrap_err().cause, Cause::ResetEvent { code: 0, state: 0 });
    assert_eq!(nic.reset(Config::default()).map(|left| left.total()), Ok(0));
    assert!(nic.device().create_cq(4).is_ok() && !nic.has_failed());
    drop(nic);
    assert_eq!(life(&rig), Ok(()));
    rig.assert_released();
}

#[test]
fn a_reset_that_the_device_tells_of_fails_it_at_once() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let cq = device.create_cq(4).expect("created");
    rig.slot.command_faults().strike(0, CommandFault::HotReset);
    // The command's own error is lost: somebody else asks.
    let _lost = device.create_cq(4).map(drop);
    assert!(!device.progress() && device.has_failed());
    assert_eq!(device.take_event().unwrap_err().cause, Cause::ResetEvent { code: 0, state: 0 });
    assert_eq!(device.destroy_cq(cq).unwrap_err().cause, Cause::Failed);
    drop(nic);
    rig.assert_released();
}

#[test]
fn an_event_that_nobody_knows_is_a_typed_error_and_harms_nothing() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    rig.slot.command_faults().strike(0, CommandFault::Event);
    let cq = device.create_cq(4).expect("an event is no harm");
    let unexpected = device.take_event().unwrap_err();
    assert_eq!(unexpected.cause, Cause::UnexpectedEvent { kind: 5, code: 15, qid: 0xff_ffff });
    assert_eq!(unexpected.to_string(), "event: unexpected event: type 5, code 15, queue 0xffffff");
    assert!(matches!(device.take_event(), Ok(Some(Event::Link { up: true, .. }))));
    assert_eq!(device.take_event(), Ok(None));
    assert!(!device.has_failed() && device.progress());
    device.destroy_cq(cq).expect("destroyed");
    nic.close().expect("closes");
    rig.assert_clean();
}

#[test]
fn a_firmware_whose_heart_stops_or_that_goes_down_is_found_out() {
    let second = 1_000_000_000;
    let rig = changed(|config| config.heart_stops_ns = Some(30 * second));
    let mut nic = rig.open(Config::default());
    while rig.slot.now_ns() < 31 * second {
        assert_eq!(nic.check(), Ok(()));
        rig.slot.delay(Duration::from_millis(500));
    }
    rig.slot.delay(Duration::from_secs(8));
    assert_eq!(nic.check(), Ok(()), "not yet");
    rig.slot.delay(Duration::from_secs(8));
    let limit = Config::default().heartbeat_limit;
    assert_eq!(nic.check().unwrap_err().cause, Cause::Heartbeat { beat: 31, limit });
    assert_eq!(nic.check().unwrap_err().cause, Cause::Failed);
    drop(nic);
    let rig = changed(|config| config.firmware_stops_ns = Some(40 * second));
    let mut nic = rig.open(Config::default());
    rig.slot.delay(Duration::from_secs(40));
    assert_eq!(nic.check().unwrap_err().cause, Cause::FirmwareDown(0));
    drop(nic);
    assert_eq!(cause(&rig, Config::default()), Cause::FirmwareDown(0));
}

#[test]
fn a_bar_that_is_missing_or_short_is_named() {
    let of = |bar, len| cause(&changed(|config| config.short_bars = vec![(bar, len)]), Config::default());
    assert_eq!([of(0, 0), of(0, 0x4000)], [Cause::Registers(0), Cause::Registers(0x4000)]);
    assert_eq!(of(2, 0), Cause::Map(MapError::Missing { bar: 2 }));
    // The LIF's doorbell pages lie behind those of another one.
    let outside = MapError::Outside { bar: 2, has: 0x1000, offset: 0x4_0000, len: 0x1000 };
    assert_eq!(of(2, 0x1000), Cause::Map(outside));
    let what = |cause| match cause {
        Cause::Identity(IdentityError::Range { what, .. }) => what,
        other => panic!("{other}"),
    };
    assert_eq!(what(of(4, 0x1_0000)), "end of controller memory");
    // Without controller memory it does as well as without a need for it.
    let rig = changed(|config| config.short_bars = vec![(4, 0)]);
    rig.open(Config::default()).close().expect("closes");
    rig.assert_clean();
}

/// Opens and closes a NIC that tells something wrong; whatever that is, it ends, and nothing is left.
fn survives(lie: Lie) -> Result<(), Cause> {
    let rig = changed(|config| config.lies = vec![lie]);
    let mut nic =
        match Nic::open(rig.slot.clone(), Config { command_limit: Duration::ZERO, ..Config::default() }) {
            Ok(nic) => nic,
            Err(error) => {
                rig.assert_released();
                return Err(error.cause);
            }
        };
    let mut device = nic.device();
    let made = device.create_cq(16).map(|cq| device.destroy_cq(cq));
    drop(nic);
    rig.assert_released();
    made.and_then(|destroyed| destroyed).map_err(|error| error.cause)
}

#[test]
fn each_byte_of_each_identity_may_be_a_lie() {
    let mut refused = 0;
    let identities =
        [(Told::Device, 0..56), (Told::Lif, 0..12), (Told::Lif, 136..250), (Told::Lif, 392..490)];
    for (of, bytes) in identities.into_iter().chain([(Told::Port, 0..144), (Told::Memory, 0..88)]) {
        for offset in bytes {
            for value in [0, 0x80, 0xff] {
                refused += usize::from(survives(Lie { of, offset, value }).is_err());
            }
        }
    }
    assert!(refused > 30, "{refused}");
}

#[test]
fn a_lie_is_refused_by_the_name_of_what_it_is_about() {
    let what = |of, offset, value| match survives(Lie { of, offset, value }) {
        Err(Cause::Identity(IdentityError::Range { what, .. })) => what.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(what(Told::Device, 8, 0), "nlifs");
    assert_eq!(what(Told::Device, 12, 0), "nintrs");
    assert_eq!(what(Told::Device, 19, 0xff), "ndbpgs_per_lif");
    assert_eq!(what(Told::Lif, 394, 3), "admin_opcodes");
    assert_eq!(what(Told::Lif, 408, 60), "max_stride");
    assert_eq!(what(Told::Lif, 414, 0xff), "udma_shift");
    assert_eq!(what(Told::Lif, 444, 1), "sq_qtype base");
    assert_eq!(what(Told::Memory, 0, 17), "regions of controller memory");
    assert_eq!(what(Told::Memory, 23, 0xff), "end of controller memory");
    assert_eq!(
        survives(Lie { of: Told::Lif, offset: 392, value: 9 }),
        Err(Cause::Identity(IdentityError::Version(9)))
    );
    assert_eq!(
        survives(Lie { of: Told::Lif, offset: 0, value: 1 }),
        Err(Cause::Identity(IdentityError::NoRdma(1)))
    );
}

#[test]
fn what_the_family_does_not_have_is_refused_by_type() {
    let rig = plug();
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let pd = device.alloc_pd().expect("a number");
    let srq = device.create_srq(&pd, SrqInit { max_wr: 4, max_sge: 1 });
    assert!(matches!(srq.map(drop).unwrap_err().cause, Cause::Unsupported(_)));
    let cq = device.create_cq(4).expect("created");
    let init = QpInit {
        qp_type: QpType::RawPacket,
        capabilities: QpCapabilities { max_send_wr: 1, ..Default::default() },
        send_cq: &cq,
        recv_cq: &cq,
        srq: None,
        signal_all: false,
    };
    assert!(matches!(device.create_qp(&pd, &init).map(drop).unwrap_err().cause, Cause::Unsupported(_)));
    device.destroy_cq(cq).expect("destroyed");
    device.dealloc_pd(pd).expect("unused");
    nic.close().expect("closes");
    rig.assert_clean();
}
