//! Which driver takes a function.

#[cfg(feature = "ionic")]
use directverbs::ionic::devcmd::registers::{PCI_DEVICE_PF, PCI_DEVICE_VF, PCI_VENDOR};

/// A family of NICs that there is a driver for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Broadcom.
    #[cfg(feature = "bnxt-re")]
    BnxtRe,
    /// AMD Pensando.
    #[cfg(feature = "ionic")]
    Ionic,
}

impl Family {
    /// The family of a function, by its vendor and device.
    pub fn of((vendor, device): (u16, u16)) -> Option<Self> {
        #[cfg(feature = "bnxt-re")]
        if crate::bnxt_re::is_supported(vendor, device) {
            return Some(Self::BnxtRe);
        }
        #[cfg(feature = "ionic")]
        if vendor == PCI_VENDOR && [PCI_DEVICE_PF, PCI_DEVICE_VF].contains(&device) {
            return Some(Self::Ionic);
        }
        let _ = (vendor, device);
        None
    }

    /// Name.
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "bnxt-re")]
            Self::BnxtRe => "bnxt_re",
            #[cfg(feature = "ionic")]
            Self::Ionic => "ionic",
        }
    }
}
