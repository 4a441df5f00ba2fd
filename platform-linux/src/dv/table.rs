//! Text in columns.

/// Rows with each column as wide as its widest cell, two spaces apart. A column whose name ends with `>` is aligned to the
/// right; the last one is not padded.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let right: Vec<_> = head.iter().map(|name| name.ends_with('>')).collect();
    let head: Vec<_> = head.iter().map(|name| name.trim_end_matches('>').to_owned()).collect();
    let rows: Vec<_> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, width), right) in row.iter().zip(&widths).zip(&right) {
            line += &if *right { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_blank_end() {
        let rows =
            [vec!["a".into(), "1".into(), "long name".into()], vec!["bcd".into(), "234".into(), "".into()]];
        let text = table(&["NAME", "N>", "WHAT"], &rows);
        assert_eq!(text, "NAME    N  WHAT\na       1  long name\nbcd   234\n");
    }
}
