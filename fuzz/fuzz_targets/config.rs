//! Packaging configurations in both syntaxes: an error with a place, or a checked configuration.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use rockpack::config::{Config, Syntax};

fuzz_target!(|text: &str| {
    for syntax in [Syntax::Json, Syntax::Toml] {
        let Ok(config) = Config::parse(text, syntax) else {
            continue;
        };
        let mut archs = BTreeSet::new();
        for group in &config.groups {
            assert!(!group.architectures.is_empty());
            for arch in &group.architectures {
                assert!(archs.insert(arch), "{arch} is in two groups");
            }
            // Every value that was accepted has a place for later complaints.
            let fault = config.fault(&["architecture_groups", &group.name], "x");
            assert!(fault.place().structure.is_some());
        }
    }
});
