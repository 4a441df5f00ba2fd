use core::time::Duration;

use directverbs::bnxt_re::hwrm::context::Demand;
use directverbs::bnxt_re::wqe::WqeMode;
use directverbs::verbs::{Gid, Mtu};

/// What a driver wants of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config<'a> {
    /// Objects that the device shall have context memory for. There can be no more of all kinds together, but for protection
    /// domains.
    pub demand: Demand,
    /// Protection domains.
    pub pds: u32,
    /// Our GIDs; without any, the link-local one that follows from the Ethernet address is added.
    pub gids: &'a [Gid],
    /// VLAN tag of each GID, in the same order; those behind the end have none.
    pub vlans: &'a [Option<u16>],
    /// Largest path MTU.
    pub mtu: Mtu,
    /// Layout of WQEs, where the device leaves a choice; `None` takes what suits the generation.
    pub wqe_mode: Option<WqeMode>,
    /// Slots of the command ring, a power of two.
    pub command_slots: u32,
    /// Entries of the ring of completions of commands, and of the notification queue, a power of two.
    pub event_entries: u32,
    /// Longest time that a command may take.
    pub command_limit: Duration,
    /// What a request may take however little the device says that it does: zero but for devices that are slower than they
    /// say, such as those of a machine that has other things to do.
    pub request_limit: Duration,
    /// Longest time that a reset of the function, by the firmware, may take.
    pub reset_limit: Duration,
}

impl Default for Config<'_> {
    fn default() -> Self {
        Self {
            demand: Demand { qps: 64, srqs: 16, cqs: 128, regions: 256, ahs: 64 },
            pds: 64,
            gids: &[],
            vlans: &[],
            mtu: Mtu::B4096,
            wqe_mode: None,
            command_slots: 256,
            event_entries: 256,
            command_limit: Duration::from_secs(40),
            request_limit: Duration::ZERO,
            reset_limit: Duration::from_secs(20),
        }
    }
}
