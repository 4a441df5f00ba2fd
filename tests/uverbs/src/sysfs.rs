//! The devices' part of sysfs, as files in a folder. Source: kernel `Documentation/ABI/stable/sysfs-class-infiniband`.

use std::fmt::Write as _;
use std::fs::{create_dir_all, write as write_file};
use std::io::Result;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::device::Device;

/// MTU of the network interfaces: room for the largest path MTU and its headers.
const NETDEV_MTU: u32 = 9000;
/// Version that libionic reads here, of the firmware.
const FIRMWARE: &str = "1.117.5-a-77";

/// Bytes in groups of four digits.
fn groups(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, pair) in bytes.chunks(2).enumerate() {
        let separator = if i == 0 { "" } else { ":" };
        // A string takes all that is written to it.
        let _ =
            write!(text, "{separator}{}", pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    text
}

/// Writes the tree.
pub fn write(root: &Path, devices: &[Device]) -> Result<()> {
    file(root, "class/infiniband_verbs/abi_version", "6")?;
    for device in devices {
        one(root, device)?;
    }
    Ok(())
}

fn file(root: &Path, path: &str, text: &str) -> Result<()> {
    let path = root.join(path);
    if let Some(folder) = path.parent() {
        create_dir_all(folder)?;
    }
    write_file(path, format!("{text}\n"))
}

fn one(root: &Path, device: &Device) -> Result<()> {
    let (name, netdev, profile) = (device.name(), device.netdev(), &device.profile);
    let (vendor, part) = profile.pci();
    let bus = format!("devices/pci0000:00/0000:00:{:02x}.0", device.number + 1);
    file(root, &format!("{bus}/vendor"), &format!("{vendor:#06x}"))?;
    file(root, &format!("{bus}/device"), &format!("{part:#06x}"))?;
    file(root, &format!("{bus}/numa_node"), "-1")?;
    let modalias = format!("pci:v{vendor:08X}d{part:08X}sv00000000sd00000000bc02sc00i00");
    file(root, &format!("{bus}/modalias"), &modalias)?;
    let driver = root.join("bus/pci/drivers").join(profile.family().pci_driver());
    create_dir_all(&driver)?;
    symlink(&driver, root.join(&bus).join("driver"))?;

    let of_device = |path: &str, text: &str| file(root, &format!("class/infiniband/{name}/{path}"), text);
    let guid = groups(&device.guid());
    let entries = [
        ("node_type", "1: CA"),
        ("node_guid", &guid),
        ("sys_image_guid", &guid),
        ("node_desc", "fake"),
        ("fw_ver", FIRMWARE),
        ("ports/1/state", "4: ACTIVE"),
        ("ports/1/phys_state", "5: LinkUp"),
        ("ports/1/rate", "100 Gb/sec (4X EDR)"),
        ("ports/1/lid", "0x0"),
        ("ports/1/link_layer", "Ethernet"),
        ("ports/1/pkeys/0", "0xffff"),
    ];
    for (path, text) in entries {
        of_device(path, text)?;
    }
    for (index, gid) in profile.gids().iter().enumerate() {
        of_device(&format!("ports/1/gids/{index}"), &groups(&gid.0))?;
        of_device(&format!("ports/1/gid_attrs/types/{index}"), "RoCE v2")?;
        of_device(&format!("ports/1/gid_attrs/ndevs/{index}"), &netdev)?;
    }
    symlink(root.join(&bus), root.join(format!("class/infiniband/{name}/device")))?;

    let net = format!("class/net/{netdev}");
    file(root, &format!("{net}/mtu"), &NETDEV_MTU.to_string())?;
    file(root, &format!("{net}/address"), &profile.mac().to_string())?;
    file(root, &format!("{net}/ifindex"), &device.ifindex().to_string())?;

    let verbs = format!("class/infiniband_verbs/{}", device.uverbs());
    file(root, &format!("{verbs}/ibdev"), &name)?;
    file(root, &format!("{verbs}/dev"), "1:3")?;
    file(root, &format!("{verbs}/abi_version"), "1")
}
