//! What the kernels take: methods with their attributes, and the release that each came with.
//!
//! Source: kernel `drivers/infiniband/core/uverbs_std_types*.c` and, for the drivers' own, `rdma/bnxt_re-abi.h`.

mod bnxt_re;
mod core;

use crate::Errno;
use crate::packet::Bundle;
use crate::profile::{Family, Release};
use crate::session::Session;

/// Kind of object that a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// Protection domain.
    Pd,
    /// Completion queue.
    Cq,
    /// Queue pair.
    Qp,
    /// Shared receive queue.
    Srq,
    /// Address handle.
    Ah,
    /// Memory region.
    Mr,
    /// Memory window.
    Mw,
    /// XRC domain, of which there is none.
    Xrcd,
    /// Indirection table of receive queues, of which there is none.
    RwqIndTable,
    /// DMA handle, of which there is none.
    Dmah,
    /// bnxt_re: push or pacing page.
    Page,
    /// bnxt_re: toggle page.
    Toggle,
    /// bnxt_re: doorbell region.
    Dbr,
}

/// Kind of file that an attribute names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Completion channel.
    Channel,
    /// File of asynchronous events.
    AsyncEvents,
}

/// What a method does with an object or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Makes it.
    New,
    /// Uses it.
    Read,
    /// Destroys it.
    Destroy,
}

/// How the kernel takes an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Handle.
    Object(ObjectKind, Access),
    /// Descriptor of a file of the context.
    File(FileKind, Access),
    /// Descriptor of something else.
    RawFile,
    /// Bytes that go in: at least `min`, of which the kernel knows `len`. More are refused, or with `tail` must be zero.
    In {
        /// Bytes that must be given.
        min: u16,
        /// Bytes that the kernel knows.
        len: u16,
        /// More may be given.
        tail: bool,
    },
    /// Room for bytes that come out, likewise.
    Out {
        /// Bytes that there must be room for.
        min: u16,
        /// Bytes that the kernel writes.
        len: u16,
        /// There may be more room, which is zeroed.
        tail: bool,
    },
}

/// An attribute of a method.
#[derive(Clone, Copy, Debug)]
pub struct Attr {
    /// Number.
    pub id: u16,
    /// How it is given.
    pub kind: Kind,
    /// The method fails without it.
    pub mandatory: bool,
    /// First release that knows it.
    pub since: Release,
    /// First release whose method goes without it, if it was mandatory before.
    pub optional_since: Option<Release>,
}

impl Attr {
    const fn new(id: u16, kind: Kind) -> Self {
        Self { id, kind, mandatory: true, since: Release::V6_12, optional_since: None }
    }

    const fn handle(id: u16, kind: ObjectKind) -> Self {
        Self::new(id, Kind::Object(kind, Access::Read))
    }

    const fn made(kind: ObjectKind, id: u16) -> Self {
        Self::new(id, Kind::Object(kind, Access::New))
    }

    const fn destroyed(kind: ObjectKind, id: u16) -> Self {
        Self::new(id, Kind::Object(kind, Access::Destroy))
    }

    const fn file(id: u16, kind: FileKind) -> Self {
        Self::new(id, Kind::File(kind, Access::Read))
    }

    /// A structure or number of `len` bytes.
    const fn value(id: u16, len: u16) -> Self {
        Self::new(id, Kind::In { min: len, len, tail: false })
    }

    /// A structure of `len` bytes that may grow.
    const fn growing(id: u16, len: u16) -> Self {
        Self::new(id, Kind::In { min: len, len, tail: true })
    }

    /// A number that is given as 8 bytes.
    const fn constant(id: u16) -> Self {
        Self::value(id, 8)
    }

    /// Flags, of 4 or 8 bytes.
    const fn flags(id: u16) -> Self {
        Self::new(id, Kind::In { min: 4, len: 8, tail: false }).optional()
    }

    const fn out(id: u16, len: u16) -> Self {
        Self::new(id, Kind::Out { min: len, len, tail: false })
    }

    /// Room for a structure whose first `min` of `len` bytes must fit.
    const fn growing_out(id: u16, min: u16, len: u16) -> Self {
        Self::new(id, Kind::Out { min, len, tail: true })
    }

    const fn required(self) -> Self {
        Self { mandatory: true, ..self }
    }

    const fn optional(self) -> Self {
        Self { mandatory: false, ..self }
    }

    const fn optional_since(self, release: Release) -> Self {
        Self { optional_since: Some(release), ..self }
    }

    const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }

    /// Whether a method of `release` fails without it.
    pub fn is_mandatory(&self, release: Release) -> bool {
        self.mandatory && self.since <= release && self.optional_since.is_none_or(|since| release < since)
    }
}

/// The driver's part of a request.
pub const UHW_IN: u16 = 0x1000;
/// The driver's part of a reply.
pub const UHW_OUT: u16 = 0x1001;

/// Any length.
const ANY_IN: Kind = Kind::In { min: 0, len: u16::MAX, tail: false };
const ANY_OUT: Kind = Kind::Out { min: 0, len: u16::MAX, tail: false };
const UHW: [Attr; 2] = [Attr::new(UHW_IN, ANY_IN).optional(), Attr::new(UHW_OUT, ANY_OUT).optional()];

/// Carries a method out.
pub type Run = fn(&mut Session<'_>, &mut Bundle<'_>) -> Result<(), Errno>;

/// A method of an object.
pub struct Method {
    /// Number of the object.
    pub object: u16,
    /// Number of the method.
    pub method: u16,
    /// Name.
    pub name: &'static str,
    /// First release that has it.
    pub since: Release,
    /// It works without a context.
    pub without_context: bool,
    /// Attributes.
    pub attrs: &'static [Attr],
    /// What it does. Objects of [`Access::Destroy`] go afterwards.
    pub run: Run,
}

impl Method {
    const fn new(object: u16, method: u16, name: &'static str, attrs: &'static [Attr], run: Run) -> Self {
        Self { object, method, name, since: Release::V6_12, without_context: false, attrs, run }
    }

    const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }
}

/// The method with these numbers that a driver of `family` has under `release`.
pub fn find(family: Family, release: Release, object: u16, method: u16) -> Option<&'static Method> {
    let own = match family {
        Family::BnxtRe => bnxt_re::METHODS,
        Family::Ionic => &[],
    };
    let known = |m: &&Method| m.object == object && m.method == method && m.since <= release;
    core::METHODS.iter().chain(own).find(known)
}

/// The attribute with this number of a method, with what the driver adds.
pub fn attribute(family: Family, release: Release, method: &Method, id: u16) -> Option<&'static Attr> {
    let added = match family {
        Family::BnxtRe => bnxt_re::added(method.object, method.method),
        Family::Ionic => &[],
    };
    method.attrs.iter().chain(added).find(|attr| attr.id == id && attr.since <= release)
}
