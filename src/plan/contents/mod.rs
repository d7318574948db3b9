//! What goes where: which host file, code object and database is in the portion of which package, and
//! how its files are placed and treated.

pub(super) mod assign;
pub(super) mod exclude;
pub(super) mod missing;
pub(super) mod portion;
pub(super) mod selectors;
