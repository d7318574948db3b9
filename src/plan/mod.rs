//! From components to packages: names, files, relations.

pub mod package;
