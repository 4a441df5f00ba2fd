//! Software NICs that carry out what the drivers in `directverbs` post.

pub mod open;
