//! GID tables.

use std::fmt;
use std::path::Path;

use directverbs::verbs::Gid;

use super::read::{self, Problem, SysfsError};

/// How packets of a GID look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GidType {
    /// InfiniBand.
    InfiniBand,
    /// RoCE v1: not routed.
    RoceV1,
    /// RoCE v2: over UDP.
    RoceV2,
    /// One that this crate does not know.
    Other,
}

impl fmt::Display for GidType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InfiniBand => "InfiniBand",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
            Self::Other => "unknown type",
        })
    }
}

/// The network interface of a GID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Netdev {
    /// By name, as sysfs tells it.
    Name(String),
    /// By index, as the kernel tells it.
    Index(u32),
}

impl Netdev {
    /// None for 0.
    pub fn from_index(index: u32) -> Option<Self> {
        (index != 0).then_some(Self::Index(index))
    }
}

impl fmt::Display for Netdev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.pad(name),
            Self::Index(index) => write!(f, "interface {index}"),
        }
    }
}

/// An entry of a GID table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// Port.
    pub port: u8,
    /// Index in the port's table.
    pub index: u32,
    /// GID.
    pub gid: Gid,
    /// How its packets look.
    pub gid_type: GidType,
    /// Its network interface.
    pub netdev: Option<Netdev>,
}

impl GidEntry {
    /// Whether packets from it are not routed: an IPv6 link-local address, or an IPv4 one that is.
    pub fn is_link_local(&self) -> bool {
        is_link_local(self.gid)
    }
}

/// Whether packets from or to `gid` are not routed.
pub(super) fn is_link_local(gid: Gid) -> bool {
    gid.as_v4().map_or_else(|| gid.as_v6().is_unicast_link_local(), |v4| v4.is_link_local())
}

/// The used entries of a port's table.
pub(super) fn table(port: &Path, number: u8, ethernet: bool) -> Result<Vec<GidEntry>, SysfsError> {
    let folder = port.join("gids");
    let mut entries = Vec::new();
    for name in read::names(&folder)? {
        let path = folder.join(&name);
        let value = |found: String, expected| read::fault(&path, Problem::Value { found, expected });
        let index = name.parse().map_err(|_| value(name.clone(), "a name that is an index"))?;
        // An entry may go while the table is read.
        let Some(text) = read::optional(&path)? else { continue };
        let gid = parse(&text).ok_or_else(|| value(text, "a GID"))?;
        if gid.0 == [0; 16] {
            continue;
        }
        let attributes = port.join("gid_attrs");
        // Old kernels and InfiniBand have no types.
        let gid_type = match read::optional(&attributes.join("types").join(&name))?.as_deref() {
            Some("RoCE v2") => GidType::RoceV2,
            Some("IB/RoCE v1") | None if ethernet => GidType::RoceV1,
            Some("IB/RoCE v1") | None => GidType::InfiniBand,
            Some(_) => GidType::Other,
        };
        let netdev = read::optional(&attributes.join("ndevs").join(&name))?;
        let netdev = netdev.filter(|n| !n.is_empty()).map(Netdev::Name);
        entries.push(GidEntry { port: number, index, gid, gid_type, netdev });
    }
    entries.sort_by_key(|e| e.index);
    Ok(entries)
}

/// Eight groups of four hexadecimal digits.
fn parse(text: &str) -> Option<Gid> {
    let mut gid = Gid::default();
    let mut groups = text.split(':');
    for bytes in gid.0.chunks_exact_mut(2) {
        let group = groups.next().filter(|g| g.len() == 4 && g.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.copy_from_slice(&u16::from_str_radix(group, 16).ok()?.to_be_bytes());
    }
    groups.next().is_none().then_some(gid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_gid_is_read_as_the_kernel_writes_it(bytes in any::<[u8; 16]>()) {
            let groups: Vec<_> = bytes.chunks(2).map(|p| format!("{:02x}{:02x}", p[0], p[1])).collect();
            prop_assert_eq!(parse(&groups.join(":")), Some(Gid(bytes)));
        }

        #[test]
        fn any_other_text_is_refused(text in "[0-9a-f:+ ]{0,40}") {
            let whole = text.len() == 39 && text.split(':').count() == 8 && text.split(':').all(|g| g.len() == 4)
                && !text.contains(['+', ' ']);
            prop_assert_eq!(parse(&text).is_some(), whole, "{}", text);
        }
    }
}
