//! A tree of sysfs made for a test, and what is read from it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use directverbs::verbs::Gid;
use tempfile::TempDir;

use super::*;
use crate::error::Error;

/// A tree with one bnxt_re, one ionic and one soft device.
pub(crate) fn usual() -> (TempDir, Sysfs) {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path();
    write(root, "class/infiniband_verbs/abi_version", "6\n");
    device(root, "bnxt_re0", "uverbs0", Some(("bnxt_en", "0x14e4", "0x1760")), 1);
    device(root, "ionic_0", "uverbs1", Some(("ionic", "0x1dd8", "0x1002")), 1);
    device(root, "rxe0", "uverbs10", None, 2);
    let sysfs = Sysfs::at(root);
    (dir, sysfs)
}

pub(crate) fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
    fs::write(path, text).expect("a file");
}

fn device(root: &Path, name: &str, uverbs: &str, pci: Option<(&str, &str, &str)>, abi: u32) {
    let folder = format!("class/infiniband/{name}");
    let put = |file: &str, text: &str| write(root, &format!("{folder}/{file}"), text);
    put("node_guid", "0211:22ff:fe33:4455\n");
    put("sys_image_guid", "0211:22ff:fe33:4456\n");
    put("fw_ver", "232.0.1\n");
    put("node_desc", if pci.is_some() { "host\n" } else { "rxe\n" });
    if let Some((driver, vendor, device)) = pci {
        let address = format!("0000:0{}:00.0", uverbs.trim_start_matches("uverbs"));
        let real = format!("devices/pci0000:00/{address}");
        write(root, &format!("{real}/vendor"), vendor);
        write(root, &format!("{real}/device"), device);
        write(root, &format!("{real}/numa_node"), "-1\n");
        let drivers = root.join("bus/pci/drivers").join(driver);
        fs::create_dir_all(&drivers).expect("a folder");
        let link = root.join(&real).join("driver");
        if !link.exists() {
            symlink(&drivers, link).expect("a link");
        }
        symlink(root.join(&real), root.join(&folder).join("device")).expect("a link");
    }
    put("ports/1/state", "4: ACTIVE\n");
    put("ports/1/phys_state", "5: LinkUp\n");
    put("ports/1/link_layer", "Ethernet\n");
    put("ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put("ports/1/gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455\n");
    put("ports/1/gids/1", "fe80:0000:0000:0000:0011:22ff:fe33:4455\n");
    put("ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    put("ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    put("ports/1/gids/10", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    for (index, kind) in ["IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2"].into_iter().enumerate() {
        put(&format!("ports/1/gid_attrs/types/{index}"), kind);
        put(&format!("ports/1/gid_attrs/ndevs/{index}"), "eth0\n");
    }
    write(root, "class/net/eth0/mtu", "1500\n");
    let verbs = format!("class/infiniband_verbs/{uverbs}");
    write(root, &format!("{verbs}/ibdev"), &format!("{name}\n"));
    write(root, &format!("{verbs}/abi_version"), &format!("{abi}\n"));
}

#[test]
fn devices_are_found_with_all_that_sysfs_tells() {
    let (_dir, sysfs) = usual();
    let devices = Device::all(&sysfs).expect("three devices");
    let told: Vec<_> =
        devices.iter().map(|d| (d.name.as_str(), d.uverbs.as_str(), d.driver, d.driver_abi)).collect();
    assert_eq!(
        told,
        [
            ("bnxt_re0", "uverbs0", Driver::BnxtRe, 1),
            ("ionic_0", "uverbs1", Driver::Ionic, 1),
            ("rxe0", "uverbs10", Driver::Rxe, 2)
        ]
    );
    let bnxt = &devices[0];
    assert_eq!((bnxt.pci, bnxt.address.as_deref()), (Some((0x14e4, 0x1760)), Some("0000:00:00.0")));
    assert_eq!((bnxt.firmware.as_str(), bnxt.numa_node), ("232.0.1", None));
    assert_eq!(bnxt.node_guid.to_string(), "0211:22ff:fe33:4455");
    assert_eq!(bnxt.path(), Path::new("/dev/infiniband/uverbs0"));
    let elsewhere = Device::find(&sysfs.clone().nodes("/run/nodes"), "bnxt_re0").expect("a device");
    assert_eq!(elsewhere.path(), Path::new("/run/nodes/uverbs0"));
    assert_eq!((devices[2].pci, devices[2].address.as_deref()), (None, None));
    for device in &devices {
        device.check_abi().expect("supported");
    }
}

#[test]
fn a_port_is_read_with_its_used_gids_and_its_interface() {
    let (_dir, sysfs) = usual();
    let ports = Device::find(&sysfs, "bnxt_re0").expect("a device").ports().expect("ports");
    let [port] = ports.as_slice() else { panic!("one port") };
    assert_eq!((port.number, port.state, port.physical_state), (1, PortState::Active, 5));
    assert_eq!((port.link_layer, port.rate.as_str()), (LinkLayer::Ethernet, "100 Gb/sec (4X EDR)"));
    assert_eq!(port.netdev, Some(("eth0".to_owned(), 1500)));
    let gids: Vec<_> = port.gids.iter().map(|g| (g.index, g.gid_type)).collect();
    let expected = [(0, GidType::RoceV1), (1, GidType::RoceV2), (2, GidType::RoceV1), (3, GidType::RoceV2)];
    assert_eq!(gids, expected);
    assert_eq!(port.gids[2].gid, Gid::v4(std::net::Ipv4Addr::new(10, 0, 0, 1)));
    assert!(port.gids[0].is_link_local() && !port.gids[2].is_link_local());
}

#[test]
fn an_unknown_abi_is_refused_by_name_with_both_numbers() {
    let (dir, sysfs) = usual();
    write(dir.path(), "class/infiniband_verbs/uverbs0/abi_version", "6\n");
    let device = Device::find(&sysfs, "bnxt_re0").expect("a device");
    assert!(
        matches!(&device.check_abi(), Err(Error::Abi { what, given: 6, min: 1, max: 1 }) if what == "bnxt_re")
    );
    write(dir.path(), "class/infiniband_verbs/abi_version", "7\n");
    let device = Device::find(&sysfs, "ionic_0").expect("a device");
    assert!(matches!(&device.check_abi(), Err(Error::Abi { what, given: 7, .. }) if what == "uverbs"));
}

#[test]
fn a_machine_without_the_subsystem_or_the_device_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let error = Device::all(&Sysfs::at(dir.path())).expect_err("nothing there").to_string();
    assert!(error.contains("class/infiniband") && error.contains("load ib_uverbs"), "{error}");
    let (_dir, sysfs) = usual();
    let error = Device::find(&sysfs, "bnxt_re7").expect_err("not there").to_string();
    assert!(error.contains("no RDMA device") && error.contains("bnxt_re0, ionic_0, rxe0"), "{error}");
    let error = Device::find(&sysfs, "../../etc").expect_err("no name");
    assert!(matches!(error.problem, Problem::NoDevice(_)));
}

#[test]
fn a_device_without_a_file_says_so() {
    let (dir, sysfs) = usual();
    fs::remove_dir_all(dir.path().join("class/infiniband_verbs/uverbs0")).expect("was there");
    let error = Device::find(&sysfs, "bnxt_re0").expect_err("no uverbs0");
    assert!(matches!(error.problem, Problem::NoUverbs), "{error}");
}

#[test]
fn every_hostile_file_is_an_error_that_names_it() {
    let folder = "class/infiniband/bnxt_re0";
    let needed = [
        format!("{folder}/node_guid"),
        format!("{folder}/sys_image_guid"),
        format!("{folder}/ports/1/state"),
        format!("{folder}/ports/1/gids/0"),
        "class/infiniband_verbs/abi_version".to_owned(),
        "class/infiniband_verbs/uverbs0/abi_version".to_owned(),
        "class/net/eth0/mtu".to_owned(),
        "devices/pci0000:00/0000:00:00.0/vendor".to_owned(),
    ];
    let long = "0".repeat(4097);
    for path in &needed {
        for bytes in [&b"\xff\xfe"[..], b"", b"word", long.as_bytes()] {
            let (dir, sysfs) = usual();
            fs::write(dir.path().join(path), bytes).expect("a file");
            let read = Device::find(&sysfs, "bnxt_re0").and_then(|d| d.ports());
            let error = read.expect_err("not what it should be");
            let name = path.rsplit('/').next().expect("a name");
            assert!(error.path.ends_with(name), "{} for {path}", error.path.display());
        }
        // A folder in place of a file.
        let (dir, sysfs) = usual();
        fs::remove_file(dir.path().join(path)).expect("was there");
        fs::create_dir(dir.path().join(path)).expect("a folder");
        assert!(Device::find(&sysfs, "bnxt_re0").and_then(|d| d.ports()).is_err(), "{path}");
    }
}

#[test]
fn an_interface_name_that_leads_elsewhere_is_not_followed() {
    let (dir, sysfs) = usual();
    for index in 0..4 {
        write(
            dir.path(),
            &format!("class/infiniband/bnxt_re0/ports/1/gid_attrs/ndevs/{index}"),
            "../net/eth0",
        );
    }
    let ports = Device::find(&sysfs, "bnxt_re0").and_then(|d| d.ports()).expect("ports");
    assert_eq!(ports[0].netdev, None);
}

#[test]
fn a_table_without_types_is_of_the_first_version() {
    let (dir, sysfs) = usual();
    fs::remove_dir_all(dir.path().join("class/infiniband/bnxt_re0/ports/1/gid_attrs")).expect("was there");
    let ports = Device::find(&sysfs, "bnxt_re0").and_then(|d| d.ports()).expect("ports");
    assert!(ports[0].gids.iter().all(|g| g.gid_type == GidType::RoceV1 && g.netdev.is_none()));
    write(dir.path(), "class/infiniband/bnxt_re0/ports/1/link_layer", "InfiniBand\n");
    let ports = Device::find(&sysfs, "bnxt_re0").and_then(|d| d.ports()).expect("ports");
    assert!(ports[0].gids.iter().all(|g| g.gid_type == GidType::InfiniBand));
}
