//! The behaviour of the `dv` command: exit status, what it says about wrong arguments, and the shape of its JSON.

mod support;

use serde_json::Value;
use support::{SOFT, dv, refused, text};

#[test]
fn a_wrong_argument_is_explained_with_what_would_be_right() {
    let cases: [(&str, &[&str]); 11] = [
        (
            "pingpong --device soft:mlx5",
            &["soft:mlx5", "there are: soft:bnxt_re-p5, soft:bnxt_re, soft:ionic-v1, soft:ionic"],
        ),
        ("pingpong --peer-device eth0", &["eth0", "there are: soft:bnxt_re-p5"]),
        ("pingpong --op sned", &["sned", "there are: send, send-imm"]),
        ("pingpong --wqe-mode huge", &["huge", "there are: static, variable"]),
        (
            "pingpong --device soft:ionic --wqe-mode variable",
            &["soft:ionic has no variable WQE mode", "soft:bnxt_re"],
        ),
        ("pingpong --size 4kb", &["4kb", "a number of bytes, or one with k, M or G"]),
        ("pingpong --mtu 1500", &["1500", "256, 512, 1024, 2048 or 4096"]),
        ("pingpong --op cas --size 64", &["cas works on 8 bytes, size 64 given"]),
        ("pingpong --op read --inline", &["read cannot be combined with inline data"]),
        ("pingpong --batch 0", &["batch 0: must be 1 to 32"]),
        ("pingpong --fault-plan eat=1%", &["no fault is called `eat`; there are: lose, duplicate"]),
    ];
    for (arguments, parts) in cases {
        refused(arguments, parts);
    }
}

#[test]
fn no_command_and_an_unknown_one_are_wrong_arguments() {
    assert_eq!(dv("").status.code(), Some(2));
    refused("ping", &["ping"]);
}

#[test]
fn what_a_device_cannot_do_is_a_wrong_argument_with_the_limit() {
    let cases: [(&str, &[&str]); 6] = [
        ("pingpong --device soft:ionic --srq", &["ionic has no shared receive queue", "leave out --srq"]),
        ("pingpong --peer-device soft:ionic-v1 --srq", &["ionic-v1 has no shared receive queue"]),
        (
            "pingpong --op ud-send --size 4097",
            &["size 4097 is over the path MTU of 4096", "--size 4096 or less"],
        ),
        ("pingpong --op ud-send --size 512 --mtu 256", &["path MTU of 256 bytes", "--size 256 or less"]),
        (
            "pingpong --inline --size 512",
            &["takes at most 96 inline bytes, size 512 given", "--size 96 or less"],
        ),
        ("pingpong --sges 7", &["at most 6 SGEs of a send request", "--sges 6 or less"]),
    ];
    for (arguments, parts) in cases {
        refused(arguments, parts);
    }
}

#[test]
fn json_is_one_object_with_what_was_done() {
    for device in SOFT {
        let output =
            dv(&format!("pingpong --device {device} --op write --size 1k --iters 50 --batch 4 --json"));
        assert_eq!(output.status.code(), Some(0), "{device}: {}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{device}");
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert_eq!(object["device"], device);
        assert_eq!(object["op"], "write");
        assert_eq!((&object["size"], &object["iters"]), (&1024.into(), &50.into()));
        assert_eq!(object["verified_bytes"], 2 * 50 * 4 * 1024);
        assert_eq!(object["errors"], 0);
        let latency = &object["latency"];
        assert_eq!(latency["unit"], "ns");
        let [min, p50, p99, max] =
            ["min", "p50", "p99", "max"].map(|name| latency[name].as_u64().expect(name));
        assert!(0 < min && min <= p50 && p50 <= p99 && p99 <= max, "{latency}");
    }
}

#[test]
fn the_end_is_a_latency_table_and_the_verified_bytes() {
    for arguments in
        ["", "--op cas", "--op read --size 64k", "--op ud-send", "--wqe-mode variable --inline --sges 3"]
    {
        let output = dv(&format!("pingpong --iters 20 {arguments}"));
        let table = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
        assert!(["MIN", "P50", "P99", "P99.9", "MAX"].iter().all(|name| table.contains(name)), "{table}");
        assert!(table.trim_end().ends_with("bytes verified, no error"), "{table}");
    }
}

#[test]
fn families_are_mixed_and_stepped_runs_repeat() {
    let arguments = "pingpong --device soft:bnxt_re-p5 --peer-device soft:ionic --op send-inv --iters 100 --stepped \
                     --fault-plan lose=1%,duplicate=1%,reorder=1% --seed 7 --json";
    let (first, second) = (dv(arguments), dv(arguments));
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert_eq!(text(&first.stdout), text(&second.stdout));
    let object: Value = serde_json::from_slice(&first.stdout).expect("one JSON value");
    assert_eq!(
        (&object["peer_device"], &object["latency"]["clock"]),
        (&"soft:ionic".into(), &"virtual".into())
    );
}

#[test]
fn a_fault_is_named_with_queue_pair_request_and_status_and_exits_1() {
    let output = dv("pingpong --stepped --fault-plan lose=100 --json");
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    for part in ["queue pair 0x", "work request 0x", "of turn 0", "transport retry count exceeded"] {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!((&object["errors"], &object["verified_bytes"]), (&1.into(), &0.into()));
    assert!(message.contains(object["error"].as_str().expect("the message")));
}

#[test]
fn datagrams_that_the_wire_loses_are_missed_and_not_waited_for() {
    let output = dv("pingpong --op ud-send --stepped --fault-plan lose=100");
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("stalled") && message.contains("receive 0 of turn 0"), "{message}");
}

#[test]
fn the_wire_is_captured() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("wire.pcap");
    let output = dv(&format!("pingpong --iters 3 --size 5000 --pcap {}", path.display()));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let bytes = std::fs::read(&path).expect("the capture");
    assert_eq!(bytes.get(..4), Some(&[0x4d, 0x3c, 0xb2, 0xa1][..]), "a pcap file with nanoseconds");
    assert!(bytes.len() > 6 * 5000, "both directions are there");
    refused(
        &format!("pingpong --pcap {}/none/wire.pcap", directory.path().display()),
        &["--pcap", "No such file"],
    );
}
