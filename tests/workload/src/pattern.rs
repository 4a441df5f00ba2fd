/// The contents of one message: a stream of words that follow from seed, direction, turn and position, and from nothing
/// else, so that both sides can make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern(Words);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// All different, with this key.
    Random(u64),
    /// All the same.
    Same(u64),
}

/// Increment of SplitMix64: the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every bit of `x` over all (the finalizer of SplitMix64 with one multiplication less).
const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 29)
}

impl Pattern {
    /// The contents of message `message` of turn `turn`, made by the side with number `source`.
    pub const fn new(seed: u64, source: u64, turn: u64, message: u64) -> Self {
        let key = mix(seed.wrapping_add(GOLDEN.wrapping_mul(source + 1)));
        let key = mix(key.wrapping_add(GOLDEN.wrapping_mul(turn)) ^ GOLDEN);
        Self(Words::Random(mix(key.wrapping_add(message))))
    }

    /// One byte, again and again.
    pub const fn of_byte(byte: u8) -> Self {
        Self(Words::Same(u64::from_le_bytes([byte; 8])))
    }

    /// Word `index`, of 8 bytes.
    pub const fn word(self, index: u64) -> u64 {
        match self.0 {
            Words::Random(key) => mix(key.wrapping_add(GOLDEN.wrapping_mul(index))),
            Words::Same(word) => word,
        }
    }

    /// Fills `out` with the bytes from `offset` on.
    pub fn fill(self, offset: usize, out: &mut [u8]) {
        let (mut index, skip) = (offset as u64 / 8, offset % 8);
        let head = out.len().min((8 - skip) % 8);
        let (start, rest) = out.split_at_mut(head);
        if !start.is_empty() {
            start
                .iter_mut()
                .zip(self.word(index).to_le_bytes().into_iter().skip(skip))
                .for_each(|(o, b)| *o = b);
            index += 1;
        }
        for chunk in rest.chunks_mut(8) {
            let word = self.word(index).to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(o, b)| *o = b);
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_piece_equals_that_piece_of_the_whole() {
        let pattern = Pattern::new(7, 0, 3, 1);
        let mut whole = [0; 64];
        pattern.fill(0, &mut whole);
        for start in 0..64 {
            for end in start..64 {
                let mut piece = [0; 64];
                pattern.fill(start, &mut piece[..end - start]);
                assert_eq!(piece[..end - start], whole[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn seed_source_turn_and_message_all_change_the_contents() {
        let all = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)];
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                let word = |&(s, d, t, m): &(u64, u64, u64, u64)| Pattern::new(s, d, t, m).word(0);
                assert_ne!(word(a), word(b), "{a:?} {b:?}");
            }
        }
    }
}
