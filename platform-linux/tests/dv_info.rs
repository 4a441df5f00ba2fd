//! `dv info`: what is told of software NICs, and what stands in the way of telling about a device.

mod support;

use serde_json::Value;
use support::{Machine, SOFT, dv, failed, refused, told};

#[test]
fn a_software_nic_tells_its_limits_port_and_features() {
    for device in SOFT {
        let info = told(&dv(&format!("info --device {device}")));
        assert_eq!(info.lines().next(), Some(device));
        for part in [
            "limits",
            "inline data",
            "direct verbs",
            "WQE mode",
            "port 1",
            "active",
            "RoCE v2",
            "::ffff:10.0.0.1",
        ] {
            assert!(info.contains(part), "{device}: no `{part}` in:\n{info}");
        }
        let output = told(&dv(&format!("info --device {device} --json")));
        let array: Value = serde_json::from_str(&output).expect("one JSON value");
        let info = &array[0];
        assert_eq!(info["name"], device);
        assert_eq!(info["limits"]["inline_data"].as_u64().map(|bytes| bytes >= 64), Some(true), "{info}");
        assert_eq!(info["ports"][0]["gids"][0]["type"], "RoCE v2");
        assert_eq!(info["ports"][0]["largest_path_mtu"], 4096);
    }
    let variable = told(&dv("info --device soft:bnxt_re --wqe-mode variable"));
    assert!(
        variable.lines().any(|line| line.contains("WQE mode ") && line.ends_with("variable")),
        "{variable}"
    );
    refused("info --device soft:ionic --wqe-mode variable", &["soft:ionic has no variable WQE mode"]);
}

#[test]
fn without_a_name_all_devices_of_the_machine_are_told_or_the_software_nics() {
    let machine = Machine::bare();
    let output = told(&dv(&format!("info --json {}", machine.places())));
    let array: Value = serde_json::from_str(&output).expect("one JSON value");
    let names: Vec<_> =
        array.as_array().expect("an array").iter().map(|info| info["name"].as_str().unwrap()).collect();
    assert_eq!(names, SOFT);
}

#[test]
fn what_stands_in_the_way_is_one_line_with_the_remedy() {
    let machine = Machine::usual();
    machine.write("sys/class/infiniband_verbs/uverbs0/abi_version", "6\n");
    std::fs::remove_file(machine.root().join("dev/uverbs1")).expect("was there");
    let cases: [(&str, &[&str]); 4] = [
        ("uverbs:bnxt_re0", &["unsupported bnxt_re ABI 6, supported is 1 to 1", "none of the kernel's own"]),
        ("uverbs:ionic_0", &["dev/uverbs1: No such file", "load ib_uverbs"]),
        ("uverbs:mlx5_0", &["no RDMA device of this name; there are bnxt_re0, ionic_0, rxe0"]),
        // An ordinary file is no device: the kernel refuses the first call.
        ("uverbs:rxe0", &["device", "Inappropriate ioctl"]),
    ];
    for (device, parts) in cases {
        failed(&format!("info --device {device} {}", machine.places()), parts);
    }
    let bare = Machine::bare();
    failed(
        &format!("info --device uverbs:bnxt_re0 {}", bare.places()),
        &["class/infiniband", "no RDMA subsystem: load ib_uverbs and the driver of the device"],
    );
}

/// What is told of a software NIC behind a made-up kernel.
fn fake(name: &str) -> Value {
    let output = told(&dv(&format!("info --device fake:{name} --json")));
    let array: Value = serde_json::from_str(&output).expect("one JSON value");
    array[0].clone()
}

#[test]
fn bnxt_re_tells_what_its_kernel_offers_for_direct_verbs() {
    let newest = fake("bnxt_re");
    let direct = &newest["direct_verbs"];
    assert_eq!((&direct["generation"], &direct["msn_table"]), (&"P7".into(), &true.into()), "{direct}");
    assert!(direct["wqe_mode"].as_str().expect("a mode").starts_with("variable"), "{direct}");
    for there in [
        "doorbell_regions",
        "default_doorbell_region",
        "queues_on_application_memory",
        "push_page",
        "toggle_pages",
    ] {
        assert_eq!(direct[there], true, "{there}: {direct}");
    }
    assert!(direct["doorbell_pacing"].as_str().expect("words").starts_with("yes"), "{direct}");
    let old = fake("bnxt_re-p5@6.12");
    let direct = &old["direct_verbs"];
    assert_eq!(
        (&direct["generation"], &direct["retransmission"]),
        (&"P5".into(), &"extended PSN table".into())
    );
    for missing in ["doorbell_regions", "default_doorbell_region", "queues_on_application_memory"] {
        let why = direct[missing].as_str().unwrap_or_else(|| panic!("{missing}: {direct}"));
        assert!(why.starts_with("no: ") && why.contains("7.2"), "{missing}: {why}");
    }
    assert_eq!(old["kernel"]["unknown_driver_data_refused"], false);
    assert_eq!(newest["kernel"]["unknown_driver_data_refused"], true);
}

#[test]
fn ionic_tells_pipelines_express_doorbells_and_clock() {
    for (name, version) in [("ionic-v1", 1), ("ionic", 2)] {
        let info = fake(name);
        let direct = &info["direct_verbs"];
        assert_eq!(direct["rdma_version"], version, "{direct}");
        let pipelines = direct["pipelines"].as_u64().expect("a number");
        assert_eq!(direct["pipeline_mask"], format!("{:#x}", (1 << pipelines) - 1));
        assert!(direct["largest_wqe"].as_u64() >= Some(64), "{direct}");
        assert_ne!(direct["clock_page"], false, "7.3 has one: {direct}");
    }
    assert_eq!(fake("ionic@7.2")["direct_verbs"]["clock_page"], false);
}

#[test]
fn limits_ports_and_gids_are_told_as_the_kernel_tells_them() {
    let info = fake("bnxt_re");
    assert_eq!((&info["name"], &info["device"]["driver"]), (&"fake:bnxt_re@7.3".into(), &"bnxt_re".into()));
    assert!(info["limits"]["queue_pairs"].as_u64() > Some(0), "{info}");
    let port = &info["ports"][0];
    assert_eq!(
        (&port["state"], &port["link_layer"], &port["usable"]),
        (&"active".into(), &"Ethernet".into(), &true.into())
    );
    assert_eq!(
        (&port["largest_path_mtu"], &port["path_mtu_that_fits_the_netdev"]),
        (&4096.into(), &4096.into())
    );
    let gids = port["gids"].as_array().expect("a table");
    assert!(gids.iter().any(|gid| gid["gid"] == "::ffff:10.0.0.1" && gid["type"] == "RoCE v2"), "{port}");
    let text = told(&dv("info --device fake:bnxt_re"));
    for part in ["\n  limits\n", "\n  direct verbs\n", "\n  port 1\n", "    GID  TYPE", "MSN table"] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}
