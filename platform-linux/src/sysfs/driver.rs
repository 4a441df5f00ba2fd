//! Which driver a device has.

/// The driver of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Driver {
    /// Broadcom.
    BnxtRe,
    /// AMD Pensando.
    Ionic,
    /// Soft-RoCE.
    Rxe,
    /// Another one, or one that sysfs does not name.
    Other,
}

/// What is known of a driver.
struct Entry {
    driver: Driver,
    /// Name of this crate for it.
    name: &'static str,
    /// `rdma_driver_id`.
    id: u32,
    /// Versions of its ABI, first and last.
    abi: (u32, u32),
    /// Names of kernel drivers that the device or its parent may be bound to.
    bound: &'static [&'static str],
    /// PCI vendor, 0 for none.
    vendor: u32,
}

const DRIVERS: [Entry; 3] = [
    Entry {
        driver: Driver::BnxtRe,
        name: "bnxt_re",
        id: 6,
        abi: (1, 1),
        bound: &["bnxt_re", "bnxt_en"],
        vendor: 0x14e4,
    },
    Entry {
        driver: Driver::Ionic,
        name: "ionic",
        id: 21,
        abi: (1, 1),
        bound: &["ionic", "ionic_rdma"],
        vendor: 0x1dd8,
    },
    Entry { driver: Driver::Rxe, name: "rxe", id: 14, abi: (2, 2), bound: &["rdma_rxe"], vendor: 0 },
];

impl Driver {
    fn entry(self) -> Option<&'static Entry> {
        DRIVERS.iter().find(|e| e.driver == self)
    }

    /// Name.
    pub fn name(self) -> &'static str {
        self.entry().map_or("other", |e| e.name)
    }

    /// `rdma_driver_id`, which every call carries; none if it has to be found by asking.
    pub fn id(self) -> Option<u32> {
        self.entry().map(|e| e.id)
    }

    /// Versions of the driver's ABI that are supported, first and last; none if any is.
    pub fn abi(self) -> Option<(u32, u32)> {
        self.entry().map(|e| e.abi)
    }

    /// The driver of a device that is bound to the kernel driver `bound`, has the PCI vendor `vendor`, and describes itself
    /// as `description`. What it is bound to counts first.
    pub(super) fn find(bound: Option<&str>, vendor: Option<u32>, description: Option<&str>) -> Self {
        let by_bound = DRIVERS.iter().find(|e| bound.is_some_and(|b| e.bound.contains(&b)));
        let by_vendor = || DRIVERS.iter().find(|e| e.vendor != 0 && vendor == Some(e.vendor));
        // Soft-RoCE is bound to nothing, and has no vendor.
        let by_name = || DRIVERS.iter().find(|e| bound.is_none() && description == Some(e.name));
        by_bound.or_else(by_vendor).or_else(by_name).map_or(Self::Other, |e| e.driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_driver_counts_before_the_vendor() {
        assert_eq!(Driver::find(Some("bnxt_en"), Some(0x14e4), None), Driver::BnxtRe);
        assert_eq!(Driver::find(Some("ionic"), Some(0x1dd8), None), Driver::Ionic);
        assert_eq!(Driver::find(Some("ionic"), Some(0x14e4), None), Driver::Ionic);
        assert_eq!(Driver::find(None, Some(0x14e4), None), Driver::BnxtRe);
        assert_eq!(Driver::find(None, None, Some("rxe")), Driver::Rxe);
        assert_eq!(Driver::find(Some("mlx5_core"), Some(0x15b3), Some("rxe")), Driver::Other);
        assert_eq!(Driver::find(None, None, None).id(), None);
    }
}
