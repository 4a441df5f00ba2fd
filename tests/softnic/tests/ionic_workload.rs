//! The workload on ionic NICs, in every place that their queues may be, on a good and on a bad wire.

mod ionic_pair;

use directverbs::ionic::cmb::{CmbPreference, Mapping};
use directverbs::ionic::plan::Placement;
use directverbs::ionic::wqe::RdmaVersion;
use directverbs_softnic::fabric::FabricOptions;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::host::ionic::IonicOptions;
use directverbs_softnic::ionic::IonicConfig;
use directverbs_workload::{Job, Op, run_pair};
use ionic_pair::devices;

const VERSIONS: [RdmaVersion; 2] = [RdmaVersion::V1, RdmaVersion::V2];
const LOSSLESS: FabricOptions = FabricOptions { seed: 1, faults: FaultPlan::NONE, threaded: false };

/// Runs `job`; the driver must keep the contract.
fn run(options: IonicOptions, fabric: FabricOptions, job: &Job) {
    let (_fabric, [mut a, mut b]) = devices(options, fabric);
    let report =
        run_pair(&mut a, &mut b, job, &mut |_| {}).unwrap_or_else(|e| panic!("{options:?} {job:?}: {e}"));
    assert!(job.size == 0 || report.verified_bytes() > 0, "{job:?}");
    for device in [&a, &b] {
        assert_eq!(device.nic().lock().front_end().violations(), [], "{options:?} {job:?}");
    }
}

fn job(op: Op, size: u32) -> Job {
    Job { op, size: if op.is_atomic() { 8 } else { size }, iterations: 8, ..Job::default() }
}

#[test]
fn every_operation_in_both_versions() {
    for version in VERSIONS {
        for op in Op::ALL {
            for size in [1, 64, 1024] {
                run(IonicOptions::new(version), LOSSLESS, &job(op, size));
            }
        }
    }
}

#[test]
fn messages_of_many_packets() {
    for op in [Op::Send, Op::SendImm, Op::Write, Op::WriteImm, Op::Read] {
        run(IonicOptions::new(RdmaVersion::V2), LOSSLESS, &job(op, 100_000));
    }
}

#[test]
fn inline_data_and_lists_of_lengths() {
    for version in VERSIONS {
        for op in [Op::Send, Op::Write, Op::SendTo] {
            run(IonicOptions::new(version), LOSSLESS, &Job { inline: true, ..job(op, 100) });
            for sges in [2, 3, 8, 9, 16] {
                for max_spec in [0, 8, 16] {
                    let device = IonicConfig { max_spec, ..IonicConfig::new(version) };
                    let options = IonicOptions { device, ..IonicOptions::new(version) };
                    run(options, LOSSLESS, &Job { sges, ..job(op, 1000) });
                }
            }
        }
    }
}

#[test]
fn batches_past_the_end_of_the_ring() {
    for signal_all in [false, true] {
        for op in Op::ALL {
            let job = Job { batch: 7, iterations: 100, signal_all, ..job(op, 32) };
            run(IonicOptions::new(RdmaVersion::V2), LOSSLESS, &job);
        }
    }
}

#[test]
fn one_pipeline_and_completions_out_of_order() {
    for pipelines in [1, 2] {
        for version in VERSIONS {
            let device = IonicConfig { pipelines, reorder: 300_000, seed: 9, ..IonicConfig::new(version) };
            let options = IonicOptions { device, ..IonicOptions::new(version) };
            for op in Op::ALL {
                run(options, LOSSLESS, &Job { batch: 3, signal_all: true, iterations: 20, ..job(op, 64) });
            }
        }
    }
}

#[test]
fn queues_in_controller_memory() {
    for mapping in [Mapping::WriteCombined, Mapping::Uncached] {
        for express in [false, true] {
            let cmb = CmbPreference { enable: true, express, require: false };
            let placement = Placement { sq: cmb, rq: cmb };
            for op in [Op::Send, Op::SendImm, Op::Write, Op::Read, Op::CompareSwap, Op::SendTo] {
                let options = IonicOptions { placement, mapping, ..IonicOptions::new(RdmaVersion::V2) };
                run(options, LOSSLESS, &Job { batch: 5, iterations: 60, ..job(op, 24) });
                let sges = if op.is_atomic() { 1 } else { 4 };
                run(options, LOSSLESS, &Job { sges, ..job(op, 200) });
            }
            let options = IonicOptions { placement, mapping, ..IonicOptions::new(RdmaVersion::V2) };
            run(options, LOSSLESS, &Job { inline: true, batch: 3, ..job(Op::Write, 24) });
            run(options, LOSSLESS, &Job { inline: true, batch: 3, ..job(Op::Send, 200) });
        }
    }
}

#[test]
fn a_wire_that_loses_duplicates_and_reorders() {
    for (seed, version) in [(1, VERSIONS[0]), (2, VERSIONS[1]), (3, VERSIONS[1])] {
        let faults = FaultPlan { corrupt_frame: 5_000, ..FaultPlan::LOSSY_WIRE };
        let fabric = FabricOptions { seed, faults, threaded: false };
        let device = IonicConfig { reorder: 200_000, seed, ..IonicConfig::new(version) };
        let options = IonicOptions { device, ..IonicOptions::new(version) };
        for op in Op::ALL.into_iter().filter(|op| *op != Op::SendTo) {
            run(options, fabric, &Job { batch: 4, iterations: 50, timeout: 8, ..job(op, 3000) });
        }
    }
}
