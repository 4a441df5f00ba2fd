//! What every ring has: memory, indices, shadow records, doorbells and barriers, and the table that pollers look queue
//! pairs up in. The only room of this crate with `unsafe` code.

pub mod barrier;
mod doorbell;
mod entries;
mod index;
mod phase;
mod publish;
mod reader;
mod ring;
mod sequence;
mod shadow;
mod shared;
mod slots;
mod table;
mod words;

pub use doorbell::{DeviceMemory, Doorbell};
pub use entries::{EntryRing, RecordRing};
pub use index::{MsnIdx, SlotIdx, WqeIdx};
pub use phase::PhaseRing;
pub use publish::Publisher;
pub use reader::ReadRing;
pub use ring::{Entry, RingMemory, Slot};
pub use sequence::{Reservations, is_before};
#[cfg(feature = "alloc")]
pub use shadow::Boxed;
pub use shadow::{Borrowed, Fixed, Shadow, Store};
pub use shared::{Shared, SharedTable};
pub use slots::{EPOCH, Room, Run, SlotRing, Span};
pub use table::{QpTable, TableFull};
pub use words::WordTable;
