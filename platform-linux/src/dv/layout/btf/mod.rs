//! Reads BTF, the kernel's description of its types: a base (vmlinux) and, on top of it, a module's part.
//! Source: kernel `include/uapi/linux/btf.h` and `Documentation/bpf/btf.rst`.
//!
//! The bytes may be anything: what cannot be read is an error, and type chains and nesting have a limit.

mod error;
#[cfg(test)]
pub mod tests;

use directverbs::layout::ByteOrder;

pub use error::BtfError;

/// Longest chain of typedefs and qualifiers, and deepest nesting of structures.
const DEPTH: usize = 32;

/// Most members of one structure, nested and anonymous ones counted.
const MEMBERS: usize = 4096;

/// One type, as far as layouts need it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Bytes without parts: integer, enumeration, float, pointer.
    Scalar {
        bytes: u32,
    },
    Array {
        of: u32,
        count: u32,
    },
    /// Structure or union; members are `first..first + count` of [`Btf::members`].
    Composite {
        bytes: u32,
        first: usize,
        count: usize,
        bits: bool,
    },
    /// Typedef, qualifier or tag.
    Alias {
        of: u32,
    },
    /// Not a type of data.
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Type {
    name: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
struct RawMember {
    name: u32,
    of: u32,
    offset: u32,
}

/// A member of a structure, at any depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Names from the outermost structure inwards, joined by dots; anonymous parts add none.
    pub path: String,
    /// First bit, counted from the start of the structure.
    pub offset: u64,
    /// Bits.
    pub width: u64,
    /// Declared as a bit field.
    pub bit_field: bool,
    /// Byte order, where its type's name tells one: `__le32`, `__be16`.
    pub order: Option<ByteOrder>,
}

/// A structure with all its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Bytes.
    pub size: u64,
    /// Members; a nested structure is listed itself, and before its members.
    pub members: Vec<Member>,
}

/// The members found so far, and how many more there may be.
struct Flat {
    room: usize,
    members: Vec<Member>,
}

/// Types and their names.
#[derive(Clone, Debug, Default)]
pub struct Btf {
    types: Vec<Type>,
    members: Vec<RawMember>,
    strings: Vec<u8>,
}

/// Little-endian words, one after the other.
struct Words<'b>(&'b [u8]);

impl Words<'_> {
    fn next(&mut self) -> Result<u32, BtfError> {
        let (word, rest) = self.0.split_first_chunk::<4>().ok_or(BtfError::Short("types"))?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*word))
    }

    fn skip(&mut self, bytes: usize) -> Result<(), BtfError> {
        self.0 = self.0.get(bytes..).ok_or(BtfError::Short("types"))?;
        Ok(())
    }
}

impl Btf {
    /// Reads BTF. A module's part continues the numbering of types and names of its `base`; whole BTF needs no base.
    ///
    /// # Errors
    /// The bytes are not little-endian BTF of version 1.
    pub fn parse(bytes: &[u8], base: Option<Self>) -> Result<Self, BtfError> {
        // Magic, version, flags; then lengths and offsets.
        let short = |_| BtfError::Short("header");
        match bytes.first_chunk::<4>().ok_or(BtfError::Short("header"))? {
            [0x9f, 0xeb, 1, _] => {}
            [0x9f, 0xeb, version, _] => return Err(BtfError::Version(*version)),
            [0xeb, 0x9f, ..] => return Err(BtfError::BigEndian),
            _ => return Err(BtfError::Magic),
        }
        let mut header = Words(bytes.get(4..).unwrap_or_default());
        let mut next = || header.next().map(|word| word as usize).map_err(short);
        let (length, type_offset, type_length) = (next()?, next()?, next()?);
        let (string_offset, string_length) = (next()?, next()?);
        let part = |offset: usize, size: usize, name| {
            let start = length.saturating_add(offset);
            bytes.get(start..start.saturating_add(size)).ok_or(BtfError::Short(name))
        };
        let mut words = Words(part(type_offset, type_length, "types")?);
        let names = part(string_offset, string_length, "names")?;
        // Whole BTF begins its names with the empty one, which a module's part finds in its base.
        let base = base.filter(|_| names.first() != Some(&0));
        // Type 0 is void.
        let mut btf = base
            .unwrap_or_else(|| Self { types: vec![Type { name: 0, kind: Kind::Other }], ..Self::default() });
        btf.strings.extend_from_slice(names);
        while !words.0.is_empty() {
            btf.read_type(&mut words)?;
        }
        Ok(btf)
    }

    fn read_type(&mut self, words: &mut Words<'_>) -> Result<(), BtfError> {
        let (name, info, size_or_type) = (words.next()?, words.next()?, words.next()?);
        // A module's part without its base has names that are not there: better told now than missed later.
        self.named_from(name)?;
        // Bits 0-23; older kernels use 0-15 and leave the others zero.
        let count = (info & 0xff_ffff) as usize;
        let kind = match info >> 24 & 0x7f {
            // INT: encoding.
            1 => {
                words.skip(4)?;
                Kind::Scalar { bytes: size_or_type }
            }
            // PTR: on the 64-bit kernels that have these drivers.
            2 => Kind::Scalar { bytes: 8 },
            // ARRAY: element type, index type, count.
            3 => {
                let (of, _, count) = (words.next()?, words.next()?, words.next()?);
                Kind::Array { of, count }
            }
            // STRUCT, UNION.
            4 | 5 => {
                let first = self.members.len();
                for _ in 0..count {
                    let (name, of, offset) = (words.next()?, words.next()?, words.next()?);
                    self.members.push(RawMember { name, of, offset });
                }
                Kind::Composite { bytes: size_or_type, first, count, bits: info >> 31 == 1 }
            }
            // ENUM and ENUM64: values.
            6 => {
                words.skip(8 * count)?;
                Kind::Scalar { bytes: size_or_type }
            }
            19 => {
                words.skip(12 * count)?;
                Kind::Scalar { bytes: size_or_type }
            }
            // FLOAT.
            16 => Kind::Scalar { bytes: size_or_type },
            // TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG.
            8..=11 | 18 => Kind::Alias { of: size_or_type },
            // FWD, FUNC.
            7 | 12 => Kind::Other,
            // FUNC_PROTO, VAR, DATASEC, DECL_TAG.
            13 => {
                words.skip(8 * count)?;
                Kind::Other
            }
            14 | 17 => {
                words.skip(4)?;
                Kind::Other
            }
            15 => {
                words.skip(12 * count)?;
                Kind::Other
            }
            kind => return Err(BtfError::Kind(kind)),
        };
        self.types.push(Type { name, kind });
        Ok(())
    }

    /// The names from `at` on.
    fn named_from(&self, at: u32) -> Result<&[u8], BtfError> {
        // Without any names, 0 still means none.
        if at == 0 {
            return Ok(b"");
        }
        self.strings.get(at as usize..).filter(|rest| !rest.is_empty()).ok_or(BtfError::Name(at))
    }

    fn name(&self, at: u32) -> Result<&[u8], BtfError> {
        Ok(self.named_from(at)?.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    /// The structure or union called `name`, or `None` if there is none. A module's own comes before its base's.
    ///
    /// # Errors
    /// It refers to types or names that are not there.
    pub fn structure(&self, name: &str) -> Result<Option<Structure>, BtfError> {
        for t in self.types.iter().rev() {
            if let Kind::Composite { bytes, .. } = t.kind
                && let Some([0, ..]) = self.named_from(t.name)?.strip_prefix(name.as_bytes())
            {
                let mut flat = Flat { room: MEMBERS, members: Vec::new() };
                self.flatten(t.kind, "", 0, 0, &mut flat)?;
                return Ok(Some(Structure { size: bytes.into(), members: flat.members }));
            }
        }
        Ok(None)
    }

    /// The type behind typedefs and qualifiers, and the byte order that a typedef's name tells.
    fn resolve(&self, mut id: u32) -> Result<(Kind, Option<ByteOrder>), BtfError> {
        let mut order = None;
        for _ in 0..DEPTH {
            let t = self.types.get(id as usize).ok_or(BtfError::Type(id))?;
            let Kind::Alias { of } = t.kind else { return Ok((t.kind, order)) };
            let name = self.name(t.name)?;
            if name.starts_with(b"__le") {
                order = Some(ByteOrder::Little);
            } else if name.starts_with(b"__be") {
                order = Some(ByteOrder::Big);
            }
            id = of;
        }
        Err(BtfError::Endless)
    }

    /// Bits of a type, and the byte order of its elements.
    fn width(&self, id: u32, depth: usize) -> Result<(u64, Option<ByteOrder>), BtfError> {
        let (kind, order) = self.resolve(id)?;
        match kind {
            _ if depth > DEPTH => Err(BtfError::Endless),
            Kind::Scalar { bytes } | Kind::Composite { bytes, .. } => Ok((8 * u64::from(bytes), order)),
            Kind::Array { of, count } => {
                let (width, order) = self.width(of, depth + 1)?;
                Ok((width.saturating_mul(count.into()), order))
            }
            Kind::Alias { .. } | Kind::Other => Ok((0, None)),
        }
    }

    fn flatten(
        &self,
        kind: Kind,
        prefix: &str,
        start: u64,
        depth: usize,
        to: &mut Flat,
    ) -> Result<(), BtfError> {
        let Kind::Composite { first, count, bits, .. } = kind else { return Ok(()) };
        if depth > DEPTH {
            return Err(BtfError::Endless);
        }
        for member in self.members.get(first..first + count).unwrap_or_default() {
            to.room = to.room.checked_sub(1).ok_or(BtfError::Endless)?;
            let (at, width) =
                if bits { (member.offset & 0xff_ffff, member.offset >> 24) } else { (member.offset, 0) };
            let offset = start.saturating_add(at.into());
            let name = String::from_utf8_lossy(self.name(member.name)?);
            let mut path = prefix.to_owned();
            if !name.is_empty() {
                path.push_str(if prefix.is_empty() { "" } else { "." });
                path.push_str(&name);
                let bit_field = width != 0;
                let (whole, order) = self.width(member.of, 0)?;
                let width = if bit_field { width.into() } else { whole };
                to.members.push(Member { path: path.clone(), offset, width, bit_field, order });
            }
            self.flatten(self.resolve(member.of)?.0, &path, offset, depth + 1, to)?;
        }
        Ok(())
    }
}
