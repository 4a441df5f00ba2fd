//! The table, the verdict, and the same as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::limits::{Bound, Limits};

/// Version of the JSON object. It moves when a field changes its meaning or goes; new fields do not move it.
pub const VERSION: u32 = 1;

/// What a row's figures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Instructions for one request or completion.
    Instructions,
    /// Time for one request or completion, in ticks of the time stamp counter.
    Ticks,
    /// Bytes of bookkeeping for one entry of a queue.
    Bytes,
    /// Work of two threads over that of one.
    Scaling,
    /// Commands from the reset to the first completion; beside them those of the Linux drivers.
    Commands,
    /// Loads and stores of registers from the reset to the first completion.
    Accesses,
    /// Bytes of an image without an operating system, or of memory for DMA, in KiB.
    Kib,
    /// Milliseconds from the start of a guest.
    Start,
}

impl Measure {
    const fn heading(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Ticks => "cycles (TSC)",
            Self::Bytes => "bytes for an entry",
            Self::Scaling => "threads",
            Self::Commands => "commands to the first completion",
            Self::Accesses => "register accesses to it",
            Self::Kib => "memory, KiB",
            Self::Start => "milliseconds",
        }
    }

    /// Whose figures ours are set beside.
    const fn other(self) -> &'static str {
        match self {
            Self::Instructions | Self::Ticks | Self::Bytes | Self::Scaling => "C",
            Self::Commands | Self::Accesses | Self::Kib | Self::Start => "Linux",
        }
    }

    /// Digits behind the point in the table.
    const fn digits(self) -> usize {
        match self {
            Self::Scaling => 2,
            Self::Commands | Self::Accesses => 0,
            _ => 1,
        }
    }
}

/// How a row stands to its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It has no limits.
    Unlimited,
    /// The target is reached.
    Target,
    /// The must is reached, and the target is not.
    Must,
    /// There is no must, and the target is not reached.
    Short,
    /// The must is missed.
    Missed,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Unlimited => "",
            Self::Target => "target",
            Self::Must => "must",
            Self::Short => "short",
            Self::Missed => "MISSED",
        }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Family, or `image` for a program without an operating system.
    pub family: &'static str,
    /// What was done.
    pub operation: String,
    /// What the figures are.
    pub measure: Measure,
    /// The C provider's figure, or that of the Linux drivers.
    pub c: Option<f64>,
    /// Our figure.
    pub ours: f64,
    /// Ours over C's.
    pub ratio: Option<f64>,
    /// The benchmark fails if this does not hold.
    pub must: Option<Bound>,
    /// The aim.
    pub target: Option<Bound>,
    /// How the row stands.
    pub verdict: Verdict,
}

impl Row {
    /// Judges the figures.
    pub fn new(
        family: &'static str,
        operation: String,
        measure: Measure,
        (c, ours): (Option<f64>, f64),
        limits: Option<Limits>,
    ) -> Self {
        let ratio = c.filter(|c| *c > 0.0).map(|c| ours / c);
        let verdict = match limits {
            None => Verdict::Unlimited,
            Some(Limits { must: Some(must), .. }) if !must.holds(ours, ratio) => Verdict::Missed,
            Some(Limits { target, .. }) if target.holds(ours, ratio) => Verdict::Target,
            Some(Limits { must: Some(_), .. }) => Verdict::Must,
            Some(Limits { must: None, .. }) => Verdict::Short,
        };
        let (must, target) = (limits.and_then(|l| l.must), limits.map(|l| l.target));
        Self { family, operation, measure, c, ours, ratio, must, target, verdict }
    }
}

/// All rows.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Report {
    /// A report of rows.
    pub const fn new(rows: Vec<Row>) -> Self {
        Self { version: VERSION, rows }
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// No must was missed.
    pub fn holds(&self) -> bool {
        self.count(Verdict::Missed) == 0
    }

    /// The closing line.
    pub fn closing(&self) -> String {
        format!(
            "bench: {} rows, {} at the target, {} within the must, {} missed, {} short of a target without a must, \
             {} without a limit",
            self.rows.len(),
            self.count(Verdict::Target),
            self.count(Verdict::Must),
            self.count(Verdict::Missed),
            self.count(Verdict::Short),
            self.count(Verdict::Unlimited),
        )
    }

    /// The table, a part for each family and measure, and the closing line.
    pub fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.operation.len()).fold(0, usize::max);
        let mut text = String::new();
        let mut part = None;
        for row in &self.rows {
            if part != Some((row.family, row.measure)) {
                part = Some((row.family, row.measure));
                let heading = format!("{}, {}", row.family, row.measure.heading());
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "\n{heading:width$}  {:>8}  {:>8}  {:>6}  {:>6}  {:>6}",
                    row.measure.other(),
                    "ours",
                    "ratio",
                    "must",
                    "target"
                );
            }
            let _ = writeln!(
                text,
                "{:width$}  {:>8}  {:>8}  {:>6}  {:>6}  {:>6}  {}",
                row.operation,
                figure(row.c, row.measure.digits()),
                figure(Some(row.ours), row.measure.digits()),
                figure(row.ratio, 2),
                bound(row.must),
                bound(row.target),
                row.verdict.word(),
            );
        }
        let _ = write!(text, "\n{}", self.closing());
        text
    }
}

fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn bound(bound: Option<Bound>) -> String {
    match bound {
        None => "-".to_owned(),
        Some(Bound::OursAtMost(value) | Bound::RatioAtMost(value) | Bound::OursAtLeast(value)) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { must: Some(Bound::OursAtMost(130.0)), target: Bound::OursAtMost(90.0) };

    fn row(ours: f64, limits: Option<Limits>) -> Row {
        Row::new("ionic", "post".into(), Measure::Instructions, (Some(200.0), ours), limits)
    }

    #[test]
    fn a_missed_must_fails_and_a_missed_target_does_not() {
        let verdicts = [90.0, 90.1, 130.0, 130.1].map(|ours| row(ours, Some(LIMITS)).verdict);
        assert_eq!(verdicts, [Verdict::Target, Verdict::Must, Verdict::Must, Verdict::Missed]);
        assert!(Report::new(vec![row(130.0, Some(LIMITS)), row(500.0, None)]).holds());
        let report = Report::new(vec![row(90.0, Some(LIMITS)), row(131.0, Some(LIMITS)), row(1.0, None)]);
        assert!(!report.holds());
        assert_eq!(
            report.closing(),
            "bench: 3 rows, 1 at the target, 0 within the must, 1 missed, 0 short of a target without a must, 1 without a limit"
        );
    }

    #[test]
    fn a_ratio_without_the_c_provider_misses() {
        let limits = Limits { must: Some(Bound::RatioAtMost(0.6)), target: Bound::RatioAtMost(0.4) };
        let row = |c| Row::new("ionic", "poll".into(), Measure::Instructions, (c, 50.0), Some(limits));
        assert_eq!(row(None).verdict, Verdict::Missed);
        assert_eq!(row(Some(0.0)).verdict, Verdict::Missed);
        assert_eq!((row(Some(100.0)).verdict, row(Some(100.0)).ratio), (Verdict::Must, Some(0.5)));
        assert_eq!(row(Some(125.0)).verdict, Verdict::Target);
    }

    #[test]
    fn a_target_without_a_must_fails_nothing() {
        let aim = Some(Limits { must: None, ..LIMITS });
        assert_eq!([row(90.0, aim).verdict, row(900.0, aim).verdict], [Verdict::Target, Verdict::Short]);
        let report = Report::new(vec![row(900.0, aim)]);
        assert!(report.holds() && report.rows[0].must.is_none() && report.rows[0].target.is_some());
    }

    #[test]
    fn the_table_shows_each_figure_in_its_part() {
        let text = Report::new(vec![row(131.26, Some(LIMITS)), row(1.0, None)]).table();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["ionic,", "instructions", "C", "ours", "ratio", "must", "target"]);
        assert_eq!(lines[2], ["post", "200.0", "131.3", "0.66", "130", "90", "MISSED"]);
        assert_eq!(lines[3], ["post", "200.0", "1.0", "0.01", "-", "-"]);
        assert!(text.ends_with("0 at the target, 0 within the must, 1 missed, 0 short of a target without a must, 1 without a limit"), "{text}");
    }

    #[test]
    fn json_has_a_version_and_the_bounds_by_name() {
        let json = serde_json::to_value(Report::new(vec![row(100.0, Some(LIMITS)), row(1.0, None)])).unwrap();
        assert_eq!(json["version"], 1);
        assert_eq!(json["rows"][0]["must"]["ours_at_most"], 130.0);
        assert_eq!(json["rows"][0]["verdict"], "must");
        assert_eq!(json["rows"][1]["must"], serde_json::Value::Null);
    }
}
