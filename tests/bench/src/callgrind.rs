//! Reads what callgrind wrote: the total of each dump, under the name that the program gave it.

use std::collections::HashMap;

/// Instructions by the name of the dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(HashMap<String, u64>);

impl Totals {
    /// Reads a file that was written with `--combine-dumps=yes`.
    pub fn read(text: &str) -> Self {
        let mut totals = HashMap::new();
        let mut name = None;
        for line in text.lines() {
            if let Some(given) = line.strip_prefix("desc: Trigger: Client Request: ") {
                name = Some(given.to_owned());
            } else if let Some(total) = line.strip_prefix("totals: ")
                && let (Some(name), Ok(total)) = (name.take(), total.trim().parse())
            {
                totals.insert(name, total);
            }
        }
        Self(totals)
    }

    /// The total of the dump `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dump_gives_its_total() {
        let text = "# callgrind format\nversion: 1\npart: 1\n\ndesc: Trigger: Client Request: a, x16\n\nevents: Ir\n\
                    fn=(1) f\n10 5\ntotals: 1234\n\npart: 2\ndesc: Trigger: Client Request: b\nevents: Ir\n\
                    totals: 7\n\npart: 3\ndesc: Trigger: Program termination\nevents: Ir\ntotals: 0\n";
        let totals = Totals::read(text);
        assert_eq!((totals.get("a, x16"), totals.get("b"), totals.get("c")), (Some(1234), Some(7), None));
    }
}
