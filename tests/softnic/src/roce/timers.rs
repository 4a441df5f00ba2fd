//! Timer codes.

/// Waiting time of an RNR NAK in units of 10 microseconds, by its 5-bit code.
///
/// Source: InfiniBand Architecture Specification, volume 1, table "Encoding for RNR NAK timer field".
const RNR_TIMES: [u32; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
    3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

/// Nanoseconds to wait after an RNR NAK with this timer code; its upper bits do not count.
pub fn rnr_ns(code: u8) -> u64 {
    RNR_TIMES.get(usize::from(code & 0x1f)).map_or(0, |units| u64::from(*units) * 10_000)
}

/// Nanoseconds until an unanswered packet is sent again: 4.096 us * 2^code. `None` for 0: for ever.
pub fn timeout_ns(code: u8) -> Option<u64> {
    (code != 0).then(|| 4096 << (code & 0x1f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_for_the_times_of_the_specification() {
        assert_eq!(rnr_ns(0), 655_360_000);
        assert_eq!(rnr_ns(1), 10_000);
        assert_eq!(rnr_ns(14), 1_280_000);
        assert_eq!(rnr_ns(31), 491_520_000);
        assert_eq!(timeout_ns(14), Some(67_108_864));
        assert_eq!(timeout_ns(0), None);
    }
}
