//! Flags of a send WQE.

use crate::layout::bits;
use crate::verbs::{Data, SendFlags, SendRequest};

bits! {
    /// Flags of a send WQE.
    pub struct SqFlags(u8) {
        /// Produce a CQE also on success.
        signal_comp: bool = 1,
        /// Start after earlier READs and atomics have completed.
        rd_or_atomic_fence: bool = 1,
        /// Start after all earlier requests have completed.
        uc_fence: bool = 1,
        /// Solicited event at the peer.
        se: bool = 1,
        /// Data follows the header instead of SGEs.
        inline_data: bool = 1,
        /// Take a time stamp.
        wqe_ts_en: bool = 1,
        /// Trace in the device.
        debug_trace: bool = 1,
        __: bool = 1,
    }
}

impl SqFlags {
    /// The flags at their place in the header's first word.
    #[inline(always)]
    pub(super) const fn in_first_word(self) -> u32 {
        (self.into_bits() as u32) << 8
    }

    /// The flags in a header's first word.
    #[inline(always)]
    pub(super) const fn from_first_word(word: u32) -> Self {
        Self::from_bits((word >> 8) as u8)
    }
}

/// The device's flags for each value of [`SendFlags`], at their place in the header's first word.
///
/// The device has two fences. [`SendFlags::FENCE`] sets `uc_fence`, as the vendor's provider does: it is the stronger one
/// and covers READs and atomics. [`SendFlags::LOCAL_FENCE`] sets `rd_or_atomic_fence`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlagWords(&'static [u32; 256]);

impl FlagWords {
    /// Of a queue on which every request, or only those that ask for it, produce a completion.
    pub const fn new(signal_all: bool) -> Self {
        static ASKED: [u32; 256] = flag_words(SqFlags::new());
        static ALL: [u32; 256] = flag_words(SqFlags::new().with_signal_comp(true));
        Self(if signal_all { &ALL } else { &ASKED })
    }

    /// The bits for a request's flags.
    #[inline(always)]
    pub const fn word_of(self, flags: SendFlags) -> u32 {
        self.0[flags.bits() as usize]
    }

    /// The flags of a request's WQE.
    pub const fn of(self, request: &SendRequest<'_>) -> SqFlags {
        let inline = matches!(request.data, Data::Inline(_));
        SqFlags::from_first_word(self.word_of(request.flags)).with_inline_data(inline)
    }
}

/// A word for each value of [`SendFlags`], with the flags in `always` too.
const fn flag_words(always: SqFlags) -> [u32; 256] {
    let map = [
        (SendFlags::SIGNALED, SqFlags::new().with_signal_comp(true)),
        (SendFlags::LOCAL_FENCE, SqFlags::new().with_rd_or_atomic_fence(true)),
        (SendFlags::FENCE, SqFlags::new().with_uc_fence(true)),
        (SendFlags::SOLICITED, SqFlags::new().with_se(true)),
    ];
    let mut table = [always.in_first_word(); 256];
    let mut flags = 0;
    while flags < table.len() {
        let mut i = 0;
        while i < map.len() {
            let (flag, bits) = map[i];
            if flags & flag.bits() as usize != 0 {
                table[flags] |= bits.in_first_word();
            }
            i += 1;
        }
        flags += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_the_bits_of_the_device() {
        let all = [
            (SendFlags::SIGNALED, 0x01),
            (SendFlags::LOCAL_FENCE, 0x02),
            (SendFlags::FENCE, 0x04),
            (SendFlags::SOLICITED, 0x08),
            (SendFlags::all(), 0x0f),
            (SendFlags::empty(), 0),
        ];
        for (flags, bits) in all {
            let request = SendRequest::send().flags(flags);
            assert_eq!(FlagWords::new(false).of(&request).into_bits(), bits);
            assert_eq!(FlagWords::new(true).of(&request.inline(&[])).into_bits(), bits | 0x11);
        }
        assert!(FlagWords::new(false).of(&SendRequest::send().flags(SendFlags::FENCE)).uc_fence());
    }
}
