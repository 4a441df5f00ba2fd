//! The behaviour of the `dv` command: exit status, what it says about wrong arguments, and the shape of its JSON.

use std::process::{Command, Output};

use serde_json::Value;

const DEVICES: [&str; 4] = ["soft:bnxt_re-p5", "soft:bnxt_re", "soft:ionic-v1", "soft:ionic"];

fn dv(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dv")).args(arguments.split_whitespace()).output().expect("dv starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("dv writes UTF-8")
}

/// Runs `dv`, expects exit status 2, silence on standard output, and `parts` in the message.
fn refused(arguments: &str, parts: &[&str]) {
    let output = dv(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "dv {arguments}: {message}");
    assert!(output.stdout.is_empty(), "dv {arguments}");
    for part in parts {
        // Long messages are wrapped.
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(message.contains(part), "dv {arguments}: no `{part}` in: {message}");
    }
}

#[test]
fn devices_lists_every_device_that_can_be_opened() {
    let output = dv("devices");
    assert_eq!(output.status.code(), Some(0));
    let listed = text(&output.stdout);
    let names: Vec<_> = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, DEVICES);

    let output = dv("devices --json");
    let array: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let names: Vec<_> =
        array.as_array().expect("an array").iter().map(|d| d["device"].as_str().unwrap()).collect();
    assert_eq!(names, DEVICES);
}

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
