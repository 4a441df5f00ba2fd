use core::ops::DerefMut;

/// Who holds the bookkeeping of a queue: a family of slice owners.
///
/// # Safety
/// An owner always dereferences to the same slice.
pub unsafe trait Store {
    /// Owner of a slice of records.
    type Slice<T: Copy + 'static>: DerefMut<Target = [T]>;
}

/// Bookkeeping in slices that the caller lends.
#[derive(Clone, Copy, Debug)]
pub struct Borrowed<'b>(core::marker::PhantomData<&'b mut ()>);

// SAFETY: a reference.
unsafe impl<'b> Store for Borrowed<'b> {
    type Slice<T: Copy + 'static> = &'b mut [T];
}

/// Bookkeeping inside the queue, for at most `N` records.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<const N: usize>;

// SAFETY: a vector that is not changed through `[T]`.
unsafe impl<const N: usize> Store for Fixed<N> {
    type Slice<T: Copy + 'static> = heapless::Vec<T, N>;
}

/// Bookkeeping in boxes.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug)]
pub struct Boxed;

// SAFETY: a box.
#[cfg(feature = "alloc")]
unsafe impl Store for Boxed {
    type Slice<T: Copy + 'static> = alloc::boxed::Box<[T]>;
}

/// The records of a queue: what the driver must remember of each entry, because ring memory is never trusted.
///
/// Indices are checked by masking: the length is a power of two, and an index outside wraps around into it.
pub struct Shadow<T: Copy + 'static, S: Store> {
    records: S::Slice<T>,
    mask: usize,
}

impl<T: Copy + 'static, S: Store> core::fmt::Debug for Shadow<T, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shadow").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Copy + 'static, S: Store> Shadow<T, S> {
    /// Takes the longest power-of-two prefix of `records`; `None` if there is none, or if it is shorter than `needed`.
    pub fn new(records: S::Slice<T>, needed: usize) -> Option<Self> {
        let len = records.len();
        let usable = if len == 0 { 0 } else { 1 << len.ilog2() };
        (usable >= needed && usable > 0).then_some(Self { records, mask: usable - 1 })
    }

    /// Number of records that indices reach.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.mask + 1
    }

    /// Record `index`, modulo [`Shadow::len`].
    #[inline(always)]
    pub fn get(&self, index: usize) -> &T {
        // SAFETY: `new` has set `mask` below the slice's length, and neither is changed afterwards.
        unsafe { self.records.get_unchecked(index & self.mask) }
    }

    /// Record `index`, modulo [`Shadow::len`].
    #[inline(always)]
    pub fn get_mut(&mut self, index: usize) -> &mut T {
        let index = index & self.mask;
        // SAFETY: `new` has set `mask` below the slice's length, and neither is changed afterwards.
        unsafe { self.records.get_unchecked_mut(index) }
    }

    /// All records, to save them.
    pub fn records(&self) -> &[T] {
        self.records.get(..=self.mask).unwrap_or(&[])
    }

    /// All records, to fill or restore them.
    pub fn records_mut(&mut self) -> &mut [T] {
        self.records.get_mut(..=self.mask).unwrap_or(&mut [])
    }
}
