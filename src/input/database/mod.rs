//! Which files are kernel databases: device code, or indexes of it, in files of their own.
//!
//! Owns the rules of `config/databases.toml` and what they say of a path, reads what an index says,
//! and judges whether the indexes of a folder contradict each other. What becomes of a claimed file is
//! decided by `split`. Refused: rules with unknown keys, and a name given twice.

mod glob;
mod index;
mod integrity;
mod lazy;
mod rule;
mod union;

pub use glob::{matches_name, matches_path};
pub use index::{Index, IndexDescription, describe_index, index_bytes, read_index};
pub use integrity::{LibraryIndex, inconsistencies};
pub use lazy::{LazyNames, stem};
pub use rule::{DatabaseClaim, DatabaseRole, DatabaseRules, Rule, Spelling};
pub use union::{Union, union};
