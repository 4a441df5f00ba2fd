use core::time::Duration;

use directverbs::verbs::Mtu;

/// What a device is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a command may take, retries included.
    pub command_limit: Duration,
    /// How long to wait before a command is sent again that the device was not ready for.
    pub retry_pause: Duration,
    /// Pipelines to use, 1 or 2.
    pub pipelines: u8,
    /// Largest path MTU.
    pub mtu: Mtu,
}

impl Default for Config {
    /// Five seconds for a command, as Linux has it, and one pipeline.
    fn default() -> Self {
        Self {
            command_limit: Duration::from_secs(5),
            retry_pause: Duration::from_secs(1),
            pipelines: 1,
            mtu: Mtu::B4096,
        }
    }
}
