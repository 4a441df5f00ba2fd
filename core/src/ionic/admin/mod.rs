//! The RDMA admin queue: creates, changes and destroys the objects of the datapath.
//!
//! Each command is an [`AdminCommand`] that goes into an [`RdmaAdminQueue`]; what it does is told by a CQE. All numbers are
//! chosen by the host. Memory is named by [`PagePlan`]s, paths by [`HeaderTemplate`]s, and events come back through an
//! [`EventQueue`].

mod eq;
mod flags;
mod modify;
mod opcode;
mod pages;
mod queue;
mod template;
mod wqe;

pub use eq::{EQE_BYTES, EQE_LOG2, Eqe, Event, EventCode, EventQueue, EventType};
pub use flags::{QpFlags, QpKind, QpTypeState, state};
pub use modify::*;
pub use opcode::{AdminError, AdminOp};
pub use pages::{LIST_ENTRY, PageError, PagePlan};
pub use queue::{AdminDone, CQE_STRIDE_LOG2, RdmaAdminConfig, RdmaAdminQueue, STRIDE_LOG2};
pub use template::{CsumProfile, HeaderTemplate, ParsedTemplate, TEMPLATE_MAX, TemplateError};
pub use wqe::*;

use crate::layout::{Layout, joined};

/// Every layout of the RDMA admin queue and of events.
pub const LAYOUTS: &[Layout] = &LAYOUT_TABLE;

const LAYOUT_TABLE: [Layout; 16] = joined(&[&wqe::LAYOUTS, &modify::LAYOUTS, &eq::LAYOUTS]);
