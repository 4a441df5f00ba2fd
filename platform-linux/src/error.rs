//! What can go wrong, and what helps.

use std::fmt;
use std::path::PathBuf;

use directverbs::ionic::caps::CapsError;
use directverbs::verbs::{MemoryError, PlanError, StateError};
use rustix::io::Errno;

use crate::sysfs::{LinkError, NoGid, SysfsError};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done. What had been done before was undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What sysfs says, or does not.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// The device's file cannot be opened.
    #[error("{}: {errno}{remedy}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Error of the kernel.
        errno: Errno,
        /// What helps.
        remedy: Remedy,
    },
    /// An ABI that this crate does not know.
    #[error(
        "unsupported {what} ABI {given}, supported is {min} to {max}: the driver is none of the kernel's own"
    )]
    Abi {
        /// Whose ABI.
        what: String,
        /// Version found.
        given: u32,
        /// Oldest supported.
        min: u32,
        /// Newest supported.
        max: u32,
    },
    /// The kernel has refused a call.
    #[error("{object}: {method} failed: {errno}{remedy}")]
    Call {
        /// What it is about.
        object: &'static str,
        /// Method or command, as the kernel's headers name it.
        method: &'static str,
        /// Error of the kernel.
        errno: Errno,
        /// What helps.
        remedy: Remedy,
    },
    /// More than the device can do. Nothing was asked of the kernel.
    #[error("{object}: {attribute} {given}, the device has {min} to {max}")]
    Limit {
        /// What it is about.
        object: &'static str,
        /// What is out of range.
        attribute: &'static str,
        /// What was asked for.
        given: u64,
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A value that cannot be. Nothing was asked of the kernel.
    #[error("{object}: {attribute} {what}")]
    Value {
        /// What it is about.
        object: &'static str,
        /// The value.
        attribute: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More than the device can do, found when the queue was planned. Nothing was asked of the kernel.
    #[error("{object}: {error}")]
    Plan {
        /// What it is about.
        object: &'static str,
        /// What is too much.
        #[source]
        error: PlanError,
    },
    /// A device that this crate cannot work with.
    #[error("{object}: {error}")]
    Device {
        /// What it is about.
        object: &'static str,
        /// What it says about itself.
        #[source]
        error: CapsError,
    },
    /// A ring that no queue can be on, with what the kernel has answered.
    #[error("{object}: {error}")]
    Memory {
        /// What it is about.
        object: &'static str,
        /// Why not.
        #[source]
        error: MemoryError,
    },
    /// No GID of the port is the one that is wanted.
    #[error("port {port}: {error}")]
    Gid {
        /// Port.
        port: u8,
        /// Why not.
        #[source]
        error: NoGid,
    },
    /// A port that cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A transition of a queue pair that cannot be made. Nothing was asked of the kernel.
    #[error("queue pair: {0}")]
    State(#[from] StateError),
    /// The kernel or the device does not have it.
    #[error("{object}: {feature} is not there: {needs}")]
    Unsupported {
        /// What it is about.
        object: &'static str,
        /// What is not there.
        feature: &'static str,
        /// What it takes.
        needs: &'static str,
    },
    /// The kernel has answered what makes no sense.
    #[error("{object}: the answer to {method} makes no sense: {what}")]
    Reply {
        /// What it is about.
        object: &'static str,
        /// Method or command.
        method: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// A call without an attribute that it needs, or with one that it does not have. Never sent.
    #[error("{object}: {method} {what} {attribute}")]
    Packet {
        /// What it is about.
        object: &'static str,
        /// Method.
        method: &'static str,
        /// The attribute.
        attribute: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Something else still refers to the object.
    #[error("{object}: in use by {users} others; destroy what refers to it first")]
    InUse {
        /// What it is about.
        object: &'static str,
        /// How many refer to it.
        users: usize,
    },
    /// Objects of two contexts do not go together.
    #[error("{object}: {other} belongs to another context")]
    OtherContext {
        /// What it is about.
        object: &'static str,
        /// What does not fit.
        other: &'static str,
    },
    /// The context was opened before a fork, by the parent.
    #[error("{object}: the context belongs to process {owner}; open the device again in this one")]
    Forked {
        /// What it is about.
        object: &'static str,
        /// Process that has opened it.
        owner: u32,
    },
}

impl Error {
    /// The kernel's error, if it has refused something.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Call { errno, .. } | Self::Open { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Says what it takes, if the kernel or the driver lacks `feature`.
    pub(crate) fn or_needs(self, object: &'static str, feature: &'static str, needs: &'static str) -> Self {
        if self.is_absent() { Self::Unsupported { object, feature, needs } } else { self }
    }

    /// Whether the kernel or the driver lacks what was asked for, in contrast to having refused it.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Unsupported { .. }) || self.errno().is_some_and(means_absent)
    }
}

/// Whether an error says that the kernel or the driver lacks a method, a command or an attribute.
pub fn means_absent(errno: Errno) -> bool {
    // EOPNOTSUPP and ENOTSUP are one number.
    matches!(errno, Errno::OPNOTSUPP | Errno::NOTTY | Errno::PROTONOSUPPORT | Errno::NOSYS)
}

/// What helps against an error; empty if nothing is known to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy(String);

impl Remedy {
    /// Nothing to say.
    pub fn none() -> Self {
        Self::default()
    }

    /// Says `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What helps when a device's file cannot be opened.
    pub fn for_open(errno: Errno) -> Self {
        Self::new(match errno {
            Errno::ACCESS | Errno::PERM => {
                "run as root, or let udev give the file to your group (rdma-core installs such a rule)"
            }
            Errno::NOENT => "load ib_uverbs and the device's driver; in a container, pass the device file in",
            Errno::NODEV | Errno::NXIO | Errno::IO => "the device was removed; look for it again",
            Errno::MFILE | Errno::NFILE => "raise the limit of open files (ulimit -n)",
            _ => return Self::none(),
        })
    }

    /// What helps when a call is refused. `memlock` is the process's limit of pinned memory.
    pub fn for_call(errno: Errno, memlock: Option<u64>) -> Self {
        if errno == Errno::NOMEM {
            let limit = memlock.map_or_else(String::new, |l| format!("; it is {} KiB now", l / 1024));
            return Self::new(format!(
                "memory is short or cannot be pinned: raise RLIMIT_MEMLOCK (ulimit -l){limit}"
            ));
        }
        Self::new(match errno {
            // The kernel says this, and not ENOMEM, if nothing at all may be pinned.
            Errno::PERM if memlock == Some(0) => {
                "not permitted: no memory can be pinned while RLIMIT_MEMLOCK is 0 (ulimit -l), and raw packets need CAP_NET_RAW"
            }
            Errno::PERM | Errno::ACCESS => {
                "not permitted: raw packets need CAP_NET_RAW, and other objects may be another process's"
            }
            Errno::INVAL => "the kernel does not take one of the values; `dv info` shows the device's limits",
            Errno::NOSPC => "the device has no more of them, or the request is larger than it allows",
            Errno::OPNOTSUPP | Errno::NOTTY | Errno::PROTONOSUPPORT | Errno::NOSYS => {
                "this kernel or driver does not have it"
            }
            Errno::BUSY => "something else still refers to it",
            Errno::IO | Errno::NODEV | Errno::NXIO => {
                "the device was removed or reset; close it and open it again"
            }
            Errno::MFILE | Errno::NFILE => "raise the limit of open files (ulimit -n)",
            Errno::FAULT => "the memory is not mapped, or not with the access asked for",
            Errno::AGAIN => "a limit of the rdma control group is reached (rdma.max)",
            Errno::NODATA => "the port has no GID with this index; `dv info` shows those that it has",
            Errno::TIMEDOUT => {
                "the device's firmware does not answer (dmesg), or where a path is given: the peer does not answer"
            }
            _ => return Self::none(),
        })
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_that_names_object_method_and_remedy() {
        let error = Error::Call {
            object: "memory region",
            method: "REG_MR",
            errno: Errno::NOMEM,
            remedy: Remedy::for_call(Errno::NOMEM, Some(8 << 20)),
        };
        let text = error.to_string();
        for part in ["memory region", "REG_MR", "RLIMIT_MEMLOCK", "8192 KiB"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains('\n'));
        assert!(!error.is_absent());
    }

    #[test]
    fn an_abi_error_says_both_numbers() {
        let error = Error::Abi { what: "bnxt_re".into(), given: 6, min: 1, max: 1 };
        assert!(error.to_string().starts_with("unsupported bnxt_re ABI 6, supported is 1 to 1"), "{error}");
    }

    #[test]
    fn a_limit_of_no_pinned_memory_is_named_where_the_kernel_says_not_permitted() {
        let remedy = |memlock| Remedy::for_call(Errno::PERM, memlock).as_str().contains("RLIMIT_MEMLOCK");
        assert_eq!([Some(0), Some(4096), None].map(remedy), [true, false, false]);
    }

    #[test]
    fn a_missing_feature_is_told_from_a_refusal() {
        for errno in [Errno::OPNOTSUPP, Errno::NOTTY, Errno::PROTONOSUPPORT, Errno::NOSYS] {
            assert!(means_absent(errno), "{errno}");
        }
        for errno in [Errno::INVAL, Errno::PERM, Errno::NOMEM, Errno::NOSPC] {
            assert!(!means_absent(errno), "{errno}");
        }
    }
}
