//! The NIC under a made-up device: the front end of either family.

use directverbs::verbs::{CqId, QpId, QpState, SrqId};
use directverbs_softnic::bnxt_re::{self, BnxtRe};
use directverbs_softnic::device::{CqConfig, DeviceError, ModifyQp, QpConfig, RingConfig, SrqConfig};
use directverbs_softnic::ionic::{Ionic, IonicConfig};
use directverbs_softnic::nic::{FrontEnd, Hardware};
use directverbs_softnic::open::NicKind;
use directverbs_softnic::roce::Event;

use directverbs::ionic::wqe::RdmaVersion;

use crate::profile::Profile;

/// How often a bnxt_re NIC joins completions, in parts per million.
const COALESCE: u32 = 333_333;
/// How often a completion of an ionic NIC is passed by others, in parts per million.
const REORDER: u32 = 250_000;

/// A front end of either family.
#[derive(Debug)]
pub enum Chip {
    /// Broadcom.
    BnxtRe(BnxtRe),
    /// AMD Pensando.
    Ionic(Ionic),
}

impl Chip {
    /// The front end of the NIC that the profile names.
    pub fn new(profile: &Profile) -> Self {
        let lively = |ppm| if profile.lively { ppm } else { 0 };
        let bnxt_re = |config| {
            let (coalesce, seed) = (lively(COALESCE), profile.place.into());
            Self::BnxtRe(BnxtRe::new(bnxt_re::Config { coalesce, seed, ..config }))
        };
        let ionic = |version| {
            let (reorder, seed) = (lively(REORDER), profile.place.into());
            Self::Ionic(Ionic::new(IonicConfig { reorder, seed, ..IonicConfig::new(version) }))
        };
        match profile.nic {
            // Drivers of P5 know of no toggles, and arm with 0.
            NicKind::BnxtReP5 => bnxt_re(bnxt_re::Config { toggles: false, ..bnxt_re::Config::P5 }),
            NicKind::BnxtReP7 => bnxt_re(bnxt_re::Config::P7),
            NicKind::IonicV1 => ionic(RdmaVersion::V1),
            NicKind::IonicV2 => ionic(RdmaVersion::V2),
        }
    }

    /// What drivers did wrong in the eyes of the NIC, oldest first.
    pub fn violations(&self) -> Vec<String> {
        match self {
            Self::BnxtRe(chip) => chip.violations().last().map(ToString::to_string).collect(),
            Self::Ionic(chip) => chip.violations().iter().map(ToString::to_string).collect(),
        }
    }

    /// bnxt_re: toggle for the next arm of a completion queue.
    pub fn cq_toggle(&self, id: CqId) -> Option<u8> {
        match self {
            Self::BnxtRe(chip) => chip.cq_toggle(id),
            Self::Ionic(_) => None,
        }
    }

    /// bnxt_re: toggle for the next arm of a shared receive queue.
    pub fn srq_toggle(&self, id: SrqId) -> Option<u8> {
        match self {
            Self::BnxtRe(chip) => chip.srq_toggle(id),
            Self::Ionic(_) => None,
        }
    }

    fn inner(&mut self) -> &mut dyn FrontEnd {
        match self {
            Self::BnxtRe(chip) => chip,
            Self::Ionic(chip) => chip,
        }
    }
}

impl FrontEnd for Chip {
    fn create_cq(&mut self, hardware: &mut Hardware, cq: CqId, config: &CqConfig) -> Result<(), DeviceError> {
        self.inner().create_cq(hardware, cq, config)
    }

    fn resize_cq(&mut self, hardware: &mut Hardware, cq: CqId, ring: &RingConfig) -> Result<(), DeviceError> {
        self.inner().resize_cq(hardware, cq, ring)
    }

    fn destroy_cq(&mut self, hardware: &mut Hardware, cq: CqId) {
        self.inner().destroy_cq(hardware, cq);
    }

    fn create_srq(
        &mut self,
        hardware: &mut Hardware,
        srq: SrqId,
        config: &SrqConfig,
    ) -> Result<(), DeviceError> {
        self.inner().create_srq(hardware, srq, config)
    }

    fn destroy_srq(&mut self, hardware: &mut Hardware, srq: SrqId) {
        self.inner().destroy_srq(hardware, srq);
    }

    fn create_qp(&mut self, hardware: &mut Hardware, qp: QpId, config: &QpConfig) -> Result<(), DeviceError> {
        self.inner().create_qp(hardware, qp, config)
    }

    fn modify_qp(
        &mut self,
        hardware: &mut Hardware,
        qp: QpId,
        from: QpState,
        to: QpState,
        attributes: &ModifyQp,
    ) {
        self.inner().modify_qp(hardware, qp, from, to, attributes);
    }

    fn destroy_qp(&mut self, hardware: &mut Hardware, qp: QpId) {
        self.inner().destroy_qp(hardware, qp);
    }

    fn doorbell(&mut self, hardware: &mut Hardware, page: u32, register: usize, value: u64) {
        self.inner().doorbell(hardware, page, register, value);
    }

    fn device_store(&mut self, hardware: &mut Hardware, offset: u64, bytes: &[u8]) {
        self.inner().device_store(hardware, offset, bytes);
    }

    fn reset(&mut self) {
        self.inner().reset();
    }

    fn event(&mut self, hardware: &mut Hardware, event: &Event) {
        self.inner().event(hardware, event);
    }

    fn work(&mut self, hardware: &mut Hardware) -> bool {
        self.inner().work(hardware)
    }
}
