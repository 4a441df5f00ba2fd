//! The table of suites. A new suite is a new entry.

use super::{Run, Suite};
use crate::checks;
use crate::setup::Need;

/// All suites, in the order in which they run.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "format",
        about: "the code is formatted",
        needs: &[],
        run: Run::Cargo(&["fmt", "--all", "--check"]),
    },
    Suite {
        name: "clippy",
        about: "no compiler or clippy warning",
        needs: &[],
        run: Run::Cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    },
    Suite {
        name: "build",
        about: "all tests compile",
        needs: &[],
        run: Run::Cargo(&["test", "--workspace", "--no-run"]),
    },
    Suite {
        name: "core",
        about: "unit tests and doc examples of the driver core",
        needs: &[],
        run: Run::Tests(&["--package", "directverbs"]),
    },
    Suite {
        name: "lab",
        about: "unit tests of this tool",
        needs: &[],
        run: Run::Tests(&["--package", "directverbs-lab"]),
    },
    Suite {
        name: "bare",
        about: "core and workload compile for the bare targets, without std and without alloc",
        needs: &[Need::RustSource],
        run: Run::Checks(checks::bare::run),
    },
    Suite {
        name: "loom",
        about: "every interleaving of the shared queue form",
        needs: &[],
        run: Run::TestsWith(
            &[("RUSTFLAGS", "--cfg loom"), ("CARGO_PROFILE_RELEASE_LTO", "off")],
            &["--release", "--package", "directverbs", "--test", "loom_shared"],
        ),
    },
    Suite {
        name: "layouts",
        about: "layouts and constants equal those of rdma-core's headers (F7)",
        needs: &[Need::Compilers, Need::RdmaCore],
        run: Run::Checks(checks::rdma_core::run),
    },
    Suite {
        name: "no-panic",
        about: "the release object code of post and poll reaches no panic function",
        needs: &[Need::RustSource],
        run: Run::Checks(checks::no_panic::run),
    },
];
