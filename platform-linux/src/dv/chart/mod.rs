//! Pictures of results: bars in the terminal, and SVG.

mod bars;
mod buckets;
mod svg;

pub use bars::bars;
pub use buckets::{Bucket, buckets};
pub use svg::{Lines, Series, histogram, lines};
