use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, process::ExitStatus};

/// Why the lab could not do something. A test that fails is not an error but a count.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot run `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// Cause.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` ended with {status}\n{tail}")]
    Failed {
        /// Program and arguments.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// Last lines of its output.
        tail: String,
    },
    /// A program ran too long and was stopped.
    #[error("`{command}` was stopped after {} s without an end; its last line: {last}", limit.as_secs())]
    TimeOut {
        /// Program and arguments.
        command: String,
        /// Time it had.
        limit: Duration,
        /// Last line of its output.
        last: String,
    },
    /// Debian packages are missing and this process may not install them.
    #[error("missing: {packages}; only root may install them")]
    NotRoot {
        /// Package names.
        packages: String,
    },
    /// Something is not as expected; the text says what, and what would be right.
    #[error("{0}")]
    Unexpected(String),
}

impl Error {
    /// For `map_err` on file operations.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

/// Result with the lab's error.
pub type Result<T> = std::result::Result<T, Error>;
