//! Descriptions of devices and queues for code that posts and polls by itself: on a GPU or another device, or in C.
//!
//! A description is plain data in the host's byte order, with every number that such code needs. `dv layout header` prints
//! the same structures for C, HIP and CUDA. The queues' WQEs, CQEs and doorbells are those of the [`crate::layout`] table.
//!
//! The first two words of each are its version and its size. Fields are never moved or removed within a version, only added
//! behind the last one: code that knows [`VERSION`] reads as much as `bytes` says, and refuses other versions.
//!
//! A described queue has one owner at a time. From the moment that the description is handed over until the owner has told
//! how far it came, nobody else posts or polls there.

/// Version of all descriptions.
pub const VERSION: u32 = 1;

/// Declares a description. Fields are `u32` or `u64` and listed without gaps, version and size first.
macro_rules! description {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $family:literal, $size:literal {
            $($(#[doc = $fdoc:literal])* $field:ident: $t:ty $(as $bits:ty)? = $offset:literal,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[repr(C)]
        pub struct $name {
            /// [`crate::description::VERSION`].
            pub version: u32,
            /// Bytes of this structure.
            pub bytes: u32,
            $(
                $(#[doc = $fdoc])*
                #[doc = concat!("\n\nByte offset ", stringify!($offset), ".")]
                pub $field: $t,
            )*
        }
        static_assertions::const_assert_eq!(core::mem::size_of::<$name>(), $size);
        $(static_assertions::const_assert_eq!(core::mem::offset_of!($name, $field), $offset);)*
        impl $name {
            /// The description as data.
            pub const LAYOUT: $crate::layout::Layout = $crate::layout::Layout {
                family: $family,
                name: stringify!($name),
                kernel: "",
                size: $size,
                fields: &[
                    $crate::description::word("version", 0, "Version of the description."),
                    $crate::description::word("bytes", 4, "Bytes of this structure."),
                    $($crate::layout::Field {
                        name: stringify!($field),
                        offset: $offset,
                        size: core::mem::size_of::<$t>(),
                        order: <$t as $crate::layout::FieldType>::ORDER,
                        bits: $crate::layout::layout!(@bits $($bits)?),
                        doc: $crate::layout::doc_line!($($fdoc)*),
                    },)*
                ],
                doc: $crate::layout::doc_line!($($doc)*),
            };
            /// Nothing but version and size.
            pub const EMPTY: Self = Self {
                version: $crate::description::VERSION,
                bytes: $size,
                $($field: 0,)*
            };
        }
    };
}
pub(crate) use description;

use crate::layout::{ByteOrder, Field, Layout};

/// One of the two words that every description begins with.
pub(crate) const fn word(name: &'static str, offset: usize, doc: &'static str) -> Field {
    Field { name, offset, size: 4, order: ByteOrder::Native, bits: &[], doc }
}

/// What a field says that names no object.
pub const NONE: u32 = u32::MAX;

/// All descriptions of all families that are compiled in.
pub fn all() -> impl Iterator<Item = &'static Layout> {
    let families: [&'static [Layout]; 2] = [
        #[cfg(feature = "bnxt-re")]
        crate::bnxt_re::description::LAYOUTS,
        #[cfg(not(feature = "bnxt-re"))]
        &[],
        #[cfg(feature = "ionic")]
        crate::ionic::description::LAYOUTS,
        #[cfg(not(feature = "ionic"))]
        &[],
    ];
    families.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_aligned_and_follows_the_one_before() {
        for description in all() {
            let end = description.fields.iter().fold(0, |end, f| {
                assert_eq!((f.offset, f.offset % f.size), (end, 0), "{}.{}", description.name, f.name);
                assert_eq!(f.order, ByteOrder::Native, "{}.{}", description.name, f.name);
                end + f.size
            });
            assert_eq!((end, end % 8), (description.size, 0), "{}", description.name);
        }
    }
}
