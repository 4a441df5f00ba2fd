//! Ports, as sysfs describes them.

use std::fmt;
use std::path::{Path, PathBuf};

use directverbs::verbs::Mac;

use super::gid::{self, GidEntry, Netdev};
use super::read::{self, SysfsError};

/// State of a port. Open: any code is representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortState {
    /// Nothing known.
    Nop,
    /// The link is down.
    Down,
    /// The link is up, but not configured.
    Init,
    /// Ready to become active.
    Armed,
    /// In use.
    Active,
    /// Active, but the link has just failed.
    ActiveDefer,
    /// Another code.
    Other(u32),
}

impl PortState {
    /// The state with a code.
    pub const fn from_code(code: u32) -> Self {
        match code {
            0 => Self::Nop,
            1 => Self::Down,
            2 => Self::Init,
            3 => Self::Armed,
            4 => Self::Active,
            5 => Self::ActiveDefer,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nop => "nop",
            Self::Down => "down",
            Self::Init => "init",
            Self::Armed => "armed",
            Self::Active => "active",
            Self::ActiveDefer => "active defer",
            Self::Other(code) => return write!(f, "state {code}"),
        })
    }
}

/// What a port is wired to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkLayer {
    /// Not told.
    Unspecified,
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE.
    Ethernet,
}

impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unspecified => "unspecified",
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        })
    }
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// Number, from 1.
    pub number: u8,
    /// State.
    pub state: PortState,
    /// Code of the physical state: 5 is up.
    pub physical_state: u32,
    /// What it is wired to.
    pub link_layer: LinkLayer,
    /// Rate, as the kernel spells it: `100 Gb/sec (4X EDR)`. Empty if it does not say.
    pub rate: String,
    /// Used entries of the GID table.
    pub gids: Vec<GidEntry>,
    /// The network interface of the port's GIDs, and its MTU in bytes, if there is one.
    pub netdev: Option<(String, u32)>,
    /// Ethernet address of that interface.
    pub mac: Option<Mac>,
}

impl PortInfo {
    pub(super) fn read(folder: &Path, number: u8, net: &Path) -> Result<Self, SysfsError> {
        let file = |name: &str| folder.join(name);
        let state = read::parsed(&file("state"), "a state such as `4: ACTIVE`", read::code)?;
        let physical = read::optional(&file("phys_state"))?;
        let link_layer = match read::optional(&file("link_layer"))?.as_deref() {
            Some("Ethernet") => LinkLayer::Ethernet,
            Some("InfiniBand") => LinkLayer::InfiniBand,
            _ => LinkLayer::Unspecified,
        };
        let gids = gid::table(folder, number, link_layer == LinkLayer::Ethernet)?;
        let netdev = netdev(&gids, net)?;
        let mac = match &netdev {
            Some((name, _)) => read::optional(&net.join(name).join("address"))?.and_then(|text| mac(&text)),
            None => None,
        };
        Ok(Self {
            number,
            state: PortState::from_code(state),
            physical_state: physical.as_deref().and_then(read::code).unwrap_or(0),
            link_layer,
            rate: read::optional(&file("rate"))?.unwrap_or_default(),
            netdev,
            mac,
            gids,
        })
    }
}

/// The interface of the first GID that has one, and its MTU.
fn netdev(gids: &[GidEntry], net: &Path) -> Result<Option<(String, u32)>, SysfsError> {
    let name = gids.iter().find_map(|g| match &g.netdev {
        // A name that leads out of the folder is none.
        Some(Netdev::Name(name)) if is_name(name) => Some(name.clone()),
        _ => None,
    });
    let Some(name) = name else { return Ok(None) };
    let path: PathBuf = net.join(&name).join("mtu");
    match read::number(&path) {
        // The interface is in another network namespace, or gone.
        Err(error) if error.is_missing() => Ok(None),
        mtu => Ok(Some((name, mtu?))),
    }
}

/// Six groups of two hexadecimal digits.
fn mac(text: &str) -> Option<Mac> {
    let mut mac = Mac::default();
    let mut groups = text.split(':');
    for byte in &mut mac.0 {
        let group = groups.next().filter(|g| g.len() == 2)?;
        *byte = u8::from_str_radix(group, 16).ok()?;
    }
    groups.next().is_none().then_some(mac)
}

/// Whether `name` is that of one file in a folder.
pub(super) fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/')
}
