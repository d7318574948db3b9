//! What one run may take, and what asks it to end.
//!
//! A [`Budget`] is a value: whoever starts a run makes one from its options and hands it down, and
//! two runs in one process know nothing of each other. Content carries the budget that it was
//! opened within, so readers of formats draw from it without knowing how it was divided. The only
//! state of the process is the signal in [`interrupt`] and the listener in [`waiting`].
//!
//! Refused: input that needs more memory than its share, and thread pools made elsewhere.

mod budget;
pub mod interrupt;
mod pool;
mod records;
pub mod shares;
pub mod threads;
pub mod waiting;

pub use budget::{Budget, Limits, Use};
pub use pool::{Lease, Pool};
