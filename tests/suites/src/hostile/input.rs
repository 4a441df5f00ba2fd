/// Takes values from the front of fuzzer bytes; when they run out, zeros come.
#[derive(Clone, Debug)]
pub struct Input<'d>(&'d [u8]);

impl<'d> Input<'d> {
    /// Reads from the start of `data`.
    pub const fn new(data: &'d [u8]) -> Self {
        Self(data)
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let taken = self.slice(N);
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    /// Up to `len` bytes.
    pub fn slice(&mut self, len: usize) -> &'d [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next 16 bits.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.u32() % bound
    }
}
