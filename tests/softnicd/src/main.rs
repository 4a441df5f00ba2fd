//! The command `softnicd`.

use std::error::Error;
use std::fs::File;
use std::process::ExitCode;

use clap::Parser;
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::Trace;
use directverbs_softnicd::model::Served;
use directverbs_softnicd::plan::Plan;
use directverbs_softnicd::server::{Device, ServeError};
use directverbs_softnicd::wire::{self, Wire};

/// Serves software NICs as vfio-user devices
///
/// All NICs of a daemon are on one wire. It says `listening` on standard output when all sockets are there, and serves one
/// client after another on each, until it is killed.
#[derive(Debug, Parser)]
#[command(name = "softnicd", version)]
struct Arguments {
    /// A device, and the socket to serve it on; may repeat
    #[arg(long, value_name = "KIND=SOCKET", required = true)]
    nic: Vec<Served>,
    /// Last byte of the Ethernet address of the first NIC; the others' follow
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    first: u8,
    /// Joins the wire to another daemon (udp:LOCAL,PEER) or to an interface of Linux (if:NAME)
    #[arg(long)]
    wire: Option<Wire>,
    /// Writes all frames to this file
    #[arg(long, value_name = "FILE")]
    pcap: Option<std::path::PathBuf>,
    /// What goes wrong: rates in parts per million (lose-frame=10000), one access (access=7:hung), one command
    /// (command=3:silent), separated by commas
    #[arg(long, value_name = "FAULTS")]
    fault_plan: Option<Plan>,
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Prints each command that a driver gives, decoded
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("softnicd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let plan = arguments.fault_plan.unwrap_or_default();
    let fabric = Fabric::new(FabricOptions { seed: arguments.seed, faults: plan.rates, threaded: true });
    if let Some(path) = &arguments.pcap {
        fabric.capture(Box::new(File::create(path)?))?;
    }
    if let Some(wire) = &arguments.wire {
        wire::join(&fabric, wire).map_err(|error| format!("{wire}: {error}"))?;
    }
    let mut devices = Vec::new();
    for (nth, served) in arguments.nic.iter().enumerate() {
        let number = arguments.first.wrapping_add(nth as u8);
        let name = served.to_string();
        let trace = if arguments.trace {
            Trace::to(move |line| println!("{name}: {line}"))
        } else {
            Trace::default()
        };
        let device =
            Device::listen(&served.socket, &plan, trace, |port| served.model.build(&fabric, number, port));
        devices.push(device.map_err(|error| format!("{served}: {error}"))?);
    }
    println!("listening");
    let threads: Vec<_> =
        devices.into_iter().map(|device| std::thread::spawn(move || device.serve())).collect();
    let ended: Vec<ServeError> = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
    Err(ended.into_iter().next().map_or_else(|| "a device has panicked".into(), Into::into))
}
