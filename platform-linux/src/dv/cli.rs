//! Arguments.

use clap::{Args, Parser, Subcommand};
use directverbs_workload::Op;

use crate::devices::DevicesArgs;
use crate::ends::Ends;
use crate::exchange::ExchangeArgs;
use crate::info::InfoArgs;
use crate::layout::LayoutArgs;
use crate::man::ManArgs;
use crate::perf::PerfArgs;
use crate::units;

/// Lists and exercises RoCE devices.
#[derive(Parser)]
#[command(name = "dv", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the software NICs and this machine's devices, and what stands in the way of opening one
    Devices(DevicesArgs),
    /// Show a device: limits, ports, GIDs, and what it offers for direct verbs
    Info(InfoArgs),
    /// Exchange messages between two devices and verify every byte
    Pingpong(PingpongArgs),
    /// Measure latency or bandwidth between two devices
    Perf(PerfArgs),
    /// Show, export, decode and check the layouts of queue entries
    Layout(LayoutArgs),
    /// Write the manual pages
    Man(ManArgs),
}

#[derive(Args)]
pub struct PingpongArgs {
    #[command(flatten)]
    pub ends: Ends,
    #[command(flatten)]
    pub exchange: ExchangeArgs,
    /// send, send-imm, send-inv, write, write-imm, read, cas, fetch-add or ud-send
    #[arg(long, default_value_t = Op::Send)]
    pub op: Op,
    /// Bytes of a message: a number, or one with k, M or G for powers of 1024 [default: 64; atomics 8]
    #[arg(long, value_parser = units::size)]
    pub size: Option<u32>,
    /// Round trips
    #[arg(long, default_value_t = 10_000)]
    pub iters: u64,
    /// Carry the data inside the WQE
    #[arg(long)]
    pub inline: bool,
    /// SGEs of a message, each in a memory region of its own
    #[arg(long, default_value_t = 1)]
    pub sges: u32,
    /// Receive from a shared receive queue
    #[arg(long)]
    pub srq: bool,
    /// Messages of each side's turn, posted under one doorbell
    #[arg(long, default_value_t = 1)]
    pub batch: u32,
    /// Ask for a completion of every request, not only of the last of a batch
    #[arg(long)]
    pub signal_all: bool,
    /// One completion queue for both send and receive requests
    #[arg(long)]
    pub one_cq: bool,
    /// The peer is rdma-core's ibv_rc_pingpong, with -s and -n as --size and --iters are here
    #[arg(long)]
    pub rc_pingpong: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
