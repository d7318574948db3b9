//! The recognition of kernel databases: device code, or indexes of it, in separate files.
//!
//! Owns the rules of `config/databases.toml` and the claims that they make on paths, reads the content of
//! indexes, and judges whether the indexes of a folder contradict each other. `split` decides about a claimed
//! file. Refuses rules with unknown keys, and two rules with the same name.

mod glob;
mod index;
mod integrity;
mod lazy;
mod rule;
mod union;

pub use glob::{matches_name, matches_path};
pub use index::{Index, IndexDescription, describe_index, index_bytes, is_zlib, read_index};
pub use integrity::{LibraryIndex, inconsistencies};
pub use lazy::{LazyNames, stem};
pub use rule::{DatabaseClaim, DatabaseRole, DatabaseRules, Rule, Spelling};
pub use union::{Union, union};
