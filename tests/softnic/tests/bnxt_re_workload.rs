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

#[test]
fn messages_of_many_packets_and_of_none() {
    for options in CHIPS {
        for op in [Op::Send, Op::SendImm, Op::Write, Op::WriteImm, Op::Read] {
            for size in [0, 4097, 100_000] {
                run(options, LOSSLESS, &job(op, size));
            }
        }
    }
}

#[test]
fn inline_data_and_scattered_data() {
    for options in CHIPS {
        for op in [Op::Send, Op::SendImm, Op::SendInv, Op::Write, Op::WriteImm, Op::SendTo] {
            for size in [1, 16, 40, 96] {
                run(options, LOSSLESS, &Job { inline: true, ..job(op, size) });
            }
        }
        for op in [Op::Send, Op::Write, Op::Read, Op::SendTo] {
            for sges in [2, 3, 5] {
                run(options, LOSSLESS, &Job { sges, ..job(op, 1000) });
            }
        }
    }
}

#[test]
fn batches_past_the_end_of_the_ring() {
    for options in CHIPS {
        for (signal_all, one_cq) in [(false, false), (true, true), (true, false)] {
            for op in Op::ALL {
                let job = Job { batch: 7, iterations: 100, signal_all, one_cq, ..job(op, 32) };
                run(options, LOSSLESS, &job);
            }
        }
        let inline = Job { batch: 7, iterations: 100, inline: true, ..job(Op::Write, 56) };
        run(options, LOSSLESS, &inline);
    }
}

#[test]
fn receives_from_a_shared_queue() {
    for options in CHIPS {
        for op in [Op::Send, Op::SendImm, Op::SendInv, Op::WriteImm, Op::SendTo] {
            run(options, LOSSLESS, &Job { srq: true, batch: 5, iterations: 60, ..job(op, 48) });
        }
    }
}

#[test]
fn a_completion_may_stand_for_one_or_for_many() {
    for options in CHIPS {
        for coalesce in [0, 900_000] {
            let options = BnxtReOptions { coalesce, ..options };
            for op in Op::ALL {
                let job = Job { batch: 16, iterations: 30, signal_all: true, ..job(op, 24) };
                run(options, LOSSLESS, &job);
            }
        }
    }
}

#[test]
fn a_wire_that_loses_duplicates_and_reorders() {
    for (seed, options) in (1..).zip(CHIPS) {
        let faults = FaultPlan { corrupt_frame: 5_000, ..FaultPlan::LOSSY_WIRE };
        let fabric = FabricOptions { seed, faults, threaded: false };
        for op in Op::ALL.into_iter().filter(|op| *op != Op::SendTo) {
            run(options, fabric, &Job { batch: 4, iterations: 50, timeout: 8, ..job(op, 3000) });
        }
    }
}

#[test]
fn doorbells_that_are_lost_are_stored_again() {
    for (seed, options) in (1..).zip(CHIPS) {
        let faults = FaultPlan { drop_doorbell: 100_000, ..FaultPlan::NONE };
        let fabric = FabricOptions { seed, faults, threaded: false };
        for op in Op::ALL {
            run(options, fabric, &Job { batch: 3, iterations: 50, ..job(op, 64) });
        }
    }
}

#[test]
fn completions_that_come_late() {
    for (seed, options) in (1..).zip(CHIPS) {
        let faults = FaultPlan { delay_cqe: 200_000, ..FaultPlan::NONE };
        let fabric = FabricOptions { seed, faults, threaded: false };
        for op in Op::ALL {
            run(options, fabric, &Job { batch: 3, iterations: 30, ..job(op, 64) });
        }
    }
}

#[test]
fn nics_on_threads_of_their_own() {
    for options in CHIPS {
        let fabric = FabricOptions { threaded: true, ..LOSSLESS };
        for op in [Op::Send, Op::Write, Op::Read, Op::FetchAdd, Op::SendTo] {
            run(options, fabric, &Job { batch: 4, iterations: 50, ..job(op, 256) });
        }
    }
}
