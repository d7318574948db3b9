//! The packaging configuration: the groups of archs, and the texts and relations of packages.
//!
//! JSON and TOML have the same schema; the extension of the file chooses the syntax. Every key is optional.
//! [`Keys`] declares them, and docs/reference/configuration.md has a table of them.
//!
//! Refused, each with line and column: unknown keys, groups that cannot become packages, and values that do
//! not parse. The stage that knows the artifacts checks the rest (does the primary shard exist?), and asks
//! [`Config::fault`] for the position.

mod accept;
mod architectures;
mod characters;
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
mod list_or;
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
pub use characters::{is_letter_or_digit, is_small_or_digit};
pub use configuration::Config;
pub use document::{ConfigDocument, Position, Syntax, option_of};
pub use folders::Folders;
pub use former::{EachSchema, FormerPackage, FormerPackages};
pub use globs::{check_glob, matches_any};
pub use grouping::Grouping;
pub use interpreter::InterpreterSchema;
pub use keys::{
    AddedRelations, ComponentSchema, DebRelations, GroupSchema, KernelRelations, Keys,
    PackageSchema, PartRole, PartSchema, RpmRelations, Runpath, SUMMARY_LIMIT, SelectorSchema,
    SetRelations, Validation, ValidationOverrides, WheelKeys,
};
pub use lines::{is_address, is_maintainer};
pub use list_or::ListOr;
pub use nearest::{meant_arch, nearest, nearest_arch};
pub use options::KeyOptions;
pub use per_format::{OutsideLibrary, RuntimeRelation, Suffix};
pub use policies::{Alternatives, UnassignedArchitectures, Untransformable};
pub use read::read_text;
pub use rules::{ArchFilter, ComponentRules};
pub use scheme::{KernelsPer, MetaTemplates, NameTemplates, Scheme, Template};
pub use selectors::Selector;
pub use texts::PackageTexts;
