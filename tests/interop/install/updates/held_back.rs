//! Package managers hold back exactly the packages that a run reports as held back (`R113`).

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use support::tools;

use crate::install::sets::{Built, Recipe};
use crate::install::system::System;
use crate::install::updates::components::{Changed::Library, Revision};
use crate::install::updates::{ONE_GROUP, install, offer};

const CHANGED: [Revision; 1] = [(Library("blas"), "second")];

/// The names in a list of the finding about a format.
fn told(set: &Built, format: &str, list: &str) -> BTreeSet<String> {
    let receipt: Value = serde_json::from_slice(&fs::read(set.receipt()).unwrap()).unwrap();
    let findings = receipt["findings"].as_array().unwrap().iter();
    let mut own = findings.filter(|it| it["code"] == "R113" && it["format"] == format);
    let finding = own.next().expect("a finding");
    let names = finding[list].as_array().unwrap().iter();
    let name = |it: &Value| it.as_str().or(it["package"].as_str()).unwrap().to_owned();
    names.map(name).collect()
}

/// The hotfix is of one family, and all packages require one version of each other.
pub fn what_is_said_is_held_back(system: &dyn System) {
    let first = recipe(&[]).build();
    let limited = recipe(&CHANGED).on("2", &[&first]).text("--only", "blas").build();
    let old = install(system, &first, &ONE_GROUP);
    offer(system, &[&first, &limited]);
    tools::told(&mut system.upgrade());
    assert_eq!(system.installed(), old);
    let newer = limited.packages(system.format());
    let waiting: BTreeSet<String> = newer.into_iter().filter(|it| old.contains_key(it)).collect();
    let held_back = told(&limited, system.format(), "held_back");
    assert!(waiting.is_subset(&held_back), "{waiting:?} {held_back:?}");
    if system.format() == "deb" {
        // A command that may remove packages removes the reported ones; apt 3 removes nothing.
        tools::run(&mut system.update());
        let left = system.names();
        let gone: BTreeSet<String> = old.keys().filter(|it| !left.contains(*it)).cloned().collect();
        let misfits = told(&limited, "deb", "misfits");
        assert!(gone.is_subset(&misfits), "{gone:?} {misfits:?}");
        assert!(!gone.is_empty() || system.installed() == old);
    }
}

fn recipe(revisions: &[Revision]) -> Recipe {
    Recipe::new("7.1.0").revisions(revisions).keys(json!({ "set_relations": "exact" }))
}
