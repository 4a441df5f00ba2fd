//! bnxt_re NICs in PCI slots of this process, brought up by the driver without an operating system.
#![allow(dead_code, reason = "each test file uses a part of it")]

use directverbs::verbs::Mac;
use directverbs_bare::bnxt_re::{Config, Error, Nic};
use directverbs_softnic::bnxt_re::BnxtRe;
use directverbs_softnic::bnxt_re::control::{BnxtFunction, Chip};
use directverbs_softnic::fabric::{Fabric, NicHandle};
use directverbs_softnic::pci::{Slot, Trace};

/// Chips of both generations.
pub const CHIPS: [fn(Mac) -> Chip; 2] = [Chip::p5, Chip::p7];

/// A slot with a NIC.
pub struct Machine {
    pub slot: Slot,
    pub nic: NicHandle<BnxtRe>,
}

impl Machine {
    /// Plugs chip number `nth` into `fabric`.
    pub fn plug(fabric: &Fabric, chip: fn(Mac) -> Chip, nth: u8) -> Self {
        let mut nic = None;
        let slot = Slot::plug(fabric, Trace::default(), |port| {
            let function = BnxtFunction::new(fabric, chip(mac(nth)), port);
            nic = Some(function.nic().clone());
            Box::new(function)
        });
        Self { slot, nic: nic.expect("it was built") }
    }

    /// Brings it up.
    pub fn open(&self) -> Result<Nic<Slot>, Error> {
        Nic::open(self.slot.clone(), &Config::default())
    }

    /// What the driver did wrong.
    pub fn violations(&self) -> Vec<String> {
        self.nic.lock().front_end().violations().last().map(ToString::to_string).collect()
    }
}

fn mac(nth: u8) -> Mac {
    Mac([0x02, 0, 0, 0, 0, nth])
}
