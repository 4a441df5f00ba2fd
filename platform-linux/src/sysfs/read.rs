//! Reading files of sysfs.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Bytes that an attribute has at most: sysfs gives one page.
const LONGEST: u64 = 4096;

/// What sysfs says, or does not.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct SysfsError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is longer than an attribute can be.
    #[error("longer than {LONGEST} bytes")]
    TooLong,
    /// It is not text.
    #[error("not UTF-8")]
    NotText,
    /// It does not say what it should.
    #[error("{found:?}, expected {expected}")]
    Value {
        /// What it says.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
    /// There is no RDMA subsystem.
    #[error("no RDMA subsystem: load ib_uverbs and the driver of the device")]
    NoSubsystem,
    /// There is no such device.
    #[error("no RDMA device of this name{0}")]
    NoDevice(String),
    /// A device without a file for programs.
    #[error("the device has no uverbs file: load ib_uverbs")]
    NoUverbs,
}

impl SysfsError {
    /// Whether the file is not there, or the kernel does not give it for this device.
    pub fn is_missing(&self) -> bool {
        matches!(&self.problem, Problem::Read(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput))
    }
}

/// A tree of sysfs, and the folder of the files that programs open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysfs {
    root: PathBuf,
    nodes: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sysfs {
    /// The tree below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), nodes: "/dev/infiniband".into() }
    }

    /// With the devices' files in `folder` in place of `/dev/infiniband`.
    #[must_use]
    pub fn nodes(self, folder: impl Into<PathBuf>) -> Self {
        Self { nodes: folder.into(), ..self }
    }

    /// A device's file.
    pub(super) fn node(&self, uverbs: &str) -> PathBuf {
        self.nodes.join(uverbs)
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub(super) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }
}

pub(super) fn fault(path: &Path, problem: Problem) -> SysfsError {
    SysfsError { path: path.to_owned(), problem }
}

/// The text of a file, without the line end.
pub(super) fn text(path: &Path) -> Result<String, SysfsError> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|e: io::Error| fault(path, e.into()))?;
    if bytes.len() as u64 > LONGEST {
        return Err(fault(path, Problem::TooLong));
    }
    let text = String::from_utf8(bytes).map_err(|_| fault(path, Problem::NotText))?;
    Ok(text.trim_end_matches(['\n', '\0', ' ']).to_owned())
}

/// The text of a file, if it is there.
pub(super) fn optional(path: &Path) -> Result<Option<String>, SysfsError> {
    match text(path) {
        Err(error) if error.is_missing() => Ok(None),
        result => result.map(Some),
    }
}

/// What `parse` makes of the text of a file.
pub(super) fn parsed<T>(
    path: &Path,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, SysfsError> {
    let found = text(path)?;
    parse(&found).ok_or_else(|| fault(path, Problem::Value { found, expected }))
}

/// A decimal number.
pub(super) fn number<T: FromStr>(path: &Path) -> Result<T, SysfsError> {
    parsed(path, "a number", |text| text.parse().ok())
}

/// Hexadecimal digits after `0x`.
pub(super) fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The code before the colon in `4: ACTIVE`.
pub(super) fn code(text: &str) -> Option<u32> {
    text.split(':').next()?.trim().parse().ok()
}

/// Names in a folder, sorted; those that are not text are left out.
pub(super) fn names(path: &Path) -> Result<Vec<String>, SysfsError> {
    let read = || {
        let entries = path.read_dir()?.collect::<io::Result<Vec<_>>>()?;
        Ok(entries.into_iter().filter_map(|e| e.file_name().into_string().ok()).collect::<Vec<_>>())
    };
    let mut names = read().map_err(|e: io::Error| fault(path, e.into()))?;
    names.sort_by(|a, b| natural(a).cmp(&natural(b)));
    Ok(names)
}

/// Sorts `uverbs10` behind `uverbs9`.
fn natural(name: &str) -> (&str, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name[stem.len()..].parse().unwrap_or(0))
}

/// Name of what a link points to, if there is a link.
pub(super) fn link_name(path: &Path) -> Option<String> {
    let target = path.read_link().ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}
