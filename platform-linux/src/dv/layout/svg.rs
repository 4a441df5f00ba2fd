//! `dv layout show --svg`: the diagram as a picture.

use std::fmt::Write as _;

use directverbs::layout::Layout;

use super::diagram::{ROW, high_to_low, rows, span};
use super::words;

const MARGIN: usize = 60;
const BYTE: usize = 100;
const HEIGHT: usize = 34;

/// A standalone SVG document: the bytes in the order of memory, then each word's bits.
pub fn picture(layout: &Layout) -> String {
    let mut body = String::new();
    let mut y = 50;
    for (start, cells) in rows(layout) {
        text(&mut body, 8, y + 22, "start", &format!("{start:#04x}"));
        for cell in cells {
            let x = MARGIN + (cell.start - start) * BYTE;
            let class = if words::reserved(cell.field.name) { "rsvd" } else { "field" };
            cell_of(&mut body, (x, y), cell.bytes * BYTE, class, cell.field.name);
        }
        y += HEIGHT;
    }
    for field in layout.fields.iter().filter(|f| !f.bits.is_empty()) {
        y += 44;
        text(&mut body, MARGIN, y - 8, "start", &format!("{} ({})", field.name, words::order(field.order)));
        // A narrow field has its name above a line of its own, so each is as wide as its name needs.
        let mut x = MARGIN;
        for bits in high_to_low(field) {
            let reserved = bits.name == "__";
            let name = if reserved { "" } else { bits.name };
            let label = format!("{name} [{}]", span(&bits));
            let width = (label.len() * 8 + 12).max(40);
            if x + width > MARGIN + ROW * BYTE {
                x = MARGIN;
                y += HEIGHT;
            }
            cell_of(&mut body, (x, y), width, if reserved { "rsvd" } else { "bits" }, label.trim());
            x += width;
        }
        y += HEIGHT;
    }
    let (width, height) = (MARGIN + ROW * BYTE + 10, y + 12);
    let title = format!("{} ({}), {} bytes", layout.name, layout.family, layout.size);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{title}</title>\n\
         <style>text{{font:13px monospace}} rect{{stroke:#333}} .field{{fill:#dbe9f6}} .bits{{fill:#e5f2dd}} .rsvd{{fill:#eee}}</style>\n\
         <rect x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\" style=\"fill:#fff;stroke:none\"/>\n"
    );
    text(&mut out, 8, 20, "start", &title);
    for byte in 0..ROW.min(layout.size) {
        text(&mut out, MARGIN + byte * BYTE + BYTE / 2, 44, "middle", &format!("+{byte}"));
    }
    out + &body + "</svg>\n"
}

fn cell_of(out: &mut String, (x, y): (usize, usize), width: usize, class: &str, name: &str) {
    let _ =
        writeln!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\"/>");
    let room = width / 8;
    let short: String =
        if name.len() > room { format!("{}~", &name[..room.saturating_sub(1)]) } else { name.into() };
    text(out, x + width / 2, y + 22, "middle", &short);
}

/// Names are identifiers: nothing in them needs escaping.
fn text(out: &mut String, x: usize, y: usize, anchor: &str, text: &str) {
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>");
}
