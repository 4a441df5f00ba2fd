//! A difference in bytes, told by the names of the fields.

use std::fmt::Write;

use directverbs::layout::{ByteOrder, Field, Layout};

/// Says which fields of `layout` differ between the two, one a line.
pub fn decode(layout: &Layout, theirs: &[u8], ours: &[u8]) -> String {
    let mut text = String::new();
    for field in layout.fields {
        let (Some(a), Some(b)) = (value(field, theirs), value(field, ours)) else { continue };
        if a == b {
            continue;
        }
        let name = layout.name;
        if field.bits.is_empty() || field.size > 8 {
            let _ = writeln!(text, "  {name}.{}: theirs {}, ours {}", field.name, show(&a), show(&b));
            continue;
        }
        for bits in field.bits {
            let of = |value: &Value| match value {
                Value::Word(word) => word >> bits.shift & (u64::MAX >> (64 - bits.width)),
                Value::Bytes(_) => 0,
            };
            if of(&a) != of(&b) {
                let _ = writeln!(
                    text,
                    "  {name}.{}.{}: theirs {:#x}, ours {:#x}",
                    field.name,
                    bits.name,
                    of(&a),
                    of(&b)
                );
            }
        }
    }
    text
}

#[derive(PartialEq)]
enum Value {
    Word(u64),
    Bytes(Vec<u8>),
}

fn value(field: &Field, bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.get(field.offset..field.offset + field.size)?;
    let mut word = [0; 8];
    Some(match (field.order, field.size) {
        (ByteOrder::Big, size @ ..=8) => {
            word[8 - size..].copy_from_slice(bytes);
            Value::Word(u64::from_be_bytes(word))
        }
        (ByteOrder::Little, size @ ..=8) | (ByteOrder::Bytes, size @ 1) => {
            word[..size].copy_from_slice(bytes);
            Value::Word(u64::from_le_bytes(word))
        }
        _ => Value::Bytes(bytes.to_vec()),
    })
}

fn show(value: &Value) -> String {
    match value {
        Value::Word(word) => format!("{word:#x}"),
        Value::Bytes(bytes) => hex(bytes),
    }
}

/// Bytes in hex, in groups of four.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, byte) in bytes.iter().enumerate() {
        if i != 0 && i % 4 == 0 {
            text.push(' ');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use directverbs::bnxt_re::psn::SqMsnSearch;

    use super::*;

    #[test]
    fn only_the_fields_that_differ_are_named() {
        let (mut theirs, ours) = ([0; 8], [0; 8]);
        theirs[6] = 5;
        let text = decode(&SqMsnSearch::LAYOUT, &theirs, &ours);
        assert_eq!(text, "  SqMsnSearch.start_idx_next_psn_start_psn.start_idx: theirs 0x5, ours 0x0\n");
    }

    #[test]
    fn hex_comes_in_groups() {
        assert_eq!(hex(&[1, 2, 3, 4, 0xff]), "01020304 ff");
    }
}
