//! What the port counts.

use directverbs::bnxt_re::hwrm::port_stats::{RxPortStats, TxPortStats};
use directverbs::bnxt_re::hwrm::port_stats_ext::{RxPortStatsExt, TxPortStatsExt};
use directverbs::bnxt_re::hwrm::stat::{PortQstatsExtInput, PortQstatsInput};
use directverbs::text;
use zerocopy::{FromBytes, little_endian as le};

use super::area::{address, shared};
use super::bring_up::Brought;
use super::device::Device;
use super::error::Error;
use crate::host::Host;

impl<H: Host> Device<'_, H> {
    /// What has passed the port since power-on: sent and received.
    ///
    /// # Errors
    /// The device does not tell, or there is no memory to tell it in.
    pub fn port_counters(&mut self) -> Result<(TxPortStats, RxPortStats), Error> {
        self.told_in_memory(|brought, host, [tx_stat_host_addr, rx_stat_host_addr]| {
            let asked = PortQstatsInput { tx_stat_host_addr, rx_stat_host_addr, ..PortQstatsInput::ZERO };
            brought.request(host, &asked).map(|_| ())
        })
    }

    /// The same by class of service, pauses, and what happened to the link.
    ///
    /// # Errors
    /// As [`Device::port_counters`].
    pub fn more_port_counters(&mut self) -> Result<(TxPortStatsExt, RxPortStatsExt), Error> {
        self.told_in_memory(|brought, host, [tx_stat_host_addr, rx_stat_host_addr]| {
            let asked = PortQstatsExtInput {
                tx_stat_size: le::U16::new(size_of::<TxPortStatsExt>() as u16),
                rx_stat_size: le::U16::new(size_of::<RxPortStatsExt>() as u16),
                tx_stat_host_addr,
                rx_stat_host_addr,
                ..PortQstatsExtInput::ZERO
            };
            brought.request(host, &asked).map(|_| ())
        })
    }

    /// Has the device write two structures to memory, which is its own only until it has answered.
    fn told_in_memory<T: FromBytes + Copy, R: FromBytes + Copy>(
        &mut self,
        ask: impl FnOnce(&mut Brought<H>, &H, [le::U64; 2]) -> Result<(), Error>,
    ) -> Result<(T, R), Error> {
        let (brought, host) = self.nic.brought()?;
        let behind = size_of::<T>().next_multiple_of(64);
        let memory = shared(host, (behind + size_of::<R>()) as u64)?;
        let at = address(&memory);
        let asked = ask(brought, host, [at, at + behind as u64].map(le::U64::new));
        let told = memory.load(0).zip(memory.load(behind));
        match asked {
            Err(error) if !error.is_refusal() => return Err(error),
            asked => {
                memory.release();
                asked?;
            }
        }
        told.ok_or(Error::Capabilities(text!("counters longer than their memory")))
    }
}
