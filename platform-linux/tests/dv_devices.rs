//! `dv devices`: the software NICs, and a machine's devices with what stands in the way of opening one.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;
use support::{Machine, SOFT, dv, told};

fn json(machine: &Machine) -> Vec<Value> {
    let output = told(&dv(&format!("devices --json {}", machine.places())));
    let value: Value = serde_json::from_str(&output).expect("one JSON value");
    value.as_array().expect("an array").clone()
}

fn find<'a>(all: &'a [Value], device: &str) -> &'a Value {
    all.iter().find(|entry| entry["device"] == device).expect(device)
}

/// First words of lines.
fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_whitespace().next()).filter(|word| word.contains(':')).collect()
}

#[test]
fn software_nics_and_the_devices_of_the_machine_are_listed() {
    let machine = Machine::usual();
    let text = told(&dv(&format!("devices {}", machine.places())));
    let uverbs = ["uverbs:bnxt_re0", "uverbs:ionic_0", "uverbs:rxe0"];
    assert_eq!(names(&text), [&SOFT[..], &uverbs[..]].concat(), "{text}");
    let line = text.lines().find(|line| line.starts_with("uverbs:bnxt_re0")).expect("a line");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "uverbs:bnxt_re0",
            "uverbs0",
            "bnxt_re",
            "6/1",
            "232.0.1",
            "1",
            "active",
            "100",
            "Gb/sec",
            "(4X",
            "EDR)",
            "eth0",
            "yes"
        ]
    );
    let head = text.lines().find(|line| line.contains("NODE")).expect("a head");
    let column = |name: &str| head.find(name).expect(name);
    assert_eq!(&line[column("STATE")..column("STATE") + 6], "active", "columns are aligned:\n{text}");

    let all = json(&machine);
    assert_eq!(all.len(), 7);
    let ionic = find(&all, "uverbs:ionic_0");
    assert_eq!(
        (&ionic["driver"], &ionic["uverbs_abi"], &ionic["driver_abi"]),
        (&"ionic".into(), &6.into(), &1.into())
    );
    assert_eq!(
        (&ionic["ports"][0]["state"], &ionic["ports"][0]["netdev"]),
        (&"active".into(), &"eth0".into())
    );
    assert_eq!(ionic["obstacle"], Value::Null);
    assert_eq!(find(&all, "soft:ionic")["wqe_modes"], serde_json::json!(["static"]));
}

#[test]
fn what_stands_in_the_way_of_opening_a_device_is_said_beside_it() {
    let machine = Machine::usual();
    machine.write("sys/class/infiniband_verbs/uverbs0/abi_version", "6\n");
    fs::remove_file(machine.root().join("dev/uverbs1")).expect("was there");
    let all = json(&machine);
    let cases: [(&str, &[&str]); 3] = [
        ("uverbs:bnxt_re0", &["unsupported bnxt_re ABI 6, supported is 1 to 1"]),
        (
            "uverbs:ionic_0",
            &["dev/uverbs1: No such file", "load ib_uverbs", "in a container, pass the device file in"],
        ),
        ("uverbs:rxe0", &["driver rxe: only devices of bnxt_re and ionic"]),
    ];
    for (device, parts) in cases {
        let obstacle = find(&all, device)["obstacle"].as_str().expect("an obstacle");
        for part in parts {
            assert!(obstacle.contains(part), "{device}: no `{part}` in: {obstacle}");
        }
    }
    let text = told(&dv(&format!("devices {}", machine.places())));
    assert!(text.contains("no: unsupported bnxt_re ABI 6"), "{text}");
}

#[test]
fn a_device_file_without_permission_is_told_with_the_remedy() {
    let machine = Machine::usual();
    for path in ["", "sys", "dev"] {
        let folder = machine.root().join(path);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("allowed");
    }
    fs::set_permissions(machine.root().join("dev/uverbs0"), fs::Permissions::from_mode(0o600))
        .expect("allowed");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dv"));
    command.args(["devices", "--json"]).args(machine.places().split_whitespace());
    if rustix::process::getuid().is_root() {
        // Root may open any file; another user may not.
        command.uid(65534).gid(65534);
    } else {
        fs::set_permissions(machine.root().join("dev/uverbs0"), fs::Permissions::from_mode(0o000))
            .expect("allowed");
    }
    let output = told(&command.output().expect("dv starts"));
    let all: Value = serde_json::from_str(&output).expect("one JSON value");
    let obstacle = find(all.as_array().expect("an array"), "uverbs:bnxt_re0")["obstacle"].clone();
    let obstacle = obstacle.as_str().expect("an obstacle");
    for part in ["dev/uverbs0: Permission denied", "run as root", "udev"] {
        assert!(obstacle.contains(part), "{obstacle}");
    }
}

#[test]
fn a_device_whose_files_make_no_sense_does_not_hide_the_others() {
    let machine = Machine::usual();
    machine.write("sys/class/infiniband/bnxt_re0/node_guid", "word\n");
    let all = json(&machine);
    let obstacle = find(&all, "uverbs:bnxt_re0")["obstacle"].as_str().expect("an obstacle");
    assert!(obstacle.contains("node_guid") && obstacle.contains("expected a GUID"), "{obstacle}");
    assert_eq!(find(&all, "uverbs:ionic_0")["obstacle"], Value::Null);
}

#[test]
fn a_machine_without_the_rdma_subsystem_has_the_software_nics() {
    let machine = Machine::bare();
    let text = told(&dv(&format!("devices {}", machine.places())));
    assert_eq!(names(&text), SOFT, "{text}");
    assert!(
        text.contains("no uverbs devices: ") && text.contains("no RDMA subsystem: load ib_uverbs"),
        "{text}"
    );
    assert_eq!(json(&machine).len(), 4);
}
