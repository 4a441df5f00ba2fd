//! What can be served.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use directverbs_softnic::pci::{Copier, Function, Port};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The simplest device that does DMA, to try a host with.
    Copier,
}

impl Model {
    /// All.
    pub const ALL: [Self; 1] = [Self::Copier];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copier => "copier",
        }
    }

    /// Builds one.
    pub fn build(self, port: Port) -> Box<dyn Function> {
        match self {
            Self::Copier => Box::new(Copier::new(port)),
        }
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
