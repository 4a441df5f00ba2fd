//! Newtypes for the numbers that the field's bugs come from. An id never stands where an index is meant.

use zerocopy::{Immutable, IntoBytes};

/// Declares a newtype over `u32` that keeps its lowest `$bits` bits.
macro_rules! id {
    ($($(#[doc = $doc:literal])* $name:ident: $bits:literal;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
        #[repr(transparent)]
        pub struct $name(u32);
        impl $name {
            /// Width in bits.
            pub const BITS: u32 = $bits;
            /// The largest value.
            pub const MAX: Self = Self(u32::MAX >> (32 - $bits));
            /// Checks the width.
            pub const fn new(value: u32) -> Option<Self> {
                if value <= Self::MAX.0 { Some(Self(value)) } else { None }
            }
            /// Keeps the lowest bits and drops the rest: for values that a device reported.
            pub const fn truncated(value: u32) -> Self {
                Self(value & Self::MAX.0)
            }
            /// The number.
            pub const fn get(self) -> u32 {
                self.0
            }
        }
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    )* };
}

id! {
    /// Queue pair number, 24 bits on the wire.
    QpId: 24;
    /// Completion queue number, 24 bits in ionic doorbells, 20 in bnxt_re ones.
    CqId: 24;
    /// Shared receive queue number.
    SrqId: 24;
    /// Address handle: 20 bits in a bnxt_re WQE (AVID), 24 in ionic.
    AhId: 24;
    /// Protection domain.
    PdId: 24;
    /// Doorbell page index.
    Dpi: 20;
    /// Packet sequence number, modulo 2^24.
    Psn: 24;
    /// Local key of a memory region, in host order.
    LKey: 32;
    /// Remote key of a memory region or window, in host order.
    RKey: 32;
    /// Queue key of a datagram queue pair, in host order.
    QKey: 32;
    /// Immediate data as a number; the wire carries it most significant byte first.
    Imm: 32;
}

impl Psn {
    /// The sequence number `packets` later, modulo 2^24.
    #[must_use]
    pub const fn add(self, packets: u32) -> Self {
        Self::truncated(self.0.wrapping_add(packets))
    }

    /// Signed distance from `earlier` to `self`, in -2^23 .. 2^23.
    pub const fn distance_from(self, earlier: Self) -> i32 {
        ((self.0.wrapping_sub(earlier.0) << 8) as i32) >> 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_wider_than_the_id_is_refused() {
        assert_eq!(Dpi::new(0x10_0000), None);
        assert_eq!(Dpi::new(0xf_ffff), Some(Dpi::MAX));
        assert_eq!(QpId::truncated(0xab00_0001).get(), 1);
        assert_eq!(LKey::new(u32::MAX), Some(LKey::MAX));
    }

    #[test]
    fn sequence_numbers_wrap_at_24_bits() {
        let last = Psn::MAX;
        assert_eq!(last.add(2).get(), 1);
        assert_eq!(last.add(2).distance_from(last), 2);
        assert_eq!(last.distance_from(last.add(2)), -2);
    }
}
