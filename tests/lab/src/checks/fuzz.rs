//! The fuzz targets: that they compile, and running them with cargo-fuzz.

use std::fs;
use std::process::Command;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::suites::Checks;

/// Compiles all targets, which are a workspace of their own.
///
/// # Errors
/// They do not compile.
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    let mut cargo = checks.lab.cargo();
    cargo.args(["check", "--bins", "--manifest-path", "tests/fuzz/Cargo.toml", "--target-dir"]);
    let checked = checks.succeed(cargo.arg(checks.lab.dir.join("fuzz"))).map(drop);
    for target in targets(checks.lab)? {
        let compiled = checked.as_ref().map_err(ToString::to_string).copied();
        checks.count(&target, compiled);
    }
    Ok(())
}

/// Names of the targets.
pub fn targets(lab: &Lab) -> Result<Vec<String>> {
    let folder = lab.root.join("tests/fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(Error::file(&folder))?;
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Err(Error::Unexpected(format!("no fuzz target in {}", folder.display())));
    }
    Ok(names)
}

/// Runs a target, or each, for some seconds, in the foreground. `Ok(false)` says that one has found something.
///
/// # Errors
/// There is no such target, or cargo-fuzz is missing and cannot be installed.
pub fn fuzz(lab: &Lab, target: Option<&str>, seconds: u32) -> Result<bool> {
    let all = targets(lab)?;
    if let Some(unknown) = target.filter(|target| !all.iter().any(|known| known == target)) {
        return Err(Error::Unexpected(format!("no fuzz target {unknown:?}; there are: {}", all.join(", "))));
    }
    let root = lab.dir.join("cargo-fuzz");
    let program = root.join("bin/cargo-fuzz");
    if !program.exists() {
        foreground(lab.cargo().args(["install", "cargo-fuzz", "--root"]).arg(&root))?;
    }
    let mut found_nothing = true;
    for name in all.iter().filter(|name| target.is_none_or(|target| *name == target)) {
        println!("fuzz: {name} for {seconds} s");
        let mut command = Command::new(&program);
        // The sanitizers and coverage that cargo-fuzz asks for are locked in a stable toolchain.
        command.env("RUSTC_BOOTSTRAP", "1").current_dir(&lab.root);
        command.args(["run", "--fuzz-dir", "tests/fuzz", name, "--", &format!("-max_total_time={seconds}")]);
        found_nothing &= foreground(&mut command).is_ok();
    }
    Ok(found_nothing)
}

fn foreground(command: &mut Command) -> Result<()> {
    let words = crate::process::spelled(command);
    let status = command.status().map_err(|source| Error::Start { program: words.clone(), source })?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Failed { command: words, status, tail: String::new() })
}
