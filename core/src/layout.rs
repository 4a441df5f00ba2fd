//! Every layout as reflectable data.
//!
//! `layout!` declares a structure that a device reads or writes, once: from the declaration come the
//! `zerocopy` type, the static assertions on size, alignment and every offset, the byte positions in the docs,
//! and the [`Layout`] entry that checks and tools read. `bits!` does the same for the words inside
//! (with `bitfield-struct`). A vendor module collects its entries in one `LAYOUTS` table.

use zerocopy::{big_endian as be, little_endian as le};

/// How the bytes of a field are ordered in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// A single byte, or bytes without order (MAC addresses, inline data).
    Bytes,
    /// Least significant byte first.
    Little,
    /// Most significant byte first (network order).
    Big,
    /// As the host has it: only in descriptions, which no device reads.
    Native,
}

/// One field of a [`Layout`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name, as the vendor's headers spell it.
    pub name: &'static str,
    /// Byte offset in the structure.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Byte order.
    pub order: ByteOrder,
    /// Bit fields inside, least significant first, counted in the value after byte-order conversion.
    pub bits: &'static [BitField],
    /// What the field means.
    pub doc: &'static str,
}

/// A bit field inside a word.
#[derive(Clone, Copy, Debug)]
pub struct BitField {
    /// Name; reserved bits are called `__`.
    pub name: &'static str,
    /// First bit, counted from the least significant.
    pub shift: u32,
    /// Width in bits.
    pub width: u32,
    /// What the bits mean.
    pub doc: &'static str,
}

/// A structure that a device reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Vendor module: `bnxt_re` or `ionic`; `uverbs` for the ABI of Linux.
    pub family: &'static str,
    /// Name of the Rust type.
    pub name: &'static str,
    /// Name of the same structure in the kernel driver, for comparison with BTF; empty if the driver has none.
    pub kernel: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// Fields in order of their offset; fields of a union's members may overlap.
    pub fields: &'static [Field],
    /// What the structure is.
    pub doc: &'static str,
}

/// A type that may stand for a field in `layout!`.
pub trait FieldType {
    /// Its byte order.
    const ORDER: ByteOrder;
}

macro_rules! field_types {
    ($($t:ty => $o:ident),* $(,)?) => { $(impl FieldType for $t { const ORDER: ByteOrder = ByteOrder::$o; })* };
}
field_types!(u8 => Bytes, le::U16 => Little, le::U32 => Little, le::U64 => Little,
    be::U16 => Big, be::U32 => Big, be::U64 => Big, u32 => Native, u64 => Native);
impl<T: FieldType, const N: usize> FieldType for [T; N] {
    const ORDER: ByteOrder = T::ORDER;
}

/// Lets layouts stand for fields of other layouts.
#[cfg(feature = "ionic")]
macro_rules! nested {
    ($($t:ty),* $(,)?) => { $(impl $crate::layout::FieldType for $t {
        const ORDER: $crate::layout::ByteOrder = $crate::layout::ByteOrder::Bytes;
    })* };
}
#[cfg(feature = "ionic")]
pub(crate) use nested;

/// A word made of bit fields, declared with `bits!`.
pub trait BitWord {
    /// The bit fields, least significant first.
    const BITS: &'static [BitField];
}

/// Gives each field of a `bits!` word its first bit: the sum of the widths before it.
#[doc(hidden)]
pub const fn placed<const N: usize>(mut fields: [BitField; N]) -> [BitField; N] {
    let (mut i, mut at) = (0, 0);
    while i < N {
        fields[i].shift = at;
        at += fields[i].width;
        i += 1;
    }
    fields
}

/// A field's name without the `r#` of those that are Rust keywords.
#[doc(hidden)]
pub const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', rest @ ..] => match core::str::from_utf8(rest) {
            Ok(plain) => plain,
            Err(_) => name,
        },
        _ => name,
    }
}

/// Joins the lines of a doc comment; the lines are known at compile time.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_line {
    ($($line:literal)*) => { concat!($($line,)* "").trim_ascii() };
}
#[doc(hidden)]
pub use doc_line;

/// Declares a word of bit fields, least significant bit first; `__` is a reserved field and may repeat.
///
/// ```ignore
/// bits! {
///     /// What the word is.
///     pub struct Word(u32) {
///         /// What the field is.
///         index: u32 = 24,
///         epoch: bool = 1,
///         __: u8 = 7,
///     }
/// }
/// ```
#[cfg(any(feature = "bnxt-re", feature = "ionic"))]
macro_rules! bits {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident($repr:ident) { $($(#[doc = $fdoc:literal])* $field:ident: $t:ident = $width:literal,)* }
    ) => {
        $(#[doc = $doc])*
        #[bitfield_struct::bitfield($repr)]
        #[derive(PartialEq, Eq)]
        pub struct $name { $($(#[doc = $fdoc])* #[bits($width)] pub $field: $t,)* }
        impl $crate::layout::BitWord for $name {
            const BITS: &'static [$crate::layout::BitField] = &$crate::layout::placed([$(
                $crate::layout::BitField {
                    name: $crate::layout::plain(stringify!($field)),
                    shift: 0,
                    width: $width,
                    doc: $crate::layout::doc_line!($($fdoc)*),
                },
            )*]);
        }
    };
}
#[cfg(any(feature = "bnxt-re", feature = "ionic"))]
pub(crate) use bits;

/// Declares a structure that a device reads or writes.
///
/// ```ignore
/// layout! {
///     /// What the structure is. Source: where the facts come from.
///     pub struct SqSge: "bnxt_re" "sq_sge", 16 {
///         /// What the field is.
///         va_or_pa: le::U64 = 0,
///         /// A word with bit fields inside.
///         word: le::U32 as Word = 8,
///     }
/// }
/// ```
/// Two literals name the family and the kernel driver's structure (`""` if there is none). Fields are listed without gaps.
/// A platform crate that declares its own needs `zerocopy` and `static_assertions` among its dependencies.
#[doc(hidden)]
#[macro_export]
macro_rules! layout {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $family:literal $kernel:literal, $size:literal {
            $($(#[doc = $fdoc:literal])* $field:ident: $t:ty $(as $bits:ty)? = $offset:literal,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name {
            $(
                $(#[doc = $fdoc])*
                #[doc = concat!("\n\nByte offset ", stringify!($offset), ".")]
                pub $field: $t,
            )*
        }
        static_assertions::const_assert_eq!(core::mem::size_of::<$name>(), $size);
        static_assertions::const_assert_eq!(core::mem::align_of::<$name>(), 1);
        $(static_assertions::const_assert_eq!(core::mem::offset_of!($name, $field), $offset);)*
        impl $name {
            /// The layout as data.
            pub const LAYOUT: $crate::layout::Layout = $crate::layout::Layout {
                family: $family,
                name: stringify!($name),
                kernel: $kernel,
                size: $size,
                fields: &[$($crate::layout::Field {
                    name: $crate::layout::plain(stringify!($field)),
                    offset: $offset,
                    size: core::mem::size_of::<$t>(),
                    order: <$t as $crate::layout::FieldType>::ORDER,
                    bits: $crate::layout::layout!(@bits $($bits)?),
                    doc: $crate::layout::doc_line!($($fdoc)*),
                },)*],
                doc: $crate::layout::doc_line!($($doc)*),
            };
            /// All zero bytes.
            pub const ZERO: Self = zerocopy::transmute!([0u8; $size]);
        }
    };
    (@bits) => { &[] };
    (@bits $bits:ty) => { <$bits as $crate::layout::BitWord>::BITS };
}
#[doc(hidden)]
pub use layout;

/// The layouts of several tables, one table after the other.
#[cfg(feature = "ionic")]
pub(crate) const fn joined<const N: usize>(tables: &[&[Layout]]) -> [Layout; N] {
    const NONE: Layout = Layout { family: "", name: "", kernel: "", size: 0, fields: &[], doc: "" };
    let (mut all, mut at, mut table) = ([NONE; N], 0, 0);
    while table < tables.len() {
        let mut i = 0;
        while i < tables[table].len() {
            all[at] = tables[table][i];
            (at, i) = (at + 1, i + 1);
        }
        table += 1;
    }
    assert!(at == N, "the tables have another number of layouts");
    all
}

/// All layouts of all families that are compiled in.
pub fn all() -> impl Iterator<Item = &'static Layout> {
    let families: &'static [&'static [Layout]] = &[
        #[cfg(feature = "bnxt-re")]
        crate::bnxt_re::LAYOUTS,
        #[cfg(feature = "bnxt-re")]
        crate::bnxt_re::hwrm::LAYOUTS,
        #[cfg(feature = "bnxt-re")]
        crate::bnxt_re::rcfw::LAYOUTS,
        #[cfg(feature = "ionic")]
        crate::ionic::LAYOUTS,
        #[cfg(feature = "ionic")]
        crate::ionic::devcmd::LAYOUTS,
        #[cfg(feature = "ionic")]
        crate::ionic::admin::LAYOUTS,
    ];
    families.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    bits! {
        /// A word.
        pub struct Word(u32) {
            /// Low.
            low: u32 = 24,
            /// Flag.
            flag: bool = 1,
            __: u8 = 7,
        }
    }
    layout! {
        /// A structure.
        pub struct Pair: "test" "pair", 12 {
            /// First.
            first: le::U64 = 0,
            /// Second.
            second: be::U32 as Word = 8,
        }
    }

    #[test]
    fn a_declaration_becomes_a_table_entry() {
        let [first, second] = Pair::LAYOUT.fields else { panic!("two fields") };
        assert_eq!((first.name, first.offset, first.size, first.order), ("first", 0, 8, ByteOrder::Little));
        assert_eq!((second.order, second.doc), (ByteOrder::Big, "Second."));
        let spans: [(&str, u32, u32); 3] = core::array::from_fn(|i| {
            let b = second.bits[i];
            (b.name, b.shift, b.width)
        });
        assert_eq!(spans, [("low", 0, 24), ("flag", 24, 1), ("__", 25, 7)]);
        assert_eq!(u32::from(Word::new().with_low(5).with_flag(true)), 0x0100_0005);
        assert_eq!(zerocopy::IntoBytes::as_bytes(&Pair::ZERO), [0; 12]);
    }

    #[test]
    fn fields_of_every_layout_cover_it_without_gaps() {
        for layout in all() {
            let end = layout.fields.iter().fold(0, |end, f| {
                assert_eq!(f.offset, end, "{}.{}", layout.name, f.name);
                for w in f.bits {
                    assert!(w.shift + w.width <= 8 * f.size as u32, "{}.{}.{}", layout.name, f.name, w.name);
                }
                end + f.size
            });
            assert_eq!(end, layout.size, "{}", layout.name);
        }
    }
}
