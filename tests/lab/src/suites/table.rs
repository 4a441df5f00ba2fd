//! The table of suites. A new suite is a new entry.

use super::{Run, Suite};
use crate::checks;
use crate::setup::Need;
use crate::vm;

const fn suite(name: &'static str, about: &'static str, needs: &'static [Need], run: Run) -> Suite {
    Suite { name, about, needs, run }
}

/// All suites, in the order in which they run.
///
/// Tests are chosen by their target, never by package: cargo would build the crates again with the features of that
/// package alone.
pub const SUITES: &[Suite] = &[
    suite("format", "the code is formatted", &[], Run::Cargo(&["fmt", "--all", "--check"])),
    suite(
        "clippy",
        "no compiler or clippy warning",
        &[],
        Run::Cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ),
    suite("build", "all tests compile", &[], Run::Cargo(&["test", "--workspace", "--no-run"])),
    suite("units", "unit tests of all crates", &[], Run::Tests(&["--workspace", "--lib", "--bins"])),
    suite("docs", "the README's and all other examples", &[], Run::Tests(&["--workspace", "--doc"])),
    suite(
        "workload",
        "the workload and its streams over a device that lies",
        &[],
        Run::Tests(&["--workspace", "--test", "verification", "--test", "streams"]),
    ),
    suite(
        "softnic",
        "the software NICs: RoCE engine, front ends, in-process platforms, the vfio-user daemon",
        &[Need::Tshark, Need::Ip],
        Run::Tests(&[
            "--workspace",
            "--test",
            "engine_*",
            "--test",
            "bnxt_re_*",
            "--test",
            "ionic_*",
            "--test",
            "pci_*",
            "--test",
            "softnicd*",
            "--",
            "--include-ignored",
        ]),
    ),
    suite(
        "uverbs",
        "the made-up kernel: what it refuses, and the platform's objects over it",
        &[],
        Run::Tests(&["--workspace", "--test", "uverbs_*"]),
    ),
    suite(
        "programs",
        "ibv_devinfo and ibv_rc_pingpong, unmodified, over the made-up kernel",
        &[Need::Providers],
        Run::Checks(checks::programs::run),
    ),
    suite(
        "dv-tests",
        "the dv command line",
        &[Need::Compilers, Need::Clang],
        Run::Tests(&["--workspace", "--test", "dv", "--test", "dv_*", "--", "--include-ignored"]),
    ),
    suite(
        "cases",
        "public bugs as tests, each named after its id",
        &[],
        Run::Tests(&["--workspace", "--test", "cases_*"]),
    ),
    suite(
        "properties",
        "random operation sequences against a reference model",
        &[],
        Run::Tests(&["--workspace", "--test", "properties_*"]),
    ),
    suite(
        "matrix",
        "workload: family x mode x operation x size x inline x SGEs x SRQ, with faults, vendors mixed",
        &[],
        Run::Tests(&["--workspace", "--test", "matrix*"]),
    ),
    suite(
        "hostile",
        "hostile rings: the fuzz corpus, and a million random polls",
        &[],
        Run::Tests(&["--workspace", "--test", "hostile*"]),
    ),
    suite("fuzz", "the fuzz targets compile", &[Need::Compilers], Run::Checks(checks::fuzz::run)),
    suite(
        "bare",
        "core, workload and the bare platform compile for the bare targets, without std and without alloc",
        &[Need::RustSource],
        Run::Checks(checks::bare::run),
    ),
    suite(
        "no-panic",
        "the release object code of post and poll reaches no panic function",
        &[Need::RustSource],
        Run::Checks(checks::no_panic::run),
    ),
    suite(
        "loom",
        "every interleaving of the shared queue form",
        &[],
        Run::TestsWith(
            &[("RUSTFLAGS", "--cfg loom"), ("CARGO_PROFILE_RELEASE_LTO", "off")],
            &["--release", "--package", "directverbs", "--test", "loom_*"],
        ),
    ),
    suite(
        "pcap",
        "captured frames of every operation: structure and ICRC, computed independently",
        &[],
        Run::Tests(&["--workspace", "--test", "pcap"]),
    ),
    suite(
        "tshark",
        "tshark finds no malformed frame and no bad ICRC in those captures",
        &[Need::Tshark],
        Run::Checks(checks::tshark::run),
    ),
    suite(
        "layouts",
        "layouts and constants equal those of rdma-core's headers (F7)",
        &[Need::Compilers, Need::RdmaCore],
        Run::Checks(checks::rdma_core::run),
    ),
    suite(
        "oracle",
        "the vendors' C providers over a made-up device against the core, byte for byte",
        &[Need::Providers],
        Run::Checks(checks::oracle::suite),
    ),
    suite(
        "btf",
        "layouts equal those of Debian's kernel modules and the drivers' headers",
        checks::layout::NEEDS,
        Run::Checks(checks::layout::run),
    ),
    suite(
        "vm-linux",
        "a guest with Debian's kernel and soft-RoCE: the library against the real uverbs",
        vm::linux::NEEDS,
        Run::Checks(vm::linux::suite),
    ),
    suite(
        "vm-vfio",
        "a guest with Debian's kernel and an IOMMU: dv over vfio-pci, its NICs over vfio-user",
        vm::vfio::NEEDS,
        Run::Checks(vm::vfio::suite),
    ),
    suite(
        "vm-unikernel",
        "guests without an operating system: our image on PC and aarch64, over vfio-user",
        vm::unikernel::NEEDS,
        Run::Checks(vm::unikernel::suite),
    ),
    suite(
        "bench",
        "what posts and polls cost beside the C providers: no must is missed",
        checks::bench::NEEDS,
        Run::Checks(checks::bench::suite),
    ),
    suite("dv", "the README's first command, for each device", &[], Run::Checks(checks::dv::run)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_file_is_run() {
        let runs = |suite: &Suite, name: &str| {
            let (Run::Tests(arguments) | Run::TestsWith(_, arguments)) = suite.run else { return false };
            arguments.iter().any(|argument| match argument.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => *argument == name,
            })
        };
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let folders =
            |path: &str| std::fs::read_dir(format!("{root}/{path}")).unwrap().map(|e| e.unwrap().path());
        let packages = folders("").chain(folders("tests")).filter(|path| path.join("Cargo.toml").exists());
        let mut files = 0;
        // A package may have no test files.
        for entry in packages.filter_map(|package| std::fs::read_dir(package.join("tests")).ok()).flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(SUITES.iter().any(|suite| runs(suite, name)), "no suite runs {}", path.display());
            files += 1;
        }
        assert!(files > 20, "{files} test files");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUITES.len());
    }
}
