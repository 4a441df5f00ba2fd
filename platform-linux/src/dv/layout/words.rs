//! Words of a structure: their values and their bits.

use directverbs::layout::{BitField, ByteOrder, Field};

/// Bytes of one element of a field: of an array, the largest word up to 32 bits that divides it.
pub fn element(field: &Field) -> usize {
    match (field.order, field.size) {
        (ByteOrder::Bytes, _) => 1,
        (_, size @ (2 | 4)) => size,
        (_, 8) => 8,
        (_, size) if size % 4 == 0 => 4,
        _ => 2,
    }
}

/// The value of up to eight bytes in their order; bytes without order count as little-endian.
pub fn value(bytes: &[u8], order: ByteOrder) -> u64 {
    let push = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    match order {
        ByteOrder::Big => bytes.iter().fold(0, push),
        ByteOrder::Native if cfg!(target_endian = "big") => bytes.iter().fold(0, push),
        ByteOrder::Bytes | ByteOrder::Little | ByteOrder::Native => bytes.iter().rev().fold(0, push),
    }
}

/// Bits of `word` that belong to `bits`.
pub fn part(word: u64, bits: &BitField) -> u64 {
    (word & mask(bits)) >> bits.shift
}

/// The bits as a mask of the word.
pub fn mask(bits: &BitField) -> u64 {
    let ones = if bits.width >= 64 { u64::MAX } else { (1 << bits.width) - 1 };
    ones.checked_shl(bits.shift).unwrap_or(0)
}

/// A doc comment as plain text in one line: without the marks of code and of links.
pub fn plain(doc: &str) -> String {
    let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    doc.replace("[`", "").replace("`]", "").replace('`', "")
}

/// Name of a byte order.
pub fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Bytes => "bytes",
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
        ByteOrder::Native => "native",
    }
}

/// A field that has no meaning and must be zero.
pub fn reserved(name: &str) -> bool {
    name == "__" || ["rsvd", "resv", "reserved", "unused"].iter().any(|start| name.starts_with(start))
}
