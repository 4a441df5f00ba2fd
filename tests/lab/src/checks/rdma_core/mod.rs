//! Our layouts of the datapath and constants against rdma-core's own headers, compiled by a C compiler (CASES F7). The
//! control channels are the kernel's: [`super::layout`] compares those.
//!
//! The headers are fetched, never shipped. rdma-core describes a WQE or CQE by several structures one after the
//! other, and packs several of our fields into one word; the tables in [`bnxt_re`] and [`ionic`] say which of its
//! members, and which bits of it, stand for each of our fields.

mod bnxt_re;
mod ionic;
mod probe;

use directverbs::layout::{ByteOrder, Layout};

use crate::error::{Error, Result};
use crate::suites::Checks;
use probe::Measured;

/// One of our layouts, and the C structures that lie where it lies, one after the other.
#[derive(Debug)]
pub struct Pair {
    layout: &'static str,
    parts: &'static [&'static str],
    fields: &'static [Same],
}

/// Our field, or `field.bits`; index of the C structure; its member; and which bits of it, as a C expression, or
/// nothing if it is the whole member.
#[derive(Clone, Copy, Debug)]
pub struct Same(&'static str, usize, &'static str, &'static str);

/// The tables of one family.
#[derive(Debug)]
pub struct Family {
    name: &'static str,
    layouts: &'static [Layout],
    headers: &'static [&'static str],
    pairs: &'static [Pair],
    /// Layouts that the headers do not describe.
    unknown: &'static [&'static str],
    /// Our values of the headers' constants.
    constants: fn() -> Vec<(&'static str, u64)>,
}

/// Compiles and runs a probe for each family, and compares.
///
/// # Errors
/// The probe could not be compiled or run.
pub fn run(checks: &mut Checks<'_>) -> Result<()> {
    for family in [&bnxt_re::FAMILY, &ionic::FAMILY] {
        let measured = probe::measure(checks, family)?;
        for ours in family.layouts {
            let pair = family.pairs.iter().find(|pair| pair.layout == ours.name);
            match pair {
                Some(pair) => checks.count(ours.name, compare(ours, pair, &measured)),
                None if family.unknown.contains(&ours.name) => {}
                None => checks.count(ours.name, Err::<(), _>("no entry in the table of rdma-core's names")),
            }
        }
        for (name, ours) in (family.constants)() {
            let theirs = measured.constant(name)?;
            let outcome =
                if theirs == ours { Ok(()) } else { Err(format!("{ours:#x} here, {theirs:#x} there")) };
            checks.count(name, outcome);
        }
    }
    Ok(())
}

/// Size, and the place, size and byte order of each field or the bits of it.
fn compare(ours: &Layout, pair: &Pair, theirs: &Measured) -> Result<()> {
    let differs = |what: String| Err(Error::Unexpected(what));
    // What follows a header in a static WQE is no part of rdma-core's structures.
    let header = ours.fields.iter().find(|f| f.name == "data").map_or(ours.size, |data| data.offset);
    let mut starts = vec![0];
    for part in pair.parts {
        starts.push(starts.last().copied().unwrap_or(0) + theirs.size(part)?);
    }
    let total = starts.last().copied().unwrap_or(0);
    if total != header {
        return differs(format!("{header} bytes here, {total} there"));
    }
    for same in pair.fields {
        let Same(name, part, member, bits) = *same;
        let (field, word) = name.split_once('.').unwrap_or((name, ""));
        let Some(field) = ours.fields.iter().find(|f| f.name == field) else {
            return differs(format!("no field {field}"));
        };
        let Some((structure, start)) = pair.parts.get(part).zip(starts.get(part)) else {
            return differs(format!("{name}: no part {part}"));
        };
        let found = theirs.member(structure, member, bits)?;
        let at = start + found.offset;
        if word.is_empty() && (field.offset < at || field.offset + field.size > at + found.size) {
            let here = format!("{}..{}", field.offset, field.offset + field.size);
            return differs(format!("{name} in bytes {here} here, {}..{} there", at, at + found.size));
        }
        let order_differs = match field.order {
            ByteOrder::Bytes | ByteOrder::Native => false,
            ByteOrder::Little => found.order == 'B',
            ByteOrder::Big => found.order == 'L' || field.offset != at || field.size != found.size,
        };
        if order_differs {
            return differs(format!("{name}: {:?} here, {} there", field.order, found.order));
        }
        if bits.is_empty() && word.is_empty() {
            if field.size != found.size {
                return differs(format!("{name}: {} bytes here, {} there", field.size, found.size));
            }
            continue;
        }
        let (shift, width) = if word.is_empty() {
            (0, 8 * field.size as u32)
        } else {
            match field.bits.iter().find(|b| b.name == word) {
                Some(bits) => (bits.shift, bits.width),
                None => return differs(format!("no bits {name}")),
            }
        };
        if field.offset.abs_diff(at) >= 8 {
            return differs(format!("{name} at byte {} here, {at} there", field.offset));
        }
        // Both counted from the first of their bytes; a big-endian word is in the same place on both sides.
        let first = at.min(field.offset);
        let here = u128::from(u64::MAX >> (64 - width)) << (shift as usize + 8 * (field.offset - first));
        let there = u128::from(found.mask) << (8 * (at - first));
        if here != there {
            return differs(format!("{name}: bits {here:#x} here, {there:#x} there ({bits})"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use directverbs::layout;

    const MEASURED: &str = "size struct a: 4\nsize struct b: 12\n\
        member struct b.word.0xF0: 0 4 L 240\nmember struct b.whole.: 4 8 L 0\nmember struct b.big.: 4 8 B 0\n";

    const LAYOUT: Layout = Layout {
        family: "test",
        name: "Test",
        kernel: "",
        size: 16,
        fields: &[
            layout::Field {
                name: "word",
                offset: 4,
                size: 1,
                order: ByteOrder::Bytes,
                bits: &[layout::BitField { name: "high", shift: 4, width: 4, doc: "" }],
                doc: "",
            },
            layout::Field { name: "whole", offset: 8, size: 8, order: ByteOrder::Little, bits: &[], doc: "" },
        ],
        doc: "",
    };

    fn outcome(parts: &'static [&'static str], fields: &'static [Same]) -> Result<()> {
        compare(&LAYOUT, &Pair { layout: "Test", parts, fields }, &Measured::parse(MEASURED))
    }

    #[test]
    fn equal_places_and_bits_are_equal() {
        const SAME: &[Same] = &[Same("word.high", 1, "word", "0xF0"), Same("whole", 1, "whole", "")];
        outcome(&["struct a", "struct b"], SAME).unwrap();
    }

    #[test]
    fn every_difference_is_found() {
        const SAME: &[Same] = &[Same("whole", 1, "whole", "")];
        const ORDER: &[Same] = &[Same("whole", 1, "big", "")];
        const BITS: &[Same] = &[Same("word", 1, "word", "0xF0")];
        for (parts, fields, says) in [
            (&["struct b"] as &[_], SAME, "16 bytes here, 12 there"),
            (
                &["struct b", "struct a"],
                &[Same("whole", 0, "whole", "")],
                "whole in bytes 8..16 here, 4..12 there",
            ),
            (&["struct a", "struct b"], ORDER, "whole: Little here, B there"),
            (&["struct a", "struct b"], BITS, "word: bits 0xff here, 0xf0 there (0xF0)"),
            (&["struct a", "struct b"], &[Same("gone", 1, "word", "")], "no field gone"),
        ] {
            assert_eq!(outcome(parts, fields).unwrap_err().to_string(), says);
        }
    }
}
