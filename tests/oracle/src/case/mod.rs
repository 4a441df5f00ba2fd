//! What the oracles of both families share: seeded cases, what is observed of each side, the comparison, named
//! exceptions, and the count of it all.
//!
//! A case is a mode of the device, a seed, and the steps that follow from both. Each step is carried out by the vendor's
//! provider ("theirs") and by our core ("ours"); what both did is compared at once, so the first difference is the one
//! that is reported. A family implements [`Family`] and [`Pair`]; the rest is here.

pub mod decode;
pub mod dice;
pub mod exception;
pub mod generate;
pub mod judge;
pub mod observed;
pub mod pages;
pub mod request;
pub mod run;
pub mod step;
pub mod tally;

pub use decode::decode;
pub use dice::{Dice, Rng};
pub use exception::{Allowance, Allowed, Exception};
pub use generate::{Profile, Temper, steps};
pub use judge::{Difference, Judgement, judge};
pub use observed::{Access, Area, Completion, Observed, Outcome};
pub use pages::Pages;
pub use request::{Payload, Recv, Send, with_all};
pub use run::{Family, Pair, Played, run_case};
pub use step::{Event, Interface, Message, Step};
pub use tally::{CaseResult, Report, Tally};
