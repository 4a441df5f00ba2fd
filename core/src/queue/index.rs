//! Index newtypes. bnxt_re counts the same ring in slots, WQEs and messages; mixing them up compiles in C.

macro_rules! index {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
        impl $name {
            /// The index.
            #[inline(always)]
            pub const fn get(self) -> u32 {
                self.0
            }
        }
    )* };
}

index! {
    /// Index of a 16-byte slot of a bnxt_re ring.
    SlotIdx;
    /// Index of a WQE, or of a CQE.
    WqeIdx;
    /// Index of a message in the MSN table.
    MsnIdx;
}
