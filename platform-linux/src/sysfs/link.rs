//! Whether a port can be used, and with which path MTU.

use directverbs::verbs::Mtu;

use super::port::{LinkLayer, PortInfo, PortState};

/// Bytes of headers and checksum around the payload of the largest RoCEv2 packet: IPv6, UDP, BTH, XRC and atomic
/// extensions, ICRC. Source: the kernel's `iboe_get_mtu`.
const HEADERS: u32 = 40 + 8 + 12 + 4 + 28 + 4;

/// Why a port cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// It is not active.
    #[error("port {port} is {state}: {remedy}")]
    Down {
        /// Port.
        port: u8,
        /// State.
        state: PortState,
        /// What helps.
        remedy: String,
    },
    /// It is not Ethernet.
    #[error("port {port} is {link_layer}: RoCE needs Ethernet")]
    NotEthernet {
        /// Port.
        port: u8,
        /// What it is wired to.
        link_layer: LinkLayer,
    },
    /// The path MTU does not fit the interface's.
    #[error(
        "path MTU {} does not fit {netdev}, whose MTU of {mtu} carries {}: raise it to {needed} (ip link set {netdev} mtu {needed})",
        asked.bytes(), largest.map_or(0, Mtu::bytes)
    )]
    Mtu {
        /// What was asked for.
        asked: Mtu,
        /// Interface.
        netdev: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// The largest path MTU that fits, if one does.
        largest: Option<Mtu>,
        /// The interface's MTU that it takes.
        needed: u32,
    },
}

/// The largest path MTU of an interface with `bytes` MTU.
pub fn roce_mtu(bytes: u32) -> Option<Mtu> {
    Mtu::ALL.into_iter().rev().find(|m| bytes.checked_sub(HEADERS).is_some_and(|room| m.bytes() <= room))
}

/// Checks that `port` can be used, with path MTU `asked` if one is.
///
/// # Errors
/// Why not.
pub fn check_link(port: &PortInfo, asked: Option<Mtu>) -> Result<(), LinkError> {
    if port.link_layer != LinkLayer::Ethernet {
        return Err(LinkError::NotEthernet { port: port.number, link_layer: port.link_layer });
    }
    if port.state != PortState::Active {
        let remedy = match &port.netdev {
            Some((name, _)) => format!("set its interface up (ip link set {name} up) and look at the cable"),
            None => "set its network interface up, and look at the cable".to_owned(),
        };
        return Err(LinkError::Down { port: port.number, state: port.state, remedy });
    }
    if let (Some(asked), Some((netdev, mtu))) = (asked, &port.netdev) {
        let largest = roce_mtu(*mtu);
        if largest.is_none_or(|largest| asked > largest) {
            let needed = asked.bytes() + HEADERS;
            return Err(LinkError::Mtu { asked, netdev: netdev.clone(), mtu: *mtu, largest, needed });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> PortInfo {
        PortInfo {
            number: 1,
            state: PortState::Active,
            physical_state: 5,
            link_layer: LinkLayer::Ethernet,
            rate: String::new(),
            gids: Vec::new(),
            netdev: Some(("eth0".to_owned(), 1500)),
            mac: None,
        }
    }

    #[test]
    fn the_path_mtu_leaves_room_for_headers() {
        let cases = [
            (1500, Some(1024)),
            (4191, Some(2048)),
            (4192, Some(4096)),
            (9000, Some(4096)),
            (300, None),
            (0, None),
        ];
        for (bytes, largest) in cases {
            assert_eq!(roce_mtu(bytes).map(Mtu::bytes), largest, "{bytes}");
        }
    }

    #[test]
    fn a_path_mtu_that_does_not_fit_is_refused_with_the_one_that_it_takes() {
        assert_eq!(check_link(&port(), Some(Mtu::B1024)), Ok(()));
        let error = check_link(&port(), Some(Mtu::B4096)).expect_err("too large").to_string();
        assert!(error.contains("ip link set eth0 mtu 4192"), "{error}");
    }

    #[test]
    fn a_port_that_is_down_says_how_to_set_it_up() {
        let down = PortInfo { state: PortState::Down, ..port() };
        let error = check_link(&down, None).expect_err("down").to_string();
        assert!(error.starts_with("port 1 is down: ") && error.contains("ip link set eth0 up"), "{error}");
        let ib = PortInfo { link_layer: LinkLayer::InfiniBand, ..port() };
        assert!(matches!(check_link(&ib, None), Err(LinkError::NotEthernet { .. })));
    }
}
