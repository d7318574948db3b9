//! The packaging configuration: which archs are grouped, and what the packages say.
//!
//! JSON and TOML carry the same schema; the file's ending chooses. Every key may be left out.
//!
//! [`Keys`] declares them; docs/reference/configuration.md has the table that is made of it.
//!
//! Refused, each with line and column: unknown keys, groups that no package can be made of, and
//! values that do not parse. What depends on the artifacts (does the primary shard exist?) is
//! checked by the stage that knows them, which asks [`Config::fault`] for the place.

mod accept;
mod architectures;
mod check;
mod configuration;
mod databases;
mod declared;
mod document;
mod folders;
mod former;
mod globs;
mod grouping;
mod interpreter;
mod keys;
mod lines;
mod nearest;
mod open;
mod options;
mod per_format;
mod policies;
mod read;
mod rules;
mod scheme;
mod selectors;
mod texts;

#[cfg(test)]
mod tests;

pub use accept::{AcceptSchema, Accepted, SetScope};
pub use configuration::Config;
pub use document::{ConfigDocument, Position, Syntax, option_of};
pub use folders::Folders;
pub use former::{EachSchema, FormerPackage, FormerPackages, FormerSchema};
pub use globs::{check_glob, matches_any};
pub use grouping::{ArchitectureGroup, Grouping};
pub use interpreter::InterpreterSchema;
pub use keys::{
    AddedRelations, ComponentSchema, DebRelations, GroupSchema, KernelRelations, Keys,
    PackageSchema, PartRole, PartSchema, RpmRelations, Runpath, SUMMARY_LIMIT, SelectorSchema,
    SetRelations, Validation, ValidationOverrides, WheelKeys,
};
pub use lines::{is_address, is_maintainer};
pub use nearest::{meant_arch, nearest, nearest_arch};
pub use options::KeyOptions;
pub use per_format::{OutsideLibrary, RuntimeRelation, Suffix};
pub use policies::{Alternatives, UnassignedArchitectures, Untransformable};
pub use read::read_text;
pub use rules::{ArchFilter, ComponentRules};
pub use scheme::{KernelsPer, MetaTemplates, NameTemplates, Scheme, Template};
pub use selectors::Selector;
pub use texts::PackageTexts;
