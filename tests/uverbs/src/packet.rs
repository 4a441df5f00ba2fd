//! A packet of `ioctl`: taken apart and checked as the kernel's parser does, before any method runs.
//!
//! Source: kernel `drivers/infiniband/core/uverbs_ioctl.c`.

use zerocopy::{FromBytes, IntoBytes};

use crate::Errno;
use crate::abi::{IoctlAttribute, IoctlHeader};
use crate::profile::{Family, Release};
use crate::schema::{self, Access, Attr, FileKind, Kind, Method, ObjectKind};
use crate::user::{copy_in, copy_out};

/// Longest packet.
const LONGEST: usize = 4096;
/// Flag of an attribute: fail if it is not known.
const MANDATORY: u16 = 1;
/// Flag of an attribute: it was written.
const VALID_OUTPUT: u16 = 2;
/// Values up to so many bytes are in the attribute itself.
const INLINE: u16 = 8;

/// An attribute that the method knows.
#[derive(Clone, Copy, Debug)]
struct Given {
    raw: IoctlAttribute,
    kind: Kind,
    /// Where the attribute itself is.
    at: u64,
}

/// The attributes of a call.
pub struct Bundle<'a> {
    /// Method called.
    pub method: &'static Method,
    given: Vec<Given>,
    /// Attributes that are in the process's memory.
    _packet: std::marker::PhantomData<&'a mut [u64]>,
}

/// A number of up to 8 bytes at the beginning of `bytes`.
fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_ne_bytes(whole)
}

impl Bundle<'_> {
    /// Takes the packet at `address` apart.
    ///
    /// # Errors
    /// What the kernel's parser answers.
    ///
    /// # Safety
    /// Outputs named in the packet, and the packet itself, may be written.
    pub unsafe fn parse(family: Family, release: Release, address: u64) -> Result<Self, Errno> {
        let header = copy_in(address, size_of::<IoctlHeader>())?;
        let header = IoctlHeader::read_from_bytes(&header).map_err(|_| Errno::INVAL)?;
        let count = usize::from(header.attributes);
        let length = size_of::<IoctlHeader>() + count * size_of::<IoctlAttribute>();
        if length > LONGEST || usize::from(header.length) != length {
            return Err(Errno::INVAL);
        }
        if header.reserved1 != 0 || header.reserved2 != 0 {
            return Err(Errno::PROTONOSUPPORT);
        }
        if header.driver != family.driver_id() {
            return Err(Errno::INVAL);
        }
        let method = schema::find(family, release, header.object, header.method);
        let method = method.ok_or(Errno::PROTONOSUPPORT)?;
        let first = address + size_of::<IoctlHeader>() as u64;
        let mut bundle = Self { method, given: Vec::new(), _packet: std::marker::PhantomData };
        for i in 0..count {
            let at = first + (i * size_of::<IoctlAttribute>()) as u64;
            let raw = copy_in(at, size_of::<IoctlAttribute>())?;
            let raw = IoctlAttribute::read_from_bytes(&raw).map_err(|_| Errno::INVAL)?;
            match schema::attribute(family, release, method, raw.id) {
                Some(attr) => bundle.add(attr, raw, at)?,
                None if raw.flags & MANDATORY != 0 => return Err(Errno::PROTONOSUPPORT),
                None => {}
            }
        }
        let missing = |attr: &&Attr| attr.is_mandatory(release) && !bundle.has(attr.id);
        if method.attrs.iter().any(|attr| missing(&attr)) {
            return Err(Errno::INVAL);
        }
        Ok(bundle)
    }

    fn add(&mut self, attr: &Attr, raw: IoctlAttribute, at: u64) -> Result<(), Errno> {
        if self.has(raw.id) {
            return Err(Errno::INVAL);
        }
        match attr.kind {
            Kind::Object(..) | Kind::File(..) | Kind::RawFile => {
                if raw.extra != 0 || raw.len != 0 {
                    return Err(Errno::INVAL);
                }
                let fd = raw.data as i64;
                if attr.kind == Kind::RawFile && i32::try_from(fd).is_err() {
                    return Err(Errno::INVAL);
                }
            }
            Kind::In { min, len, tail } => {
                if raw.len > len && tail && raw.len > INLINE {
                    let bytes = copy_in(raw.data, raw.len.into())?;
                    if bytes.get(len.into()..).is_some_and(|tail| tail.iter().any(|byte| *byte != 0)) {
                        return Err(Errno::OPNOTSUPP);
                    }
                }
                if raw.len < min || raw.len > len && !tail || raw.extra != 0 {
                    return Err(Errno::INVAL);
                }
            }
            Kind::Out { min, len, tail } => {
                if raw.len < min || raw.len > len && !tail || raw.extra != 0 {
                    return Err(Errno::INVAL);
                }
            }
        }
        self.given.push(Given { raw, kind: attr.kind, at });
        Ok(())
    }

    fn find(&self, id: u16) -> Option<&Given> {
        self.given.iter().find(|given| given.raw.id == id)
    }

    /// Whether the attribute was given.
    pub fn has(&self, id: u16) -> bool {
        self.find(id).is_some()
    }

    /// Objects named, with what is done to them, in the order given.
    pub fn objects(&self) -> Vec<(ObjectKind, Access, u64)> {
        let objects = self.given.iter().filter_map(|given| match given.kind {
            Kind::Object(kind, access) => Some((kind, access, given.raw.data)),
            _ => None,
        });
        objects.collect()
    }

    /// Files named, likewise.
    pub fn files(&self) -> Vec<(FileKind, Access, u64)> {
        let files = self.given.iter().filter_map(|given| match given.kind {
            Kind::File(kind, access) => Some((kind, access, given.raw.data)),
            _ => None,
        });
        files.collect()
    }

    /// The handle or descriptor in an attribute, which was looked up already.
    pub fn handle(&self, id: u16) -> Option<u32> {
        self.find(id).map(|given| given.raw.data as u32)
    }

    /// The handle in an attribute that the method cannot go without.
    ///
    /// # Errors
    /// ENOENT: it was not given.
    pub fn needed(&self, id: u16) -> Result<u32, Errno> {
        self.handle(id).ok_or(Errno::NOENT)
    }

    /// Bytes that go in; `None` if the attribute was not given.
    ///
    /// # Errors
    /// EFAULT: they are not there.
    pub fn bytes(&self, id: u16) -> Result<Option<Vec<u8>>, Errno> {
        let Some(Given { raw, .. }) = self.find(id) else { return Ok(None) };
        if raw.len <= INLINE {
            return Ok(raw.data.to_ne_bytes().get(..raw.len.into()).map(<[u8]>::to_vec));
        }
        copy_in(raw.data, raw.len.into()).map(Some)
    }

    /// A structure that goes in; bytes that were not given are zero.
    ///
    /// # Errors
    /// EFAULT: it is not there.
    pub fn structure<T: FromBytes>(&self, id: u16) -> Result<Option<T>, Errno> {
        let Some(mut bytes) = self.bytes(id)? else { return Ok(None) };
        bytes.resize(size_of::<T>(), 0);
        T::read_from_bytes(&bytes).map(Some).map_err(|_| Errno::INVAL)
    }

    /// A number that goes in.
    ///
    /// # Errors
    /// ENOENT: it was not given.
    pub fn number(&self, id: u16) -> Result<u64, Errno> {
        self.bytes(id)?.map(|bytes| number(&bytes)).ok_or(Errno::NOENT)
    }

    /// A number of at most 32 bits that goes in.
    ///
    /// # Errors
    /// ENOENT: it was not given. EINVAL: it is larger.
    pub fn word(&self, id: u16) -> Result<u32, Errno> {
        u32::try_from(self.number(id)?).map_err(|_| Errno::INVAL)
    }

    /// Flags that go in, 0 if not given.
    ///
    /// # Errors
    /// EINVAL: others than `known`, or of a length that is neither 4 nor 8.
    pub fn flags(&self, id: u16, known: u32) -> Result<u32, Errno> {
        let Some(bytes) = self.bytes(id)? else { return Ok(0) };
        let flags = number(&bytes);
        if !matches!(bytes.len(), 4 | 8) || flags & !u64::from(known) != 0 {
            return Err(Errno::INVAL);
        }
        Ok(flags as u32)
    }

    /// Room of an output, if it was given.
    pub fn room(&self, id: u16) -> usize {
        self.find(id).map_or(0, |given| given.raw.len.into())
    }

    /// Writes an output, as far as there is room; what remains of the room is zeroed. Nothing happens if it was not given.
    ///
    /// # Errors
    /// EFAULT: it cannot be written.
    pub fn put(&mut self, id: u16, bytes: &[u8]) -> Result<(), Errno> {
        let Some(given) = self.find(id) else { return Ok(()) };
        let mut whole = bytes.to_vec();
        whole.resize(given.raw.len.into(), 0);
        // SAFETY: whoever parsed the packet vouches for its outputs.
        unsafe { copy_out(given.raw.data, &whole) }?;
        self.rewrite(id, |raw| raw.flags |= VALID_OUTPUT)
    }

    /// Gives the handle or descriptor that the method has made.
    ///
    /// # Errors
    /// EFAULT: it cannot be written.
    pub fn made(&mut self, number: u32) -> Result<(), Errno> {
        let new = |kind| matches!(kind, Kind::Object(_, Access::New) | Kind::File(_, Access::New));
        let Some(id) = self.given.iter().find(|given| new(given.kind)).map(|given| given.raw.id) else {
            return Ok(());
        };
        self.rewrite(id, |raw| raw.data = number.into())
    }

    fn rewrite(&mut self, id: u16, change: impl FnOnce(&mut IoctlAttribute)) -> Result<(), Errno> {
        let Some(given) = self.given.iter_mut().find(|given| given.raw.id == id) else { return Ok(()) };
        change(&mut given.raw);
        // SAFETY: whoever parsed the packet vouches for it.
        unsafe { copy_out(given.at, given.raw.as_bytes()) }
    }
}
