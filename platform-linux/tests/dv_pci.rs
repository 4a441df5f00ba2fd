//! `pci:` devices as far as they can be had without a machine that has one: what is refused, and what it says. With one, they
//! run in `cargo lab vm vfio`.

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;
use support::{Machine, dv, failed, refused, told};

/// A machine with a function of each family and one of neither; vfio-pci has the first.
fn machine() -> (Machine, String) {
    let machine = Machine::bare();
    let functions = [
        ("0000:01:00.0", "0x1dd8", "0x1002", Some("vfio-pci")),
        ("0001:02:00.1", "0x14e4", "0x1760", Some("bnxt_en")),
        ("0000:03:00.0", "0x8086", "0x10d3", None),
    ];
    for (address, vendor, device, driver) in functions {
        let folder = format!("sys/bus/pci/devices/{address}");
        machine.write(&format!("{folder}/vendor"), &format!("{vendor}\n"));
        machine.write(&format!("{folder}/device"), &format!("{device}\n"));
        let folder = machine.root().join(folder);
        symlink("../../../../kernel/iommu_groups/7", folder.join("iommu_group")).expect("a link");
        if let Some(driver) = driver {
            symlink(format!("../../drivers/{driver}"), folder.join("driver")).expect("a link");
        }
    }
    fs::create_dir_all(machine.root().join("dev/vfio")).expect("a folder");
    let places = format!("{} --dev {}/dev", machine.places(), machine.root().display());
    (machine, places)
}

#[test]
fn functions_of_both_families_are_listed_with_what_stands_in_the_way() {
    let (machine, places) = machine();
    let output = told(&dv(&format!("devices --json {places}")));
    let all: Value = serde_json::from_str(&output).expect("one JSON value");
    let pci: Vec<&Value> =
        all.as_array().expect("an array").iter().filter(|entry| entry["id"].is_string()).collect();
    let facts =
        |at: usize| ["device", "id", "family", "driver", "iommu_group"].map(|key| pci[at][key].as_str());
    assert_eq!(facts(0), ["pci:0000:01:00.0", "1dd8:1002", "ionic", "vfio-pci", "7"].map(Some));
    assert_eq!(facts(1), ["pci:0001:02:00.1", "14e4:1760", "bnxt_re", "bnxt_en", "7"].map(Some));
    assert_eq!(pci.len(), 2);
    let obstacle = |at: usize| pci[at]["obstacle"].as_str().expect("an obstacle");
    assert!(obstacle(0).contains("dev/vfio/vfio: cannot be opened: No such file"), "{}", obstacle(0));
    assert!(obstacle(1).contains("bnxt_en has the function, and not vfio-pci"), "{}", obstacle(1));
    machine.write("dev/vfio/vfio", "");
    machine.write("dev/vfio/7", "");
    let text = told(&dv(&format!("devices {places}")));
    let line = text.lines().find(|line| line.starts_with("pci:0000:01:00.0")).expect("a line");
    assert!(line.trim_end().ends_with("yes"), "{line}");
}

#[test]
fn what_makes_no_sense_is_refused_before_a_device_is_opened() {
    let device = "pingpong --device pci:0000:01:00.0";
    refused(device, &["pci:0000:01:00.0 is one device", "--peer-device"]);
    refused(&format!("{device} --peer-device soft:ionic"), &["no common wire"]);
    refused(&format!("{device} --gid-index 1"), &["port 1 and GID 0"]);
    refused(&format!("{device} --wire /tmp"), &["only fake: devices meet in a folder"]);
    refused("info --device pci:01:00", &["01:00: not a PCI address", "as in 01:02.3"]);
    refused("info --device pci:01:00.0 --vfio container", &["group", "cdev"]);
}

#[test]
fn a_function_that_cannot_be_taken_is_a_failure_that_names_the_file() {
    let (machine, places) = machine();
    let pair = "pingpong --device pci:01:00.0 --peer-device pci:0001:02:00.1";
    failed(
        &format!("info --device pci:09:00.0 {places}"),
        &["0000:09:00.0: no PCI function has this address"],
    );
    failed(&format!("{pair} {places}"), &["error: pci:0000:01:00.0: ", "dev/vfio/vfio: cannot be opened"]);
    failed(
        &format!("{pair} --vfio cdev {places}"),
        &["0000:01:00.0/vfio-dev", "CONFIG_VFIO_DEVICE_CDEV", "take its group"],
    );
    machine.write("dev/vfio/vfio", "");
    failed(&format!("{pair} {places}"), &["dev/vfio/vfio: VFIO_GET_API_VERSION: Inappropriate ioctl"]);
    failed(
        &format!("info --device pci:0001:02:00.1 {places}"),
        &["bnxt_en has the function", "drivers_probe"],
    );
}
