//! The workload over uverbs: every operation in every shape, between two devices of a made-up kernel that checks what it is
//! told as strictly as the real one, and whose queues the software NICs execute. Every byte is verified.

use std::sync::Arc;

use directverbs::ionic::cmb::CmbPreference;
use directverbs::ionic::plan::Placement;
use directverbs::verbs::Device as _;
use directverbs_fake_uverbs::{Census, Machine, Options, Profile, Release};
use directverbs_linux::sysfs::Sysfs;
use directverbs_linux::uverbs::Fake;
use directverbs_linux::{Device, OpenOptions, bnxt_re, ionic};
use directverbs_softnic::fault::FaultPlan;
use directverbs_softnic::open::{NicKind, WqeMode};
use directverbs_suites::jobs::{bytes_to_verify, jobs, may_refuse};
use directverbs_workload::{Job, JobError, Op, run_pair};

/// How the devices are opened.
type Open = fn(OpenOptions) -> OpenOptions;

/// With all that they are good for.
const ALL: Open = |options| options;

/// Two devices of a kind on a wire.
struct Bench {
    machine: Machine,
    nic: NicKind,
    release: Release,
    open: Open,
}

impl Bench {
    fn new(nic: NicKind, mode: WqeMode, release: Release, open: Open) -> Self {
        Self::on_wire(nic, mode, release, open, &Options { threaded: false, ..Options::default() })
    }

    fn on_wire(nic: NicKind, mode: WqeMode, release: Release, open: Open, wire: &Options) -> Self {
        let place = |place| Profile { wqe_mode: mode, ..Profile::new(nic, release, place) };
        let machine = Machine::new(wire, &[place(1), place(2)]).expect("a machine");
        Self { machine, nic, release, open }
    }

    fn device(&self, which: usize) -> Device {
        let kernel = Arc::new(Fake(self.machine.clone()));
        let options = OpenOptions::new().kernel(kernel).sysfs(Sysfs::at(self.machine.sysfs()));
        let name = &self.machine.devices()[which];
        (self.open)(options).open(name).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a job between the two: what was verified, or why it was refused.
    fn run(&self, job: &Job) -> Result<Result<u64, JobError>, String> {
        let (mut a, mut b) = (self.device(0), self.device(1));
        let result = run_pair(&mut a, &mut b, job, &mut |_| {});
        drop((a, b));
        if !self.machine.census().is_empty() {
            return Err(format!("left behind: {:?}", self.machine.census()));
        }
        match result {
            Ok(report) => Ok(Ok(report.verified_bytes())),
            Err(error) => error.job().map_or_else(|| Err(error.to_string()), |refused| Ok(Err(refused))),
        }
    }

    /// Runs all jobs, and returns how many were carried out. All that went wrong is told at once.
    fn run_all(&self, jobs: impl IntoIterator<Item = Job>) -> usize {
        let (mut ran, mut wrong) = (0, Vec::new());
        for job in jobs {
            match self.run(&job) {
                Ok(Ok(verified)) if verified == bytes_to_verify(&job) => ran += 1,
                Ok(Err(error)) if may_refuse([self.nic; 2], &job, &error) => {}
                // The driver of bnxt_re allocates no memory windows for processes.
                Ok(Err(JobError::Missing { .. })) if job.op == Op::SendInv && !self.has_windows() => {}
                other => wrong.push(format!("{job:?}: {other:?}")),
            }
        }
        let shown = wrong.len().min(6);
        assert!(
            wrong.is_empty(),
            "{} on Linux {}: {} jobs went wrong, {ran} well:\n{}",
            self.nic,
            self.release,
            wrong.len(),
            wrong[..shown].join("\n")
        );
        assert_eq!(self.machine.violations(), Vec::<String>::new(), "{} on {}", self.nic, self.release);
        ran
    }

    fn has_windows(&self) -> bool {
        matches!(self.nic, NicKind::IonicV1 | NicKind::IonicV2)
    }

    /// Runs every `step`th job of every operation.
    fn run_matrix(&self, step: usize) {
        for op in Op::ALL {
            let ran = self.run_all(jobs(op).into_iter().step_by(step));
            let none = op == Op::SendInv && !self.has_windows();
            assert_eq!(ran == 0, none, "{op} of {} on Linux {}: {ran} jobs", self.nic, self.release);
        }
        assert_eq!(self.machine.census(), Census::default());
    }
}

/// Every job on the newest kernel, a selection on the older ones that have a driver for the NIC.
fn matrix(nic: NicKind, mode: WqeMode) {
    for release in Release::ALL.into_iter().filter(|release| release.drives(nic)) {
        let step = if release == Release::V7_3 { 1 } else { 5 };
        Bench::new(nic, mode, release, ALL).run_matrix(step);
    }
}

#[test]
fn bnxt_re_p5_static() {
    matrix(NicKind::BnxtReP5, WqeMode::Static);
}

#[test]
fn bnxt_re_p5_variable() {
    matrix(NicKind::BnxtReP5, WqeMode::Variable);
}

#[test]
fn bnxt_re_p7_static() {
    matrix(NicKind::BnxtReP7, WqeMode::Static);
}

#[test]
fn bnxt_re_p7_variable() {
    matrix(NicKind::BnxtReP7, WqeMode::Variable);
}

#[test]
fn ionic_v1() {
    matrix(NicKind::IonicV1, WqeMode::Static);
}

#[test]
fn ionic_v2() {
    matrix(NicKind::IonicV2, WqeMode::Static);
}

#[test]
fn bnxt_re_with_rings_by_address_and_without_push() {
    let plain: Open = |options| options.bnxt_re(bnxt_re::datapath::Settings { direct: false, push: false });
    Bench::new(NicKind::BnxtReP7, WqeMode::Variable, Release::V7_3, plain).run_matrix(4);
}

#[test]
fn ionic_in_controller_memory_with_and_without_express_doorbells() {
    const fn settings(sq: CmbPreference) -> ionic::datapath::Settings {
        ionic::datapath::Settings { placement: Placement { sq, rq: CmbPreference::HOST }, udma_mask: 0 }
    }
    let copied: Open =
        |options| options.ionic(settings(CmbPreference { enable: true, express: false, require: true }));
    let express: Open =
        |options| options.ionic(settings(CmbPreference { enable: true, express: true, require: false }));
    for open in [copied, express] {
        Bench::new(NicKind::IonicV2, WqeMode::Static, Release::V7_3, open).run_matrix(6);
    }
}

#[test]
fn ionic_on_one_pipeline() {
    let second: Open = |options| {
        options.ionic(ionic::datapath::Settings { udma_mask: 2, ..ionic::datapath::Settings::default() })
    };
    Bench::new(NicKind::IonicV2, WqeMode::Static, Release::V7_2, second).run_matrix(10);
}

#[test]
fn a_bad_wire_disturbs_nobody() {
    for nic in NicKind::ALL {
        let wire = Options { threaded: false, seed: 7, faults: FaultPlan::LOSSY_WIRE, ..Options::default() };
        let bench = Bench::on_wire(nic, WqeMode::Static, Release::V7_3, ALL, &wire);
        let reliable = Op::ALL.into_iter().filter(|op| *op != Op::SendTo);
        bench.run_all(reliable.flat_map(|op| jobs(op).into_iter().step_by(17)));
    }
}

#[test]
fn devices_that_run_by_themselves() {
    for nic in NicKind::ALL {
        let wire = Options { threaded: true, ..Options::default() };
        let bench = Bench::on_wire(nic, WqeMode::Static, Release::V7_3, ALL, &wire);
        bench.run_all(Op::ALL.into_iter().flat_map(|op| jobs(op).into_iter().step_by(13)));
    }
}

#[test]
fn a_port_tells_its_end_of_the_wire() {
    let bench = Bench::new(NicKind::IonicV2, WqeMode::Static, Release::V7_3, ALL);
    let device = bench.device(1);
    let port = device.port();
    assert!(port.active);
    assert_eq!((port.gid, port.mac), (device.origin().gid, device.origin().mac));
    assert_eq!(port.gid.as_v4(), Some([10, 0, 0, 2].into()), "a routed GID is taken before a link-local one");
    assert_eq!(port.mac.0, [2, 0, 10, 0, 0, 2]);
}
