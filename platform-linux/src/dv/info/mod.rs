//! `dv info`: all that can be told of a device.

mod bnxt_re;
mod facts;
mod ionic;
mod limits;
mod pci;
mod soft;
mod uverbs;

use std::sync::Arc;

use clap::Args;
use directverbs_fake_uverbs::{Machine, Options as FakeOptions, Profile};
use directverbs_linux::sysfs::{Device, Sysfs};
use directverbs_linux::uverbs::{Fake, Linux};
use directverbs_softnic::open::WqeMode;

use crate::device::{DeviceName, Places};
use crate::pci::PciArgs;
use crate::{Failure, print, print_json};
use facts::Info;

/// Arguments of `dv info`.
#[derive(Args)]
pub struct InfoArgs {
    /// Device: uverbs:NAME, pci:ADDRESS, a soft: device, or fake:KIND[@KERNEL], a software NIC behind a made-up kernel
    /// [default: all uverbs: devices of this machine; if there are none, the software NICs]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceName>,
    /// How a soft:bnxt_re or pci: device lays out its WQEs: static or variable [default: static; pci: as
    /// the generation has it]
    #[arg(long, value_name = "MODE")]
    wqe_mode: Option<WqeMode>,
    #[command(flatten)]
    pci: PciArgs,
    #[command(flatten)]
    places: Places,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Tells.
pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    let names = match &args.device {
        Some(name) => vec![name.clone()],
        None => {
            let found = Device::each(&args.places.tree()).unwrap_or_default();
            let names: Vec<_> = found.into_iter().map(|(name, _)| DeviceName::Uverbs(name)).collect();
            if names.is_empty() { DeviceName::soft().collect() } else { names }
        }
    };
    let mut infos = Vec::new();
    let mut failed = None;
    for name in names {
        match info(args, &name) {
            Ok(info) => infos.push(info),
            // One that cannot be opened does not hide the others.
            Err(failure) if args.device.is_none() => {
                eprintln!("error: {name}: {failure}");
                failed = Some(Failure::Fault("not all devices could be opened".into()));
            }
            Err(failure) => return Err(failure),
        }
    }
    if args.json {
        print_json(&infos)?;
    } else {
        let texts: Vec<_> = infos.iter().map(Info::text).collect();
        print(&texts.join("\n"))?;
    }
    failed.map_or(Ok(()), Err)
}

fn info(args: &InfoArgs, name: &DeviceName) -> Result<Info, Failure> {
    match name {
        DeviceName::Soft(kind) => soft::info(*kind, args.wqe_mode.unwrap_or_default()),
        DeviceName::Uverbs(device) => uverbs::info(Arc::new(Linux), &args.places.tree(), device, name),
        DeviceName::Pci(address) => pci::info(args, *address),
        DeviceName::Fake(kind, release) => {
            let machine = Machine::new(&FakeOptions::default(), &[Profile::new(*kind, *release, 1)])
                .map_err(|error| Failure::Fault(format!("{name}: {error}")))?;
            let sysfs = Sysfs::at(machine.sysfs());
            let devices = machine.devices();
            let device = devices.first().map(String::as_str).unwrap_or_default();
            uverbs::info(Arc::new(Fake(machine.clone())), &sysfs, device, name)
        }
    }
}
