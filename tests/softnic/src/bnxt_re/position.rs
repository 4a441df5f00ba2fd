/// Where one end of a ring stands, as doorbells tell it: an index below the ring's depth, and the epoch bit, which
/// flips whenever the index wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Index of the next entry.
    pub index: u32,
    /// Parity of the wraps.
    pub epoch: bool,
}

/// Why a doorbell is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stray {
    /// The index is not below the depth.
    #[error("index {index} in a ring of {depth}")]
    OutOfRing {
        /// Index of the doorbell.
        index: u32,
        /// Entries of the ring.
        depth: u32,
    },
    /// The index moves backwards, or wraps without a flip of the epoch, or the epoch flips without a wrap: the device
    /// cannot tell these apart.
    #[error("index {} epoch {} after index {} epoch {}", to.index, u8::from(to.epoch), from.index, u8::from(from.epoch))]
    OutOfOrder {
        /// Position before.
        from: Position,
        /// Position of the doorbell.
        to: Position,
    },
    /// More entries than there can be.
    #[error("{moved} entries on, at most {limit} can be")]
    TooFar {
        /// Entries that the doorbell moves on.
        moved: u32,
        /// Entries there can be.
        limit: u32,
    },
}

impl Position {
    /// Moves to `to` in a ring of `depth` entries, at most `limit` entries on, and returns how many.
    ///
    /// # Errors
    /// What is wrong with `to`; nothing moves then.
    pub fn advance(&mut self, to: Self, depth: u32, limit: u32) -> Result<u32, Stray> {
        if to.index >= depth {
            return Err(Stray::OutOfRing { index: to.index, depth });
        }
        let moved = self.distance(to, depth).ok_or(Stray::OutOfOrder { from: *self, to })?;
        if moved > limit {
            return Err(Stray::TooFar { moved, limit });
        }
        *self = to;
        Ok(moved)
    }

    /// Moves on by `count` entries, fewer than `depth`.
    pub fn step(&mut self, count: u32, depth: u32) {
        self.index += count;
        if self.index >= depth {
            self.index -= depth;
            self.epoch = !self.epoch;
        }
    }

    fn distance(self, to: Self, depth: u32) -> Option<u32> {
        if self.epoch == to.epoch {
            to.index.checked_sub(self.index)
        } else {
            (to.index <= self.index).then(|| to.index + depth - self.index)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(index: u32, epoch: bool) -> Position {
        Position { index, epoch }
    }

    #[test]
    fn a_doorbell_moves_on_within_a_lap_and_across_the_end() {
        let mut position = Position::default();
        assert_eq!(position.advance(at(5, false), 8, 8), Ok(5));
        assert_eq!(position.advance(at(5, false), 8, 8), Ok(0), "rung twice");
        assert_eq!(position.advance(at(2, true), 8, 8), Ok(5));
        assert_eq!(position.advance(at(2, false), 8, 8), Ok(8), "a whole lap");
    }

    #[test]
    fn a_doorbell_with_a_wrong_epoch_or_backwards_is_stray() {
        let start = at(5, false);
        for to in [at(4, false), at(6, true)] {
            let mut position = start;
            assert_eq!(position.advance(to, 8, 8), Err(Stray::OutOfOrder { from: start, to }));
            assert_eq!(position, start);
        }
        let mut position = start;
        assert_eq!(position.advance(at(8, false), 8, 8), Err(Stray::OutOfRing { index: 8, depth: 8 }));
        assert_eq!(position.advance(at(4, true), 8, 6), Err(Stray::TooFar { moved: 7, limit: 6 }));
    }
}
