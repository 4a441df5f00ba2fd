//! Which of our GIDs reaches a peer.

use std::fmt;

use directverbs::verbs::Gid;

use super::gid::{GidEntry, GidType, Netdev, is_link_local};

/// What is known of the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// Nothing.
    #[default]
    Unknown,
    /// Its GID.
    Gid(Gid),
    /// Only that it has IPv4 addresses.
    V4,
    /// Only that it has IPv6 addresses.
    V6,
}

impl Peer {
    /// Whether its address is IPv4, if that is known.
    fn is_v4(self) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Gid(gid) => Some(gid.as_v4().is_some()),
            Self::V4 => Some(true),
            Self::V6 => Some(false),
        }
    }
}

/// What GID is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GidWish {
    /// The peer.
    pub peer: Peer,
    /// This index of the table, and no other.
    pub index: Option<u32>,
    /// This network interface, and no other.
    pub netdev: Option<String>,
}

/// Why no GID fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoGid {
    /// Entries of the table.
    pub entries: usize,
    /// What they lack, and how many lack it.
    pub lacks: Vec<(Lack, usize)>,
    wish: GidWish,
}

/// What an entry lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lack {
    /// It has another index.
    Index,
    /// It belongs to another interface.
    Netdev,
    /// Its packets are not RoCEv2.
    Type,
    /// It is of the other address family.
    Family,
    /// It is link-local, and the peer is not; or the other way round.
    Scope,
}

impl fmt::Display for NoGid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entries == 0 {
            return f.write_str("the GID table is empty: give the port's network interface an address");
        }
        if let (Some(index), [(Lack::Index, _)]) = (self.wish.index, self.lacks.as_slice()) {
            return write!(f, "there is no GID with index {index}; {} others are in use", self.entries);
        }
        write!(f, "none of {} GIDs fits", self.entries)?;
        let family = match self.wish.peer.is_v4() {
            Some(true) => "not IPv4 as the peer is",
            _ => "not IPv6 as the peer is",
        };
        for (lack, count) in &self.lacks {
            let text = match lack {
                Lack::Index => "with another index",
                Lack::Netdev => "of another interface",
                Lack::Type => "not RoCEv2",
                Lack::Family => family,
                Lack::Scope => "of another scope than the peer's (link-local or routed)",
            };
            write!(f, ", {count} {text}")?;
        }
        let has = |lack| self.lacks.iter().any(|(l, _)| *l == lack);
        match () {
            () if has(Lack::Family) => {
                let family = if self.wish.peer.is_v4() == Some(true) { "IPv4" } else { "IPv6" };
                write!(f, ": give the port's network interface an {family} address")
            }
            () if has(Lack::Scope) => {
                f.write_str(": give the port's network interface an address of that scope")
            }
            () => Ok(()),
        }
    }
}

impl std::error::Error for NoGid {}

/// The entry of `table` that fits best: RoCEv2, of the peer's address family, routed unless the peer is link-local. Of
/// several the one with the lowest index is taken; without a peer, a routed one before a link-local one.
///
/// # Errors
/// None fits, and why.
pub fn choose_gid<'t>(table: &'t [GidEntry], wish: &GidWish) -> Result<&'t GidEntry, NoGid> {
    let lack = |entry: &GidEntry| {
        if wish.index.is_some_and(|i| i != entry.index) {
            return Some(Lack::Index);
        }
        if let Some(wanted) = &wish.netdev
            && !matches!(&entry.netdev, Some(Netdev::Name(name)) if name == wanted)
        {
            return Some(Lack::Netdev);
        }
        if entry.gid_type != GidType::RoceV2 {
            return Some(Lack::Type);
        }
        if wish.peer.is_v4().is_some_and(|v4| v4 != entry.gid.as_v4().is_some()) {
            return Some(Lack::Family);
        }
        match wish.peer {
            // An index that was asked for is the asker's own decision.
            Peer::Gid(peer) if wish.index.is_none() && is_link_local(peer) != entry.is_link_local() => {
                Some(Lack::Scope)
            }
            _ => None,
        }
    };
    let best = table.iter().filter(|e| lack(e).is_none()).min_by_key(|e| (e.is_link_local(), e.index));
    best.ok_or_else(|| {
        let mut lacks: Vec<(Lack, usize)> = Vec::new();
        for found in table.iter().filter_map(lack) {
            match lacks.iter_mut().find(|(l, _)| *l == found) {
                Some((_, count)) => *count += 1,
                None => lacks.push((found, 1)),
            }
        }
        lacks.sort();
        NoGid { entries: table.len(), lacks, wish: wish.clone() }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn entry(index: u32, gid: Gid, gid_type: GidType) -> GidEntry {
        GidEntry { port: 1, index, gid, gid_type, netdev: Some(Netdev::Name("eth0".to_owned())) }
    }

    fn link_local() -> Gid {
        Gid::v6("fe80::1".parse::<Ipv6Addr>().expect("an address"))
    }

    fn global() -> Gid {
        Gid::v6("2001:db8::1".parse::<Ipv6Addr>().expect("an address"))
    }

    fn v4(last: u8) -> Gid {
        Gid::v4(Ipv4Addr::new(10, 0, 0, last))
    }

    /// As a kernel fills it: each address as RoCE v1 and as v2.
    fn usual() -> Vec<GidEntry> {
        [link_local(), v4(1), global()]
            .into_iter()
            .enumerate()
            .flat_map(|(i, gid)| {
                let i = 2 * i as u32;
                [entry(i, gid, GidType::RoceV1), entry(i + 1, gid, GidType::RoceV2)]
            })
            .collect()
    }

    #[test]
    fn a_routed_gid_is_taken_before_a_link_local_one() {
        assert_eq!(choose_gid(&usual(), &GidWish::default()).expect("one fits").index, 3);
        let only_local = [entry(1, link_local(), GidType::RoceV2)];
        assert_eq!(choose_gid(&only_local, &GidWish::default()).expect("one fits").index, 1);
    }

    #[test]
    fn the_family_and_the_scope_are_the_peers() {
        let chosen = |peer| choose_gid(&usual(), &GidWish { peer, ..GidWish::default() }).map(|e| e.index);
        assert_eq!(chosen(Peer::Gid(v4(2))), Ok(3));
        assert_eq!(chosen(Peer::Gid(global())), Ok(5));
        assert_eq!(chosen(Peer::Gid(link_local())), Ok(1));
        assert_eq!(chosen(Peer::V4), Ok(3));
        assert_eq!(chosen(Peer::V6), Ok(5));
    }

    #[test]
    fn it_says_why_none_fits() {
        let table = [entry(0, link_local(), GidType::RoceV1), entry(1, link_local(), GidType::RoceV2)];
        let error = choose_gid(&table, &GidWish { peer: Peer::Gid(v4(2)), ..GidWish::default() });
        let text = error.expect_err("no IPv4").to_string();
        for part in ["none of 2 GIDs", "1 not RoCEv2", "1 not IPv4 as the peer is", "an IPv4 address"] {
            assert!(text.contains(part), "{text}");
        }
        let error = choose_gid(&table, &GidWish { peer: Peer::Gid(global()), ..GidWish::default() });
        assert_eq!(error.expect_err("no routed one").lacks, [(Lack::Type, 1), (Lack::Scope, 1)]);
        let error = choose_gid(&[], &GidWish::default()).expect_err("an empty table");
        assert!(error.to_string().contains("empty"), "{error}");
    }

    #[test]
    fn an_index_that_does_not_exist_is_said_to() {
        let table = usual();
        let error = choose_gid(&table, &GidWish { index: Some(9), ..GidWish::default() });
        assert_eq!(
            error.expect_err("no index 9").to_string(),
            "there is no GID with index 9; 6 others are in use"
        );
        let v1 = choose_gid(&table, &GidWish { index: Some(2), ..GidWish::default() });
        assert!(v1.expect_err("RoCE v1").to_string().contains("1 not RoCEv2"));
    }

    #[test]
    fn another_interface_does_not_count() {
        let table = usual();
        let error = choose_gid(&table, &GidWish { netdev: Some("eth1".to_owned()), ..GidWish::default() });
        assert_eq!(error.expect_err("eth0").lacks, [(Lack::Netdev, 6)]);
    }

    proptest! {
        /// What is chosen fits, and when nothing is, every entry is accounted for.
        #[test]
        fn the_choice_fits_or_every_entry_lacks_something(
            kinds in prop::collection::vec((0..4u8, 0..4u8), 0..12), peer in 0..5u8, index in prop::option::of(0..12u32),
        ) {
            let gids = [link_local(), v4(1), global(), Gid::v4(Ipv4Addr::new(169, 254, 0, 1))];
            let types = [GidType::RoceV1, GidType::RoceV2, GidType::RoceV2, GidType::Other];
            let table: Vec<_> = kinds.iter().enumerate()
                .map(|(i, (g, t))| entry(i as u32, gids[usize::from(*g)], types[usize::from(*t)])).collect();
            let peer = [Peer::Unknown, Peer::V4, Peer::V6, Peer::Gid(v4(2)), Peer::Gid(link_local())][usize::from(peer)];
            let wish = GidWish { peer, index, netdev: None };
            match choose_gid(&table, &wish) {
                Ok(chosen) => {
                    prop_assert_eq!(chosen.gid_type, GidType::RoceV2);
                    prop_assert!(peer.is_v4().is_none_or(|v| v == chosen.gid.as_v4().is_some()));
                    prop_assert!(index.is_none_or(|i| i == chosen.index));
                }
                Err(error) => prop_assert_eq!(error.lacks.iter().map(|(_, n)| n).sum::<usize>(), table.len()),
            }
        }
    }
}
