bitflags::bitflags! {
    /// What a memory region or queue pair lets others do. The bit values are those of `ibv_access_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AccessFlags: u32 {
        /// The device may write into the region for a local operation.
        const LOCAL_WRITE = 1;
        /// A peer may write.
        const REMOTE_WRITE = 1 << 1;
        /// A peer may read.
        const REMOTE_READ = 1 << 2;
        /// A peer may do atomics.
        const REMOTE_ATOMIC = 1 << 3;
        /// A memory window may be bound to the region.
        const MW_BIND = 1 << 4;
        /// Addresses count from zero at the region's start.
        const ZERO_BASED = 1 << 5;
        /// PCIe relaxed ordering.
        const RELAXED_ORDERING = 1 << 20;
    }
}
