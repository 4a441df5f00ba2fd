//! Broadcom bnxt_re.
use crate::layout::Layout;
/// Every layout of the family.
pub const LAYOUTS: &[Layout] = &[];
