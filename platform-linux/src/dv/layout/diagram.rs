//! `dv layout show`: a table of fields and a diagram in text.

use std::fmt::Write as _;

use directverbs::layout::{BitField, Field, Layout};

use super::words;

/// Bytes in a row of a diagram.
pub const ROW: usize = 8;

/// Columns of a byte, the border to its left included.
const COLUMNS: usize = 10;

/// A field, or the part of it that a row shows.
pub struct Cell<'l> {
    /// The field.
    pub field: &'l Field,
    /// First byte in the structure.
    pub start: usize,
    /// Bytes.
    pub bytes: usize,
}

/// The cells of each row, with the row's first byte. A long field of bytes takes one row, not all that it fills.
pub fn rows(layout: &Layout) -> Vec<(usize, Vec<Cell<'_>>)> {
    let mut rows: Vec<(usize, Vec<Cell<'_>>)> = Vec::new();
    for field in layout.fields {
        let (mut at, end) = (field.offset, field.offset + field.size);
        while at < end {
            let row = at / ROW * ROW;
            let bytes = (row + ROW).min(end) - at;
            let cell = Cell { field, start: at, bytes };
            match rows.last_mut() {
                Some((start, cells)) if *start == row => cells.push(cell),
                _ => rows.push((row, vec![cell])),
            }
            at += bytes;
        }
    }
    rows
}

/// The bits of a word from the most significant down, gaps filled.
pub fn high_to_low(field: &Field) -> Vec<BitField> {
    let gap = |shift, width| BitField { name: "__", shift, width, doc: "" };
    let (mut at, mut all) = (0, Vec::new());
    for bits in field.bits {
        if bits.shift > at {
            all.push(gap(at, bits.shift - at));
        }
        all.push(*bits);
        at = bits.shift + bits.width;
    }
    let end = 8 * field.size as u32;
    if at < end {
        all.push(gap(at, end - at));
    }
    all.reverse();
    all
}

/// The first sentence of a doc comment.
pub fn first_sentence(doc: &str) -> String {
    let doc = words::plain(doc);
    match doc.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => doc,
    }
}

/// `31:24`, or `7` for one bit.
pub fn span(bits: &BitField) -> String {
    match bits.width {
        1 => bits.shift.to_string(),
        width => format!("{}:{}", bits.shift + width - 1, bits.shift),
    }
}

/// All about a structure.
pub fn text(layout: &Layout) -> String {
    let kernel =
        if layout.kernel.is_empty() { String::new() } else { format!(", kernel struct {}", layout.kernel) };
    let mut out = format!("{} ({}{kernel}), {} bytes\n", layout.name, layout.family, layout.size);
    // Writing to a `String` does not fail.
    let _ = writeln!(out, "{}\n", words::plain(layout.doc));
    let _ = writeln!(out, "{:<8} {:<8} {:<26} {:<14} WHAT", "BYTES", "BITS", "FIELD", "ORDER");
    for field in layout.fields {
        let last = field.offset + field.size - 1;
        let bytes = if field.size == 1 { last.to_string() } else { format!("{}-{last}", field.offset) };
        let bits = format!("{}:0", 8 * field.size - 1);
        let _ = writeln!(
            out,
            "{bytes:<8} {bits:<8} {:<26} {:<14} {}",
            field.name,
            words::order(field.order),
            words::plain(field.doc)
        );
        for bits in field.bits {
            let doc = words::plain(bits.doc);
            let name = if bits.name == "__" { "(reserved)" } else { bits.name };
            let line = format!("{:<8} {:<8}   {name:<24} {:<14} {doc}", "", span(bits), "");
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out.push('\n');
    memory(layout, &mut out);
    for field in layout.fields.iter().filter(|f| !f.bits.is_empty()) {
        let _ = writeln!(
            out,
            "\n{} ({}), bits from most to least significant:",
            field.name,
            words::order(field.order)
        );
        for bits in high_to_low(field) {
            let name = if bits.name == "__" { "-" } else { bits.name };
            let _ = writeln!(out, "  {:>5} |{}| {name}", span(&bits), "#".repeat(bits.width as usize));
        }
    }
    out
}

/// Bytes in the order of memory.
fn memory(layout: &Layout, out: &mut String) {
    let mut heads = "      ".to_owned();
    for byte in 0..ROW.min(layout.size) {
        let _ = write!(heads, "{:<COLUMNS$}", format!(" +{byte}"));
    }
    let _ = writeln!(out, "{}", heads.trim_end());
    let border = |cells: &[Cell<'_>]| {
        let parts = cells.iter().map(|cell| format!("+{}", "-".repeat(cell.bytes * COLUMNS - 1)));
        format!("      {}+", parts.collect::<String>())
    };
    for (start, cells) in rows(layout) {
        let _ = writeln!(out, "{}", border(&cells));
        let _ = write!(out, "{start:#05x} ");
        for cell in &cells {
            let room = cell.bytes * COLUMNS - 1;
            let mut name = cell.field.name.to_owned();
            if name.len() > room {
                name.truncate(room - 1);
                name.push('~');
            }
            let _ = write!(out, "|{name:^room$}");
        }
        out.push_str("|\n");
        if start + ROW >= layout.size {
            let _ = writeln!(out, "{}", border(&cells));
        }
    }
}
