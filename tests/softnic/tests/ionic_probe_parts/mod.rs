//! A driver that knows nothing but the published interface: offsets and numbers, no code of the library's control channels.

pub mod host;
