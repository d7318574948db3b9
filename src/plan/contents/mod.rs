//! What goes where: which host file, code object and database is in the portion of which package, and
//! how its files are placed and treated.

pub(super) mod debug_places;
pub(super) mod exclude;
pub(super) mod listed;
pub(super) mod missing;
pub(super) mod placed;
pub(super) mod portion;
pub(super) mod selectors;
pub(super) mod stage_prefixes;
