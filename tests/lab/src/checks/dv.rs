//! The README's first command, for each device, with an outcome that a program can read.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::suites::Checks;

/// All software NICs.
const DEVICES: [&str; 4] = ["soft:bnxt_re-p5", "soft:bnxt_re", "soft:ionic-v1", "soft:ionic"];

/// Runs it.
///
/// # Errors
/// It does not compile.
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    let mut build = checks.lab.cargo();
    checks.succeed(build.args(["build", "--release", "--bin", "dv"]))?;
    for device in DEVICES {
        let mut command = checks.lab.cargo();
        command.args([
            "run",
            "--quiet",
            "--release",
            "--bin",
            "dv",
            "--",
            "pingpong",
            "--json",
            "--device",
            device,
        ]);
        let outcome = checks.succeed(&mut command).and_then(|output| verified(&output));
        checks.count(device, outcome);
    }
    let mut refused = checks.lab.cargo();
    refused.args(["run", "--quiet", "--release", "--bin", "dv", "--", "pingpong", "--device", "soft:none"]);
    let status = refused.output().map_err(|source| Error::Start { program: "dv".into(), source })?.status;
    let outcome = if status.code() == Some(2) { Ok(()) } else { Err(format!("ended with {status}, not 2")) };
    checks.count("a device that is not there", outcome);
    Ok(())
}

/// The one object says that there was no error and that both sides have verified every byte.
fn verified(output: &str) -> Result<()> {
    let unexpected = |what: &str| Err(Error::Unexpected(format!("{what} in {output:?}")));
    let Some(report) = output.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok()) else {
        return unexpected("no JSON object");
    };
    let number = |key: &str| report.get(key).and_then(Value::as_u64);
    match (number("size"), number("iters"), number("verified_bytes"), number("errors")) {
        (Some(size), Some(iters), Some(bytes), Some(0)) if bytes == 2 * size * iters && bytes > 0 => Ok(()),
        _ => unexpected("wrong counts"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_report_of_all_bytes_and_no_error_passes() {
        assert!(verified("{\"size\":64,\"iters\":10,\"verified_bytes\":1280,\"errors\":0}").is_ok());
        assert!(verified("{\"size\":64,\"iters\":10,\"verified_bytes\":1279,\"errors\":0}").is_err());
        assert!(verified("{\"size\":64,\"iters\":10,\"verified_bytes\":1280,\"errors\":1}").is_err());
        assert!(verified("").is_err());
    }
}
