//! Where queues go: controller memory, express doorbells, pipelines; what is granted, and what is refused.

use directverbs::ionic::cmb::{CmbGrant, CmbPreference, Mapping};
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::text;
use directverbs::verbs::{Device as _, PlanError, QpCapabilities, QpInit, QpType};
use directverbs_bare::ionic::{Cause, CompletionQueue, Config, Device, Error, PdConfig, QueuePair};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::ionic::control::ControlConfig;
use directverbs_softnic::pci::Slot;

use super::rig::Rig;

/// Both queues must go to controller memory.
pub fn required(express: bool) -> PdConfig {
    let wish = CmbPreference { enable: true, express, require: true };
    PdConfig { sq: wish, rq: wish, ..PdConfig::default() }
}

fn wished(express: bool) -> PdConfig {
    let wish = CmbPreference { enable: true, express, require: false };
    PdConfig { sq: wish, rq: wish, ..PdConfig::default() }
}

const fn cmb(express: bool) -> CmbGrant {
    CmbGrant::Cmb { express, mapping: Mapping::WriteCombined }
}

fn plug(change: impl FnOnce(&mut ControlConfig)) -> Rig {
    Rig::plug_changed(&Fabric::new(FabricOptions::default()), RdmaVersion::V2, 1, change)
}

fn create<'n>(
    device: &mut Device<'n, Slot>,
    pd: PdConfig,
    cq: &CompletionQueue<'n, Slot>,
) -> Result<QueuePair<'n, Slot>, Error> {
    let pd = device.alloc_pd_with(pd)?;
    let capabilities = QpCapabilities {
        max_send_wr: 63,
        max_recv_wr: 63,
        max_send_sge: 1,
        max_recv_sge: 1,
        ..Default::default()
    };
    let init =
        QpInit { qp_type: QpType::Rc, capabilities, send_cq: cq, recv_cq: cq, srq: None, signal_all: false };
    device.create_qp(&pd, &init)
}

/// What queue pairs get, one after the other, until the first error.
fn granted(rig: &Rig, pd: PdConfig, most: usize) -> (Vec<(CmbGrant, CmbGrant)>, Option<Cause>) {
    let mut nic = rig.open(Config::default());
    let mut device = nic.device();
    let mut cq = device.create_cq(64).expect("created");
    let (mut qps, mut error) = (Vec::new(), None);
    while qps.len() < most && error.is_none() {
        match create(&mut device, pd, &cq) {
            Ok(qp) => qps.push(qp),
            Err(refused) => error = Some(refused.cause),
        }
    }
    let qps_placements: Vec<_> = qps.iter().map(QueuePair::placement).collect();
    for qp in qps {
        device.destroy_qp(qp, &mut [&mut cq]).expect("destroyed");
    }
    // What was given back is given again.
    if let Some(first) = qps_placements.first() {
        let again = create(&mut device, pd, &cq).expect("there is room again");
        assert_eq!(again.placement(), *first);
        device.destroy_qp(again, &mut [&mut cq]).expect("destroyed");
    }
    device.destroy_cq(cq).expect("destroyed");
    drop(nic);
    assert_eq!(rig.nic.lock().front_end().violations(), []);
    rig.assert_released();
    (qps_placements, error)
}

const NONE: PlanError = PlanError::Unsupported(text!("there is not the controller memory required"));
const NO_EXPRESS: PlanError = PlanError::Unsupported(text!("no express doorbells for this kind of queue"));

#[test]
fn what_is_wished_is_granted_while_there_is_controller_memory_and_falls_back_then() {
    // One of two megabytes is plain, and a ring of 64 entries of 64 bytes is a page; a queue pair has two.
    let (placements, error) = granted(&plug(|_| {}), wished(false), 130);
    assert_eq!((placements.len(), error), (130, None));
    assert!(placements[..128].iter().all(|placement| *placement == (cmb(false), cmb(false))));
    assert!(placements[128..].iter().all(|placement| *placement == (CmbGrant::Host, CmbGrant::Host)));
}

#[test]
fn express_doorbells_fall_back_to_plain_memory() {
    // A quarter of a megabyte is for WQEs of 64 bytes: one SGE and an express doorbell.
    let (placements, error) = granted(&plug(|_| {}), wished(true), 120);
    assert_eq!((placements.len(), error), (120, None));
    assert!(placements[..32].iter().all(|placement| *placement == (cmb(true), cmb(true))));
    assert!(placements[32..].iter().all(|placement| *placement == (cmb(false), cmb(false))));
}

#[test]
fn what_is_required_is_granted_or_refused() {
    let (placements, error) = granted(&plug(|_| {}), required(true), 1000);
    assert!(placements.iter().all(|placement| *placement == (cmb(true), cmb(true))));
    assert_eq!((placements.len(), error), (32, Some(Cause::Plan(NONE))));
    let without_express = plug(|config| config.ionic.express_strides = 0);
    let (placements, error) = granted(&without_express, required(true), 1);
    assert_eq!((placements.len(), error), (0, Some(Cause::Plan(NO_EXPRESS))));
    assert_eq!(granted(&without_express, wished(true), 1).0, [(cmb(false), cmb(false))]);
    let without_memory = plug(|config| config.nic.device_memory = 0);
    let (placements, error) = granted(&without_memory, required(false), 1);
    assert_eq!((placements.len(), error), (0, Some(Cause::Plan(NONE))));
    assert_eq!(granted(&without_memory, wished(false), 1).0, [(CmbGrant::Host, CmbGrant::Host)]);
}

#[test]
fn queue_pairs_are_on_the_pipelines_that_their_protection_domain_allows() {
    let rig = plug(|_| {});
    let mut nic = rig.open(Config { pipelines: 2, ..Config::default() });
    let mut device = nic.device();
    let mut cq = device.create_cq(64).expect("created");
    for (mask, want) in [(0b01, [0, 0]), (0b10, [1, 1]), (0b11, [0, 1])] {
        let pd = PdConfig { pipelines: mask, ..PdConfig::default() };
        let qps = [(); 2].map(|()| create(&mut device, pd, &cq).expect("created"));
        let mut on = qps.each_ref().map(QueuePair::pipeline);
        on.sort_unstable();
        assert_eq!(on, want, "mask {mask:#b}");
        for qp in qps {
            device.destroy_qp(qp, &mut [&mut cq]).expect("destroyed");
        }
    }
    let none = create(&mut device, PdConfig { pipelines: 0b100, ..PdConfig::default() }, &cq);
    assert!(matches!(none.map(drop).unwrap_err().cause, Cause::Unsupported(_)));
    device.destroy_cq(cq).expect("destroyed");
    drop(nic);
    rig.assert_clean();
}
