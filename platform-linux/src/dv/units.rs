//! Numbers as people write and read them.

/// Reads a size in bytes, with k, M or G for powers of 1024.
pub fn size(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text.get(digits.len()..).unwrap_or("") {
        "" => Some(0),
        "k" | "K" | "KiB" => Some(10),
        "m" | "M" | "MiB" => Some(20),
        "g" | "G" | "GiB" => Some(30),
        _ => None,
    };
    let bytes = shift.and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift));
    let bytes = bytes.ok_or("a size is a number of bytes, or one with k, M or G behind it")?;
    u32::try_from(bytes).map_err(|_| format!("{bytes} bytes are more than a message can have (1G)"))
}

/// Reads a percentage, with or without its sign.
pub fn parts_per_million(text: &str) -> Result<u32, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok();
    match percent.filter(|percent| (0.0..=100.0).contains(percent)) {
        Some(percent) => Ok((percent * 10_000.0).round() as u32),
        None => Err(format!("`{text}` is not a percentage from 0 to 100")),
    }
}

/// Nanoseconds, for people.
pub fn duration(ns: u64) -> String {
    let ns_f = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} us", ns_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns_f / 1e6),
        _ => format!("{:.2} s", ns_f / 1e9),
    }
}

/// Reads a length of time: seconds, or a number with `ms`, `s` or `m` behind it. Gives nanoseconds.
pub fn span(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or("") {
        "ms" => Some(1e6),
        "" | "s" => Some(1e9),
        "m" => Some(60e9),
        _ => None,
    };
    let ns = unit.and_then(|unit| Some(digits.parse::<f64>().ok()? * unit));
    match ns.filter(|ns| (1e6..=86_400e9).contains(ns)) {
        Some(ns) => Ok(ns as u64),
        None => Err("a duration is from 1ms to a day: seconds, or a number with ms, s or m behind it".into()),
    }
}

/// Bytes, for people.
pub fn bytes(bytes: u32) -> String {
    match bytes {
        1_048_576.. if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        1024.. if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// A rate, with a prefix of thousands.
pub fn rate(per_second: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(factor, _)| per_second >= *factor) {
        Some((factor, prefix)) => format!("{:.2} {prefix}{unit}", per_second / factor),
        None => format!("{per_second:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_powers_of_1024() {
        let cases = [("0", 0), ("64", 64), ("4k", 4096), ("4KiB", 4096), ("1M", 1 << 20), ("1G", 1 << 30)];
        for (text, bytes) in cases {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "k", "-1", "4kb", "1.5k", "99999999999999999999", "4 k"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("8G").unwrap_err(), "8589934592 bytes are more than a message can have (1G)");
    }

    #[test]
    fn durations_have_a_fitting_unit() {
        let cases = [(999, "999 ns"), (1_500, "1.50 us"), (2_000_000, "2.00 ms"), (3_250_000_000, "3.25 s")];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn spans_bytes_and_rates_are_read_and_written_with_units() {
        let cases =
            [("2", 2_000_000_000), ("0.5s", 500_000_000), ("20ms", 20_000_000), ("1m", 60_000_000_000)];
        for (text, ns) in cases {
            assert_eq!(span(text), Ok(ns), "{text}");
        }
        for wrong in ["", "s", "-1", "0", "1h", "1e99", "NaN", "inf"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        assert_eq!([1, 1024, 1025, 1 << 20].map(bytes), ["1 B", "1 KiB", "1025 B", "1 MiB"]);
        assert_eq!(rate(12_345_678.0, "bit/s"), "12.35 Mbit/s");
        assert_eq!(rate(999.0, "msg/s"), "999.00 msg/s");
    }
}
