//! The workload on bnxt_re NICs: both chips, both WQE modes, on a good and on a bad wire.

mod bnxt_re_pair;

use bnxt_re_pair::{CHIPS, LOSSLESS, devices, violations};
use directverbs_softnic::fabric::FabricOptions;
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::host::bnxt_re::BnxtReOptions;
use directverbs_workload::{Job, Op, run_pair};

/// Runs `job`; the driver must do nothing that the hardware could not carry out.
fn run(options: BnxtReOptions, fabric: FabricOptions, job: &Job) {
    let (_fabric, [mut a, mut b]) = devices(options, fabric);
    let report = run_pair(&mut a, &mut b, job, &mut |_| {}).unwrap_or_else(|error| {
        panic!("{options:?} {job:?}: {error}; {:?} {:?}", violations(&a), violations(&b))
    });
    assert!(job.size == 0 || report.verified_bytes() > 0, "{job:?}");
    for device in [&a, &b] {
        assert_eq!(violations(device), Vec::<String>::new(), "{options:?} {job:?}");
    }
}

fn job(op: Op, size: u32) -> Job {
    Job { op, size: if op.is_atomic() { 8 } else { size }, iterations: 8, ..Job::default() }
}

#[test]
fn every_operation_on_every_chip() {
    for options in CHIPS {
        for op in Op::ALL {
            for size in [1, 64, 1024] {
                run(options, LOSSLESS, &job(op, size));
            }
        }
    }
}
