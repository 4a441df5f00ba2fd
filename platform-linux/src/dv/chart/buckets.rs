//! Buckets of a histogram, each a constant factor wider than the one before.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The most buckets.
const MOST: usize = 20;
/// Each power of two is divided into so many buckets, at best.
const FINEST: u32 = 16;

/// How often values from `from` to below `to` occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    pub from: u64,
    pub to: u64,
    pub count: u64,
}

/// Buckets over all that was recorded, as narrow as their number allows. What is over the 99.9th percentile is in the last.
pub fn buckets(histogram: &Histogram<u64>) -> Vec<Bucket> {
    if histogram.is_empty() {
        return Vec::new();
    }
    let (least, most) = (histogram.min().max(1), histogram.max());
    let high = histogram.value_at_quantile(0.999).max(least);
    let mut parts = FINEST;
    let mut edges = edges(least, high, parts);
    while edges.len() > MOST && parts > 1 {
        parts /= 2;
        edges = self::edges(least, high, parts);
    }
    // Whole powers of two are still too many if the range is that large.
    while edges.len() > MOST {
        let last = edges.last().copied();
        edges = edges.into_iter().step_by(2).collect();
        if let Some(last) = last.filter(|last| edges.last() != Some(last)) {
            edges.push(last);
        }
    }
    if let Some(last) = edges.last_mut() {
        *last = (*last).max(most + 1);
    }
    let mut buckets: Vec<_> = edges
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => Some(Bucket { from: *from, to: *to, count: 0 }),
            _ => None,
        })
        .collect();
    for value in histogram.iter_recorded() {
        let at = value.value_iterated_to().clamp(least, most);
        if let Some(bucket) = buckets.iter_mut().find(|b| at < b.to) {
            bucket.count += value.count_since_last_iteration();
        }
    }
    buckets
}

/// Edges from at most `low` to over `high`, `parts` to each power of two, without those that rounding makes equal.
fn edges(low: u64, high: u64, parts: u32) -> Vec<u64> {
    let parts = f64::from(parts);
    let edge = |step: f64| (step / parts).exp2().floor() as u64;
    let mut step = ((low as f64).log2() * parts).floor();
    let mut edges = vec![edge(step).min(low)];
    while edges.last().is_some_and(|last| *last <= high) {
        step += 1.0;
        if edges.last().is_some_and(|last| edge(step) > *last) {
            edges.push(edge(step));
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram<u64> {
        let mut histogram = crate::latency::histogram().expect("bounds that are right");
        values.iter().for_each(|value| crate::latency::record(&mut histogram, *value));
        histogram
    }

    #[test]
    fn one_value_makes_one_bucket_and_none_makes_none() {
        assert_eq!(buckets(&of(&[])), []);
        let one = buckets(&of(&[1000, 1000]));
        assert!(matches!(one.as_slice(), [Bucket { from: ..=1000, to: 1001.., count: 2 }]), "{one:?}");
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_bucket_and_they_are_few(values in prop::collection::vec(1..3_000_000_000_000u64, 1..200)) {
            let histogram = of(&values);
            let buckets = buckets(&histogram);
            prop_assert!(buckets.len() <= MOST + 1, "{}", buckets.len());
            prop_assert_eq!(buckets.iter().map(|b| b.count).sum::<u64>(), values.len() as u64);
            prop_assert!(buckets.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].from < pair[0].to));
        }
    }
}
