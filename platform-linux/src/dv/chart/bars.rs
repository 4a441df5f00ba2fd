//! A histogram in the terminal.

use super::Bucket;
use crate::units::duration;

/// Columns of the longest bar.
const WIDTH: usize = 40;
/// Eighths of a column, from none to seven.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A line for each bucket: from where it reaches, a bar, the count and its share of all.
pub fn bars(buckets: &[Bucket]) -> String {
    let total: u64 = buckets.iter().map(|b| b.count).sum();
    let most = buckets.iter().map(|b| b.count).max().unwrap_or(0).max(1);
    let digits = most.to_string().len();
    let mut out = String::new();
    for bucket in buckets {
        let eighths = (u128::from(bucket.count) * (WIDTH * 8) as u128).div_ceil(most.into()) as usize;
        let bar = "█".repeat(eighths / 8) + EIGHTHS.get(eighths % 8).unwrap_or(&"");
        let share = bucket.count as f64 * 100.0 / total.max(1) as f64;
        let from = duration(bucket.from);
        out += &format!("{from:>10} │{bar:<WIDTH$} {:>digits$} {share:>5.1} %\n", bucket.count);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_the_smallest_count_is_seen() {
        let of = |from, count| Bucket { from, to: from * 2, count };
        let text = bars(&[of(1000, 800), of(2000, 400), of(4000, 1), of(8000, 0)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], format!("   1.00 us │{} 800  66.6 %", "█".repeat(40)));
        assert_eq!(lines[1], format!("   2.00 us │{:<40} 400  33.3 %", "█".repeat(20)));
        assert_eq!(lines[2], format!("   4.00 us │{:<40}   1   0.1 %", "▏"));
        assert_eq!(lines[3], format!("   8.00 us │{:<40}   0   0.0 %", ""));
    }
}
