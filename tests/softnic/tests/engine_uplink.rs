//! Two wires joined by uplinks: NICs on one reach those on the other.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Gid, Mac, Mtu};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::host::bnxt_re::{BnxtReDevice, BnxtReOptions};
use directverbs_softnic::host::ionic::{IonicDevice, IonicOptions};
use directverbs_softnic::uplink::Uplink;
use directverbs_workload::{Job, Op, run_pair};

fn config(nth: u8) -> NicConfig {
    NicConfig {
        mac: Mac([2, 0, 0, 0, 0, nth]),
        gids: vec![Gid::v4(Ipv4Addr::new(10, 0, 0, nth))],
        mtu: Mtu::B4096,
        device_memory: 0,
        all_memory_key: None,
    }
}

/// Two wires, each the other's elsewhere.
fn joined(options: FabricOptions) -> [Fabric; 2] {
    let fabrics = [Fabric::new(options), Fabric::new(options)];
    let other: Arc<OnceLock<Uplink>> = Arc::default();
    let there = other.clone();
    let first = fabrics[0].uplink(move |frame| {
        there.get().expect("joined before the first frame").deliver(frame);
    });
    let second = fabrics[1].uplink(move |frame| {
        first.deliver(frame);
    });
    other.set(second).expect("once");
    fabrics
}

#[test]
fn the_workload_crosses_from_one_wire_to_the_other() {
    let [here, there] = joined(FabricOptions { threaded: true, ..FabricOptions::default() });
    let options = BnxtReOptions::new(Generation::P7, WqeMode::Static);
    let mut a = BnxtReDevice::attach(&here, config(1), options);
    let mut b = IonicDevice::attach(&there, config(2), IonicOptions::new(RdmaVersion::V2));
    for op in [Op::Send, Op::Write, Op::Read] {
        let job = Job { op, size: 10_000, iterations: 8, ..Job::default() };
        let report = run_pair(&mut a, &mut b, &job, &mut |_| {}).expect("verified");
        assert!(report.verified_bytes() >= 80_000, "{op:?}");
    }
    assert_eq!(here.counters().unknown + there.counters().unknown, 0);
}

#[test]
fn what_nobody_knows_does_not_come_back() {
    let fabric = Fabric::new(FabricOptions::default());
    let uplink = fabric.uplink(|_| panic!("it came from there"));
    assert!(uplink.deliver(&[0; 64]));
    assert!(fabric.settle(10));
    assert_eq!(fabric.counters().unknown, 1);
    let full = (0..10_000).filter(|_| !uplink.deliver(&[0; 64])).count();
    assert!(full > 0 && full < 10_000, "a wire that is not stepped takes some");
}
