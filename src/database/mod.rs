//! Which files are kernel databases: device code, or indexes of it, in files of their own.
//!
//! Owns the rules of `config/databases.toml` and what they say of a path, and reads the archs
//! that an index names. What becomes of a claimed file is decided by `split`. Refused: rules with
//! unknown keys, and a name given twice.

mod glob;
mod index;
mod rule;

pub use index::{IndexArchs, archs_of_index};
pub use rule::{Claim, Role, Rule, Rules};
