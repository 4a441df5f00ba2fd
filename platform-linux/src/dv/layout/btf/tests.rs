use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use proptest::sample::Index;

use super::*;

/// BTF of a list of words as types, and of names.
pub fn blob(types: &[u32], names: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    let length = 4 * types.len() as u32;
    for word in [24, 0, length, length, names.len() as u32].iter().chain(types) {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(names);
    bytes
}

/// Names of [`PAIR`].
pub const NAMES: &[u8] = b"\0u32\0pair\0first\0bits\0inner\0";

/// `struct pair { u32 first; struct { u32 bits: 5; } inner; union { u32 u32[2]; }; }`, of type 5.
#[rustfmt::skip]
pub const PAIR: &[u32] = &[
    1, 1 << 24, 4, 32, // 1: INT u32, 4 bytes
    0, 4 << 24 | 1 << 31 | 1, 4, 16, 1, 5 << 24 | 3, // 2: STRUCT with a bit field at bit 3
    0, 3 << 24, 0, 1, 1, 2, // 3: ARRAY of 2
    0, 5 << 24 | 1, 8, 1, 3, 0, // 4: UNION
    5, 4 << 24 | 3, 16, 10, 1, 0, 21, 2, 32, 0, 4, 64, // 5: STRUCT pair
];

fn member(path: &str, offset: u64, width: u64, bit_field: bool) -> Member {
    Member { path: path.into(), offset, width, bit_field, order: None }
}

#[test]
fn nested_and_anonymous_members_arrays_and_bit_fields_are_flattened() {
    let btf = Btf::parse(&blob(PAIR, NAMES), None).unwrap();
    let pair = btf.structure("pair").unwrap().unwrap();
    assert_eq!(pair.size, 16);
    assert_eq!(
        pair.members,
        [
            member("first", 0, 32, false),
            member("inner", 32, 32, false),
            member("inner.bits", 35, 5, true),
            member("u32", 64, 64, false),
        ]
    );
    assert_eq!(btf.structure("other"), Ok(None));
}

#[test]
fn a_typedef_tells_the_byte_order_of_elements() {
    // struct { __be16 be[2]; const __le16 le; }: 1 INT, 2 and 3 TYPEDEF, 4 ARRAY, 5 CONST, 6 STRUCT.
    #[rustfmt::skip]
    let types = [
        0, 1 << 24, 2, 16,
        1, 8 << 24, 1,
        8, 8 << 24, 1,
        0, 3 << 24, 0, 2, 1, 2,
        0, 10 << 24, 3,
        15, 4 << 24 | 2, 6, 20, 4, 0, 23, 5, 32,
    ];
    let btf = Btf::parse(&blob(&types, b"\0__be16\0__le16\0pair\0be\0le\0"), None).unwrap();
    let members = btf.structure("pair").unwrap().unwrap().members;
    let orders: Vec<_> = members.iter().map(|m| (&*m.path, m.width, m.order)).collect();
    assert_eq!(orders, [("be", 32, Some(ByteOrder::Big)), ("le", 16, Some(ByteOrder::Little))]);
}

#[test]
fn a_module_continues_the_numbers_of_its_base() {
    let base = Btf::parse(&blob(PAIR, NAMES), None).unwrap();
    let outer = NAMES.len() as u32;
    let module = blob(&[outer, 4 << 24 | 1, 16, 21, 5, 0], b"outer\0");
    let btf = Btf::parse(&module, Some(base)).unwrap();
    let paths: Vec<_> =
        btf.structure("outer").unwrap().unwrap().members.into_iter().map(|m| m.path).collect();
    assert_eq!(paths, ["inner", "inner.first", "inner.inner", "inner.inner.bits", "inner.u32"]);
    assert_eq!(Btf::parse(&module, None).map(drop), Err(BtfError::Name(outer)));
}

#[test]
fn a_modules_own_structure_comes_before_one_of_its_base_with_the_same_name() {
    let base = Btf::parse(&blob(PAIR, NAMES), None).unwrap();
    let btf = Btf::parse(&blob(&[5, 4 << 24, 99], b""), Some(base)).unwrap();
    assert_eq!(btf.structure("pair").unwrap().unwrap().size, 99);
}

#[test]
fn whole_btf_takes_nothing_from_a_base() {
    let base = Btf::parse(&blob(PAIR, NAMES), None).unwrap();
    let btf = Btf::parse(&blob(&[1, 4 << 24, 8], b"\0own\0"), Some(base)).unwrap();
    assert_eq!(btf.structure("pair"), Ok(None));
    assert_eq!(btf.structure("own").unwrap().unwrap().size, 8);
}

#[test]
fn bytes_that_are_no_btf_are_refused() {
    let whole = blob(PAIR, NAMES);
    for length in 0..whole.len() {
        assert!(Btf::parse(&whole[..length], None).is_err(), "{length} bytes");
    }
    let refused = |bytes: &[u8]| Btf::parse(bytes, None).map(drop).unwrap_err();
    assert_eq!(refused(b"\xeb\x9f\x01\x00"), BtfError::BigEndian);
    assert_eq!(refused(b"\x9f\xeb\x02\x00"), BtfError::Version(2));
    assert_eq!(refused(b"\x7fELF"), BtfError::Magic);
    assert_eq!(refused(&blob(&[0, 99 << 24, 0], NAMES)), BtfError::Kind(99));
}

#[test]
fn every_flipped_bit_gives_an_error_or_other_types() {
    let whole = blob(PAIR, NAMES);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        look_at_all(&bytes);
    }
}

/// Parses and flattens what is there; the outcome does not matter, that there is one does.
fn look_at_all(bytes: &[u8]) {
    if let Ok(btf) = Btf::parse(bytes, None) {
        for name in NAMES.split(|byte| *byte == 0) {
            let _ = btf.structure(std::str::from_utf8(name).unwrap());
        }
    }
}

proptest! {
    #[test]
    fn hostile_btf_neither_panics_nor_hangs(
        edits in vec((any::<Index>(), any::<u8>()), 0..24),
        cut in any::<Index>(),
        tail in vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = blob(PAIR, NAMES);
        for (at, byte) in &edits {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        look_at_all(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        bytes.extend(tail);
        look_at_all(&bytes);
    }

    #[test]
    fn hostile_types_neither_panic_nor_hang(
        types in vec((0..24u32, 0..8u32, any::<bool>(), 0..12u32, vec(0..64u32, 0..24)), 0..40),
    ) {
        let words = types.iter().flat_map(|(kind, count, flag, other, rest)| {
            let info = kind << 24 | count | u32::from(*flag) << 31;
            [5, info, *other].into_iter().chain(rest.iter().copied())
        });
        look_at_all(&blob(&words.collect::<Vec<_>>(), NAMES));
    }
}

#[test]
fn structures_that_multiply_without_names_are_refused() {
    // Each has two anonymous members of the next: 2^31 in all.
    let mut types = vec![];
    for id in 1..32 {
        types.extend([if id == 1 { 5 } else { 0 }, 4 << 24 | 2, 16, 0, id + 1, 0, 0, id + 1, 64]);
    }
    types.extend([0, 1 << 24, 8, 64]);
    let btf = Btf::parse(&blob(&types, NAMES), None).unwrap();
    assert_eq!(btf.structure("pair"), Err(BtfError::Endless));
}

#[test]
fn a_type_inside_itself_is_refused() {
    let itself = blob(&[5, 4 << 24 | 1, 16, 10, 1, 0], NAMES);
    assert_eq!(Btf::parse(&itself, None).unwrap().structure("pair"), Err(BtfError::Endless));
    let alias = blob(&[5, 4 << 24 | 1, 16, 10, 2, 0, 0, 10 << 24, 2], NAMES);
    assert_eq!(Btf::parse(&alias, None).unwrap().structure("pair"), Err(BtfError::Endless));
}
