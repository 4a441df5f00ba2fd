//! Numbers that the host gives to objects.

/// Numbers from 0 to at most 64 times `WORDS`, less one, each given to one object at a time.
#[derive(Clone, Debug)]
pub struct IdPool<const WORDS: usize> {
    used: [u64; WORDS],
    count: u32,
    /// Where the search goes on, so that a number is not given again at once.
    next: u32,
}

impl<const WORDS: usize> IdPool<WORDS> {
    /// The numbers below `count`, of which those below `first` are never given.
    pub fn new(first: u32, count: u32) -> Self {
        let count = count.min(64 * WORDS as u32);
        let mut pool = Self { used: [0; WORDS], count, next: first };
        (0..first.min(count)).for_each(|id| pool.set(id, true));
        pool
    }

    fn set(&mut self, id: u32, used: bool) {
        if let Some(word) = self.used.get_mut(id as usize / 64) {
            let bit = 1 << (id % 64);
            *word = if used { *word | bit } else { *word & !bit };
        }
    }

    /// Whether a number is given.
    pub fn is_given(&self, id: u32) -> bool {
        self.used.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 != 0)
    }

    /// Gives a number; `None` if all are given.
    pub fn take(&mut self) -> Option<u32> {
        let id =
            (self.next..self.count).chain(0..self.next).find(|id| *id < self.count && !self.is_given(*id))?;
        self.set(id, true);
        self.next = id + 1;
        Some(id)
    }

    /// Takes a number back.
    pub fn give(&mut self, id: u32) {
        self.set(id, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_not_again_at_once() {
        let mut pool = IdPool::<1>::new(2, 5);
        assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [Some(2), Some(3), Some(4), None]);
        pool.give(3);
        pool.give(2);
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(2), Some(3), None]);
        assert!(pool.is_given(0) && !pool.is_given(64));
    }

    #[test]
    fn there_are_never_more_than_there_is_room_for() {
        let mut pool = IdPool::<1>::new(0, u32::MAX);
        assert_eq!((0..100).filter_map(|_| pool.take()).count(), 64);
        pool.give(1000);
        assert_eq!(IdPool::<1>::new(9, 5).take(), None);
    }
}
