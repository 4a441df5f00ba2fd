//! Our layouts against those that Debian's kernel modules carry as BTF, and that the drivers' headers give.
//!
//! Debian does not build ionic's RDMA driver, and a module's BTF has only the structures that its code uses. So the
//! headers of both drivers are compiled too, as the kernel's build would compile them, to BTF of all their structures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use directverbs::layout;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{run as process, spelled, succeed};
use crate::progress::Step;
use crate::setup::{self, Kernel, Need};
use crate::suites::Checks;

/// What the comparison cannot run without.
pub const NEEDS: &[Need] = &[Need::Compilers, Need::Kernel];

const LIMIT: Duration = Duration::from_secs(600);

/// A driver's headers: name of the object, where they are in the source tree, and which declare what we compare.
type Headers = (&'static str, &'static [&'static str], &'static [&'static str]);

const HEADERS: [Headers; 2] = [
    (
        "bnxt_re-headers.o",
        &["drivers/infiniband/hw/bnxt_re"],
        &["linux/types.h", "linux/bnxt/hsi.h", "roce_hsi.h"],
    ),
    (
        "ionic-headers.o",
        &["drivers/infiniband/hw/ionic", "drivers/net/ethernet/pensando/ionic"],
        &["ionic_ibdev.h", "rdma/ionic-abi.h", "rdma/ib_user_verbs.h"],
    ),
];

/// What the kernel's build has before every file, so that its headers compile.
const KERNEL_FLAGS: &[&str] = &[
    "-nostdinc",
    "-include",
    "linux/compiler-version.h",
    "-include",
    "linux/kconfig.h",
    "-include",
    "linux/compiler_types.h",
    "-D__KERNEL__",
    "-DCC_USING_FENTRY",
    "-DKBUILD_MODNAME=\"layout\"",
    "-DKBUILD_BASENAME=\"layout\"",
    "-std=gnu11",
    "-fshort-wchar",
    "-funsigned-char",
    "-fms-extensions",
    "-w",
];

/// `cargo lab layout`: compares, and prints what `dv layout check` prints. `Ok(false)` says that something differs.
///
/// # Errors
/// Something that is needed is missing, or could not be compiled.
pub fn layout(lab: &Lab) -> Result<bool> {
    if setup::provide(lab, NEEDS).is_err() {
        return Ok(false);
    }
    let log = lab.logs().join("layout.log");
    fs::write(&log, "").map_err(Error::file(&log))?;
    let mut step = Step::new("layout");
    let outcome = compare(lab, &log, &mut step)?;
    step.end("compared");
    println!("{}\n{}", outcome.table.join("\n"), outcome.figures);
    Ok(outcome.same)
}

/// The same as a suite: each structure is a check, and each of our layouts must be in the table.
///
/// # Errors
/// As [`layout`].
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    let outcome = compare(checks.lab, &checks.log.clone(), &mut checks.step)?;
    for ours in layout::all() {
        checks.count(&format!("{} {}", ours.family, ours.name), outcome.of(ours.family, ours.name));
    }
    checks.note(&outcome.figures);
    Ok(())
}

/// What `dv layout check` has found.
#[derive(Debug)]
struct Outcome {
    /// A row a structure, its differences indented below it; and what was not compared, and why.
    table: Vec<String>,
    /// The closing line.
    figures: String,
    /// It succeeded.
    same: bool,
}

impl Outcome {
    fn read(text: &str, same: bool) -> Option<Self> {
        let figures = text.lines().find(|line| line.starts_with("layout: "))?.to_owned();
        let table = text.lines().take_while(|line| **line != figures).map(str::to_owned).collect();
        Some(Self { table, figures, same })
    }

    /// A layout was compared and is the same, or there is a reason why not.
    fn of(&self, family: &str, name: &str) -> std::result::Result<(), String> {
        let left = format!("not compared: {family} {name}: ");
        if self.table.iter().any(|line| line.strip_prefix(&left).is_some_and(|reason| !reason.is_empty())) {
            return Ok(());
        }
        let mut rest = self.table.iter().skip_while(|line| {
            let mut words = line.split_whitespace();
            (words.next(), words.next()) != (Some(family), Some(name))
        });
        if rest.next().is_none() {
            return Err("was not compared".into());
        }
        let differences: Vec<&str> =
            rest.take_while(|line| line.starts_with(' ')).map(|line| line.trim()).collect();
        if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
    }
}

fn compare(lab: &Lab, log: &Path, step: &mut Step) -> Result<Outcome> {
    let kernel = Kernel::find(lab)?;
    succeed(lab.cargo().args(["build", "--bin", "dv"]), log, step, LIMIT)?;
    let mut check = Command::new(lab.target.join("debug/dv"));
    check.args(["layout", "check", "--family", "bnxt_re", "--family", "ionic"]);
    check.arg("--vmlinux").arg(kernel.vmlinux()).arg("--module").arg(kernel.module("bnxt_re"));
    for headers in &HEADERS {
        check.arg("--module").arg(compiled(lab, &kernel, headers, log, step)?);
    }
    let output = process(&mut check, log, step, LIMIT)?;
    Outcome::read(&output.text, output.status.success()).ok_or_else(|| Error::Failed {
        command: spelled(&check),
        status: output.status,
        tail: output.tail(),
    })
}

/// Compiles a driver's headers, and nothing else, to an object with BTF of all their types. Gives the object.
fn compiled(lab: &Lab, kernel: &Kernel, headers: &Headers, log: &Path, step: &mut Step) -> Result<PathBuf> {
    let (name, folders, files) = headers;
    let dir = lab.dir.join("layout");
    fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
    let object = dir.join(name);
    let source = object.with_extension("c");
    let text: String = files.iter().map(|file| format!("#include <{file}>\n")).collect();
    fs::write(&source, text).map_err(Error::file(&source))?;
    let mut gcc = Command::new("gcc");
    gcc.args(KERNEL_FLAGS);
    for include in folders.iter().map(|folder| kernel.source(folder)).chain(kernel.includes()) {
        gcc.arg("-I").arg(include);
    }
    gcc.args(["-gbtf", "-fno-eliminate-unused-debug-types", "-c", "-o"]).arg(&object).arg(&source);
    succeed(&mut gcc, log, step, LIMIT)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
FAMILY   NAME    KERNEL  BYTES FIELDS DIFFERENT  IN
bnxt_re  SqSge   sq_sge     16      3         1  module
  l_key: byte 8, 4 bytes here, l_key at byte 12, 4 bytes in module
ionic    Sge     sge        16      3         0  module
not compared: ionic Atomic: only the user-space driver has it
layout: 2 structures, 6 fields, 1 different
error: 1 differences to the kernel's layouts
";

    #[test]
    fn a_layout_that_differs_or_is_not_in_the_table_does_not_pass() {
        let outcome = Outcome::read(TEXT, false).unwrap();
        assert_eq!(outcome.figures, "layout: 2 structures, 6 fields, 1 different");
        assert!(outcome.of("bnxt_re", "SqSge").unwrap_err().starts_with("l_key: byte 8"));
        assert_eq!(outcome.of("ionic", "Sge"), Ok(()));
        assert_eq!(outcome.of("ionic", "Atomic"), Ok(()));
        assert_eq!(outcome.of("ionic", "Other"), Err("was not compared".into()));
    }

    #[test]
    fn a_comparison_that_did_not_end_has_no_outcome() {
        assert!(Outcome::read("error: module: this is not BTF\n", false).is_none());
    }
}
