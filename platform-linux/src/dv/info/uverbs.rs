//! A device of this machine.

use std::sync::Arc;

use directverbs::verbs::Mtu;
use directverbs_linux::sysfs::{Device, Driver, PortInfo, Sysfs, check_link, roce_mtu};
use directverbs_linux::uverbs::{Kernel, Uhw};
use directverbs_linux::{Result, objects};

use super::facts::{Facts, Gid, Info, Port, Section, Value};
use super::{bnxt_re, ionic, limits};
use crate::Failure;
use crate::device::DeviceName;

/// Opens the device called `name` and tells all that it and the kernel say, under `label`.
pub fn info(
    kernel: Arc<dyn Kernel>,
    sysfs: &Sysfs,
    name: &str,
    label: &DeviceName,
) -> std::result::Result<Info, Failure> {
    open(kernel, sysfs, name, label).map_err(|error| Failure::Fault(error.to_string()))
}

fn open(kernel: Arc<dyn Kernel>, sysfs: &Sysfs, name: &str, label: &DeviceName) -> Result<Info> {
    let device = Device::find(sysfs, name)?;
    let (context, direct) = match device.driver {
        Driver::BnxtRe => {
            let context = directverbs_linux::bnxt_re::Context::open(kernel, &device)?;
            (context.generic().clone(), Some(bnxt_re::direct(&context)))
        }
        Driver::Ionic => {
            let context = directverbs_linux::ionic::Context::open(kernel, &device)?;
            (context.generic().clone(), Some(ionic::direct(&context)))
        }
        _ => (objects::Context::open(kernel, &device, Uhw::none())?, None),
    };
    let mut sections = vec![
        Section { name: "device", facts: identity(&device, &context) },
        Section { name: "limits", facts: limits::limits(&context) },
        Section { name: "kernel", facts: limits::kernel(&context) },
    ];
    sections.extend(direct.map(|facts| Section { name: "direct verbs", facts }));
    let ports = device.ports()?.iter().map(|info| port(&context, info)).collect::<Result<_>>()?;
    Ok(Info { device: label.to_string(), sections, ports })
}

fn identity(device: &Device, context: &objects::Context) -> Facts {
    let base = &context.limits().base;
    let pci = device.pci.map(|(vendor, part)| format!("{vendor:04x}:{part:04x}"));
    Facts(vec![
        ("node", Value::text(device.path().display())),
        ("driver", Value::text(device.driver.name())),
        ("uverbs ABI", Value::Count(device.core_abi.into())),
        ("driver ABI", Value::Count(device.driver_abi.into())),
        ("firmware", Value::text(&device.firmware)),
        ("node GUID", Value::text(device.node_guid)),
        ("system GUID", Value::text(device.system_guid)),
        ("vendor id", Value::Text(format!("{:#06x}", base.vendor_id.get()))),
        ("vendor part id", Value::Text(format!("{:#06x}", base.vendor_part_id.get()))),
        ("PCI id", Value::optional(pci)),
        ("PCI address", Value::optional(device.address.as_ref())),
        ("NUMA node", Value::optional(device.numa_node)),
        ("description", Value::text(&device.description)),
    ])
}

fn port(context: &objects::Context, info: &PortInfo) -> Result<Port> {
    let port = context.query_port(info.number)?;
    let mtu = |mtu: Option<Mtu>| match mtu {
        Some(mtu) => Value::Of(mtu.bytes().into(), "bytes"),
        None => Value::text("unknown"),
    };
    let (netdev, bytes) = info.netdev.as_ref().map_or((None, None), |(name, mtu)| (Some(name), Some(*mtu)));
    let fits = match bytes {
        Some(bytes) => mtu(roce_mtu(bytes)),
        None => Value::text("-"),
    };
    let facts = vec![
        ("state", Value::text(port.state)),
        ("physical state", Value::Count(info.physical_state.into())),
        ("link layer", Value::text(port.link_layer)),
        ("rate", Value::text(&info.rate)),
        ("speed", Value::Of(port.gbps().into(), "Gbit/s")),
        ("usable", Value::tried(&check_link(info, None))),
        ("largest path MTU", mtu(port.max_mtu)),
        ("path MTU in force", mtu(port.active_mtu)),
        ("netdev", Value::optional(netdev)),
        ("netdev MTU", bytes.map_or(Value::text("-"), |bytes| Value::Of(bytes.into(), "bytes"))),
        ("path MTU that fits the netdev", fits),
        ("largest message", Value::Of(port.max_message.into(), "bytes")),
        ("GID table", Value::Of(port.gids.into(), "entries")),
    ];
    let gids = info.gids.iter().map(|entry| Gid {
        index: entry.index,
        gid: entry.gid.to_string(),
        kind: entry.gid_type.to_string(),
        netdev: entry.netdev.as_ref().map(ToString::to_string),
    });
    Ok(Port { number: info.number, facts: Facts(facts), gids: gids.collect() })
}
