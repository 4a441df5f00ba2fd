//! The count of cases and exceptions.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::exception::Exception;

/// A difference, ready to be printed.
#[derive(Clone, Debug)]
pub struct Report {
    /// Mode and seed that show it again.
    pub case: String,
    /// Step and what differs.
    pub text: String,
}

/// What became of a case.
#[derive(Debug, Default)]
pub struct CaseResult {
    /// Exceptions that it needed, each once.
    pub used: Vec<&'static Exception>,
    /// The first difference that no exception explains.
    pub report: Option<Report>,
}

/// Counts.
#[derive(Debug, Default)]
pub struct Tally {
    /// Cases run.
    pub cases: u64,
    /// Cases without any difference.
    pub identical: u64,
    /// Cases whose differences are all explained by exceptions.
    pub excepted: u64,
    /// Cases with a difference that nothing explains.
    pub different: u64,
    /// Cases that needed an exception, by its name.
    pub uses: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Counts a case.
    pub fn record(&mut self, result: &CaseResult) {
        self.cases += 1;
        match (&result.report, result.used.is_empty()) {
            (Some(_), _) => self.different += 1,
            (None, true) => self.identical += 1,
            (None, false) => self.excepted += 1,
        }
        for exception in &result.used {
            *self.uses.entry(exception.name).or_default() += 1;
        }
    }

    /// Takes over the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.identical += other.identical;
        self.excepted += other.excepted;
        self.different += other.different;
        for (name, uses) in &other.uses {
            *self.uses.entry(name).or_default() += uses;
        }
    }

    /// Exceptions of `table` that no case needed: the provider was mended, or the cases no longer get there.
    pub fn unneeded(&self, table: &[&'static Exception]) -> Vec<&'static Exception> {
        table.iter().copied().filter(|exception| !self.uses.contains_key(exception.name)).collect()
    }

    /// The exceptions that were needed and how often, one a line.
    pub fn exceptions(&self, table: &[&'static Exception]) -> String {
        let mut text = String::new();
        for exception in table {
            if let Some(uses) = self.uses.get(exception.name) {
                let _ = writeln!(text, "  {uses:>6}  {}: {}", exception.name, exception.fault);
            }
        }
        text
    }

    /// The closing line.
    pub fn closing(&self) -> String {
        let Self { cases, identical, excepted, different, .. } = self;
        format!("oracle: {cases} cases, {identical} identical, {excepted} excepted, {different} different")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static KNOWN: Exception = Exception { name: "known", fault: "is wrong", right: "is right" };
    static OTHER: Exception = Exception { name: "other", fault: "is wrong", right: "is right" };

    #[test]
    fn an_exception_that_no_case_needed_is_found() {
        let mut tally = Tally::default();
        tally.record(&CaseResult { used: vec![&KNOWN], report: None });
        tally.record(&CaseResult::default());
        assert_eq!(tally.closing(), "oracle: 2 cases, 1 identical, 1 excepted, 0 different");
        assert_eq!(tally.unneeded(&[&KNOWN, &OTHER]), [&OTHER]);
        assert!(tally.exceptions(&[&KNOWN, &OTHER]).contains("1  known: is wrong"));
    }

    #[test]
    fn a_case_with_an_unexplained_difference_is_different_whatever_else_it_has() {
        let mut tally = Tally::default();
        let report = Some(Report { case: String::new(), text: String::new() });
        tally.record(&CaseResult { used: vec![&KNOWN], report });
        assert_eq!((tally.different, tally.excepted), (1, 0));
    }
}
