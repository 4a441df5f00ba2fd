//! Arguments.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use directverbs::verbs::Mtu;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::open::{NicKind, WqeMode};
use directverbs_workload::Op;

use crate::layout::LayoutArgs;
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
    /// List the devices that can be opened
    Devices(DevicesArgs),
    /// Exchange messages between two devices and verify every byte
    Pingpong(PingpongArgs),
    /// Show, export, decode and check the layouts of queue entries
    Layout(LayoutArgs),
}

#[derive(Args)]
pub struct DevicesArgs {
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct PingpongArgs {
    /// Device that begins: soft:bnxt_re-p5, soft:bnxt_re (P7), soft:ionic-v1 or soft:ionic (version 2)
    #[arg(long, value_name = "DEVICE", default_value = "soft:bnxt_re")]
    pub device: DeviceName,
    /// Device at the other end of the wire [default: as --device]
    #[arg(long, value_name = "DEVICE")]
    pub peer_device: Option<DeviceName>,
    /// How bnxt_re send queues lay out their WQEs: static or variable [default: static]
    #[arg(long, value_name = "MODE")]
    pub wqe_mode: Option<WqeMode>,
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
    /// Path MTU: 256, 512, 1024, 2048 or 4096 [default: the largest that both ports have]
    #[arg(long, value_parser = mtu)]
    pub mtu: Option<Mtu>,
    /// Seed of the messages and of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What goes wrong, as NAME=PERCENT,...: lose, duplicate, reorder or corrupt (frames), drop-doorbell, delay-cqe,
    /// duplicate-cqe, corrupt-cqe
    #[arg(long, value_name = "PLAN", value_parser = fault_plan)]
    pub fault_plan: Option<FaultPlan>,
    /// Step the software NICs on a virtual clock: the same arguments give the same run
    #[arg(long)]
    pub stepped: bool,
    /// Write the frames on the wire to a pcap file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Name of a device: what opens it, and which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceName(pub NicKind);

impl DeviceName {
    /// All that can be opened.
    pub fn all() -> impl Iterator<Item = Self> {
        NicKind::ALL.into_iter().map(Self)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("soft:{}", self.0.name()))
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|device| device.to_string() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(|device| device.to_string()).collect();
            format!("no device has this name; there are: {}", names.join(", "))
        })
    }
}

fn mtu(text: &str) -> Result<Mtu, String> {
    let found = Mtu::ALL.into_iter().find(|mtu| mtu.bytes().to_string() == text);
    found.ok_or_else(|| "a path MTU is 256, 512, 1024, 2048 or 4096 bytes".into())
}

fn fault_plan(text: &str) -> Result<FaultPlan, String> {
    let mut plan = FaultPlan::NONE;
    for part in text.split(',') {
        let (name, percent) = part.split_once('=').ok_or_else(|| format!("`{part}` is not NAME=PERCENT"))?;
        let ppm = units::parts_per_million(percent)?;
        let fields = [
            ("lose", &mut plan.lose_frame),
            ("duplicate", &mut plan.duplicate_frame),
            ("reorder", &mut plan.reorder_frame),
            ("corrupt", &mut plan.corrupt_frame),
            ("drop-doorbell", &mut plan.drop_doorbell),
            ("delay-cqe", &mut plan.delay_cqe),
            ("duplicate-cqe", &mut plan.duplicate_cqe),
            ("corrupt-cqe", &mut plan.corrupt_cqe),
        ];
        let names = fields.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        let field = fields.into_iter().find(|(known, _)| *known == name);
        let (_, field) = field.ok_or_else(|| format!("no fault is called `{name}`; there are: {names}"))?;
        *field = ppm;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_fault_plan_is_a_list_of_percentages() {
        let plan = fault_plan("lose=1%,duplicate=0.5,corrupt-cqe=100").unwrap();
        assert_eq!((plan.lose_frame, plan.duplicate_frame, plan.corrupt_cqe), (10_000, 5_000, 1_000_000));
        for (wrong, message) in [
            ("lose", "`lose` is not NAME=PERCENT"),
            ("lose=101", "`101` is not a percentage from 0 to 100"),
            ("lose=NaN", "`NaN` is not a percentage from 0 to 100"),
        ] {
            assert_eq!(fault_plan(wrong).unwrap_err(), message);
        }
        assert!(fault_plan("eat=1%").unwrap_err().starts_with("no fault is called `eat`; there are: lose,"));
    }
}
