//! The release object code of post and poll contains no call to a panic function, nor to the allocator.
//!
//! The functions of `tests/codegen` are built with the release profile. From each, everything that its object code
//! refers to is followed, through calls and through data such as tables of functions, as far as it goes.

mod objects;

use std::fs;
use std::path::Path;

use crate::checks::bare;
use crate::error::{Error, Result};
use crate::setup::rust_source;
use crate::suites::Checks;
use objects::Objects;

const PACKAGE: [&str; 3] = ["--release", "--package", "directverbs-codegen"];
const ARCHIVE: &str = "release/libdirectverbs_codegen.a";

/// Parts of the names of functions that must not be reached.
const FORBIDDEN: &[&str] = &[
    "panic",
    "unwrap_failed",
    "expect_failed",
    "slice_index_fail",
    "slice_start_index_",
    "slice_end_index_",
    "slice_error_fail",
    "len_mismatch_fail",
    "rust_begin_unwind",
    "handle_alloc_error",
    "capacity_overflow",
    "__rust_alloc",
    "__rust_realloc",
];

/// What the compiler may call anywhere: copies and compares of memory, and the end of a clean-up that goes on unwinding.
/// The last one is dead code unless a callee panics, and callees are searched.
const RUNTIME: &[&str] = &["memcpy", "memmove", "memset", "memcmp", "bcmp", "_Unwind_Resume"];

/// Builds for this machine and for bare AArch64, and searches both.
///
/// # Errors
/// The standard library's source is not there.
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    let mut cargo = checks.lab.cargo();
    let built = checks.succeed(cargo.arg("build").args(PACKAGE));
    let archive = checks.lab.target.join(ARCHIVE);
    search(checks, "host", built.map(drop), &archive);

    let library = rust_source(checks.lab)?;
    let target = "aarch64-unknown-none";
    let built =
        checks.succeed(bare::cargo(checks.lab, "build", &library, &[target], &bare::Std::CORE).args(PACKAGE));
    let archive = checks.lab.dir.join("bare").join(target).join(ARCHIVE);
    search(checks, target, built.map(drop), &archive);
    Ok(())
}

fn search(checks: &mut Checks<'_>, target: &str, built: Result<()>, archive: &Path) {
    let read = || {
        let bytes = fs::read(archive).map_err(Error::file(archive))?;
        Objects::read(&bytes).map_err(|e| Error::Unexpected(format!("{}: {e}", archive.display())))
    };
    let objects = match built.and_then(|()| read()) {
        Ok(objects) => objects,
        Err(error) => return checks.count::<Error>(target, Err(error)),
    };
    for family in ["bnxt_re", "ionic"] {
        let entries = objects.entries(&format!("fast_{family}_"));
        if entries.is_empty() {
            checks.count(target, Err::<(), _>(format!("no functions of {family} in {}", archive.display())));
        }
        for entry in entries {
            let found = objects.path_to(entry, forbidden);
            let outcome = found.map_or(Ok(()), |path| Err(format!("reaches {}", path.join(" -> "))));
            checks.count(&format!("{entry} for {target}"), outcome);
        }
    }
    let controls = objects.entries("control_");
    if controls.is_empty() {
        checks.count(target, Err::<(), _>("no functions that panic, to show that the search finds them"));
    }
    for entry in controls {
        let found = objects.path_to(entry, forbidden);
        checks.count(&format!("{entry} for {target}"), found.map(drop).ok_or("its panic was not found"));
    }
}

/// Whether a symbol, and how it is defined, must not be reached.
fn forbidden(name: &str, defined: bool) -> bool {
    FORBIDDEN.iter().any(|part| name.contains(part)) || !defined && !RUNTIME.contains(&name)
}
