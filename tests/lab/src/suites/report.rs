use std::fmt::Write as _;
use std::time::Duration;

use crate::suites::Tally;

/// The outcome of one suite.
#[derive(Debug)]
pub struct Row {
    /// Name of the suite.
    pub name: &'static str,
    /// Its counts.
    pub tally: Tally,
    /// Time it took.
    pub time: Duration,
}

/// The table of suites, and the closing line.
pub fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).fold("suite".len(), usize::max);
    let mut text = format!("\n{:width$}  passed  failed  seconds\n", "suite");
    let rule = format!("{}  ------  ------  -------\n", "-".repeat(width));
    text.push_str(&rule);
    let mut all = Tally::default();
    for Row { name, tally, time } in rows {
        let Tally { passed, failed } = *tally;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:width$}  {passed:>6}  {failed:>6}  {:>7.1}", time.as_secs_f64());
        all.add(*tally);
    }
    text.push_str(&rule);
    let _ = write!(text, "{} passed, {} failed", all.passed, all.failed);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_gives_the_sums() {
        let row = |name, passed, failed| Row {
            name,
            tally: Tally { passed, failed },
            time: Duration::from_millis(1500),
        };
        let text = table(&[row("first", 3, 0), row("the second", 40, 2)]);
        assert_eq!(text.lines().last(), Some("43 passed, 2 failed"));
        assert!(text.contains("\nthe second      40       2      1.5\n"), "{text}");
    }
}
