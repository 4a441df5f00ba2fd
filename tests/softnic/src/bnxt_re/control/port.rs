//! What the port counts.

use directverbs::bnxt_re::hwrm::error::HwrmStatus;
use directverbs::bnxt_re::hwrm::port_stats::{RxPortStats, TxPortStats};
use directverbs::bnxt_re::hwrm::port_stats_ext::{RxPortStatsExt, TxPortStatsExt};
use directverbs::bnxt_re::hwrm::stat::{
    PortQstatsExtInput, PortQstatsExtOutput, PortQstatsInput, PortQstatsOutput,
};
use zerocopy::{IntoBytes, little_endian as le};

use super::function::BnxtFunction;
use super::hwrm::{Answer, payload};
use crate::port::PortCounters;

/// Flag: the bits of each counter are asked for, not what it has counted.
const COUNTER_MASK: u8 = 1;
/// Classes of service that frames can be in.
const CLASSES: u16 = 2;

const fn n(value: u64) -> le::U64 {
    le::U64::new(value)
}

fn sent(port: &PortCounters) -> TxPortStats {
    let sent = &port.sent;
    TxPortStats {
        tx_64b_frames: n(sent.of(..=64)),
        tx_65b_127b_frames: n(sent.of(65..=127)),
        tx_128b_255b_frames: n(sent.of(128..=255)),
        tx_256b_511b_frames: n(sent.of(256..=511)),
        tx_512b_1023b_frames: n(sent.of(512..=1023)),
        tx_1024b_1518b_frames: n(sent.of(1024..=1518)),
        tx_good_vlan_frames: n(sent.tagged),
        tx_1519b_2047b_frames: n(sent.of(1519..=2047)),
        tx_2048b_4095b_frames: n(sent.of(2048..=4095)),
        tx_4096b_9216b_frames: n(sent.of(4096..=9216)),
        tx_9217b_16383b_frames: n(sent.of(9217..)),
        tx_good_frames: n(sent.all()),
        tx_total_frames: n(sent.all()),
        tx_ucast_frames: n(sent.frames[0]),
        tx_mcast_frames: n(sent.frames[1]),
        tx_bcast_frames: n(sent.frames[2]),
        tx_tagged_frames: n(sent.tagged),
        tx_bytes: n(sent.bytes),
        ..TxPortStats::ZERO
    }
}

fn received(port: &PortCounters) -> RxPortStats {
    let received = &port.received;
    RxPortStats {
        rx_64b_frames: n(received.of(..=64)),
        rx_65b_127b_frames: n(received.of(65..=127)),
        rx_128b_255b_frames: n(received.of(128..=255)),
        rx_256b_511b_frames: n(received.of(256..=511)),
        rx_512b_1023b_frames: n(received.of(512..=1023)),
        rx_1024b_1518b_frames: n(received.of(1024..=1518)),
        rx_good_vlan_frames: n(received.tagged),
        rx_1519b_2047b_frames: n(received.of(1519..=2047)),
        rx_2048b_4095b_frames: n(received.of(2048..=4095)),
        rx_4096b_9216b_frames: n(received.of(4096..=9216)),
        rx_9217b_16383b_frames: n(received.of(9217..)),
        rx_total_frames: n(received.all()),
        rx_ucast_frames: n(received.frames[0]),
        rx_mcast_frames: n(received.frames[1]),
        rx_bcast_frames: n(received.frames[2]),
        rx_tagged_frames: n(received.tagged),
        rx_good_frames: n(received.all()),
        rx_bytes: n(received.bytes),
        ..RxPortStats::ZERO
    }
}

/// All frames are in class 0: nothing tells them apart.
fn more(port: &PortCounters) -> (TxPortStatsExt, RxPortStatsExt) {
    let sent = TxPortStatsExt {
        tx_bytes_cos0: n(port.sent.bytes),
        tx_packets_cos0: n(port.sent.all()),
        ..TxPortStatsExt::ZERO
    };
    let received = RxPortStatsExt {
        rx_bytes_cos0: n(port.received.bytes),
        rx_packets_cos0: n(port.received.all()),
        rx_bits: n(port.received.bytes * 8),
        ..RxPortStatsExt::ZERO
    };
    (sent, received)
}

impl BnxtFunction {
    /// Tells counters, or their bits, to host memory; nothing where there is no address. Gives the bytes.
    fn tell(&self, at: le::U64, counters: &[u8], room: usize, flags: u8) -> Result<le::U16, HwrmStatus> {
        let len = counters.len().min(room);
        let told = if flags & COUNTER_MASK == 0 { counters[..len].to_vec() } else { vec![0xff; len] };
        if at.get() != 0 && self.bus().write(at.get(), &told).is_err() {
            self.violation(format_args!("counters of the port at {at:#x}, {len} bytes"));
            return Err(HwrmStatus::INVALID_PARAMS);
        }
        Ok(le::U16::new(len as u16))
    }

    pub(super) fn port_qstats(&self, input: &PortQstatsInput) -> Answer {
        let port = self.nic.lock().hardware().port().clone();
        let flags = input.flags;
        Ok(payload(&PortQstatsOutput {
            tx_stat_size: self.tell(input.tx_stat_host_addr, sent(&port).as_bytes(), usize::MAX, flags)?,
            rx_stat_size: self.tell(
                input.rx_stat_host_addr,
                received(&port).as_bytes(),
                usize::MAX,
                flags,
            )?,
            ..PortQstatsOutput::ZERO
        }))
    }

    pub(super) fn port_qstats_ext(&self, input: &PortQstatsExtInput) -> Answer {
        let (sent, received) = more(self.nic.lock().hardware().port());
        let (flags, tx, rx) = (input.flags, input.tx_stat_size.get(), input.rx_stat_size.get());
        Ok(payload(&PortQstatsExtOutput {
            tx_stat_size: self.tell(input.tx_stat_host_addr, sent.as_bytes(), tx.into(), flags)?,
            rx_stat_size: self.tell(input.rx_stat_host_addr, received.as_bytes(), rx.into(), flags)?,
            total_active_cos_queues: le::U16::new(CLASSES),
            ..PortQstatsExtOutput::ZERO
        }))
    }
}
