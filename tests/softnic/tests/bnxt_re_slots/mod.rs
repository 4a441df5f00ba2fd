//! bnxt_re NICs in PCI slots of this process, brought up by the driver without an operating system.
#![allow(dead_code, reason = "each test file uses a part of it")]

use directverbs::bnxt_re::hwrm::context::Demand;
use directverbs::bnxt_re::push::PushPreference;
use directverbs::verbs::{
    AccessFlags, CompletionQueue as _, Device as _, Mac, QKey, QpAttributes, QpCapabilities, QpInit, QpState,
    QpType, QueuePair as _, RecvRequest, SrqInit,
};
use directverbs_bare::bnxt_re::{CompletionQueue, Config, Device, Error, Nic};
use directverbs_softnic::bnxt_re::BnxtRe;
use directverbs_softnic::bnxt_re::control::{BnxtFunction, Chip};
use directverbs_softnic::fabric::{Fabric, NicHandle};
use directverbs_softnic::pci::{Function, Port, Slot, Trace};

/// Chips of both generations.
pub const CHIPS: [fn(Mac) -> Chip; 2] = [Chip::p5, Chip::p7];

/// As little as a bring-up and an object of each kind can do with: it is quick.
pub fn least() -> Config<'static> {
    let demand = Demand { qps: 2, srqs: 1, cqs: 2, regions: 2, ahs: 1 };
    Config { demand, pds: 2, command_slots: 32, event_entries: 64, ..Config::default() }
}

/// A slot with a NIC.
pub struct Machine {
    pub slot: Slot,
    pub nic: NicHandle<BnxtRe>,
}

impl Machine {
    /// Plugs chip number `nth` into `fabric`.
    pub fn plug(fabric: &Fabric, chip: fn(Mac) -> Chip, nth: u8) -> Self {
        Self::plug_changed(fabric, &chip(mac(nth)), |port| port, |function| function)
    }

    /// Plugs in a chip whose way to the host, or whose function, is another.
    pub fn plug_changed(
        fabric: &Fabric,
        chip: &Chip,
        port: impl FnOnce(Port) -> Port,
        function: impl FnOnce(Box<dyn Function>) -> Box<dyn Function>,
    ) -> Self {
        let mut nic = None;
        let slot = Slot::plug(fabric, Trace::default(), |given| {
            let built = BnxtFunction::new(fabric, *chip, port(given));
            nic = Some(built.nic().clone());
            function(Box::new(built))
        });
        Self { slot, nic: nic.expect("it was built") }
    }

    /// Brings it up.
    pub fn open(&self) -> Result<Nic<Slot>, Error> {
        self.open_with(&Config::default())
    }

    /// Brings it up as `config` says.
    pub fn open_with(&self, config: &Config<'_>) -> Result<Nic<Slot>, Error> {
        Nic::open(self.slot.clone(), config)
    }

    /// What the driver did wrong.
    pub fn violations(&self) -> Vec<String> {
        self.nic.lock().front_end().violations().last().map(ToString::to_string).collect()
    }
}

/// Ethernet address of the `nth` NIC.
pub fn mac(nth: u8) -> Mac {
    Mac([0x02, 0, 0, 0, 0, nth])
}

/// One life of a device: opened, an object of each kind created and destroyed, closed.
pub fn life(machine: &Machine) -> Result<(), Error> {
    let mut nic = machine.open_with(&least())?;
    nic.device().set_push(PushPreference { enable: true, require: false })?;
    objects(&mut nic.device())?;
    nic.close()
}

/// Creates and destroys an object of each kind.
pub fn objects(device: &mut Device<'_, Slot>) -> Result<(), Error> {
    let pd = device.alloc_pd()?;
    let mr = device.alloc_mr(&pd, 5000, AccessFlags::LOCAL_WRITE)?;
    let mut cq = device.create_cq(16)?;
    let srq = device.create_srq(&pd, SrqInit { max_wr: 8, max_sge: 1 })?;
    let capabilities =
        QpCapabilities { max_send_wr: 8, max_send_sge: 1, max_recv_sge: 1, ..QpCapabilities::default() };
    let init = QpInit {
        qp_type: QpType::Rc,
        capabilities,
        send_cq: &cq,
        recv_cq: &cq,
        srq: Some(&srq),
        signal_all: false,
    };
    let qp = device.create_qp(&pd, &init)?;
    device.query_qp(&qp)?;
    device.destroy_qp(qp, &mut [&mut cq])?;
    device.destroy_srq(srq)?;
    device.destroy_cq(cq)?;
    device.dealloc_mr(mr)?;
    device.dealloc_pd(pd)
}

/// Has an armed completion queue get a completion, lets `look` look for its event, and destroys all.
pub fn with_completion<'n, T>(
    device: &mut Device<'n, Slot>,
    look: impl FnOnce(&mut Device<'n, Slot>, &mut CompletionQueue<'n, Slot>) -> T,
) -> T {
    let pd = device.alloc_pd().unwrap();
    let mut cq = device.create_cq(16).unwrap();
    let capabilities =
        QpCapabilities { max_recv_wr: 8, max_send_wr: 8, max_recv_sge: 1, ..QpCapabilities::default() };
    let init =
        QpInit { qp_type: QpType::Ud, capabilities, send_cq: &cq, recv_cq: &cq, srq: None, signal_all: true };
    let mut qp = device.create_qp(&pd, &init).unwrap();
    cq.arm(false);
    for state in [QpState::Init, QpState::Rtr] {
        let qkey = (state == QpState::Init).then(|| QKey::truncated(1));
        let attributes = QpAttributes { qkey, ..QpAttributes::to(state) };
        device.modify_qp(&mut qp, &mut [&mut cq], &attributes).unwrap();
    }
    qp.post_recv(&mut cq, &[RecvRequest::new(1, &[])]).unwrap();
    // In error the device flushes, and tells so by a completion.
    device.modify_qp(&mut qp, &mut [&mut cq], &QpAttributes::to(QpState::Err)).unwrap();
    let seen = look(device, &mut cq);
    device.destroy_qp(qp, &mut [&mut cq]).unwrap();
    device.destroy_cq(cq).unwrap();
    device.dealloc_pd(pd).unwrap();
    seen
}
