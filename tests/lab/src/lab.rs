use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::error::{Error, Result};

/// Where things are: the workspace, cargo's target folder, and the lab's own folder in it.
#[derive(Debug)]
pub struct Lab {
    /// Workspace root.
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// The lab's own folder: what was downloaded and built, and the logs.
    pub dir: PathBuf,
}

impl Lab {
    /// Asks cargo where the workspace is.
    ///
    /// # Errors
    /// Cargo failed, or the lab's folder could not be made.
    pub fn find() -> Result<Self> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let output =
            command.output().map_err(|source| Error::Start { program: "cargo metadata".into(), source })?;
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| Error::Unexpected(format!("cargo metadata: {e}")))?;
        let path = |key: &str| {
            let path = metadata.get(key).and_then(Value::as_str);
            path.map(PathBuf::from).ok_or_else(|| Error::Unexpected(format!("cargo metadata gives no {key}")))
        };
        let (root, target) = (path("workspace_root")?, path("target_directory")?);
        let lab = Self { dir: target.join("lab"), root, target };
        for dir in [&lab.dir, &lab.logs()] {
            std::fs::create_dir_all(dir).map_err(Error::file(dir))?;
        }
        Ok(lab)
    }

    /// Folder of the logs, one a suite.
    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Cargo, in the workspace root.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }
}

/// Cargo, without what the outer `cargo run` says about the lab itself: build scripts of others would read it.
fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (key, _) in env::vars_os() {
        let of_the_lab = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if key.to_str().is_some_and(|k| of_the_lab.iter().any(|prefix| k.starts_with(prefix))) {
            command.env_remove(key);
        }
    }
    command
}
