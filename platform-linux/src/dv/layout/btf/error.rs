use std::fmt;

/// Why bytes are not BTF that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BtfError {
    /// The bytes end inside the named part.
    Short(&'static str),
    /// The first two bytes are not BTF's.
    Magic,
    /// BTF of another byte order than little-endian. Drivers of these devices run on little-endian kernels.
    BigEndian,
    /// A version other than 1.
    Version(u8),
    /// A kind of type that is not known, so that its length is not known either.
    Kind(u32),
    /// A reference to a type that is not there.
    Type(u32),
    /// A reference to a name that is not there.
    Name(u32),
    /// A type that contains itself, or is nested too deep or too large.
    Endless,
}

impl fmt::Display for BtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(part) => write!(f, "the BTF ends inside its {part}"),
            Self::Magic => f.write_str("this is not BTF"),
            Self::BigEndian => f.write_str("this is big-endian BTF; only little-endian is read"),
            Self::Version(version) => write!(f, "BTF version {version}; only version 1 is known"),
            Self::Kind(kind) => write!(f, "BTF has a type of unknown kind {kind}"),
            Self::Type(id) => {
                write!(f, "BTF refers to type {id}, which is missing; is a module's base vmlinux given?")
            }
            Self::Name(at) => {
                write!(f, "BTF refers to a name at {at}, which is missing; is a module's base vmlinux given?")
            }
            Self::Endless => f.write_str("a BTF type contains itself, or is nested too deep"),
        }
    }
}
