//! Files of sysfs that libraries and tools read of a device. Which devices there are they learn over
//! [`super::netlink`]; folders cannot be listed. Source: kernel `Documentation/ABI/stable/sysfs-class-infiniband`.

use std::ffi::{CStr, c_int};

use super::{Errno, Family};

/// Version of the firmware that libionic reads here.
pub const FIRMWARE: &str = "1.117.5-a-77";
/// The one entry of the GID table: 10.0.0.1, as the device answers it too.
pub const GID: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];

const INFINIBAND: &str = "/sys/class/infiniband/";
const VERBS: &str = "/sys/class/infiniband_verbs/";

/// PCI vendor and device.
const fn pci(family: Family) -> (u16, u16) {
    match family {
        Family::BnxtRe => (0x14e4, 0x1760),
        Family::Ionic => (0x1dd8, 0x1002),
    }
}

/// What the file with this path holds, if it is one of a made-up device.
fn content(path: &str) -> Option<String> {
    if path == "/sys/class/infiniband_verbs/abi_version" {
        return Some("6".into());
    }
    let (class, rest) =
        [INFINIBAND, VERBS].iter().find_map(|class| Some((*class, path.strip_prefix(class)?)))?;
    let (name, file) = rest.split_once('/')?;
    let family = Family::ALL.into_iter().find(|family| family.device_name() == name)?;
    let (vendor, device) = pci(family);
    let text = match (class, file) {
        (VERBS, "ibdev") => family.device_name().into(),
        (VERBS, "dev") => "1:3".into(),
        (VERBS, "abi_version") => "1".into(),
        (VERBS, _) => return None,
        (_, "node_type") => "1: CA".into(),
        (_, "node_guid" | "sys_image_guid") => "0200:0000:0000:0001".into(),
        (_, "fw_ver") => FIRMWARE.into(),
        (_, "device/modalias") => format!("pci:v{vendor:08X}d{device:08X}sv00000000sd00000000bc02sc00i00"),
        (_, "device/vendor") => format!("{vendor:#06x}"),
        (_, "device/device") => format!("{device:#06x}"),
        (_, "device/numa_node") => "-1".into(),
        (_, "ports/1/state") => "4: ACTIVE".into(),
        (_, "ports/1/phys_state") => "5: LinkUp".into(),
        (_, "ports/1/rate") => "100 Gb/sec (4X EDR)".into(),
        (_, "ports/1/lid") => "0x0".into(),
        (_, "ports/1/link_layer") => "Ethernet".into(),
        (_, "ports/1/pkeys/0") => "0xffff".into(),
        (_, "ports/1/gids/0") => {
            let groups =
                GID.chunks(2).map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            groups.collect::<Vec<String>>().join(":")
        }
        (_, "ports/1/gid_attrs/types/0") => "RoCE v2".into(),
        _ => return None,
    };
    Some(text)
}

/// Opens the file with this path, if it is one of a made-up device.
pub(crate) fn open(path: &CStr) -> Option<Result<c_int, Errno>> {
    let mut text = content(path.to_str().ok()?)?;
    text.push('\n');
    let arguments = [c"sysfs".as_ptr() as usize, libc::MFD_CLOEXEC as usize, 0, 0, 0, 0];
    // SAFETY: the name is a string.
    let fd = unsafe { preload::syscall(libc::SYS_memfd_create, arguments) } as c_int;
    let arguments = [fd as usize, text.as_ptr() as usize, text.len(), 0, 0, 0];
    // SAFETY: the bytes are there; pwrite leaves the position at the beginning.
    let written = unsafe { preload::syscall(libc::SYS_pwrite64, arguments) };
    if written == text.len() as isize {
        return Some(Ok(fd));
    }
    preload::close(fd);
    Some(Err(libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_made_up_device_is_read_like_any_other() {
        super::super::registry::install();
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let of = |family: Family, file: &str| read(&format!("{INFINIBAND}{}/{file}", family.device_name()));
        for family in Family::ALL {
            assert_eq!(of(family, "fw_ver"), Some(format!("{FIRMWARE}\n")));
            let gid = "0000:0000:0000:0000:0000:ffff:0a00:0001\n".to_owned();
            assert_eq!(of(family, "ports/1/gids/0"), Some(gid));
            assert_eq!(of(family, "ports/2/gids/0"), None);
            assert_eq!(of(family, "nothing"), None);
        }
        assert_eq!(
            of(Family::BnxtRe, "device/modalias").map(|text| text.contains("v000014E4d00001760")),
            Some(true)
        );
        assert_eq!(read("/sys/class/infiniband/mlx5_0_of_nobody/fw_ver"), None);
    }
}
