//! TheRock's package list: the file, the owners of content by its entries, and their packages.

mod file;
mod owners;
mod packages;
mod relations;
mod schema;
mod stage_prefixes;

pub use file::PackageList;
pub use owners::PackageListOwners;
#[cfg(test)]
pub(super) use stage_prefixes::StagePrefixes;

#[cfg(test)]
mod tests;
