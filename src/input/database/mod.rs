//! Which files are kernel databases: device code, or indexes of it, in files of their own.
//!
//! Owns the rules of `config/databases.toml` and what they say of a path, and reads what
//! an index says. What becomes of a claimed file is decided by `split`. Refused: rules with
//! unknown keys, and a name given twice.

mod glob;
mod index;
mod rule;
mod union;

pub use glob::{matches_name, matches_path};
pub use index::{Index, IndexDescription, describe_index, index_bytes, read_index};
pub use rule::{DatabaseClaim, DatabaseRole, DatabaseRules, Rule, Spelling};
pub use union::{Union, union};
