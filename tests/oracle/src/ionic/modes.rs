//! The modes: what the device and the queues of a case are like. What a mode leaves open follows from the seed.

use directverbs::ionic::cmb::{CmbGrant, CmbPreference, Mapping};
use directverbs::ionic::plan::Placement;
use directverbs::verbs::{QpCapabilities, QpType};

use super::pair::Poll;
use crate::case::Rng;
use crate::uverbs::ionic::{ClockInfo, Config, cmb};

/// A mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// Name.
    pub name: &'static str,
    /// rdma version.
    pub version: u16,
    /// Kind of queue pairs.
    pub qp_type: QpType,
    /// Pipelines that the device has.
    pub udma_count: u8,
    /// Pipelines that the protection domain allows.
    pub udma_mask: u8,
    /// Most SGEs with a list of lengths.
    pub max_spec: u8,
    /// Where the queues shall be.
    pub place: Placement,
    /// Bits that the device grants to queues in controller memory.
    pub granted: u8,
    /// How completions are polled.
    pub poll: Poll,
    /// Requests are posted with the builder functions too.
    pub builder: bool,
    /// Only sizes are compared.
    pub sizes: bool,
}

const HOST: CmbPreference = CmbPreference::HOST;
const CMB: CmbPreference = CmbPreference { enable: true, express: false, require: false };
const EXPRESS: CmbPreference = CmbPreference { enable: true, express: true, require: false };
const REQUIRED: CmbPreference = CmbPreference { enable: true, express: true, require: true };

const BASE: Mode = Mode {
    name: "",
    version: 2,
    qp_type: QpType::Rc,
    udma_count: 1,
    udma_mask: 1,
    max_spec: 8,
    place: Placement { sq: HOST, rq: HOST },
    granted: 0,
    poll: Poll::Array,
    builder: false,
    sizes: false,
};

const fn both(preference: CmbPreference) -> Placement {
    Placement { sq: preference, rq: preference }
}

const ALL_BITS: u8 = cmb::ENABLE | cmb::EXPDB;

/// All modes.
pub(super) const MODES: &[Mode] = &[
    Mode { name: "v1", version: 1, ..BASE },
    Mode { name: "v2", ..BASE },
    Mode { name: "v1-ud", version: 1, qp_type: QpType::Ud, ..BASE },
    Mode { name: "v2-ud", qp_type: QpType::Ud, ..BASE },
    Mode { name: "v1-no-spec", version: 1, max_spec: 0, ..BASE },
    Mode { name: "v2-spec-16", max_spec: 16, ..BASE },
    Mode { name: "v2-two-udma", udma_count: 2, udma_mask: 3, ..BASE },
    Mode { name: "v1-first-of-two-udma", version: 1, udma_count: 2, udma_mask: 1, ..BASE },
    Mode { name: "v2-second-of-two-udma", udma_count: 2, udma_mask: 2, ..BASE },
    Mode { name: "v1-cmb", version: 1, place: both(CMB), granted: ALL_BITS | cmb::WC, ..BASE },
    Mode { name: "v2-cmb", place: both(CMB), granted: ALL_BITS | cmb::WC, max_spec: 16, ..BASE },
    Mode { name: "v2-cmb-uncached", place: both(CMB), granted: ALL_BITS | cmb::UC, ..BASE },
    Mode { name: "v2-cmb-not-granted", place: both(EXPRESS), granted: 0, ..BASE },
    Mode { name: "v1-express", version: 1, place: both(EXPRESS), granted: ALL_BITS | cmb::WC, ..BASE },
    Mode { name: "v2-express", place: both(EXPRESS), granted: ALL_BITS | cmb::WC, ..BASE },
    Mode { name: "v2-express-uncached", place: both(EXPRESS), granted: ALL_BITS | cmb::UC, ..BASE },
    Mode { name: "v2-express-required", place: both(REQUIRED), granted: ALL_BITS | cmb::WC, ..BASE },
    Mode { name: "v2-express-not-granted", place: both(EXPRESS), granted: cmb::ENABLE | cmb::WC, ..BASE },
    Mode {
        name: "v2-ud-express-send",
        qp_type: QpType::Ud,
        place: Placement { sq: EXPRESS, rq: HOST },
        granted: ALL_BITS | cmb::WC,
        ..BASE
    },
    Mode {
        name: "v2-cmb-receive",
        place: Placement { sq: HOST, rq: EXPRESS },
        granted: ALL_BITS | cmb::WC,
        udma_count: 2,
        udma_mask: 3,
        ..BASE
    },
    Mode { name: "v1-builder", version: 1, builder: true, ..BASE },
    Mode { name: "v2-builder", builder: true, ..BASE },
    Mode {
        name: "v2-builder-express",
        builder: true,
        place: both(EXPRESS),
        granted: ALL_BITS | cmb::WC,
        ..BASE
    },
    Mode { name: "v1-extended-poll", version: 1, poll: Poll::Extended, ..BASE },
    Mode {
        name: "v2-extended-poll",
        poll: Poll::Extended,
        udma_count: 2,
        udma_mask: 3,
        builder: true,
        ..BASE
    },
    Mode { name: "v1-sizes", version: 1, sizes: true, granted: ALL_BITS | cmb::WC, ..BASE },
    Mode { name: "v2-sizes", sizes: true, granted: ALL_BITS | cmb::WC, ..BASE },
    Mode {
        name: "v2-sizes-two-udma",
        sizes: true,
        udma_count: 2,
        udma_mask: 3,
        granted: ALL_BITS | cmb::UC,
        ..BASE
    },
];

impl Mode {
    /// The device.
    pub fn config(&self, rng: &mut Rng) -> Config {
        // The three registers are any three different ones.
        let first = rng.below(8) as u8;
        let step = [1, 3, 5, 7][rng.below(4) as usize];
        Config {
            version: self.version,
            qtypes: [0, 1, 2].map(|place| (first + step * place) % 8),
            max_spec: self.max_spec,
            udma_count: self.udma_count,
            udma: rng.below(2) as u8,
            express_strides: 15,
            express_queues: 3,
            cmb: [self.granted; 2],
            // Timestamps need a clock.
            clock: (self.poll == Poll::Extended).then(|| ClockInfo {
                sign: rng.bits() & !1,
                nsec: rng.long(),
                cycles: rng.long() >> 16,
                frac: rng.bits().into(),
                mult: rng.bits(),
                shift: rng.below(32),
                mask: (1 << 48) - 1,
                ..ClockInfo::default()
            }),
            ..Config::default()
        }
    }

    /// Capabilities of queues in which something happens soon: short ones, mostly.
    pub fn capabilities(&self, rng: &mut Rng) -> QpCapabilities {
        let requests = |rng: &mut Rng| match rng.below(8) {
            0 => rng.between(64, 300),
            _ => rng.between(1, 63),
        };
        let sges = match self.max_spec {
            16 => rng.between(1, 16),
            _ if rng.once_in(4) => rng.between(2, 14),
            _ => rng.between(1, 4),
        };
        // In 64 bytes there is room for one SGE beside an express doorbell.
        let one_receive = self.place.rq.require || self.place.rq.express && !rng.once_in(3);
        let narrow = self.place.sq.express && rng.once_in(3);
        QpCapabilities {
            max_send_wr: requests(rng),
            max_recv_wr: requests(rng),
            max_send_sge: if narrow { 1 } else { sges },
            max_recv_sge: if one_receive { 1 } else { rng.between(1, sges) },
            max_inline_data: if narrow || rng.once_in(3) { 0 } else { rng.between(1, 200) },
        }
    }
}

/// What the device's answer says of a queue.
pub(super) fn grant(reply: u8) -> CmbGrant {
    if reply & cmb::ENABLE == 0 {
        return CmbGrant::Host;
    }
    let mapping = if reply & cmb::UC != 0 { Mapping::Uncached } else { Mapping::WriteCombined };
    CmbGrant::Cmb { express: reply & cmb::EXPDB != 0, mapping }
}
