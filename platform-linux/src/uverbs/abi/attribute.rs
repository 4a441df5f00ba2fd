//! Attributes of ioctl methods: each has a type, so that a value of the wrong kind or length does not compile.

use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// How the kernel takes an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Handle of an object that is there.
    Handle,
    /// Handle of an object that the call makes.
    NewHandle,
    /// File descriptor of an object that is there; the kernel looks it up among the context's objects.
    File,
    /// File descriptor that the call makes.
    NewFile,
    /// File descriptor of something that is no object of the context: a dma-buf.
    RawFile,
    /// A number of up to 8 bytes, given as 8.
    Constant,
    /// A value of this many bytes: in place up to 8 bytes, by address otherwise.
    Input(usize),
    /// A buffer of this many bytes that the kernel fills.
    Output(usize),
    /// A buffer of any length, for the driver or for a command inside.
    InputBytes,
    /// A buffer of any length that the kernel fills.
    OutputBytes,
}

/// A type that stands for a [`Kind`].
pub trait HasKind {
    /// The kind.
    const KIND: Kind;
}

/// See [`Kind::Handle`].
pub enum Handle {}
/// See [`Kind::NewHandle`].
pub enum NewHandle {}
/// See [`Kind::File`].
pub enum File {}
/// See [`Kind::NewFile`].
pub enum NewFile {}
/// See [`Kind::RawFile`].
pub enum RawFile {}
/// See [`Kind::Constant`].
pub enum Constant {}
/// See [`Kind::Input`].
pub struct Input<T>(PhantomData<T>);
/// See [`Kind::Output`].
pub struct Output<T>(PhantomData<T>);
/// See [`Kind::InputBytes`].
pub enum InputBytes {}
/// See [`Kind::OutputBytes`].
pub enum OutputBytes {}

impl HasKind for Handle {
    const KIND: Kind = Kind::Handle;
}
impl HasKind for NewHandle {
    const KIND: Kind = Kind::NewHandle;
}
impl HasKind for File {
    const KIND: Kind = Kind::File;
}
impl HasKind for NewFile {
    const KIND: Kind = Kind::NewFile;
}
impl HasKind for RawFile {
    const KIND: Kind = Kind::RawFile;
}
impl HasKind for Constant {
    const KIND: Kind = Kind::Constant;
}
impl HasKind for InputBytes {
    const KIND: Kind = Kind::InputBytes;
}
impl HasKind for OutputBytes {
    const KIND: Kind = Kind::OutputBytes;
}
impl<T: IntoBytes + Immutable> HasKind for Input<T> {
    const KIND: Kind = Kind::Input(size_of::<T>());
}
impl<T: IntoBytes + FromBytes> HasKind for Output<T> {
    const KIND: Kind = Kind::Output(size_of::<T>());
}

/// An attribute of a method.
pub struct Attribute<K> {
    id: u16,
    name: &'static str,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Attribute<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Attribute<K> {}

impl<K: HasKind> Attribute<K> {
    /// Attribute `id`, that errors call `name`.
    pub const fn new(id: u16, name: &'static str) -> Self {
        Self { id, name, kind: PhantomData }
    }

    /// Number within the method.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Name in the kernel's header, without its prefix.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// As an entry of a method's table: the call needs it.
    pub const fn required(&self) -> Spec {
        Spec { id: self.id, name: self.name, kind: K::KIND, required: true }
    }

    /// As an entry of a method's table: the call may leave it out.
    pub const fn optional(&self) -> Spec {
        Spec { id: self.id, name: self.name, kind: K::KIND, required: false }
    }
}

/// What a method says about an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number within the method.
    pub id: u16,
    /// Name in the kernel's header, without its prefix.
    pub name: &'static str,
    /// How it is given.
    pub kind: Kind,
    /// The kernel refuses a call without it.
    pub required: bool,
}

/// A method of an object.
#[derive(Debug, PartialEq, Eq)]
pub struct Method {
    /// Number of the object.
    pub object_id: u16,
    /// Number of the method.
    pub method_id: u16,
    /// Name of the object, as errors spell it.
    pub object: &'static str,
    /// Name in the kernel's header, without its prefix.
    pub name: &'static str,
    /// Its attributes.
    pub attributes: &'static [Spec],
}
