//! A port as the kernel describes it.

use directverbs::verbs::Mtu;

use crate::sysfs::{LinkLayer, PortState};
use crate::uverbs::abi::query::QueryPortReplyEx;

/// State of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Number.
    pub number: u8,
    /// State.
    pub state: PortState,
    /// What it is wired to.
    pub link_layer: LinkLayer,
    /// Largest path MTU; none if the code is unknown.
    pub max_mtu: Option<Mtu>,
    /// Path MTU in force, from the network interface's; none if the code is unknown.
    pub active_mtu: Option<Mtu>,
    /// Entries of the GID table.
    pub gids: u32,
    /// Bytes of a message.
    pub max_message: u32,
    /// Code of the rate of a lane.
    pub speed: u32,
    /// Code of the number of lanes.
    pub width: u8,
}

impl Port {
    pub(super) fn new(number: u8, reply: &QueryPortReplyEx) -> Self {
        let base = &reply.legacy_resp;
        let mtu = |code: u8| Mtu::ALL.into_iter().find(|m| *m as u8 == code);
        let speed = match reply.active_speed_ex.get() {
            0 => base.active_speed.into(),
            wide => wide,
        };
        Self {
            number,
            state: PortState::from_code(base.state.into()),
            link_layer: match base.link_layer {
                1 => LinkLayer::InfiniBand,
                2 => LinkLayer::Ethernet,
                _ => LinkLayer::Unspecified,
            },
            max_mtu: mtu(base.max_mtu),
            active_mtu: mtu(base.active_mtu),
            gids: base.gid_tbl_len.get(),
            max_message: base.max_msg_sz.get(),
            speed,
            width: base.active_width,
        }
    }

    /// Gbit/s of all lanes, rounded down; 0 if a code is unknown.
    pub fn gbps(&self) -> u32 {
        // Tenths of Gbit/s of a lane, by the bit of its code.
        const LANE: [u32; 9] = [25, 50, 100, 100, 140, 250, 500, 1000, 2000];
        const LANES: [u32; 5] = [1, 4, 8, 12, 2];
        let by_bit = |table: &[u32], code: u32| match code.is_power_of_two() {
            true => table.get(code.trailing_zeros() as usize).copied().unwrap_or(0),
            false => 0,
        };
        by_bit(&LANE, self.speed) * by_bit(&LANES, self.width.into()) / 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uverbs::abi::query::QueryPortReply;

    #[test]
    fn codes_are_read_and_unknown_ones_are_none() {
        let base = QueryPortReply {
            state: 4,
            active_mtu: 3,
            max_mtu: 9,
            link_layer: 2,
            active_width: 2,
            active_speed: 32,
            ..QueryPortReply::ZERO
        };
        let port = Port::new(1, &QueryPortReplyEx { legacy_resp: base, ..QueryPortReplyEx::ZERO });
        assert_eq!((port.state, port.link_layer), (PortState::Active, LinkLayer::Ethernet));
        assert_eq!((port.active_mtu, port.max_mtu), (Some(Mtu::B1024), None));
        assert_eq!(port.gbps(), 100);
        let wide =
            QueryPortReplyEx { legacy_resp: base, active_speed_ex: 128.into(), ..QueryPortReplyEx::ZERO };
        assert_eq!(Port::new(1, &wide).gbps(), 400);
        let odd = QueryPortReplyEx { legacy_resp: base, active_speed_ex: 3.into(), ..QueryPortReplyEx::ZERO };
        assert_eq!(Port::new(1, &odd).gbps(), 0);
    }
}
