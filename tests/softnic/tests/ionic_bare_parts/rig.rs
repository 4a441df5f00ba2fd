//! Two slots with ionic NICs, joined by a wire.

use core::net::Ipv4Addr;

use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Gid, Mac, Mtu, RKey};
use directverbs_bare::ionic::{Config, Nic};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::{Fabric, FabricOptions, NicHandle};
use directverbs_softnic::ionic::Ionic;
use directverbs_softnic::ionic::control::{ControlConfig, IonicFunction};
use directverbs_softnic::pci::{Slot, Trace};

/// A slot and the NIC in it.
pub struct Rig {
    pub slot: Slot,
    pub nic: NicHandle<Ionic>,
    pub gid: Gid,
}

impl Rig {
    /// Plugs the `nth` NIC into `fabric`.
    pub fn plug(fabric: &Fabric, version: RdmaVersion, nth: u8) -> Self {
        Self::plug_changed(fabric, version, nth, |_| {})
    }

    /// The same, of which `change` has changed what it tells.
    pub fn plug_changed(
        fabric: &Fabric,
        version: RdmaVersion,
        nth: u8,
        change: impl FnOnce(&mut ControlConfig),
    ) -> Self {
        let gid = Gid::v4(Ipv4Addr::new(10, 0, 0, nth));
        let nic = NicConfig {
            mac: Mac([2, 0, 0, 0, 0, nth]),
            gids: Vec::new(),
            mtu: Mtu::B4096,
            device_memory: 1 << 21,
            all_memory_key: Some(RKey::truncated(0)),
        };
        let mut config = ControlConfig::new(version, nic);
        change(&mut config);
        let mut handle = None;
        let slot = Slot::plug(fabric, Trace::default(), |port| {
            let function = IonicFunction::attach(fabric, port, config);
            handle = Some(function.nic().clone());
            Box::new(function)
        });
        Self { slot, nic: handle.expect("plugged in"), gid }
    }

    /// The driver has kept the contract, and nothing of the host's is left to the device.
    pub fn assert_clean(&self) {
        assert_eq!(self.nic.lock().front_end().violations(), []);
        self.assert_released();
    }

    /// Nothing of the host's is left to the device.
    pub fn assert_released(&self) {
        assert_eq!(self.slot.violations(), 0, "DMA outside of what was shared");
        assert_eq!((self.slot.memory().allocated(), self.slot.abandoned()), (0, 0), "memory left");
    }

    /// Opens the NIC.
    pub fn open(&self, config: Config) -> Nic<Slot> {
        let mut nic = Nic::open(self.slot.clone(), config).unwrap_or_else(|e| panic!("{e}"));
        nic.add_gid(self.gid, None).expect("room for a GID");
        nic
    }
}

/// Two NICs on a wire.
pub fn rig(version: RdmaVersion, options: FabricOptions) -> [Rig; 2] {
    let fabric = Fabric::new(options);
    [1, 2].map(|nth| Rig::plug(&fabric, version, nth))
}
