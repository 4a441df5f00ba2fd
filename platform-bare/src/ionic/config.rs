use core::time::Duration;

use directverbs::ionic::cmb::CmbPreference;
use directverbs::verbs::Mtu;

/// What a NIC is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a command may take, retries included.
    pub command_limit: Duration,
    /// How long to wait before a command is sent again that the device was not ready for.
    pub retry_pause: Duration,
    /// How long the firmware's heartbeat may stand still before [`super::Nic::check`] takes it for dead.
    pub heartbeat_limit: Duration,
    /// Pipelines to use, 1 or 2.
    pub pipelines: u8,
    /// Largest path MTU.
    pub mtu: Mtu,
    /// Objects of all kinds together that are kept track of: protection domains, regions, windows, address handles, completion
    /// queues and queue pairs. There are never more, however many the device has. Each takes less than 100 bytes of the host's
    /// DMA memory.
    pub objects: usize,
    /// Entries of the GID table, at most 256.
    pub gids: usize,
    /// What protection domains are allocated with that are not allocated with something else.
    pub pd: PdConfig,
}

impl Default for Config {
    /// Five seconds for a command, as Linux has it, one pipeline, 1024 objects, 16 GIDs, all queues in memory of the host.
    fn default() -> Self {
        Self {
            command_limit: Duration::from_secs(5),
            retry_pause: Duration::from_secs(1),
            heartbeat_limit: Duration::from_secs(10),
            pipelines: 1,
            mtu: Mtu::B4096,
            objects: 1024,
            gids: 16,
            pd: PdConfig::default(),
        }
    }
}

/// Where the queue pairs of a protection domain go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdConfig {
    /// Pipelines that they may be on, a bit for each. They take turns; pipelines that are not used do not count.
    pub pipelines: u8,
    /// Whether send queues go to controller memory, and with express doorbells.
    pub sq: CmbPreference,
    /// The same for receive queues.
    pub rq: CmbPreference,
}

impl Default for PdConfig {
    /// Any pipeline, and memory of the host.
    fn default() -> Self {
        Self { pipelines: u8::MAX, sq: CmbPreference::HOST, rq: CmbPreference::HOST }
    }
}
