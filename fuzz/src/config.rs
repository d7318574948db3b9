//! Packaging configurations in both syntaxes: an error with a place, or a checked configuration. Lists of
//! packages likewise.

use std::collections::BTreeSet;

use rockpack_core::error::Error;
use rockpack_plan::config::{Config, Syntax};
use rockpack_plan::PackageList;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for syntax in [Syntax::Json, Syntax::Toml] {
        let Some(config) = super::read(Config::parse(text, syntax)) else {
            continue;
        };
        let mut archs = BTreeSet::new();
        for group in &config.grouping.groups {
            assert!(!group.archs.is_empty());
            for arch in &group.archs {
                assert!(archs.insert(arch), "{arch} is in two groups");
            }
            // Every accepted value has a place for later errors.
            let fault = config.fault(&["architecture_groups", &group.name], "x");
            assert!(fault.place().structure.is_some());
        }
    }
    if let Some(list) = super::read(PackageList::parse(text)) {
        let mut names = BTreeSet::new();
        for entry in &list.entries {
            assert!(names.insert(&entry.name), "{} is listed twice", entry.name);
            let located = list.located(entry, &["Package"], &Error::malformed("x"));
            assert!(located.place().structure.is_some());
        }
    }
}
