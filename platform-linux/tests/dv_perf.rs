//! `dv perf`: figures, histogram, pictures and JSON of latency and bandwidth, over software NICs of both families.

mod support;

use serde_json::Value;
use support::{SOFT, dv, refused, text, told};

fn json(arguments: &str) -> Value {
    serde_json::from_str(&told(&dv(&format!("{arguments} --json")))).expect("one JSON value")
}

#[test]
fn latency_is_told_as_percentiles_and_a_histogram() {
    let output = dv("perf write lat --iters 200");
    let table = told(&output);
    for part in ["MIN", "P50", "P99", "P99.9", "MAX", "64 B", "│█", "%\n", "25600 bytes verified, no error"]
    {
        assert!(table.contains(part), "no `{part}` in:\n{table}");
    }
    for device in SOFT {
        for op in ["write", "read", "send"] {
            let object = json(&format!("perf {op} lat --device {device} --size 1k --iters 60"));
            assert_eq!((&object["op"], &object["measure"]), (&op.into(), &"lat".into()));
            let row = &object["sizes"][0];
            assert_eq!((&row["size"], &row["iters"]), (&1024.into(), &60.into()), "{device} {op}");
            assert_eq!(row["verified_bytes"], 2 * 60 * 1024);
            let latency = &row["latency"];
            let figures =
                ["min", "p50", "p99", "p999", "max"].map(|name| latency[name].as_u64().expect(name));
            assert!(figures[0] > 0 && figures.is_sorted(), "{latency}");
            let counts =
                row["histogram"].as_array().expect("buckets").iter().map(|b| b["count"].as_u64().unwrap());
            assert_eq!(counts.sum::<u64>(), 60);
            assert_eq!((&object["errors"], &object["error"]), (&0.into(), &Value::Null));
        }
    }
}

#[test]
fn bandwidth_is_told_with_units_and_verified_at_the_end() {
    let table = told(&dv("perf send bw --iters 300 --size 4k"));
    for part in [
        "MESSAGES",
        "BANDWIDTH",
        "bit/s",
        "msg/s",
        "4 KiB",
        "1228800 bytes carried, 524288 verified at the end",
    ] {
        assert!(table.contains(part), "no `{part}` in:\n{table}");
    }
    for device in SOFT {
        for op in ["write", "read", "send"] {
            let object = json(&format!(
                "perf {op} bw --device {device} --size 512 --iters 333 --depth 20 --batch 4 --signal-every 7"
            ));
            assert_eq!(
                (&object["depth"], &object["batch"], &object["signal_every"]),
                (&20.into(), &4.into(), &7.into())
            );
            let row = &object["sizes"][0];
            assert_eq!(
                (&row["messages"], &row["bytes"]),
                (&333.into(), &(333 * 512).into()),
                "{device} {op}"
            );
            assert_eq!((&row["verified_bytes"], &row["doorbells"]), (&(20 * 512).into(), &84.into()));
            let elapsed = row["elapsed_ns"].as_f64().expect("a time");
            let gbit = row["gbit_per_second"].as_f64().expect("a bandwidth");
            assert!((gbit - 333.0 * 512.0 * 8.0 / elapsed).abs() < 1e-6 * gbit, "{row}");
        }
    }
}

#[test]
fn a_duration_ends_both_measurements() {
    let began = std::time::Instant::now();
    for measure in ["lat", "bw"] {
        let object = json(&format!("perf write {measure} --duration 50ms --size 64"));
        let row = &object["sizes"][0];
        let count = if measure == "lat" { "iters" } else { "messages" };
        assert!(row[count].as_u64().expect("a count") > 0, "{row}");
    }
    assert!(began.elapsed().as_secs() < 30);
}

#[test]
fn all_sizes_are_gone_through() {
    let object = json("perf read bw --all --iters 20 --depth 4 --batch 2 --signal-every 2");
    let sizes: Vec<_> =
        object["sizes"].as_array().expect("rows").iter().map(|row| row["size"].as_u64()).collect();
    assert_eq!(sizes, (0..=20).map(|shift| Some(1u64 << shift)).collect::<Vec<_>>());
}

#[test]
fn pictures_are_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("picture.svg");
    let cases = [("write lat --iters 50", "class=\"bar\""), ("send bw --iters 50 --size 1k", "<circle")];
    for (arguments, mark) in cases {
        told(&dv(&format!("perf {arguments} --svg {}", path.display())));
        let svg = std::fs::read_to_string(&path).expect("a picture");
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{arguments}");
        assert!(svg.contains(mark) && svg.contains("soft:bnxt_re"), "{arguments}");
    }
    refused(
        &format!("perf write lat --iters 5 --json --svg {}/none/p.svg", directory.path().display()),
        &["--svg", "No such file"],
    );
}

#[test]
fn stepped_measurements_repeat() {
    for measure in ["lat --iters 50", "bw --iters 200 --size 2k"] {
        let arguments = format!("perf write {measure} --stepped --seed 3 --peer-device soft:ionic --json");
        assert_eq!(told(&dv(&arguments)), told(&dv(&arguments)), "{measure}");
    }
}

#[test]
fn a_failure_is_told_and_exits_1() {
    for measure in ["lat", "bw --iters 100"] {
        let output = dv(&format!("perf write {measure} --stepped --fault-plan lose=100 --json"));
        assert_eq!(output.status.code(), Some(1), "{measure}");
        let message = text(&output.stderr);
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("transport retry count exceeded"), "{message}");
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        assert_eq!(object["errors"], 1);
        assert!(message.contains(object["error"].as_str().expect("the message")));
    }
}

#[test]
fn wrong_arguments_are_explained() {
    let cases: [(&str, &[&str]); 9] = [
        ("perf", &["<OP>", "<MEASURE>"]),
        ("perf cas lat", &["cas", "write, read, send"]),
        ("perf write lat --depth 3", &["--depth belongs to bw, lat does not have it"]),
        ("perf write bw --inline", &["--inline belongs to lat, bw does not have it"]),
        ("perf write bw --depth 16 --batch 8 --signal-every 10", &["signal-every 10: must be 1 to 9"]),
        ("perf write bw --depth 4 --batch 8", &["batch 8: must be 1 to 4"]),
        ("perf write bw --depth 100000", &["depth 100000: must be 1 to 16384"]),
        ("perf write bw --duration 1h", &["1h", "seconds, or a number with ms, s or m"]),
        ("perf write lat --iters 5 --duration 1", &["cannot be used with"]),
    ];
    for (arguments, parts) in cases {
        refused(arguments, parts);
    }
}
