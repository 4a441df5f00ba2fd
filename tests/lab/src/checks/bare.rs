//! core, the workload and the bare platform compile for targets without an operating system, with a freshly built `core`
//! library and nothing else: a use of std cannot compile, and one of alloc neither unless the feature asks for it.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::lab::Lab;
use crate::setup::rust_source;
use crate::suites::Checks;

/// The bare targets.
pub const TARGETS: [&str; 2] = ["x86_64-unknown-none", "aarch64-unknown-none"];
/// One of them.
const ONE: [&str; 1] = [TARGETS[0]];

/// What is checked for a bare target.
struct Crate {
    package: &'static str,
    features: &'static str,
    std: &'static Std,
    targets: &'static [&'static str],
}

const fn on(targets: &'static [&'static str], package: &'static str, features: &'static str) -> Crate {
    Crate { package, features, std: &Std::CORE, targets }
}

/// Whole crates for both processors; parts of them for one, as no part is a processor's own.
const CRATES: &[Crate] = &[
    on(&ONE, "directverbs", ""),
    on(&ONE, "directverbs", "bnxt-re"),
    on(&ONE, "directverbs", "ionic"),
    on(&ONE, "directverbs", "bnxt-re,ionic"),
    on(&TARGETS, "directverbs", "bnxt-re,ionic,capi"),
    Crate { std: &Std::ALLOC, ..on(&TARGETS, "directverbs", "bnxt-re,ionic,alloc") },
    on(&ONE, "directverbs-bare", "bnxt-re"),
    on(&ONE, "directverbs-bare", "ionic"),
    on(&TARGETS, "directverbs-bare", "bnxt-re,ionic"),
    on(&TARGETS, "directverbs-workload", ""),
];

/// Checks each of them, and the example of a program. No code is made of it: the image, which is, has all of them.
///
/// # Errors
/// The standard library's source is not there.
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    let library = rust_source(checks.lab)?;
    for &Crate { package, features, std, targets } in CRATES {
        let mut command = cargo(checks.lab, "check", &library, targets, std);
        command.args(["--package", package, "--no-default-features", "--features", features]);
        let checked = checks.succeed(&mut command).map(drop);
        checks.count(&format!("{package} [{features}] for {}", targets.join(" and ")), checked);
    }
    let mut command = cargo(checks.lab, "check", &library, &TARGETS, &Std::CORE);
    command.args(["--package", "directverbs-unikernel", "--example", "smallest"]);
    let checked = checks.succeed(&mut command).map(drop);
    checks.count(&format!("the smallest program for {}", TARGETS.join(" and ")), checked);
    Ok(())
}

/// What is built of the standard library, and how.
#[derive(Debug)]
pub struct Std {
    crates: &'static str,
    features: &'static str,
}

impl Std {
    /// No allocator.
    pub const CORE: Self = Self { crates: "core,compiler_builtins", features: "compiler-builtins-mem" };
    /// An allocator, too.
    pub const ALLOC: Self = Self { crates: "core,alloc,compiler_builtins", ..Self::CORE };
    /// No allocator, and smaller rather than faster.
    pub const SMALL: Self = Self { features: "compiler-builtins-mem,optimize_for_size", ..Self::CORE };
}

/// Cargo's command `what`, `build` or `check`, for bare targets.
pub fn cargo(lab: &Lab, what: &str, library: &Path, targets: &[&str], std: &Std) -> Command {
    let mut command = lab.cargo();
    command.arg(what);
    // Both variables unlock what a stable toolchain locks: building the standard library, from source elsewhere.
    command.env("RUSTC_BOOTSTRAP", "1").env("__CARGO_TESTS_ONLY_SRC_ROOT", library);
    // Build scripts look at the first variable, so artifacts are kept apart from those of other builds.
    command.args(targets.iter().flat_map(|target| ["--target", target]));
    command.arg("--target-dir").arg(lab.dir.join("bare"));
    command.arg(format!("-Zbuild-std={}", std.crates)).arg(format!("-Zbuild-std-features={}", std.features));
    command
}
