//! Two bnxt_re NICs on a wire.
#![allow(dead_code, reason = "each test file uses a part of it")]

use directverbs::bnxt_re::caps::Generation;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{Gid, Mac, Mtu};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::host::bnxt_re::{BnxtReDevice, BnxtReOptions};

/// A wire without faults, stepped.
pub const LOSSLESS: FabricOptions = FabricOptions { seed: 1, faults: FaultPlan::NONE, threaded: false };

/// Both chips in both modes.
pub const CHIPS: [BnxtReOptions; 4] = [
    BnxtReOptions::new(Generation::P5, WqeMode::Static),
    BnxtReOptions::new(Generation::P5, WqeMode::Variable),
    BnxtReOptions::new(Generation::P7, WqeMode::Static),
    BnxtReOptions::new(Generation::P7, WqeMode::Variable),
];

/// What a NIC at position `n` of the wire is built with.
pub fn nic_config(n: u8) -> NicConfig {
    NicConfig {
        mac: Mac([2, 0, 0, 0, 0, n]),
        gids: vec![Gid::v4([10, 0, 0, n].into())],
        mtu: Mtu::B4096,
        device_memory: 0,
        all_memory_key: None,
    }
}

/// Two devices on a wire of their own.
pub fn devices(options: BnxtReOptions, fabric: FabricOptions) -> (Fabric, [BnxtReDevice; 2]) {
    let fabric = Fabric::new(fabric);
    let devices = [1, 2].map(|n| {
        let options = BnxtReOptions { seed: n.into(), ..options };
        BnxtReDevice::attach(&fabric, nic_config(n), options)
    });
    (fabric, devices)
}

/// What the driver of a device did wrong.
pub fn violations(device: &BnxtReDevice) -> Vec<String> {
    device.nic().lock().front_end().violations().last().map(ToString::to_string).collect()
}
