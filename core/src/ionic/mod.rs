//! AMD Pensando ionic, rdma versions 1 and 2.

pub mod cqe;
pub mod doorbell;
pub mod wqe;

use crate::layout::Layout;

/// Every layout of the family.
pub const LAYOUTS: &[Layout] = &LAYOUT_TABLE;

const LAYOUT_TABLE: [Layout; 12] = {
    let [a, b, c, d, e, f, g, h, i] = wqe::LAYOUTS;
    let [j, k, l] = cqe::LAYOUTS;
    [a, b, c, d, e, f, g, h, i, j, k, l]
};
