//! The jobs of the workload matrix: every operation in every shape, on whatever platform.

use directverbs::verbs::Mtu;
use directverbs_softnic::open::NicKind;
use directverbs_workload::{Job, JobError, Op};

/// Empty, one byte, small, odd, a page, one more than a power of two, and many packets.
const SIZES: [u32; 7] = [0, 1, 64, 255, 4096, LARGE, 1 << 20];
/// Sizes from here on are carried less often.
pub const LARGE: u32 = 65_537;
/// Inline bytes that every device takes.
pub const INLINE_EVERYWHERE: u32 = 64;

/// Bytes that both sides verify together: atomics are verified by the requester and by the target.
pub fn bytes_to_verify(job: &Job) -> u64 {
    let verifiers = if job.op.is_atomic() { 2 } else { 1 };
    2 * verifiers * job.iterations * u64::from(job.batch) * u64::from(job.size)
}

/// Whether these devices are right to refuse the job.
pub fn may_refuse(nics: [NicKind; 2], job: &Job, error: &JobError) -> bool {
    let ionic = nics.iter().any(|kind| matches!(kind, NicKind::IonicV1 | NicKind::IonicV2));
    match error {
        JobError::Missing { what: "shared receive queue", .. } => job.srq && ionic,
        JobError::InlineTooLong { .. } => job.inline && job.size > INLINE_EVERYWHERE,
        JobError::DatagramTooLong { mtu, .. } => job.op == Op::SendTo && job.size > *mtu,
        _ => false,
    }
}

/// All jobs of an operation: sizes x inline x SGEs x SRQ. Batch, completion queues, signaling and MTU go round.
pub fn jobs(op: Op) -> Vec<Job> {
    let mut jobs = Vec::new();
    let sizes: &[u32] = if op.is_atomic() { &[8] } else { &SIZES };
    for &size in sizes {
        for sges in [1, 3, 6] {
            for (inline, srq) in [(false, false), (false, true), (true, false), (true, true)] {
                let large = size >= LARGE;
                if (op.is_atomic() && sges > 1) || (inline && (op.fetches() || large)) {
                    continue;
                }
                let n = jobs.len();
                // Every fourth compare and swap fails: two of those.
                let iterations = if op.is_atomic() { 9 } else { 3 };
                let mtu =
                    if op == Op::SendTo { None } else { [None, Some(Mtu::B1024), Some(Mtu::B256)][n % 3] };
                jobs.push(Job {
                    op,
                    size,
                    sges,
                    inline,
                    srq,
                    mtu,
                    iterations: if large { 1 } else { iterations },
                    batch: if large { 1 + n as u32 % 2 } else { [1, 4, 13, 32][n % 4] },
                    one_cq: n % 3 == 1,
                    signal_all: n % 5 < 2,
                    seed: n as u64,
                    ..Job::default()
                });
            }
        }
    }
    jobs
}
