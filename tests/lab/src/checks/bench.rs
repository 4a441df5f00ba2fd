//! What posts and polls cost: builds `tests/bench` as a program would be built, lets callgrind count, and has the rest
//! measured and the table printed. Both run over the C providers that the lab has unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::process::{spelled, succeed};
use crate::progress::Step;
use crate::setup::qemu::Arch;
use crate::setup::{self, Need, providers};
use crate::suites::Checks;
use crate::vm::image::{self, Sizes};
use crate::vm::{daemon, unikernel};

const LIMIT: Duration = Duration::from_secs(600);

/// What a measurement cannot do without.
pub const NEEDS: &[Need] = &[Need::Compilers, Need::RustSource, Need::Valgrind, Need::Providers, Need::Qemu];

/// The NICs that are on the bus of an image whose start is measured: one of each family.
const NICS: [&str; 2] = ["bnxt_re", "ionic"];

/// Measures and prints the table. `Ok(false)` says that a must was missed.
///
/// # Errors
/// valgrind or the providers are missing, the build failed, or there are no figures.
pub fn bench(lab: &Lab, json: bool) -> Result<bool> {
    let missing: Vec<Need> = NEEDS.iter().copied().filter(|need| !need.is_there(lab)).collect();
    if !missing.is_empty()
        && let Err(mut missing) = setup::provide(lab, &missing)
        && let Some((_, error)) = missing.pop()
    {
        return Err(error);
    }
    let log = lab.logs().join("bench.log");
    fs::write(&log, "").map_err(Error::file(&log))?;
    let mut step = Step::aside("bench");
    succeed(&mut build(lab), &log, &mut step, LIMIT)?;
    succeed(&mut count(lab)?, &log, &mut step, LIMIT)?;
    let images = images(lab, &log, &mut step)?;
    let mut report = report(lab, &images)?;
    if json {
        report.arg("--json");
    }
    let output = measured(&mut report)?;
    step.end("measured");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(output.status.success())
}

/// The suite: every row that has a must is a check.
///
/// # Errors
/// The build failed, or there are no figures.
pub fn suite(checks: &mut Checks<'_>) -> Result<()> {
    let lab = checks.lab;
    checks.succeed(&mut build(lab))?;
    checks.succeed(&mut count(lab)?)?;
    let images = images(lab, &checks.log.clone(), &mut checks.step)?;
    let output = measured(report(lab, &images)?.arg("--json"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    checks.note(&text);
    for (name, outcome) in verdicts(&text)? {
        checks.count(&name, outcome);
    }
    Ok(())
}

fn build(lab: &Lab) -> Command {
    let mut cargo = lab.cargo();
    cargo.args(["build", "--release", "--bin", "directverbs-bench"]);
    cargo
}

/// The counted part, under callgrind.
fn count(lab: &Lab) -> Result<Command> {
    let program = program(lab)?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--collect-atstart=no", "--combine-dumps=yes"]);
    command.arg(format!("--callgrind-out-file={}", counted(lab).display()));
    command.arg(program.get_program()).args(program.get_args()).arg("count");
    Ok(command)
}

/// Builds and boots the image for each processor, and gives its figures as the report takes them.
fn images(lab: &Lab, log: &Path, step: &mut Step) -> Result<Vec<String>> {
    daemon::build(lab, log, step)?;
    let mut images = Vec::new();
    for arch in Arch::ALL {
        let sizes = Sizes::read(&image::build(lab, arch, log, step)?)?;
        let micros = unikernel::first_verified(lab, arch, NICS, log, step)?;
        images.push(format!("{}={},{},{micros}", arch.name(), sizes.loaded, sizes.zeros));
    }
    Ok(images)
}

/// The rest, and the table.
fn report(lab: &Lab, images: &[String]) -> Result<Command> {
    let mut command = program(lab)?;
    command.arg("report").arg("--counted").arg(counted(lab));
    command.args(images.iter().flat_map(|image| ["--image", image]));
    Ok(command)
}

fn program(lab: &Lab) -> Result<Command> {
    providers::command(lab, Path::new(&lab.target.join("release/directverbs-bench")))
}

fn counted(lab: &Lab) -> PathBuf {
    lab.dir.join("callgrind.out")
}

/// Runs the part that prints figures; a must that was missed is a result like any other.
fn measured(report: &mut Command) -> Result<Output> {
    let output = report.output().map_err(|source| Error::Start { program: spelled(report), source })?;
    match output.status.code() {
        Some(0 | 1) => Ok(output),
        _ => {
            let tail = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Error::Failed { command: spelled(report), status: output.status, tail })
        }
    }
}

/// The rows with a must, and whether it holds.
fn verdicts(text: &str) -> Result<Vec<(String, std::result::Result<(), String>)>> {
    let unexpected = |what: &str| Error::Unexpected(format!("the benchmark printed {what}: {text:?}"));
    let report: Value = serde_json::from_str(text).map_err(|_| unexpected("no JSON object"))?;
    let rows = report.get("rows").and_then(Value::as_array).ok_or_else(|| unexpected("no rows"))?;
    let mut verdicts = Vec::new();
    for row in rows.iter().filter(|row| row.get("must").is_some_and(|must| !must.is_null())) {
        let word = |key: &str| {
            let word = row.get(key).and_then(Value::as_str);
            word.ok_or_else(|| unexpected(&format!("a row without {key}")))
        };
        let name = format!("{} {}, {}", word("family")?, word("operation")?, word("measure")?);
        match word("verdict")? {
            "target" | "must" => verdicts.push((name, Ok(()))),
            _ => {
                let figure = |key: &str| row.get(key).map(ToString::to_string).unwrap_or_default();
                let (c, ours, must) = (figure("c"), figure("ours"), figure("must"));
                verdicts.push((name, Err(format!("misses its must {must}: C {c}, ours {ours}"))));
            }
        }
    }
    if verdicts.is_empty() { Err(unexpected("no row with a must")) } else { Ok(verdicts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: &str) -> String {
        let must = if matches!(verdict, "unlimited" | "short" | "target") {
            "null"
        } else {
            r#"{"ratio_at_most":0.6}"#
        };
        format!(
            r#"{{"family":"ionic","operation":"poll","measure":"ticks","c":100.0,"ours":70.0,"ratio":0.7,
                "must":{must},"target":{{"ratio_at_most":0.4}},"verdict":"{verdict}"}}"#
        )
    }

    #[test]
    fn a_missed_must_is_a_failed_check_with_its_figures() {
        let text = format!(
            r#"{{"version":1,"rows":[{},{},{},{}]}}"#,
            row("unlimited"),
            row("short"),
            row("must"),
            row("missed")
        );
        let verdicts = verdicts(&text).unwrap();
        assert_eq!(verdicts[0], ("ionic poll, ticks".to_owned(), Ok(())));
        let error = verdicts[1].1.clone().unwrap_err();
        assert_eq!(error, r#"misses its must {"ratio_at_most":0.6}: C 100.0, ours 70.0"#);
        assert_eq!(verdicts.len(), 2);
    }

    #[test]
    fn a_report_without_a_must_or_with_a_word_that_nobody_knows_does_not_pass() {
        for text in ["", "{}", r#"{"rows":[]}"#, &format!(r#"{{"rows":[{}]}}"#, row("unlimited"))] {
            assert!(verdicts(text).is_err(), "{text}");
        }
        let text = format!(r#"{{"rows":[{}]}}"#, row("perhaps"));
        assert!(verdicts(&text).unwrap()[0].1.is_err());
    }
}
