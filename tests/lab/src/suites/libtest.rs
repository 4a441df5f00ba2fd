use crate::suites::Tally;

/// Adds up the `test result:` lines of a `cargo test` run.
pub fn count(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines() {
        let Some((_, counts)) = line.split_once("test result: ") else { continue };
        for part in counts.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<usize>), words.next()) else {
                continue;
            };
            match what {
                "passed" => tally.passed += number,
                "failed" => tally.failed += number,
                _ => {}
            }
        }
    }
    tally
}

/// The output of the tests that failed, without that of all others.
pub fn failures(output: &str) -> String {
    let interesting = |line: &&str| {
        line.starts_with("error")
            || line.starts_with("test ") && line.ends_with("FAILED")
            || line.contains("panicked at")
    };
    output.lines().filter(interesting).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_add_up() {
        let output = "running 3 tests\ntest a ... ok\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
            test b ... FAILED\n\
            test result: FAILED. 1 passed; 2 failed; 4 ignored; 0 measured; 0 filtered out; finished in 1.23s\n";
        let tally = count(output);
        assert_eq!((tally.passed, tally.failed), (4, 2));
        assert_eq!(failures(output), "test b ... FAILED");
    }

    #[test]
    fn output_without_results_counts_nothing() {
        let tally = count("error: could not compile `x`\n");
        assert_eq!((tally.passed, tally.failed), (0, 0));
    }
}
