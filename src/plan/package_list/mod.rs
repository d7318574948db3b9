//! TheRock's list of packages: the file, which of its entries takes what, and their packages.

mod file;
pub(super) mod owners;
pub(super) mod packages;
mod relations;
mod schema;
mod stage_prefixes;

pub use file::{PackageList, PackageListEntry};
pub use owners::Import;
pub use stage_prefixes::StagePrefixes;

#[cfg(test)]
mod tests;
