//! Patch versions side by side in one repository, with hotfixes of the earlier one.

use std::sync::Arc;

use support::tools;

use crate::install::sets::{Built, Recipe};
use crate::install::system::System;
use crate::install::updates::components::Changed::Library;
use crate::install::updates::hotfixes::releases;
use crate::install::updates::{
    BLAS, ONE_GROUP, Versions, assert_newest, install, updated, upgrade, upgrade_pinned,
};

/// Version 7.1.1, which reads the receipt of the last hotfix of 7.1.0.
fn next(hotfix: &Built) -> Arc<Built> {
    let next = Recipe::new("7.1.1").revisions(&[(Library("utils"), "next")]);
    next.option("--since", &hotfix.receipt()).build()
}

/// All packages in one version.
fn all_at(version: &str, versions: &Versions) -> Versions {
    versions.keys().map(|name| (name.clone(), version.to_owned())).collect()
}

/// A client that stays at 7.1.0 gets its hotfixes; others move to 7.1.1 as a whole.
pub fn patch_versions_stand_side_by_side(system: &dyn System) {
    let [first, second, ..] = releases();
    let next = next(&second);
    let all: [&Built; 3] = [&first, &second, &next];
    let old = install(system, &first, &ONE_GROUP);
    system.pin(&["rocm*"], "7.1.0-*", "7.1.1-1");
    upgrade_pinned(system, &all, &updated(&old, &BLAS, "7.1.0-2"));
    system.unpin(&["rocm*"], "7.1.1-1");
    upgrade(system, &all, &all_at("7.1.1-1", &old));
    assert_newest(system);

    // Goes back to the earlier patch version by naming every installed package of the set.
    let earlier: Vec<(&str, &str)> = old.keys().map(|name| (name.as_str(), "7.1.0-1")).collect();
    tools::run(&mut system.install_versions(&earlier));
    assert_eq!(system.installed(), old);
    system.purge_all();

    // Returns to an earlier version by naming the packages that belong to it.
    let names = ["rocm-blas-gfx110x", "rocm-blas", "rocm-common"];
    let versions = names.map(|name| (name, "7.1.0-1"));
    tools::run(&mut system.install_versions(&versions));
    let named = versions.map(|(name, version)| (name.to_owned(), version.to_owned()));
    assert_eq!(system.installed(), Versions::from(named));
}
