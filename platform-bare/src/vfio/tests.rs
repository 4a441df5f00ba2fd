use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::string::{String, ToString};
use std::vec::Vec;

use super::{Cause, Function, FunctionAddress, Interface, Options, Places, Vfio, VfioError};

const ADDRESS: &str = "0000:01:00.0";

/// A made-up sysfs with a function of ionic's, and an empty folder of devices.
struct Machine {
    places: Places,
    root: tempfile::TempDir,
}

impl Machine {
    fn new(driver: Option<&str>, group: Option<&str>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let places = Places { sysfs: root.path().join("sys"), dev: root.path().join("dev") };
        let machine = Self { places, root };
        fs::create_dir_all(machine.dev("vfio")).unwrap();
        machine.add(ADDRESS, driver, group);
        machine
    }

    fn add(&self, address: &str, driver: Option<&str>, group: Option<&str>) {
        let folder = self.folder(address);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vendor"), "0x1dd8\n").unwrap();
        fs::write(folder.join("device"), "0x1002\n").unwrap();
        if let Some(driver) = driver {
            symlink(self.root.path().join("drivers").join(driver), folder.join("driver")).unwrap();
        }
        if let Some(group) = group {
            let of_group = self.root.path().join("groups").join(group);
            fs::create_dir_all(of_group.join("devices")).unwrap();
            symlink(&folder, of_group.join("devices").join(address)).unwrap();
            symlink(of_group, folder.join("iommu_group")).unwrap();
        }
    }

    fn folder(&self, address: &str) -> PathBuf {
        self.places.sysfs.join("bus/pci/devices").join(address)
    }

    fn dev(&self, path: &str) -> PathBuf {
        self.places.dev.join(path)
    }

    fn refused(&self, address: &str, interface: Interface) -> VfioError {
        let options = Options { places: self.places.clone(), interface, ..Options::default() };
        Vfio::open(address.parse().unwrap(), &options).expect_err("nothing to open")
    }

    /// The file that cannot be opened.
    fn opened(&self, interface: Interface) -> PathBuf {
        let VfioError { path, cause: Cause::Open { .. } } = self.refused(ADDRESS, interface) else {
            panic!("something else")
        };
        path
    }
}

#[test]
fn what_is_missing_is_named_with_what_helps() {
    let machine = Machine::new(Some("bnxt_en"), Some("7"));
    let error = machine.refused(ADDRESS, Interface::Either);
    let text = error.to_string();
    let driver = machine.folder(ADDRESS).join("driver");
    assert!(text.starts_with(&std::format!("{}: bnxt_en has the function", driver.display())), "{text}");
    assert!(text.contains("driver_override") && text.contains("drivers_probe"), "{text}");
    assert_eq!(machine.refused("0000:02:00.0", Interface::Either).cause, Cause::NoFunction);
    let machine = Machine::new(None, Some("7"));
    assert!(machine.refused(ADDRESS, Interface::Either).to_string().contains("no driver has the function"));
    let machine = Machine::new(Some("vfio-pci"), None);
    assert_eq!(machine.refused(ADDRESS, Interface::Either).cause, Cause::NoIommu);
}

#[test]
fn each_interface_opens_its_own_files() {
    let machine = Machine::new(Some("vfio-pci"), Some("7"));
    let container = machine.dev("vfio/vfio");
    assert_eq!(machine.opened(Interface::Either), container);
    assert_eq!(machine.refused(ADDRESS, Interface::Device).cause, Cause::NoDevice);
    let device = machine.folder(ADDRESS).join("vfio-dev/vfio3");
    fs::create_dir_all(&device).unwrap();
    assert_eq!(machine.refused(ADDRESS, Interface::Device).cause, Cause::NoDevice);
    fs::write(device.join("dev"), "511:3\n").unwrap();
    assert_eq!(machine.opened(Interface::Device), machine.dev("iommu"));
    assert_eq!(machine.opened(Interface::Either), container, "there is no iommufd");
    fs::write(machine.dev("iommu"), "").unwrap();
    assert_eq!(machine.opened(Interface::Device), machine.dev("vfio/devices/vfio3"));
    assert_eq!(machine.opened(Interface::Either), container, "there is no right to the device");
    fs::create_dir_all(machine.dev("vfio/devices")).unwrap();
    fs::write(machine.dev("vfio/devices/vfio3"), "").unwrap();
    assert_eq!(machine.refused(ADDRESS, Interface::Either).path, machine.dev("vfio/devices/vfio3"));
    assert_eq!(machine.opened(Interface::Group), container);
}

#[test]
fn a_file_that_is_no_vfio_is_refused_by_the_kernel() {
    let machine = Machine::new(Some("vfio-pci"), Some("7"));
    fs::write(machine.dev("vfio/vfio"), "").unwrap();
    let error = machine.refused(ADDRESS, Interface::Either);
    assert!(matches!(error.cause, Cause::Refused { call: "VFIO_GET_API_VERSION", .. }), "{error}");
    fs::create_dir_all(machine.folder(ADDRESS).join("vfio-dev/vfio3/dev")).unwrap();
    fs::create_dir_all(machine.dev("vfio/devices")).unwrap();
    fs::write(machine.dev("vfio/devices/vfio3"), "").unwrap();
    fs::write(machine.dev("iommu"), "").unwrap();
    let error = machine.refused(ADDRESS, Interface::Either);
    assert!(matches!(error.cause, Cause::Refused { call: "VFIO_DEVICE_BIND_IOMMUFD", .. }), "{error}");
}

#[test]
fn functions_are_listed_with_what_is_in_their_way() {
    let machine = Machine::new(Some("vfio-pci"), Some("7"));
    machine.add("0000:00:05.0", None, None);
    fs::create_dir_all(machine.folder("no address")).unwrap();
    let all = Function::all(&machine.places).unwrap();
    let addresses: Vec<FunctionAddress> = all.iter().map(|function| function.address).collect();
    assert_eq!(addresses, ["0000:00:05.0", ADDRESS].map(|address| address.parse().unwrap()));
    assert_eq!((all[1].id, all[1].driver.as_deref()), ((0x1dd8, 0x1002), Some("vfio-pci")));
    let obstacle = |interface| all[1].obstacle(interface, &machine.places);
    fs::write(machine.dev("vfio/vfio"), "").unwrap();
    let missing = obstacle(Interface::Group).unwrap();
    assert_eq!(missing.path, machine.dev("vfio/7"));
    assert!(missing.to_string().contains("load the kernel modules vfio-pci"), "{missing}");
    fs::write(machine.dev("vfio/7"), "").unwrap();
    assert_eq!(obstacle(Interface::Group), None);
    assert!(all[0].obstacle(Interface::Group, &machine.places).is_some());
}

#[test]
fn functions_of_a_group_that_other_drivers_have_are_named() {
    let machine = Machine::new(Some("vfio-pci"), Some("7"));
    machine.add("0000:01:00.1", Some("bnxt_en"), Some("7"));
    machine.add("0000:01:00.2", Some("pci-stub"), Some("7"));
    machine.add("0000:01:00.3", None, Some("7"));
    let function = Function::find(ADDRESS.parse().unwrap(), &machine.places).unwrap();
    assert_eq!(function.others(), [String::from("0000:01:00.1 (bnxt_en)")]);
}
