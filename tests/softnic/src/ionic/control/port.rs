//! What the port counts.

use directverbs::ionic::devcmd::{Opcode, PortInfo, PortStats};
use zerocopy::IntoBytes;

use super::QueueKind;
use super::function::IonicFunction;
use crate::port::PortCounters;

/// The counters, as the host is told them. All frames have priority 0: nothing tells them apart.
pub(super) fn stats(port: &PortCounters) -> PortStats {
    let PortCounters { received, sent } = port;
    PortStats {
        frames_rx_ok: received.all().into(),
        frames_rx_all: received.all().into(),
        octets_rx_ok: received.bytes.into(),
        octets_rx_all: received.bytes.into(),
        frames_rx_unicast: received.frames[0].into(),
        frames_rx_multicast: received.frames[1].into(),
        frames_rx_broadcast: received.frames[2].into(),
        frames_rx_vlan_good: received.tagged.into(),
        frames_rx_pri_0: received.all().into(),
        frames_rx_less_than_64b: received.of(..64).into(),
        frames_rx_64b: received.of(64..=64).into(),
        frames_rx_65b_127b: received.of(65..=127).into(),
        frames_rx_128b_255b: received.of(128..=255).into(),
        frames_rx_256b_511b: received.of(256..=511).into(),
        frames_rx_512b_1023b: received.of(512..=1023).into(),
        frames_rx_1024b_1518b: received.of(1024..=1518).into(),
        frames_rx_1519b_2047b: received.of(1519..=2047).into(),
        frames_rx_2048b_4095b: received.of(2048..=4095).into(),
        frames_rx_4096b_8191b: received.of(4096..=8191).into(),
        frames_rx_8192b_9215b: received.of(8192..=9215).into(),
        frames_rx_other: received.of(9216..).into(),
        frames_tx_ok: sent.all().into(),
        frames_tx_all: sent.all().into(),
        octets_tx_ok: sent.bytes.into(),
        octets_tx_total: sent.bytes.into(),
        frames_tx_unicast: sent.frames[0].into(),
        frames_tx_multicast: sent.frames[1].into(),
        frames_tx_broadcast: sent.frames[2].into(),
        frames_tx_vlan: sent.tagged.into(),
        frames_tx_pri_0: sent.all().into(),
        frames_tx_less_than_64b: sent.of(..64).into(),
        frames_tx_64b: sent.of(64..=64).into(),
        frames_tx_65b_127b: sent.of(65..=127).into(),
        frames_tx_128b_255b: sent.of(128..=255).into(),
        frames_tx_256b_511b: sent.of(256..=511).into(),
        frames_tx_512b_1023b: sent.of(512..=1023).into(),
        frames_tx_1024b_1518b: sent.of(1024..=1518).into(),
        frames_tx_1519b_2047b: sent.of(1519..=2047).into(),
        frames_tx_2048b_4095b: sent.of(2048..=4095).into(),
        frames_tx_4096b_8191b: sent.of(4096..=8191).into(),
        frames_tx_8192b_9215b: sent.of(8192..=9215).into(),
        frames_tx_other: sent.of(9216..).into(),
        ..PortStats::ZERO
    }
}

impl IonicFunction {
    /// Brings the host's copy of the port's counters up to date.
    pub(super) fn tell_port(&mut self) {
        let Some(at) = self.state.port_info else { return };
        let told = {
            let mut nic = self.nic.lock();
            let port = nic.hardware().port();
            let frames = port.received.all() + port.sent.all();
            (std::mem::replace(&mut self.state.port_told, frames) != frames).then(|| stats(port))
        };
        let to = at + std::mem::offset_of!(PortInfo, stats) as u64;
        if let Some(stats) = told
            && let Err(error) = self.port.bus.write(to, stats.as_bytes())
        {
            self.refused(QueueKind::DeviceCommand, Opcode::PORT_INIT.0, 0, error.into());
        }
    }
}
