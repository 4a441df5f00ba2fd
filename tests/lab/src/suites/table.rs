//! The table of suites. A new suite is a new entry.

use super::{Run, Suite};
use crate::checks;
use crate::setup::Need;

const fn suite(name: &'static str, about: &'static str, needs: &'static [Need], run: Run) -> Suite {
    Suite { name, about, needs, run }
}

/// All suites, in the order in which they run.
pub const SUITES: &[Suite] = &[
    suite("format", "the code is formatted", &[], Run::Cargo(&["fmt", "--all", "--check"])),
    suite(
        "clippy",
        "no compiler or clippy warning",
        &[],
        Run::Cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ),
    suite("build", "all tests compile", &[], Run::Cargo(&["test", "--workspace", "--no-run"])),
    suite(
        "core",
        "unit tests of the driver core, and its examples, among them the README's",
        &[],
        Run::Tests(&["--package", "directverbs"]),
    ),
    suite("workload", "unit tests of the workload", &[], Run::Tests(&["--package", "directverbs-workload"])),
    suite(
        "softnic",
        "the software NICs: RoCE engine, front ends, in-process platforms",
        &[Need::Tshark],
        Run::Tests(&["--package", "directverbs-softnic", "--", "--include-ignored"]),
    ),
    suite("dv-tests", "the dv command line", &[], Run::Tests(&["--package", "directverbs-linux"])),
    suite("lab", "unit tests of this tool", &[], Run::Tests(&["--package", "directverbs-lab"])),
    suite(
        "cases",
        "public bugs as tests, each named after its id",
        &[],
        Run::Tests(&["--package", "directverbs-suites", "--test", "cases_*"]),
    ),
    suite(
        "properties",
        "random operation sequences against a reference model",
        &[],
        Run::Tests(&["--package", "directverbs-suites", "--test", "properties_*"]),
    ),
    suite(
        "matrix",
        "workload: family x mode x operation x size x inline x SGEs x SRQ, with faults, vendors mixed",
        &[],
        Run::Tests(&["--package", "directverbs-suites", "--test", "matrix"]),
    ),
    suite(
        "hostile",
        "hostile rings: the fuzz corpus, and a million random polls",
        &[],
        Run::Tests(&["--package", "directverbs-suites", "--lib", "--test", "hostile*"]),
    ),
    suite("fuzz", "the fuzz targets compile", &[Need::Compilers], Run::Checks(checks::fuzz::run)),
    suite(
        "bare",
        "core and workload compile for the bare targets, without std and without alloc",
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
        Run::Tests(&["--package", "directverbs-suites", "--test", "pcap"]),
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
    suite("dv", "the README's first command, for each device", &[], Run::Checks(checks::dv::run)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_file_of_the_suites_is_run() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../suites/tests");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| path.is_file())
            else {
                continue;
            };
            let runs = |suite: &Suite| match suite.run {
                Run::Tests(arguments) if arguments.contains(&"directverbs-suites") => {
                    arguments.iter().any(|argument| match argument.strip_suffix('*') {
                        Some(start) => name.starts_with(start),
                        None => *argument == name,
                    })
                }
                _ => false,
            };
            assert!(SUITES.iter().any(runs), "no suite runs tests/suites/tests/{name}.rs");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUITES.len());
    }
}
