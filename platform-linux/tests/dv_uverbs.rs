//! `dv pingpong` and `dv perf` through uverbs: over a made-up kernel, and what is said when a device cannot be used.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;
use support::{Machine, dv, failed, refused, text, told};

#[test]
fn messages_go_through_a_made_up_kernel_of_every_release() {
    for device in
        ["fake:bnxt_re", "fake:bnxt_re-p5@6.12", "fake:bnxt_re@7.2", "fake:ionic-v1@7.2", "fake:ionic"]
    {
        let output = told(&dv(&format!(
            "pingpong --device {device} --op send --size 300 --iters 40 --batch 2 --json"
        )));
        let object: Value = serde_json::from_str(&output).expect("one JSON value");
        assert_eq!(
            (&object["verified_bytes"], &object["errors"]),
            (&(2 * 40 * 2 * 300).into(), &0.into()),
            "{device}"
        );
        assert!(object["device"].as_str().expect("a name").starts_with(device), "{object}");
    }
    for measure in ["lat", "bw --size 4k --depth 16 --batch 4 --signal-every 4"] {
        let output = told(&dv(&format!(
            "perf write {measure} --iters 100 --device fake:ionic --peer-device fake:bnxt_re --json"
        )));
        let object: Value = serde_json::from_str(&output).expect("one JSON value");
        assert!(object["sizes"][0]["verified_bytes"].as_u64() > Some(0), "{object}");
    }
    refused(
        "pingpong --device fake:ionic --peer-device soft:ionic",
        &["have no common wire", "two of soft:"],
    );
    refused("pingpong --rc-pingpong --device fake:ionic", &["--rc-pingpong needs --listen or --connect"]);
    refused("pingpong --device soft:ionic --wire /", &["soft:ionic needs no --wire: only fake: devices"]);
}

#[test]
fn a_machine_that_cannot_be_used_is_told_in_one_line_with_the_remedy() {
    let bare = Machine::bare();
    let run = |machine: &Machine, more: &str| {
        format!("pingpong --device uverbs:bnxt_re0 {more} {}", machine.places())
    };
    failed(
        &run(&bare, ""),
        &["uverbs:bnxt_re0: ", "no RDMA subsystem: load ib_uverbs and the driver of the device"],
    );

    let machine = Machine::usual();
    failed(
        &format!("pingpong --device uverbs:mlx5_0 {}", machine.places()),
        &["no RDMA device of this name; there are bnxt_re0, ionic_0, rxe0"],
    );
    failed(&run(&machine, "--gid-index 9"), &["port 1: there is no GID with index 9; 2 others are in use"]);
    failed(&run(&machine, "--device-port 2"), &["device: port 2, the device has 1 to 1"]);
    failed(
        &format!("perf read bw --device uverbs:rxe0 {}", machine.places()),
        &["device: a datapath for its driver is not there: a device of bnxt_re or ionic"],
    );

    machine.write("sys/class/infiniband/bnxt_re0/ports/1/state", "1: DOWN\n");
    failed(
        &run(&machine, ""),
        &["port 1 is down: set its interface up (ip link set eth0 up) and look at the cable"],
    );
    machine.write("sys/class/infiniband/bnxt_re0/ports/1/state", "4: ACTIVE\n");

    machine.write("sys/class/infiniband_verbs/uverbs0/abi_version", "6\n");
    failed(&run(&machine, ""), &["unsupported bnxt_re ABI 6, supported is 1 to 1"]);
    machine.write("sys/class/infiniband_verbs/uverbs0/abi_version", "1\n");
    machine.write("sys/class/infiniband_verbs/abi_version", "7\n");
    failed(&run(&machine, ""), &["unsupported uverbs ABI 7, supported is 6 to 6"]);
}

#[test]
fn a_device_file_without_permission_is_told_in_one_line_with_the_remedy() {
    let machine = Machine::usual();
    for (path, mode) in [("", 0o755), ("sys", 0o755), ("dev", 0o755), ("dev/uverbs0", 0o600)] {
        let path = machine.root().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("allowed");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_dv"));
    command.args(["pingpong", "--device", "uverbs:bnxt_re0"]).args(machine.places().split_whitespace());
    if rustix::process::getuid().is_root() {
        // Root may open any file; another user may not.
        command.uid(65534).gid(65534);
    } else {
        let path = machine.root().join("dev/uverbs0");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).expect("allowed");
    }
    let output = command.output().expect("dv starts");
    let message = text(&output.stderr);
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    for part in ["error: uverbs:bnxt_re0: ", "dev/uverbs0: Permission denied", "run as root", "udev"] {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

#[test]
fn what_a_device_does_not_have_is_told_with_its_limit() {
    refused("pingpong --device fake:ionic --srq", &["ionic has no shared receive queue", "leave out --srq"]);
    refused(
        "pingpong --device fake:bnxt_re --inline --size 512",
        &["inline bytes, size 512 given", "or less"],
    );
    refused("pingpong --device fake:bnxt_re --sges 16", &["SGEs of a send request", "--sges", "or less"]);
}

#[test]
fn memory_that_cannot_be_pinned_is_told_with_the_limit() {
    let script = format!(
        "ulimit -l 256 && exec {} pingpong --device fake:bnxt_re --size 1M",
        env!("CARGO_BIN_EXE_dv")
    );
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let message = text(&output.stderr);
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    for part in [
        "registering memory",
        "memory region: REG_MR failed",
        "RLIMIT_MEMLOCK (ulimit -l); it is 256 KiB now",
    ] {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}
