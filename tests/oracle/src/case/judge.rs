//! The comparison of what both sides did.

use std::ops::Range;

use super::exception::{Allowance, Allowed, Exception};
use super::observed::{Access, Area, Completion, Observed, Outcome};

/// A difference that no exception explains.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// The step ended differently.
    Outcome {
        /// Theirs.
        theirs: Outcome,
        /// Ours.
        ours: Outcome,
    },
    /// Bytes of an area that follow each other.
    Bytes {
        /// The area.
        area: &'static str,
        /// Where.
        range: Range<usize>,
    },
    /// Accesses to the device; `None` where one side made no more.
    Access {
        /// Place in the sequence.
        index: usize,
        /// Theirs.
        theirs: Option<Access>,
        /// Ours.
        ours: Option<Access>,
    },
    /// A completion that only one side has.
    Completion {
        /// Place in the sequence.
        index: usize,
        /// Theirs.
        theirs: Option<Completion>,
        /// Ours.
        ours: Option<Completion>,
    },
    /// A field of a completion.
    Field {
        /// Place in the sequence.
        index: usize,
        /// Name.
        field: &'static str,
        /// Theirs.
        theirs: Option<u64>,
        /// Ours.
        ours: Option<u64>,
    },
    /// A number.
    Value {
        /// Name.
        name: &'static str,
        /// Theirs.
        theirs: Option<u64>,
        /// Ours.
        ours: Option<u64>,
    },
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What no exception explains.
    pub differences: Vec<Difference>,
    /// Exceptions that explained something, each once.
    pub used: Vec<&'static Exception>,
    /// Bytes that an exception explained, with what they hold with them: ours are to become the same, so that a
    /// difference shows once.
    pub reconcile: Vec<(&'static str, usize, Vec<u8>)>,
}

impl Judgement {
    fn take(&mut self, exception: &'static Exception) {
        if !self.used.contains(&exception) {
            self.used.push(exception);
        }
    }
}

/// Compares what both sides did and left in memory.
pub fn judge(theirs: &Observed, ours: &Observed, areas: &[Area], allowances: &[Allowance]) -> Judgement {
    let mut result = Judgement::default();
    outcomes(&mut result, theirs.outcome, ours.outcome, allowances);
    accesses(&mut result, &theirs.accesses, &ours.accesses, allowances);
    completions(&mut result, &theirs.completions, &ours.completions, allowances);
    values(&mut result, &theirs.values, &ours.values, allowances);
    for area in areas {
        bytes(&mut result, area, allowances);
    }
    result
}

fn explained(allowances: &[Allowance], by: impl Fn(&Allowed) -> bool) -> Option<&'static Exception> {
    allowances.iter().find(|allowance| by(&allowance.allowed)).map(|allowance| allowance.exception)
}

fn outcomes(result: &mut Judgement, theirs: Outcome, ours: Outcome, allowances: &[Allowance]) {
    if theirs == ours {
        return;
    }
    match explained(allowances, |allowed| *allowed == Allowed::Outcome { theirs, ours }) {
        Some(exception) => result.take(exception),
        None => result.differences.push(Difference::Outcome { theirs, ours }),
    }
}

/// Takes out of `accesses` what only this side may do; each allowance takes one.
fn without(
    result: &mut Judgement,
    accesses: &[Access],
    allowances: &[Allowance],
    only: impl Fn(&Allowed) -> Option<Access>,
) -> Vec<Access> {
    let mut left = accesses.to_vec();
    for allowance in allowances {
        if let Some(access) = only(&allowance.allowed)
            && let Some(at) = left.iter().position(|a| *a == access)
        {
            left.remove(at);
            result.take(allowance.exception);
        }
    }
    left
}

fn accesses(result: &mut Judgement, theirs: &[Access], ours: &[Access], allowances: &[Allowance]) {
    if theirs == ours {
        return;
    }
    if let Some(exception) = explained(allowances, |allowed| *allowed == Allowed::Accesses) {
        result.take(exception);
        return;
    }
    let theirs = without(result, theirs, allowances, |allowed| match allowed {
        Allowed::OnlyTheirs(access) => Some(*access),
        _ => None,
    });
    let ours = without(result, ours, allowances, |allowed| match allowed {
        Allowed::OnlyOurs(access) => Some(*access),
        _ => None,
    });
    for index in 0..theirs.len().max(ours.len()) {
        let (a, b) = (theirs.get(index).copied(), ours.get(index).copied());
        if a == b {
            continue;
        }
        let exception = match (a, b) {
            (
                Some(Access::Store { page, offset, value }),
                Some(Access::Store { page: page_b, offset: offset_b, value: value_b }),
            ) if page == page_b && offset == offset_b => explained(allowances, |allowed| {
                matches!(allowed, Allowed::StoreBits { index: at, mask }
                    if *at == index && (value ^ value_b) & !mask == 0)
            }),
            _ => None,
        };
        match exception {
            Some(exception) => result.take(exception),
            None => result.differences.push(Difference::Access { index, theirs: a, ours: b }),
        }
    }
}

fn completions(result: &mut Judgement, theirs: &[Completion], ours: &[Completion], allowances: &[Allowance]) {
    if theirs == ours {
        return;
    }
    if let Some(exception) = explained(allowances, |allowed| *allowed == Allowed::Completions) {
        result.take(exception);
        return;
    }
    for index in 0..theirs.len().max(ours.len()) {
        let (a, b) = (theirs.get(index), ours.get(index));
        let (Some(a), Some(b)) = (a, b) else {
            let (theirs, ours) = (a.copied(), b.copied());
            result.differences.push(Difference::Completion { index, theirs, ours });
            continue;
        };
        for ((field, theirs), (_, ours)) in a.fields().into_iter().zip(b.fields()) {
            if theirs == ours {
                continue;
            }
            match explained(allowances, |allowed| *allowed == Allowed::Field { index, field, theirs }) {
                Some(exception) => result.take(exception),
                None => result.differences.push(Difference::Field { index, field, theirs, ours }),
            }
        }
    }
}

fn values(
    result: &mut Judgement,
    theirs: &[(&'static str, u64)],
    ours: &[(&'static str, u64)],
    allowances: &[Allowance],
) {
    let of = |values: &[(&'static str, u64)], name| values.iter().find(|v| v.0 == name).map(|v| v.1);
    let only_ours = ours.iter().filter(|v| of(theirs, v.0).is_none());
    for (name, _) in theirs.iter().chain(only_ours) {
        let (a, b) = (of(theirs, name), of(ours, name));
        if a == b {
            continue;
        }
        let exception = explained(allowances, |allowed| {
            matches!(allowed, Allowed::Value { name: of, theirs, ours }
                if of == name && Some(*theirs) == a && Some(*ours) == b)
        });
        match exception {
            Some(exception) => result.take(exception),
            None => result.differences.push(Difference::Value { name, theirs: a, ours: b }),
        }
    }
}

fn bytes(result: &mut Judgement, area: &Area, allowances: &[Allowance]) {
    let (theirs, ours) = (&area.theirs, &area.ours);
    if theirs == ours {
        return;
    }
    let name = area.name;
    let differs = |at: usize| theirs.get(at) != ours.get(at);
    let end = theirs.len().max(ours.len());
    let mut at = 0;
    while at < end {
        if !differs(at) {
            at += 1;
            continue;
        }
        let inside = |allowed: &Allowed| matches!(allowed, Allowed::Bytes { area, range } if *area == name && range.contains(&at));
        if let Some(exception) = explained(allowances, inside) {
            result.take(exception);
            if let Some(byte) = theirs.get(at) {
                match result.reconcile.last_mut() {
                    Some((area, start, bytes)) if *area == name && *start + bytes.len() == at => {
                        bytes.push(*byte);
                    }
                    _ => result.reconcile.push((name, at, vec![*byte])),
                }
            }
        } else {
            match result.differences.last_mut() {
                Some(Difference::Bytes { area, range }) if *area == name && range.end == at => {
                    range.end += 1;
                }
                _ => result.differences.push(Difference::Bytes { area: name, range: at..at + 1 }),
            }
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static KNOWN: Exception = Exception { name: "known", fault: "is wrong", right: "is right" };

    fn allow(allowed: Allowed) -> Vec<Allowance> {
        vec![Allowance { exception: &KNOWN, allowed }]
    }

    fn area(theirs: &[u8], ours: &[u8]) -> Vec<Area> {
        vec![Area { name: "ring", theirs: theirs.to_vec(), ours: ours.to_vec() }]
    }

    fn stores(values: &[u64]) -> Observed {
        let store = |value: &u64| Access::Store { page: "doorbell", offset: 0, value: *value };
        Observed { accesses: values.iter().map(store).collect(), ..Observed::default() }
    }

    #[test]
    fn a_corrupted_byte_is_a_difference() {
        let same = Observed::default();
        for at in 0..64 {
            let (good, mut bad) = ([0x5a; 64], [0x5a; 64]);
            bad[at] ^= 1;
            let result = judge(&same, &same, &area(&bad, &good), &[]);
            assert_eq!(result.differences, [Difference::Bytes { area: "ring", range: at..at + 1 }]);
        }
    }

    #[test]
    fn an_exception_explains_its_bytes_and_no_others() {
        let same = Observed::default();
        let areas = area(&[1, 1, 1, 1, 1], &[1, 2, 2, 2, 1]);
        let allowances = allow(Allowed::Bytes { area: "ring", range: 2..4 });
        let result = judge(&same, &same, &areas, &allowances);
        assert_eq!(result.differences, [Difference::Bytes { area: "ring", range: 1..2 }]);
        assert_eq!(result.used, [&KNOWN]);
        assert_eq!(result.reconcile, [("ring", 2, vec![1, 1])]);
        let other = allow(Allowed::Bytes { area: "table", range: 0..5 });
        assert_eq!(judge(&same, &same, &areas, &other).differences.len(), 1);
    }

    #[test]
    fn an_exception_without_a_difference_is_not_used() {
        let same = Observed::default();
        let allowances = allow(Allowed::Bytes { area: "ring", range: 0..5 });
        let result = judge(&same, &same, &area(&[7; 5], &[7; 5]), &allowances);
        assert!(result.used.is_empty() && result.differences.is_empty());
    }

    #[test]
    fn stores_are_compared_in_order_and_one_by_one() {
        let result = judge(&stores(&[1, 2, 3]), &stores(&[1, 3, 2]), &[], &[]);
        assert_eq!(result.differences.len(), 2);
        let extra = Access::Store { page: "doorbell", offset: 0, value: 2 };
        let allowances = allow(Allowed::OnlyTheirs(extra));
        let result = judge(&stores(&[1, 2, 3]), &stores(&[1, 3]), &[], &allowances);
        assert!(result.differences.is_empty() && result.used == [&KNOWN]);
        let result = judge(&stores(&[1, 2, 2, 3]), &stores(&[1, 3]), &[], &allowances);
        assert!(!result.differences.is_empty(), "an allowance takes one access");
    }

    #[test]
    fn bits_of_a_store_may_differ_where_an_exception_says_so() {
        let allowances = allow(Allowed::StoreBits { index: 0, mask: 0xf0 });
        assert!(judge(&stores(&[0x10]), &stores(&[0x20]), &[], &allowances).differences.is_empty());
        assert!(!judge(&stores(&[0x11]), &stores(&[0x20]), &[], &allowances).differences.is_empty());
    }

    #[test]
    fn a_field_of_a_completion_must_have_the_very_value_of_the_exception() {
        let with = |src_qp| Observed {
            completions: vec![Completion { src_qp: Some(src_qp), ..Completion::default() }],
            ..Observed::default()
        };
        let allowances = allow(Allowed::Field { index: 0, field: "src_qp", theirs: Some(8) });
        assert!(judge(&with(8), &with(0x28), &[], &allowances).differences.is_empty());
        assert_eq!(judge(&with(9), &with(0x28), &[], &allowances).differences.len(), 1);
    }

    #[test]
    fn numbers_are_compared_by_name() {
        let with =
            |values: &[(&'static str, u64)]| Observed { values: values.to_vec(), ..Observed::default() };
        let result = judge(&with(&[("slots", 1)]), &with(&[("slots", 2), ("bytes", 3)]), &[], &[]);
        assert_eq!(result.differences.len(), 2);
    }
}
