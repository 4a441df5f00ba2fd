//! What can go wrong.

use std::ffi::c_int;
use std::io;

/// A failure of the C library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A library cannot be loaded.
    #[error("{name}: {source}")]
    Load {
        /// Library or symbol.
        name: &'static str,
        /// Why.
        source: libloading::Error,
    },
    /// A verb failed.
    #[error("{verb}: {source}")]
    Verb {
        /// Function of the library.
        verb: &'static str,
        /// Its errno.
        source: io::Error,
    },
    /// The provider has no such function.
    #[error("the provider has no {0}")]
    Missing(&'static str),
    /// The device is not in the library's list.
    #[error("libibverbs does not see {0}")]
    NoDevice(&'static str),
}

/// With [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// A list of requests of which one was refused; those before it are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostError {
    /// What the provider returned: an errno, of either sign.
    pub code: c_int,
    /// Index of the refused request.
    pub index: usize,
}

impl Error {
    /// The errno of a verb.
    pub fn errno(&self) -> Option<c_int> {
        match self {
            Self::Verb { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// The errno of a verb that gave a null pointer.
pub(super) fn last(verb: &'static str) -> Error {
    Error::Verb { verb, source: io::Error::last_os_error() }
}

/// The outcome of a verb that returns an errno; some providers return it negative.
pub(super) fn check(verb: &'static str, code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(Error::Verb { verb, source: io::Error::from_raw_os_error(code.abs()) }),
    }
}
