//! ionic without an operating system: the workload over bring-up, control channels and datapath of software NICs.

mod ionic_bare_parts;
mod rts;

use directverbs::ionic::wqe::RdmaVersion;
use directverbs_bare::ionic::Config;
use directverbs_softnic::fabric::FabricOptions;
use directverbs_softnic::fault::FaultPlan;
use directverbs_workload::{Job, Op, run_pair};
use ionic_bare_parts::rig::rig;

const VERSIONS: [RdmaVersion; 2] = [RdmaVersion::V1, RdmaVersion::V2];
const LOSSLESS: FabricOptions = FabricOptions { seed: 1, faults: FaultPlan::NONE, threaded: false };

fn job(op: Op, size: u32) -> Job {
    Job { op, size: if op.is_atomic() { 8 } else { size }, iterations: 8, ..Job::default() }
}

/// Runs `job` on two NICs that are brought up for it; the driver must keep the contract, and leave nothing behind.
fn run(version: RdmaVersion, pipelines: u8, fabric: FabricOptions, job: &Job) {
    run_with(version, Config { pipelines, ..Config::default() }, fabric, job);
}

fn run_with(version: RdmaVersion, config: Config, fabric: FabricOptions, job: &Job) {
    let rigs = rig(version, fabric);
    let [mut a, mut b] = rigs.each_ref().map(|rig| rig.open(config));
    let report = run_pair(&mut a.device(), &mut b.device(), job, &mut |_| {})
        .unwrap_or_else(|e| panic!("{version:?} {job:?}: {e}"));
    assert!(job.size == 0 || report.verified_bytes() > 0, "{job:?}");
    for (nic, rig) in [a, b].into_iter().zip(&rigs) {
        nic.close().expect("closes");
        rig.assert_clean();
    }
}

#[test]
fn every_operation_in_both_versions() {
    for version in VERSIONS {
        for op in Op::ALL {
            for pipelines in [1, 2] {
                run(version, pipelines, LOSSLESS, &job(op, 64));
            }
            run(version, 1, LOSSLESS, &job(op, 4000));
        }
    }
}

#[test]
fn batches_inline_data_and_many_sges() {
    for op in [Op::Send, Op::Write, Op::SendTo] {
        let many = Job { batch: 7, iterations: 100, signal_all: true, ..job(op, 32) };
        run(RdmaVersion::V2, 2, LOSSLESS, &many);
        run(RdmaVersion::V2, 1, LOSSLESS, &Job { inline: true, ..job(op, 100) });
        run(RdmaVersion::V1, 1, LOSSLESS, &Job { sges: 9, ..job(op, 1000) });
    }
}

#[test]
fn a_wire_that_loses_duplicates_and_reorders() {
    for (seed, version) in [(1, VERSIONS[0]), (2, VERSIONS[1])] {
        let fabric = FabricOptions { seed, faults: FaultPlan::LOSSY_WIRE, threaded: false };
        for op in [Op::Send, Op::Write, Op::Read, Op::FetchAdd] {
            run(version, 2, fabric, &Job { batch: 4, iterations: 50, timeout: 8, ..job(op, 3000) });
        }
    }
}

#[test]
fn every_operation_with_queues_in_controller_memory_and_express_doorbells() {
    for version in VERSIONS {
        for express in [false, true] {
            for op in Op::ALL {
                // An atomic of version 1 fills its WQE, so that there is no room for an express doorbell.
                if express && op.is_atomic() && version == RdmaVersion::V1 {
                    continue;
                }
                let queues = ionic_bare_parts::placement::required(express);
                let config = Config { pd: queues, ..Config::default() };
                run_with(version, config, LOSSLESS, &Job { batch: 3, iterations: 40, ..job(op, 48) });
            }
        }
    }
}
