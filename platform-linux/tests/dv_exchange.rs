//! Two `dv` processes: `--listen` and `--connect`, with software NICs whose wire leads from one to the other.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use support::{dv, failed, refused, text};

/// A `dv` that listens, and where.
struct Listener {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    address: String,
}

impl Listener {
    fn start(arguments: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dv"))
            .args(arguments.split_whitespace())
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("dv starts");
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a line");
        let address =
            line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, errors, address }
    }

    fn end(mut self) -> Output {
        let mut stderr = Vec::new();
        self.errors.read_to_end(&mut stderr).expect("readable");
        let output = self.child.wait_with_output().expect("it ends");
        Output { stderr, ..output }
    }
}

/// Runs two processes with arguments of their own; gives the listener's and the connector's output.
fn two(listener: &str, connector: &str) -> [Output; 2] {
    let listening = Listener::start(listener);
    let connected = dv(&format!("{connector} --connect {}", listening.address));
    [listening.end(), connected]
}

fn objects(outputs: &[Output; 2]) -> [Value; 2] {
    [0, 1].map(|i| {
        assert_eq!(outputs[i].status.code(), Some(0), "{}", text(&outputs[i].stderr));
        serde_json::from_slice(&outputs[i].stdout).expect("one JSON value")
    })
}

#[test]
fn two_processes_play_and_both_know_what_was_verified() {
    for (one, two_) in [("soft:bnxt_re", "soft:bnxt_re"), ("soft:ionic", "soft:bnxt_re-p5")] {
        for op in ["send", "write-imm", "read", "fetch-add", "send-inv"] {
            let arguments = format!("pingpong --op {op} --iters 50 --batch 3 --json");
            let outputs =
                two(&format!("{arguments} --device {one}"), &format!("{arguments} --device {two_}"));
            let [listener, connector] = objects(&outputs);
            let bytes = listener["verified_bytes"].as_u64().expect("a count");
            assert!(bytes > 0 && connector["verified_bytes"] == bytes, "{op}: {listener} {connector}");
            // The one that connects measures.
            assert!(connector["latency"]["p50"].as_u64() > Some(0), "{connector}");
            assert_eq!(listener["latency"], Value::Null);
        }
    }
}

#[test]
fn two_processes_measure_latency_and_bandwidth() {
    let [listener, connector] =
        objects(&two("perf write lat --duration 50ms --json", "perf write lat --duration 50ms --json"));
    assert_eq!(listener["sizes"][0]["verified_bytes"], connector["sizes"][0]["verified_bytes"]);
    assert!(connector["sizes"][0]["latency"]["p999"].as_u64() > Some(0), "{connector}");
    for op in ["send", "write", "read"] {
        let arguments = format!("perf {op} bw --size 16k --depth 16 --batch 4 --signal-every 4 --json");
        let [listener, connector] = objects(&two(&arguments, &format!("{arguments} --iters 200")));
        let (served, measured) = (&listener["sizes"][0], &connector["sizes"][0]);
        assert_eq!(
            (&measured["messages"], &measured["verified_bytes"]),
            (&200.into(), &(16 * 16384).into()),
            "{op}"
        );
        assert_eq!(served["verified_bytes"], measured["verified_bytes"]);
        assert!(measured["gbit_per_second"].as_f64() > Some(0.0), "{measured}");
    }
    let [listener, connector] = two("perf read lat --iters 20", "perf read lat --iters 20");
    assert!(text(&connector.stdout).contains("P99.9"), "{}", text(&connector.stderr));
    assert!(text(&listener.stdout).contains("bytes verified, no error"), "{}", text(&listener.stderr));
}

#[test]
fn processes_that_do_not_want_the_same_both_say_what_differs() {
    let outputs = two("pingpong --size 64", "pingpong --size 4k");
    for (output, said) in
        outputs.iter().zip(["--size is 4096 there and 64 here", "--size is 64 there and 4096 here"])
    {
        assert_eq!(output.status.code(), Some(2));
        let message = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(message.contains(said) && message.contains("give both ends the same arguments"), "{message}");
    }
}

#[test]
fn a_failure_at_one_end_ends_both_with_its_message() {
    // What the one that is read from answers is lost, and it sends nothing before it was read from.
    let [listener, connector] =
        two("pingpong --op read --iters 9 --fault-plan lose=100", "pingpong --op read --iters 9");
    for (output, whose) in [(&listener, "error: peer: queue pair"), (&connector, "error: queue pair")] {
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(
            message.starts_with(whose) && message.contains("transport retry count exceeded"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_stranger_is_refused_and_not_waited_for() {
    let listener = Listener::start("pingpong");
    let mut stranger = TcpStream::connect(&listener.address).expect("it listens");
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    let output = listener.end();
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.contains("peer: a message of 1195725856 bytes") && message.contains("another protocol"),
        "{message}"
    );

    let listener = Listener::start("pingpong");
    drop(TcpStream::connect(&listener.address).expect("it listens"));
    let message = text(&listener.end().stderr);
    assert!(message.contains("peer: "), "{message}");
}

#[test]
fn a_peer_that_is_not_there_is_told_with_the_remedy() {
    // Nobody listens at the port that TCP calls discard.
    failed(
        "pingpong --connect 127.0.0.1:9",
        &["--connect 127.0.0.1:9", "refused", "start the peer first, with --listen"],
    );
    refused("pingpong --connect host.invalid", &["host.invalid:18515", "give a name or address"]);
    refused(
        "pingpong --connect localhost --peer-device soft:ionic",
        &["--peer-device", "cannot be used with"],
    );
    refused("pingpong --listen --connect localhost", &["cannot be used with"]);
}

#[test]
fn made_up_kernels_of_two_processes_meet_and_do_not_mix_with_other_wires() {
    for device in ["fake:bnxt_re", "fake:ionic", "fake:bnxt_re-p5@6.12"] {
        let arguments = format!("pingpong --device {device} --op write --iters 20 --json");
        let [listener, connector] = objects(&two(&arguments, &arguments));
        assert_eq!(listener["verified_bytes"], 2 * 20 * 64, "{device}");
        assert_eq!(connector["verified_bytes"], 2 * 20 * 64, "{device}");
    }
    let outputs = two("pingpong --device fake:ionic", "pingpong --device soft:ionic");
    for output in &outputs {
        assert_eq!(output.status.code(), Some(2));
        let message = text(&output.stderr);
        assert!(message.contains("the wire is between"), "{message}");
    }
}
