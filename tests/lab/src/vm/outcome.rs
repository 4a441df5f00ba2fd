//! What a guest reports, line by line. The guests' side: `tests/guest/src/check.rs` and
//! `linker/src/report.rs`.

/// What every line begins with.
const MARK: &str = "directverbs-guest:";

/// What the row is called that says that the guest itself has ended too early.
pub const GUEST: &str = "the guest";

/// What has become of one check: its name, and the time that it took, or why it failed.
pub type Row = (String, Result<String, String>);

/// The report of a guest.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Checks, in the order in which they ran, with why they failed.
    pub rows: Vec<Row>,
    /// Time from the guest's start to the first data that a NIC brought and that were verified, in microseconds, if it says so.
    pub first_verified: Option<u64>,
}

impl Outcome {
    /// Reads a report. What does not say how it ended counts as failed.
    pub fn read(text: &str) -> Self {
        let (mut rows, mut planned, mut ended) = (Vec::<Row>::new(), None, false);
        let (mut begun, mut first_verified) = (None, None);
        for line in text.lines().filter_map(|line| line.trim_end().strip_prefix(MARK)) {
            let mut words = line.trim_start().splitn(3, ' ');
            let (word, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let mut ends = |result| {
                begun = None;
                rows.push((name.to_owned(), result));
            };
            match word {
                "plan" => planned = name.parse::<usize>().ok(),
                "first-verified" => first_verified = name.parse().ok(),
                "begin" => begun = Some(name.to_owned()),
                "passed" => ends(Ok(words.next().unwrap_or_default().to_owned())),
                "failed" => ends(Err(words.next().unwrap_or("it does not say why").to_owned())),
                "end" => ended = true,
                _ => {}
            }
        }
        if let Some(name) = begun {
            rows.push((name, Err("began and did not end".into())));
        }
        let ran = rows.iter().filter(|(name, _)| name != "prepare").count();
        let missing = planned.map_or(1, |planned| planned.saturating_sub(ran));
        if missing > 0 || !ended {
            let why = match planned {
                None => "it never began".to_owned(),
                Some(planned) => format!("it ended after {ran} of {planned} checks"),
            };
            rows.push((GUEST.into(), Err(why)));
        }
        Self { rows, first_verified }
    }

    /// Checks that held, and that did not.
    pub fn counts(&self) -> (usize, usize) {
        let passed = self.rows.iter().filter(|(_, result)| result.is_ok()).count();
        (passed, self.rows.len() - passed)
    }

    /// The closing line.
    pub fn figures(&self, name: &str) -> String {
        let (passed, failed) = self.counts();
        format!("{name}: {} checks, {passed} passed, {failed} failed", self.rows.len())
    }

    /// A line for each check.
    pub fn table(&self) -> String {
        let lines = self.rows.iter().map(|(name, result)| match result {
            Ok(time) => format!("passed  {time:>8}  {name}"),
            Err(why) => format!("FAILED  {name}\n        {why}"),
        });
        let verified = self.first_verified.map(|micros| {
            format!("first verified completion {}.{:03} ms after the start", micros / 1000, micros % 1000)
        });
        lines.chain(verified).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
directverbs-guest: plan 2\r
directverbs-guest: begin a::one\r
something else\r
directverbs-guest: passed a::one 12 ms\r
directverbs-guest: begin a::two\r
directverbs-guest: first-verified 7000 us\r
directverbs-guest: failed a::two 1 is not 2\r
directverbs-guest: end\r
";

    #[test]
    fn a_report_is_counted_and_shown() {
        let outcome = Outcome::read(REPORT);
        assert_eq!(outcome.figures("vm linux"), "vm linux: 2 checks, 1 passed, 1 failed");
        assert_eq!(outcome.first_verified, Some(7000));
        let table = "passed     12 ms  a::one\nFAILED  a::two\n        1 is not 2\n\
                     first verified completion 7.000 ms after the start";
        assert_eq!(outcome.table(), table);
    }

    #[test]
    fn a_guest_that_ends_too_early_has_failed() {
        let failures = |text: &str| {
            let outcome = Outcome::read(text);
            outcome.rows.into_iter().filter(|(_, result)| result.is_err()).collect::<Vec<_>>()
        };
        let at = |end: &str| failures(&REPORT[..REPORT.find(end).unwrap()]);
        let missing = |text: &str| ("the guest".to_owned(), Err(text.to_owned()));
        assert_eq!(at("directverbs-guest: plan"), [missing("it never began")]);
        let began = ("a::two".to_owned(), Err("began and did not end".to_owned()));
        assert_eq!(at("directverbs-guest: failed"), [began, missing("it ended after 2 of 2 checks")]);
        assert_eq!(at("directverbs-guest: begin a::two"), [missing("it ended after 1 of 2 checks")]);
    }

    #[test]
    fn a_plan_may_grow() {
        let outcome = Outcome::read(
            "directverbs-guest: plan 1\ndirectverbs-guest: passed a\ndirectverbs-guest: plan 3\n",
        );
        assert_eq!(outcome.rows[1], ("the guest".into(), Err("it ended after 1 of 3 checks".into())));
    }

    #[test]
    fn a_stage_that_could_not_be_prepared_is_a_failure_beside_its_checks() {
        let outcome = Outcome::read(
            "directverbs-guest: plan 1\ndirectverbs-guest: failed prepare no module\n\
                                     directverbs-guest: end\n",
        );
        assert_eq!(outcome.counts(), (0, 2));
    }
}
