//! The limits of one run, and the signal that ends it.
//!
//! A [`Budget`] is a value: the caller makes one from its options and hands it down, and two runs in one
//! process do not affect each other. Content carries the budget that it was opened within, so readers of
//! formats draw from it without knowing how it was divided. The only global state is the signal in
//! [`interrupt`] and the listener in [`waiting`].
//!
//! Refused: input that needs more memory than its part, and thread pools made elsewhere.

mod budget;
pub mod interrupt;
mod limits;
mod pool;
pub mod threads;
pub mod waiting;

pub use budget::{Budget, Use};
pub use limits::{BuildNeeds, Limits, parse_size};
pub use pool::{Lease, Pool};
