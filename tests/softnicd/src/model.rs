//! What can be served.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use directverbs::ionic::wqe::RdmaVersion;
use directverbs::verbs::{Mac, Mtu, RKey};
use directverbs_softnic::bnxt_re::control::{BnxtFunction, Chip};
use directverbs_softnic::device::NicConfig;
use directverbs_softnic::fabric::Fabric;
use directverbs_softnic::ionic::control::{ControlConfig, IonicFunction};
use directverbs_softnic::open::NicKind;
use directverbs_softnic::pci::{Copier, Function, Port};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The simplest device that does DMA, to try a host with.
    Copier,
    /// Broadcom BCM575xx.
    BnxtReP5,
    /// Broadcom BCM5760x.
    BnxtReP7,
    /// AMD Pensando.
    Ionic(RdmaVersion),
}

impl Model {
    /// All.
    pub const ALL: [Self; 5] = [
        Self::Copier,
        Self::BnxtReP5,
        Self::BnxtReP7,
        Self::Ionic(RdmaVersion::V1),
        Self::Ionic(RdmaVersion::V2),
    ];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copier => "copier",
            Self::BnxtReP5 => NicKind::BnxtReP5.name(),
            Self::BnxtReP7 => NicKind::BnxtReP7.name(),
            Self::Ionic(RdmaVersion::V1) => NicKind::IonicV1.name(),
            Self::Ionic(RdmaVersion::V2) => NicKind::IonicV2.name(),
        }
    }

    /// Builds one. A NIC is on `fabric`, and has the Ethernet address 02:00:00:00:00:`number`.
    pub fn build(self, fabric: &Fabric, number: u8, port: Port) -> Box<dyn Function> {
        match self {
            Self::Copier => Box::new(Copier::new(port)),
            Self::BnxtReP5 => Box::new(BnxtFunction::new(fabric, Chip::p5(mac(number)), port)),
            Self::BnxtReP7 => Box::new(BnxtFunction::new(fabric, Chip::p7(mac(number)), port)),
            Self::Ionic(version) => {
                let config = ControlConfig::new(version, nic(number));
                Box::new(IonicFunction::attach(fabric, port, config))
            }
        }
    }
}

/// Ethernet address of NIC `number`.
const fn mac(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

/// A NIC as its datapath sees it. GIDs are what the driver sets, or tells in headers.
fn nic(number: u8) -> NicConfig {
    NicConfig {
        mac: mac(number),
        gids: Vec::new(),
        mtu: Mtu::B4096,
        device_memory: 0,
        all_memory_key: Some(RKey::truncated(0)),
    }
}

/// A device, and the socket that it is served on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// What it is.
    pub model: Model,
    /// The socket's path.
    pub socket: PathBuf,
}

/// What names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not KIND=SOCKET with one of the kinds {known}")]
pub struct NoModel {
    given: String,
    known: String,
}

impl FromStr for Served {
    type Err = NoModel;

    fn from_str(text: &str) -> Result<Self, NoModel> {
        let served = text.split_once('=').and_then(|(name, socket)| {
            let model = Model::ALL.into_iter().find(|model| model.name() == name)?;
            (!socket.is_empty()).then(|| Self { model, socket: socket.into() })
        });
        served.ok_or_else(|| NoModel { given: text.into(), known: Model::ALL.map(Model::name).join(", ") })
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.model.name(), self.socket.display())
    }
}
