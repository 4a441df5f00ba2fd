use heapless::Vec;

/// Blocks begin at multiples of it and are so long: a cache line, so that no two share one.
pub const GRANULE: usize = 64;

/// What becomes of a piece of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can be given.
    Free,
    /// Somebody has it.
    Used,
    /// Given up by a driver of this function, which may still write there.
    Abandoned(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    start: usize,
    len: usize,
    state: State,
}

/// The memory in pieces, in order and without gaps; neighbours are not both free. At most `N` pieces.
#[derive(Debug)]
pub struct Extents<const N: usize> {
    list: Vec<Extent, N>,
}

impl<const N: usize> Extents<N> {
    /// `len` free bytes.
    pub fn new(len: usize) -> Self {
        const { assert!(N >= 3, "a block in the middle of the memory takes three pieces") };
        let mut list = Vec::new();
        // There is room for one.
        let _ = list.push(Extent { start: 0, len: len - len % GRANULE, state: State::Free });
        Self { list }
    }

    /// Takes the first free bytes of this length whose address, `base` further on, is a multiple of `align`: their start and
    /// length. `None` if there are none, or too many pieces.
    pub fn take(&mut self, bytes: usize, align: usize, base: usize) -> Option<(usize, usize)> {
        let len = bytes.max(1).checked_next_multiple_of(GRANULE)?;
        let align = align.max(GRANULE);
        let fits = |extent: &Extent| {
            let at = base.checked_add(extent.start)?.checked_next_multiple_of(align)? - base;
            let before = at - extent.start;
            (extent.state == State::Free && before <= extent.len && len <= extent.len - before).then_some(at)
        };
        let (index, at) = self.list.iter().enumerate().find_map(|(i, extent)| Some((i, fits(extent)?)))?;
        let whole = *self.list.get(index)?;
        let (before, after) = (at - whole.start, whole.start + whole.len - (at + len));
        let more = usize::from(before > 0) + usize::from(after > 0);
        if self.list.len() + more > N {
            return None;
        }
        let mut put = |place, start, len, state| {
            let _ = self.list.insert(place, Extent { start, len, state });
        };
        if after > 0 {
            put(index + 1, at + len, after, State::Free);
        }
        if before > 0 {
            put(index, whole.start, before, State::Free);
        }
        let used = self.list.get_mut(index + usize::from(before > 0))?;
        *used = Extent { start: at, len, state: State::Used };
        Some((at, len))
    }

    /// Changes what becomes of the piece in use at `start`.
    pub fn set(&mut self, start: usize, state: State) {
        if let Some(extent) = self.list.iter_mut().find(|extent| extent.start == start) {
            extent.state = state;
        }
        self.join();
    }

    /// Frees what drivers of a function have given up.
    pub fn reclaim(&mut self, owner: u16) {
        for extent in &mut self.list {
            if extent.state == State::Abandoned(owner) {
                extent.state = State::Free;
            }
        }
        self.join();
    }

    /// Bytes that are in this state, and the longest piece of them.
    pub fn sum(&self, state: impl Fn(State) -> bool) -> (usize, usize) {
        let lens = self.list.iter().filter(|extent| state(extent.state)).map(|extent| extent.len);
        lens.fold((0, 0), |(sum, longest), len| (sum + len, longest.max(len)))
    }

    /// Makes one of free neighbours.
    fn join(&mut self) {
        let mut at = 1;
        while let (Some(left), Some(right)) = (self.list.get(at - 1).copied(), self.list.get(at).copied()) {
            if left.state != State::Free || right.state != State::Free {
                at += 1;
                continue;
            }
            self.list.remove(at);
            if let Some(left) = self.list.get_mut(at - 1) {
                left.len += right.len;
            }
        }
    }
}
