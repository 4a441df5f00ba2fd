//! `dv devices`.

use clap::Args;
use directverbs_bare::Family;
use directverbs_bare::vfio::{Function, Interface};
use directverbs_linux::error::Remedy;
use directverbs_linux::sysfs::{Device, Driver, PortInfo, SysfsError};
use directverbs_softnic::open::{NicKind, WqeMode};
use rustix::fs::{Access, access};
use serde::Serialize;

use crate::device::{DeviceName, Places};
use crate::table::table;
use crate::{Failure, print, print_json};

/// Arguments of `dv devices`.
#[derive(Args)]
pub struct DevicesArgs {
    #[command(flatten)]
    places: Places,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Soft(Soft),
    Uverbs(Uverbs),
    Pci(Pci),
}

/// A software NIC.
#[derive(Serialize)]
struct Soft {
    device: String,
    description: &'static str,
    wqe_modes: Vec<&'static str>,
}

/// A device of this machine.
#[derive(Serialize)]
struct Uverbs {
    device: String,
    #[serde(flatten)]
    found: Option<Found>,
    /// What stands in the way of opening it.
    obstacle: Option<String>,
}

/// A PCI function of this machine.
#[derive(Serialize)]
struct Pci {
    device: String,
    id: String,
    family: &'static str,
    driver: Option<String>,
    iommu_group: Option<String>,
    /// What stands in the way of opening it.
    obstacle: Option<String>,
}

#[derive(Serialize)]
struct Found {
    node: String,
    driver: &'static str,
    uverbs_abi: u32,
    driver_abi: u32,
    firmware: String,
    address: Option<String>,
    ports: Vec<Port>,
}

#[derive(Serialize)]
struct Port {
    number: u8,
    state: String,
    link_layer: String,
    rate: String,
    netdev: Option<String>,
    gids: usize,
}

/// Lists them.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let soft: Vec<_> = NicKind::ALL.into_iter().map(soft).collect();
    let found = Device::each(&args.places.tree());
    let uverbs = found.as_deref().unwrap_or(&[]).iter().map(|(name, device)| uverbs(name, device));
    // Without PCI there are none.
    let functions = Function::all(&args.places.vfio()).unwrap_or_default();
    let pci = functions.into_iter().filter_map(|function| pci(function, &args.places));
    if args.json {
        let of_machine = uverbs.map(Entry::Uverbs).chain(pci.map(Entry::Pci));
        let all: Vec<_> = soft.into_iter().map(Entry::Soft).chain(of_machine).collect();
        return print_json(&all);
    }
    let rows: Vec<_> = soft
        .into_iter()
        .map(|s| vec![s.device, s.wqe_modes.join(", "), format!("{}, software NIC", s.description)])
        .collect();
    let mut text = table(&["DEVICE", "WQE MODES", "DESCRIPTION"], &rows);
    text.push('\n');
    match &found {
        Err(error) => text += &format!("no uverbs devices: {error}\n"),
        Ok(found) if found.is_empty() => {
            text += "no uverbs devices: the machine has no RDMA device with a driver\n"
        }
        Ok(_) => {
            let head =
                ["DEVICE", "NODE", "DRIVER", "ABI", "FIRMWARE", "PORT", "STATE", "RATE", "NETDEV", "OPENS"];
            text += &table(&head, &uverbs.flat_map(rows_of).collect::<Vec<_>>());
        }
    }
    text.push('\n');
    let rows: Vec<_> = pci.map(row_of).collect();
    text += &if rows.is_empty() {
        "no pci devices: the machine has no PCI function of bnxt_re or ionic\n".to_owned()
    } else {
        table(&["DEVICE", "ID", "FAMILY", "DRIVER", "GROUP", "OPENS"], &rows)
    };
    print(&text)
}

/// A function that a driver of this process would take.
fn pci(function: Function, places: &Places) -> Option<Pci> {
    let family = Family::of(function.id)?;
    let obstacle = function.obstacle(Interface::Either, &places.vfio()).map(|error| error.to_string());
    Some(Pci {
        device: DeviceName::Pci(function.address).to_string(),
        id: format!("{:04x}:{:04x}", function.id.0, function.id.1),
        family: family.name(),
        driver: function.driver,
        iommu_group: function.group,
        obstacle,
    })
}

fn row_of(pci: Pci) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let (driver, group) = (or_dash(pci.driver), or_dash(pci.iommu_group));
    vec![pci.device, pci.id, pci.family.to_owned(), driver, group, opens(pci.obstacle)]
}

/// Whether it opens.
fn opens(obstacle: Option<String>) -> String {
    obstacle.map_or_else(|| "yes".to_owned(), |obstacle| format!("no: {obstacle}"))
}

fn soft(kind: NicKind) -> Soft {
    let modes = WqeMode::ALL.into_iter().filter(|mode| kind.has_wqe_mode(*mode));
    Soft {
        device: DeviceName::Soft(kind).to_string(),
        description: kind.description(),
        wqe_modes: modes.map(WqeMode::name).collect(),
    }
}

fn uverbs(name: &str, device: &Result<Device, SysfsError>) -> Uverbs {
    let label = DeviceName::Uverbs(name.into()).to_string();
    let read = device.as_ref().map_err(ToString::to_string);
    match read.and_then(|device| Ok((device, device.ports().map_err(|e| e.to_string())?))) {
        Err(obstacle) => Uverbs { device: label, found: None, obstacle: Some(obstacle) },
        Ok((device, ports)) => {
            Uverbs { device: label, found: Some(found(device, &ports)), obstacle: obstacle(device) }
        }
    }
}

fn found(device: &Device, ports: &[PortInfo]) -> Found {
    Found {
        node: device.path().display().to_string(),
        driver: device.driver.name(),
        uverbs_abi: device.core_abi,
        driver_abi: device.driver_abi,
        firmware: device.firmware.clone(),
        address: device.address.clone(),
        ports: ports
            .iter()
            .map(|port| Port {
                number: port.number,
                state: port.state.to_string(),
                link_layer: port.link_layer.to_string(),
                rate: port.rate.clone(),
                netdev: port.netdev.as_ref().map(|(name, _)| name.clone()),
                gids: port.gids.len(),
            })
            .collect(),
    }
}

/// What stands in the way of opening it, as far as can be told without doing so.
fn obstacle(device: &Device) -> Option<String> {
    if let Err(error) = device.check_abi() {
        return Some(error.to_string());
    }
    if !matches!(device.driver, Driver::BnxtRe | Driver::Ionic) {
        let driver = device.driver.name();
        return Some(format!("driver {driver}: only devices of bnxt_re and ionic have direct verbs here"));
    }
    let path = device.path();
    let errno = access(&path, Access::READ_OK | Access::WRITE_OK).err()?;
    Some(format!("{}: {errno}{}", path.display(), Remedy::for_open(errno)))
}

/// A row for each port; what belongs to the device is in the first.
fn rows_of(device: Uverbs) -> Vec<Vec<String>> {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let opens = opens(device.obstacle);
    let Some(found) = device.found else {
        let dashes = std::iter::repeat_n("-".to_owned(), 8);
        return vec![std::iter::once(device.device).chain(dashes).chain([opens]).collect()];
    };
    let node = found.node.rsplit('/').next().unwrap_or_default().to_owned();
    let abi = format!("{}/{}", found.uverbs_abi, found.driver_abi);
    let of_device = [device.device, node, found.driver.to_owned(), abi, or_dash(&found.firmware)];
    let mut ports: Vec<[String; 4]> = found
        .ports
        .iter()
        .map(|port| {
            let netdev = or_dash(port.netdev.as_deref().unwrap_or_default());
            [port.number.to_string(), port.state.clone(), or_dash(&port.rate), netdev]
        })
        .collect();
    if ports.is_empty() {
        ports.push(["-"; 4].map(str::to_owned));
    }
    let row = |(i, port): (usize, [String; 4])| {
        let mut row = of_device.to_vec();
        row.extend(port);
        row.push(opens.clone());
        if i > 0 {
            row.iter_mut().take(of_device.len()).for_each(String::clear);
            row.last_mut().into_iter().for_each(String::clear);
        }
        row
    };
    ports.into_iter().enumerate().map(row).collect()
}
